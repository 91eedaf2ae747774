//! The outcomes of design 3.2 against scripted faults.

use std::sync::Arc;

use bytes::Bytes;

use super::{Settled, settle_put_if};
use crate::faults::{Fault, FaultBucket, Operation, Rule};
use crate::{ErrorKind, Guard, MemoryBucket, Version};

const KEY: &str = "cells/db:x/own.json";

fn bucket() -> FaultBucket {
    FaultBucket::new(Arc::new(MemoryBucket::new()))
}

/// A record whose bytes are its write id.
async fn write(bucket: &FaultBucket, write_id: &'static str, guard: Guard) -> Settled {
    write_within(bucket, write_id, guard, 5_000).await
}

async fn write_within(
    bucket: &FaultBucket,
    write_id: &'static str,
    guard: Guard,
    deadline_ms: u64,
) -> Settled {
    let body = Bytes::from_static(write_id.as_bytes());
    settle_put_if(bucket, KEY, body, guard, |bytes| bytes == write_id.as_bytes(), deadline_ms).await
}

async fn rival(bucket: &FaultBucket) -> Version {
    bucket.inner().put(KEY, Bytes::from_static(b"rival")).await.unwrap()
}

fn lost_answer() -> Rule {
    Rule::new(Fault::LoseAnswer(ErrorKind::NoAnswer)).on(Operation::PutIf)
}

fn lost_request() -> Rule {
    Rule::new(Fault::Fail(ErrorKind::NoAnswer)).on(Operation::PutIf)
}

#[tokio::test]
async fn clean_answers_cost_no_read() {
    let bucket = bucket();
    let Settled::Applied(version) = write(&bucket, "1", Guard::Absent).await else { panic!("not applied") };
    assert!(matches!(write(&bucket, "2", Guard::Absent).await, Settled::Rejected(None)));
    assert!(matches!(write(&bucket, "3", Guard::Match(version)).await, Settled::Applied(_)));
    assert_eq!(bucket.count(Operation::Get, ""), 0);
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_applied() {
    let bucket = bucket();
    bucket.add(lost_answer());
    let settled = write(&bucket, "1", Guard::Absent).await;
    let stored = bucket.inner().get(KEY).await.unwrap().unwrap();
    assert!(matches!(settled, Settled::Applied(ref version) if *version == stored.version), "{settled:?}");
    assert_eq!(bucket.count(Operation::PutIf, KEY), 1);
}

#[tokio::test]
async fn a_write_that_a_rival_beat_while_unanswered_is_rejected_with_the_rivals_record() {
    let bucket = bucket();
    rival(&bucket).await;
    bucket.add(lost_answer());
    let settled = write(&bucket, "1", Guard::Absent).await;
    assert!(matches!(settled, Settled::Rejected(Some(ref object)) if object.body == "rival"), "{settled:?}");
}

#[tokio::test]
async fn a_lost_request_is_sent_again() {
    let bucket = bucket();
    let version = rival(&bucket).await;
    bucket.add(lost_request().times(2));
    assert!(matches!(write(&bucket, "1", Guard::Match(version)).await, Settled::Applied(_)));
    assert_eq!(bucket.count(Operation::PutIf, KEY), 3);
}

#[tokio::test]
async fn a_request_that_lands_late_is_still_one_write() {
    let bucket = bucket();
    let held = bucket.add(Rule::new(Fault::Hold).on(Operation::PutIf).times(1));
    // The first send is held past its share; the read shows no object; the second send lands.
    let settled = write_within(&bucket, "1", Guard::Absent, 300).await;
    assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
    held.release();
    let after = write(&bucket, "2", Guard::Absent).await;
    assert!(matches!(after, Settled::Rejected(None)), "{after:?}");
}

#[tokio::test]
async fn a_refusal_of_our_own_landed_write_is_applied() {
    let bucket = bucket();
    // The answer is lost and the read back fails twice: the third read shows the write.
    bucket.add(lost_answer().times(1));
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Unavailable)).on(Operation::Get).times(2));
    assert!(matches!(write(&bucket, "1", Guard::Absent).await, Settled::Applied(_)));
    assert_eq!(bucket.count(Operation::Get, KEY), 3);
}

#[tokio::test]
async fn an_unreadable_record_stays_unknown() {
    let bucket = bucket();
    bucket.add(lost_answer());
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Denied)).on(Operation::Get));
    let settled = write(&bucket, "1", Guard::Absent).await;
    assert!(matches!(settled, Settled::Unknown(ref e) if e.kind == ErrorKind::Denied), "{settled:?}");
}

#[tokio::test]
async fn a_store_that_answers_nothing_ends_at_the_deadline() {
    let bucket = bucket();
    bucket.add(Rule::new(Fault::Hold));
    let before = std::time::Instant::now();
    let settled = write_within(&bucket, "1", Guard::Absent, 100).await;
    assert!(matches!(settled, Settled::Unknown(_)), "{settled:?}");
    assert!(before.elapsed() >= std::time::Duration::from_millis(60));
}

#[tokio::test]
async fn a_conflict_answered_three_times_passes_without_a_read() {
    let bucket = bucket();
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Unavailable)).on(Operation::PutIf).times(3));
    assert!(matches!(write(&bucket, "1", Guard::Absent).await, Settled::Applied(_)));
    assert_eq!(bucket.count(Operation::Get, KEY), 0);
    assert_eq!(bucket.count(Operation::PutIf, KEY), 4);
}

#[tokio::test]
async fn two_contenders_whose_answers_are_all_lost_have_one_winner() {
    for _ in 0..20 {
        let bucket = bucket();
        bucket.add(lost_answer());
        let (one, two) = tokio::join!(write(&bucket, "1", Guard::Absent), write(&bucket, "2", Guard::Absent));
        let won = [&one, &two].into_iter().filter(|settled| matches!(settled, Settled::Applied(_))).count();
        let lost = [&one, &two].into_iter().filter(|settled| matches!(settled, Settled::Rejected(_))).count();
        assert_eq!((won, lost), (1, 1), "{one:?} {two:?}");
    }
}
