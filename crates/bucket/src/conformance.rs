//! The suite that every store must pass: what the protocol builds on, seen through the [`Bucket`] trait alone. Behind
//! the feature `conformance`, for tests. Cases are named, so that a failure says which promise a store breaks; each works
//! below a prefix of its own and removes nothing else.

mod bodies;
mod conditions;
mod keys;
mod listing;
mod ranges;
mod streams;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use crate::Bucket;

/// How much of the suite a store can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Races for one key.
    pub races: usize,
    /// Keys listed; more than 1,000 shows whether paging works.
    pub listed: usize,
    /// Length of the streamed object in bytes.
    pub streamed_len: usize,
    /// Whether keys with control characters, empty segments and dot segments are tried: legal, but not every server
    /// takes them, and no key of ours has them.
    pub has_odd_keys: bool,
}

impl Scope {
    /// Everything.
    #[must_use]
    pub const fn full() -> Self {
        Self { races: 50, listed: 1_100, streamed_len: 20 * 1024 * 1024, has_odd_keys: true }
    }

    /// What a store of another make must pass.
    #[must_use]
    pub const fn portable() -> Self {
        Self { has_odd_keys: false, ..Self::full() }
    }
}

type CaseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One named promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// The promise, as a sentence.
    pub name: &'static str,
    run: fn(Bench) -> CaseFuture,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What a case works with.
#[derive(Clone, Debug)]
struct Bench {
    bucket: Arc<dyn Bucket>,
    scope: Scope,
    /// Ends with a slash; nobody else uses it.
    prefix: String,
}

impl Bench {
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Deadline of a conditional write in a case.
const DEADLINE_MS: u64 = 30_000;

macro_rules! cases {
    ($d:tt $($module:ident :: $name:ident),* $(,)?) => {
        /// Every case, in order.
        #[must_use]
        pub fn cases() -> Vec<Case> {
            vec![$(Case { name: stringify!($name), run: |bench| Box::pin($module::$name(bench)) }),*]
        }

        /// One test a case: `conformance_tests!(open, scope)`, where `open()` is a future of the bucket and of whatever
        /// must live as long as the test.
        #[macro_export]
        macro_rules! conformance_tests {
            ($d open:expr, $d scope:expr $d(,)?) => {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $name() {
                        let (bucket, _keep) = $d open().await;
                        $d crate::conformance::run_case(bucket, $d scope, stringify!($name)).await;
                    }
                )*
            };
        }
    };
}

cases![$
    bodies::an_absent_key_is_none_everywhere,
    bodies::a_body_reads_back_with_its_version,
    bodies::an_empty_object_is_an_object,
    bodies::every_write_of_other_bytes_has_another_version,
    bodies::delete_is_idempotent,
    bodies::more_than_a_thousand_keys_are_deleted_at_once,
    bodies::readers_never_see_a_torn_body,
    conditions::a_create_has_exactly_one_winner,
    conditions::no_increment_is_lost,
    conditions::a_stale_version_is_refused_and_changes_nothing,
    conditions::a_match_on_a_deleted_key_is_refused_and_creates_nothing,
    conditions::a_create_after_a_delete_is_applied,
    keys::unusual_keys_are_kept_apart,
    keys::a_key_and_a_key_below_it_coexist,
    keys::an_invalid_key_is_an_error,
    listing::pages_cover_all_keys_once_in_byte_order,
    listing::a_listing_begins_after_the_key_given,
    listing::a_prefix_is_not_a_folder,
    listing::a_listing_sees_the_writes_and_deletes_before_it,
    ranges::ranges_are_exact,
    ranges::a_range_past_the_end_is_not_satisfiable,
    ranges::streamed_ranges_are_exact,
    streams::a_large_body_streams_in_and_out,
    streams::a_body_that_fails_writes_nothing,
    streams::a_stream_is_a_snapshot,
];

/// Runs every case, one after the other.
///
/// # Panics
/// After all cases ran, when some failed: the message names each and says why.
pub async fn run(bucket: Arc<dyn Bucket>, scope: Scope) {
    let mut failures = Vec::new();
    for case in cases() {
        if let Err(reason) = attempt(case, &bucket, scope).await {
            failures.push(format!("{}: {reason}", case.name));
        }
    }
    assert!(
        failures.is_empty(),
        "`{}` broke {} promises:\n{}",
        bucket.url(),
        failures.len(),
        failures.join("\n")
    );
}

/// Runs the case of this name.
///
/// # Panics
/// When it fails, or does not exist.
pub async fn run_case(bucket: Arc<dyn Bucket>, scope: Scope, name: &str) {
    let case = cases().into_iter().find(|case| case.name == name).expect("the case exists");
    if let Err(reason) = attempt(case, &bucket, scope).await {
        panic!("`{}` broke the promise {name}: {reason}", bucket.url());
    }
}

async fn attempt(case: Case, bucket: &Arc<dyn Bucket>, scope: Scope) -> Result<(), String> {
    let random = getrandom::u64().expect("the system has randomness");
    let prefix = format!("conformance/{random:016x}/{}/", case.name);
    let bench = Bench { bucket: Arc::clone(bucket), scope, prefix: prefix.clone() };
    // In a task of its own, so that a failed assertion ends the case and not the suite.
    let result = tokio::spawn((case.run)(bench)).await.map_err(|error| match error.try_into_panic() {
        Ok(payload) => panic_text(payload.as_ref()),
        Err(error) => error.to_string(),
    });
    clean(bucket, &prefix).await.map_err(|error| format!("cannot clean up: {error}"))?;
    result
}

async fn clean(bucket: &Arc<dyn Bucket>, prefix: &str) -> Result<(), crate::BucketError> {
    loop {
        let page = bucket.list(prefix, None, 1000).await?;
        let keys: Vec<String> = page.objects.into_iter().map(|object| object.key).collect();
        if keys.is_empty() {
            return Ok(());
        }
        bucket.delete_many(&keys).await?;
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned()
}

/// Bytes that differ at every offset of every seed.
fn pattern(seed: u64, len: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    Bytes::from(bytes)
}

/// Writes an object of one byte under each key, several at a time.
async fn put_all(bench: &Bench, keys: Vec<String>) {
    let count = keys.len();
    let writes = keys.into_iter().map(|key| {
        let bucket = Arc::clone(&bench.bucket);
        async move { bucket.put(&key, Bytes::from_static(b"x")).await }
    });
    let done: Vec<_> = futures::stream::iter(writes).buffer_unordered(16).try_collect().await.expect("puts");
    assert_eq!(done.len(), count);
}

/// Lists all keys below `prefix`, without it, in pages of at most `limit`.
async fn list_all(bench: &Bench, prefix: &str, limit: usize) -> Vec<String> {
    let mut keys = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = bench.bucket.list(prefix, after.as_deref(), limit).await.expect("a listing");
        assert!(page.objects.len() <= limit, "{} rows on a page of at most {limit}", page.objects.len());
        keys.extend(page.objects.into_iter().map(|object| object.key));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    keys.into_iter()
        .map(|key| key.strip_prefix(&bench.prefix).expect("a listed key has the prefix").to_owned())
        .collect()
}
