//! The stores of this crate that need no server, under the conformance suite; and the suite against a store that breaks
//! its promises, so that a pass means something.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::conformance::{Scope, cases, run, run_case};
use holdfast_bucket::faults::{Fault, FaultBucket, Operation, Rule};
use holdfast_bucket::{Bucket, ErrorKind, LocalBucket, MemoryBucket};

mod memory {
    use super::{Arc, Bucket, MemoryBucket, Scope};

    async fn open() -> (Arc<dyn Bucket>, ()) {
        std::future::ready((Arc::new(MemoryBucket::new()) as Arc<dyn Bucket>, ())).await
    }

    holdfast_bucket::conformance_tests!(open, Scope::full());
}

mod local {
    use super::{Arc, Bucket, LocalBucket, Scope};

    async fn open() -> (Arc<dyn Bucket>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let bucket = LocalBucket::open(folder.path()).await.unwrap();
        (Arc::new(bucket), folder)
    }

    holdfast_bucket::conformance_tests!(open, Scope::full());
}

/// A store whose requests and answers are lost now and then.
mod lossy {
    use super::{Arc, Bucket, ErrorKind, Fault, FaultBucket, MemoryBucket, Operation, Rule, Scope, run_case};

    fn open() -> Arc<dyn Bucket> {
        let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
        for at in (0..2_000).step_by(7) {
            let lost = Fault::LoseAnswer(ErrorKind::NoAnswer);
            bucket.add(Rule::new(lost).on(Operation::PutIf).after(at).times(1));
        }
        for at in (3..2_000).step_by(11) {
            let lost = Fault::Fail(ErrorKind::NoAnswer);
            bucket.add(Rule::new(lost).on(Operation::PutIf).after(at).times(1));
        }
        Arc::new(bucket)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_create_has_exactly_one_winner() {
        run_case(open(), Scope::full(), "a_create_has_exactly_one_winner").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_increment_is_lost() {
        run_case(open(), Scope::full(), "no_increment_is_lost").await;
    }
}

/// The cases that fail on a store with these faults.
async fn broken_promises<const N: usize>(rules: [Rule; N]) -> Vec<&'static str> {
    let bucket = FaultBucket::new(Arc::new(MemoryBucket::new())).with_call_limit(Duration::from_secs(5));
    for rule in rules {
        bucket.add(rule);
    }
    let bucket: Arc<dyn Bucket> = Arc::new(bucket);
    let scope = Scope { races: 5, listed: 30, streamed_len: 200_000, has_odd_keys: true };
    let mut broken = Vec::new();
    for case in cases() {
        let bucket = Arc::clone(&bucket);
        if tokio::spawn(async move { run_case(bucket, scope, case.name).await }).await.is_err() {
            broken.push(case.name);
        }
    }
    broken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_finds_ignored_conditions() {
    let broken = broken_promises([
        Rule::new(Fault::IgnoreCondition),
        // Every client of a counter has read before the first write arrives.
        Rule::new(Fault::Latency(Duration::from_millis(5)))
            .on(Operation::PutIf)
            .containing("increment")
            .times(8),
    ])
    .await;
    for name in [
        "a_create_has_exactly_one_winner",
        "no_increment_is_lost",
        "a_stale_version_is_refused_and_changes_nothing",
        "a_match_on_a_deleted_key_is_refused_and_creates_nothing",
    ] {
        assert!(broken.contains(&name), "{name} passes on a store that ignores conditions");
    }
    assert!(!broken.contains(&"ranges_are_exact"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_finds_ignored_ranges_wrong_bytes_and_stale_listings() {
    let ranges = broken_promises([Rule::new(Fault::IgnoreRange)]).await;
    assert!(
        ranges.contains(&"ranges_are_exact") && ranges.contains(&"streamed_ranges_are_exact"),
        "{ranges:?}"
    );
    let bytes = broken_promises([Rule::new(Fault::WrongBytes)]).await;
    assert!(bytes.contains(&"a_body_reads_back_with_its_version"), "{bytes:?}");
    let stale = broken_promises([Rule::new(Fault::StaleList("e07/".into()))]).await;
    assert_eq!(stale, ["a_listing_sees_the_writes_and_deletes_before_it"]);
}

#[tokio::test]
#[should_panic(expected = "a_create_after_a_delete_is_applied")]
async fn the_whole_suite_names_the_broken_promise() {
    let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
    bucket.add(Rule::new(Fault::Reject).on(Operation::PutIf).containing("a_create_after_a_delete"));
    let scope = Scope { races: 2, listed: 10, streamed_len: 1_000, has_odd_keys: true };
    run(Arc::new(bucket), scope).await;
}
