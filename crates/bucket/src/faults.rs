//! A bucket with scripted faults around another bucket, for tests: latency, held requests, lost requests and answers,
//! forced errors, ignored conditions and ranges, damaged bodies, stale listings; and counts of every call. It must
//! never change what it is not told to.
//!
//! A request runs apart from its caller, as one that was sent does: a caller that gives up does not stop it, and a held
//! write lands when it is released.

mod calls;
mod rule;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;

pub use self::calls::Operation;
pub use self::rule::{Fault, Rule, RuleHandle};

use self::calls::Calls;
use self::rule::{ActiveRule, Plan};
use crate::{
    Bucket, BucketError, ByteRange, ByteStream, Commit, ErrorKind, Guard, Listing, Object, ObjectHead,
    ObjectStream, Version,
};

/// How long a call without a deadline waits for an answer, unless told otherwise.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// Pause before a busy answer is retried inside `put_if`.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// A bucket whose faults are scripted. Clones share rules and counts.
#[derive(Clone)]
pub struct FaultBucket {
    inner: Arc<dyn Bucket>,
    script: Arc<Mutex<Script>>,
    call_limit: Duration,
}

#[derive(Default)]
struct Script {
    rules: Vec<Arc<ActiveRule>>,
    calls: Calls,
}

impl std::fmt::Debug for FaultBucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultBucket").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl FaultBucket {
    /// Wraps `inner`, without faults.
    #[must_use]
    pub fn new(inner: Arc<dyn Bucket>) -> Self {
        Self { inner, script: Arc::default(), call_limit: CALL_LIMIT }
    }

    /// Sets how long calls other than `put_if` wait before they end with `NoAnswer`.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }

    /// The bucket inside, for looks that no rule touches and no count sees.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Bucket> {
        &self.inner
    }

    /// Adds a rule. Every rule that matches a call acts on it, in the order of their adding.
    pub fn add(&self, rule: Rule) -> RuleHandle {
        let rule = Arc::new(ActiveRule::new(rule));
        self.script().rules.push(Arc::clone(&rule));
        RuleHandle::new(rule)
    }

    /// Removes all rules and releases what they hold.
    pub fn clear(&self) {
        let rules = std::mem::take(&mut self.script().rules);
        rules.iter().for_each(|rule| rule.release());
    }

    /// How many calls of `operation` there were on keys (or prefixes) that contain `key_part`; retries count each.
    #[must_use]
    pub fn count(&self, operation: Operation, key_part: &str) -> u64 {
        self.script().calls.count(operation, key_part)
    }

    /// Forgets the counts.
    pub fn reset_counts(&self) {
        self.script().calls = Calls::default();
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and gathers what the rules want of it.
    fn plan(&self, operation: Operation, key: &str) -> Plan {
        let mut script = self.script();
        script.calls.add(operation, key);
        let mut plan = Plan::default();
        for rule in &script.rules {
            if rule.strike(operation, key) {
                plan.add(rule);
            }
        }
        plan
    }

    /// Runs a call under a plan: waits, fails, or applies it and then perhaps loses the answer.
    async fn call<T: Send + 'static>(
        &self,
        operation: Operation,
        key: &str,
        plan: Plan,
        limit: Duration,
        request: impl Future<Output = Result<T, BucketError>> + Send + 'static,
    ) -> Result<T, BucketError> {
        let name = operation.name();
        let fail = move |key: &str, kind, detail| Err(BucketError::new(name, key, kind, detail));
        let owned = key.to_owned();
        let sent = tokio::spawn(async move {
            plan.wait_before().await;
            if let Some(kind) = plan.fail_before {
                return fail(&owned, kind, "scripted failure; nothing was applied");
            }
            let answer = request.await;
            plan.wait_after().await;
            match plan.lose_answer {
                Some(kind) => fail(&owned, kind, "scripted failure; the request was carried out"),
                None => answer,
            }
        });
        match tokio::time::timeout(limit, sent).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Ok(Err(_)) => fail(key, ErrorKind::Local, "the program is shutting down"),
            Err(_) => fail(key, ErrorKind::NoAnswer, "no answer in time"),
        }
    }
}

fn bad_body(operation: Operation, key: &str) -> BucketError {
    BucketError::new(operation.name(), key, ErrorKind::BadBody, "the body ended early")
}

/// Flips every bit, so that no byte is right.
fn spoil(object: Object) -> Object {
    Object { body: object.body.iter().map(|byte| !byte).collect(), version: object.version }
}

fn damage(operation: Operation, key: &str, plan: &Plan, object: Object) -> Result<Object, BucketError> {
    if plan.short_body.is_some_and(|len| len < object.body.len()) {
        return Err(bad_body(operation, key));
    }
    Ok(if plan.wrong_bytes { spoil(object) } else { object })
}

#[async_trait]
impl Bucket for FaultBucket {
    fn url(&self) -> String {
        self.inner.url()
    }

    async fn get(&self, key: &str) -> Result<Option<Object>, BucketError> {
        let plan = self.plan(Operation::Get, key);
        let (inner, owned, of) = (Arc::clone(&self.inner), key.to_owned(), plan.clone());
        let request = async move {
            let found = inner.get(&owned).await?;
            found.map(|object| damage(Operation::Get, &owned, &of, object)).transpose()
        };
        self.call(Operation::Get, key, plan, self.call_limit, request).await
    }

    async fn get_range(&self, key: &str, range: ByteRange) -> Result<Option<Object>, BucketError> {
        let plan = self.plan(Operation::GetRange, key);
        let (inner, owned, of) = (Arc::clone(&self.inner), key.to_owned(), plan.clone());
        let request = async move {
            let found = if of.ignore_range {
                inner.get(&owned).await?
            } else {
                inner.get_range(&owned, range).await?
            };
            found.map(|object| damage(Operation::GetRange, &owned, &of, object)).transpose()
        };
        self.call(Operation::GetRange, key, plan, self.call_limit, request).await
    }

    async fn get_stream(
        &self,
        key: &str,
        range: Option<ByteRange>,
    ) -> Result<Option<ObjectStream>, BucketError> {
        let plan = self.plan(Operation::GetStream, key);
        let (inner, owned, of) = (Arc::clone(&self.inner), key.to_owned(), plan.clone());
        let request = async move {
            let range = if of.ignore_range { None } else { range };
            let found = inner.get_stream(&owned, range).await?;
            Ok(found.map(|mut object| {
                if let Some(len) = of.short_body {
                    object.stream = cut_stream(object.stream, len, owned);
                }
                if of.wrong_bytes {
                    let spoiled = |piece: Bytes| piece.iter().map(|byte| !byte).collect();
                    object.stream = object.stream.map(move |piece| piece.map(spoiled)).boxed();
                }
                object
            }))
        };
        self.call(Operation::GetStream, key, plan, self.call_limit, request).await
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectHead>, BucketError> {
        let plan = self.plan(Operation::Head, key);
        let (inner, owned) = (Arc::clone(&self.inner), key.to_owned());
        let request = async move { inner.head(&owned).await };
        self.call(Operation::Head, key, plan, self.call_limit, request).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, BucketError> {
        let plan = self.plan(Operation::List, prefix);
        let (inner, owned, of) = (Arc::clone(&self.inner), prefix.to_owned(), plan.clone());
        let start_after = start_after.map(str::to_owned);
        let request = async move {
            let mut listing = inner.list(&owned, start_after.as_deref(), limit).await?;
            listing.objects.retain(|row| !of.hidden.iter().any(|part| row.key.contains(part)));
            Ok(listing)
        };
        self.call(Operation::List, prefix, plan, self.call_limit, request).await
    }

    async fn put(&self, key: &str, body: Bytes) -> Result<Version, BucketError> {
        let plan = self.plan(Operation::Put, key);
        let (inner, owned) = (Arc::clone(&self.inner), key.to_owned());
        let request = async move { inner.put(&owned, body).await };
        self.call(Operation::Put, key, plan, self.call_limit, request).await
    }

    async fn put_stream(&self, key: &str, body: ByteStream) -> Result<Version, BucketError> {
        let plan = self.plan(Operation::PutStream, key);
        let (inner, owned) = (Arc::clone(&self.inner), key.to_owned());
        let request = async move { inner.put_stream(&owned, body).await };
        self.call(Operation::PutStream, key, plan, self.call_limit, request).await
    }

    async fn put_if(&self, key: &str, body: Bytes, guard: Guard, deadline_ms: u64) -> Commit {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(deadline_ms);
        loop {
            let plan = self.plan(Operation::PutIf, key);
            if plan.reject {
                return Commit::Rejected;
            }
            let (is_busy, ignores) =
                (plan.fail_before == Some(ErrorKind::Unavailable), plan.ignore_condition);
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            let (inner, owned) = (Arc::clone(&self.inner), key.to_owned());
            let (body, guard) = (body.clone(), guard.clone());
            let request = async move {
                Ok(if ignores {
                    inner.put(&owned, body).await.map_or_else(Commit::Unknown, Commit::Applied)
                } else {
                    inner.put_if(&owned, body, guard, deadline_ms).await
                })
            };
            match self.call(Operation::PutIf, key, plan, left, request).await {
                Ok(commit) => return commit,
                // As a real store's client does with 409, 429 and 503.
                Err(_) if is_busy && tokio::time::Instant::now() + BUSY_PAUSE < deadline => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                Err(error) => return Commit::Unknown(error),
            }
        }
    }

    async fn delete(&self, key: &str) -> Result<(), BucketError> {
        let plan = self.plan(Operation::Delete, key);
        let (inner, owned) = (Arc::clone(&self.inner), key.to_owned());
        let request = async move { inner.delete(&owned).await };
        self.call(Operation::Delete, key, plan, self.call_limit, request).await
    }

    async fn delete_many(&self, keys: &[String]) -> Result<(), BucketError> {
        let first = keys.first().map_or("", String::as_str);
        let plan = self.plan(Operation::DeleteMany, first);
        let (inner, owned) = (Arc::clone(&self.inner), keys.to_vec());
        let request = async move { inner.delete_many(&owned).await };
        self.call(Operation::DeleteMany, first, plan, self.call_limit, request).await
    }
}

/// The first `len` bytes, then the error that a client makes of a body that is shorter than announced.
fn cut_stream(stream: ByteStream, len: usize, key: String) -> ByteStream {
    let mut left = len;
    let mut is_broken = false;
    stream
        .flat_map(move |piece| {
            let mut out = Vec::new();
            match piece {
                _ if is_broken => {}
                Ok(piece) if piece.len() <= left => {
                    left -= piece.len();
                    out.push(Ok(piece));
                }
                Ok(piece) => {
                    is_broken = true;
                    out.push(Ok(piece.slice(..left)));
                    out.push(Err(bad_body(Operation::GetStream, &key)));
                }
                Err(error) => out.push(Err(error)),
            }
            futures::stream::iter(out)
        })
        .boxed()
}

#[cfg(test)]
mod tests;
