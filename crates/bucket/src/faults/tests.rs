//! Every fault does what it says, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;

use super::{Fault, FaultBucket, Operation, Rule};
use crate::{Bucket, ByteRange, Commit, ErrorKind, Guard, MemoryBucket};

const BODY: Bytes = Bytes::from_static(b"0123456789");

async fn bucket() -> FaultBucket {
    let memory = MemoryBucket::new();
    memory.put("k", BODY).await.unwrap();
    FaultBucket::new(Arc::new(memory))
}

async fn create(bucket: &FaultBucket, key: &str, deadline_ms: u64) -> Commit {
    bucket.put_if(key, BODY, Guard::Absent, deadline_ms).await
}

#[tokio::test]
async fn rules_match_operation_key_and_number() {
    let bucket = bucket().await;
    let rule = Rule::new(Fault::Fail(ErrorKind::Denied)).on(Operation::Get).prefix("k");
    let handle = bucket.add(rule.after(1).times(1));
    assert!(bucket.get("other").await.is_ok());
    assert!(bucket.head("k").await.is_ok());
    assert!(bucket.get("k").await.is_ok());
    assert_eq!(bucket.get("k").await.unwrap_err().kind, ErrorKind::Denied);
    assert!(bucket.get("k").await.is_ok());
    assert_eq!(handle.struck(), 1);
    assert_eq!(bucket.count(Operation::Get, "k"), 3);
    assert_eq!(bucket.count(Operation::Get, ""), 4);
    assert_eq!(bucket.count(Operation::Put, ""), 0);
    bucket.reset_counts();
    assert_eq!(bucket.count(Operation::Get, ""), 0);
}

#[tokio::test]
async fn a_lost_answer_leaves_the_write_and_a_lost_request_does_not() {
    let bucket = bucket().await;
    bucket.add(Rule::new(Fault::LoseAnswer(ErrorKind::NoAnswer)).containing("answer"));
    bucket.add(Rule::new(Fault::Fail(ErrorKind::NoAnswer)).containing("request"));
    for key in ["answer", "request"] {
        assert!(matches!(create(&bucket, key, 1000).await, Commit::Unknown(_)));
    }
    assert!(bucket.inner().head("answer").await.unwrap().is_some());
    assert!(bucket.inner().head("request").await.unwrap().is_none());
}

#[tokio::test]
async fn a_busy_store_is_tried_again_inside_the_deadline() {
    let bucket = bucket().await;
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Unavailable)).on(Operation::PutIf).times(3));
    assert!(create(&bucket, "new", 10_000).await.is_applied());
    assert_eq!(bucket.count(Operation::PutIf, "new"), 4);
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Unavailable)).on(Operation::PutIf));
    let busy = create(&bucket, "busy", 20).await;
    assert!(matches!(busy, Commit::Unknown(ref e) if e.kind == ErrorKind::Unavailable), "{busy:?}");
}

#[tokio::test]
async fn a_held_write_lands_after_its_caller_gave_up() {
    let bucket = bucket().await;
    let held = bucket.add(Rule::new(Fault::Hold).on(Operation::PutIf));
    let answer = create(&bucket, "late", 20).await;
    assert!(matches!(answer, Commit::Unknown(ref e) if e.kind == ErrorKind::NoAnswer), "{answer:?}");
    assert!(bucket.get("late").await.unwrap().is_none());
    held.release();
    while bucket.get("late").await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_held_answer_comes_when_released() {
    let bucket = bucket().await;
    let held = bucket.add(Rule::new(Fault::HoldAnswer).on(Operation::Put));
    let waiting = tokio::spawn({
        let bucket = bucket.clone();
        async move { bucket.put("p", BODY).await }
    });
    held.wait_struck(1).await;
    while bucket.get("p").await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    bucket.clear();
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn conditions_and_ranges_are_ignored_on_demand() {
    let bucket = bucket().await;
    assert!(matches!(create(&bucket, "k", 1000).await, Commit::Rejected));
    let ignored = bucket.add(Rule::new(Fault::IgnoreCondition));
    assert!(create(&bucket, "k", 1000).await.is_applied());
    ignored.release();
    assert!(matches!(create(&bucket, "k", 1000).await, Commit::Rejected));
    let rejected = bucket.add(Rule::new(Fault::Reject));
    assert!(matches!(create(&bucket, "fresh", 1000).await, Commit::Rejected));
    rejected.release();
    bucket.add(Rule::new(Fault::IgnoreRange));
    let range = ByteRange::Span { offset: 2, len: 3 };
    assert_eq!(bucket.get_range("k", range).await.unwrap().unwrap().body, BODY);
}

#[tokio::test]
async fn bodies_are_cut_and_spoiled() {
    let bucket = bucket().await;
    let cut = bucket.add(Rule::new(Fault::ShortBody(4)));
    assert_eq!(bucket.get("k").await.unwrap_err().kind, ErrorKind::BadBody);
    let mut stream = bucket.get_stream("k", None).await.unwrap().unwrap().stream;
    assert_eq!(stream.try_next().await.unwrap().unwrap(), BODY.slice(..4));
    assert_eq!(stream.try_next().await.unwrap_err().kind, ErrorKind::BadBody);
    assert!(stream.try_next().await.unwrap().is_none());
    cut.release();
    bucket.add(Rule::new(Fault::WrongBytes));
    let wrong = bucket.get("k").await.unwrap().unwrap().body;
    assert!(wrong.len() == BODY.len() && wrong.iter().zip(&BODY).all(|(a, b)| a != b));
}

#[tokio::test]
async fn listings_hide_what_they_are_told_to() {
    let bucket = bucket().await;
    bucket.put("new", BODY).await.unwrap();
    bucket.add(Rule::new(Fault::StaleList("new".into())));
    let keys: Vec<_> = bucket.list("", None, 10).await.unwrap().objects.into_iter().map(|o| o.key).collect();
    assert_eq!(keys, ["k"]);
}

#[tokio::test(start_paused = true)]
async fn latency_delays_and_the_limit_ends_a_call() {
    let bucket = bucket().await.with_call_limit(Duration::from_secs(5));
    let slow = bucket.add(Rule::new(Fault::Latency(Duration::from_secs(3))));
    let before = tokio::time::Instant::now();
    bucket.get("k").await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(3));
    slow.release();
    bucket.add(Rule::new(Fault::Latency(Duration::from_secs(6))));
    assert_eq!(bucket.get("k").await.unwrap_err().kind, ErrorKind::NoAnswer);
}
