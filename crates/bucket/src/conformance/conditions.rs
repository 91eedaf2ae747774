//! Conditional writes: one winner, nothing lost, no false refusal.

use std::sync::Arc;

use bytes::Bytes;

use super::{Bench, DEADLINE_MS};
use crate::{Bucket, Commit, Guard, Settled, Version, settle_put_if};

const CLIENTS: usize = 8;
const INCREMENTS: u64 = 25;

async fn put_if(bench: &Bench, key: &str, body: &'static str, guard: Guard) -> Commit {
    bench.bucket.put_if(key, Bytes::from_static(body.as_bytes()), guard, DEADLINE_MS).await
}

async fn applied(bench: &Bench, key: &str, body: &'static str, guard: Guard) -> Version {
    match put_if(bench, key, body, guard).await {
        Commit::Applied(version) => version,
        other => panic!("the condition holds, but the answer is {other:?}"),
    }
}

async fn assert_refused(bench: &Bench, key: &str, body: &'static str, guard: Guard) {
    let answer = put_if(bench, key, body, guard).await;
    assert!(matches!(answer, Commit::Rejected), "the condition does not hold, but the answer is {answer:?}");
}

/// Writes a body that is unique to the write, and settles what is left open, as every record of ours is written.
async fn settled(bucket: &dyn Bucket, key: &str, body: String, guard: Guard) -> Settled {
    let mine = body.clone();
    settle_put_if(bucket, key, Bytes::from(body), guard, |bytes| bytes == mine.as_bytes(), DEADLINE_MS).await
}

pub(super) async fn a_create_has_exactly_one_winner(bench: Bench) {
    for race in 0..bench.scope.races {
        let key = bench.key(&format!("race-{race}"));
        let start = Arc::new(tokio::sync::Barrier::new(CLIENTS));
        let mut clients = tokio::task::JoinSet::new();
        for client in 0..CLIENTS {
            let (bucket, key, start) = (Arc::clone(&bench.bucket), key.clone(), Arc::clone(&start));
            clients.spawn(async move {
                start.wait().await;
                (client, settled(bucket.as_ref(), &key, format!("client {client}"), Guard::Absent).await)
            });
        }
        let mut winners = Vec::new();
        for (client, settled) in clients.join_all().await {
            match settled {
                Settled::Applied(version) => winners.push((client, version)),
                Settled::Rejected(_) => {}
                Settled::Unknown(error) => panic!("race {race}: client {client} cannot settle: {error}"),
            }
        }
        let [(winner, version)] = winners.as_slice() else {
            panic!("race {race} has {} winners: {winners:?}", winners.len());
        };
        let object = bench.bucket.get(&key).await.expect("get").expect("the winner's object");
        assert_eq!(object.body, format!("client {winner}"));
        assert_eq!(object.version, *version);
    }
}

pub(super) async fn no_increment_is_lost(bench: Bench) {
    let key = bench.key("counter");
    bench.bucket.put(&key, Bytes::from_static(b"0 0 0")).await.expect("put");
    let start = Arc::new(tokio::sync::Barrier::new(CLIENTS));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (bucket, key, start) = (Arc::clone(&bench.bucket), key.clone(), Arc::clone(&start));
        clients.spawn(async move {
            start.wait().await;
            let mut doubtful = 0;
            for number in 1..=INCREMENTS {
                doubtful += increment(bucket.as_ref(), &key, client, number).await;
            }
            doubtful
        });
    }
    let doubtful: u64 = clients.join_all().await.into_iter().sum();
    let object = bench.bucket.get(&key).await.expect("get").expect("the counter");
    let increments = CLIENTS as u64 * INCREMENTS;
    let counted = count(&object.body);
    assert!(
        (increments..=increments + doubtful).contains(&counted),
        "{increments} increments, {doubtful} more that may have landed, but the counter is at {counted}"
    );
}

/// The counter is `count client number`: the last two make every write unique.
fn count(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).expect("a counter is text");
    text.split(' ').next().and_then(|count| count.parse().ok()).expect("a counter begins with its count")
}

/// Adds one; answers how many tries were refused only after an answer was lost: such a write may have landed and been
/// overwritten. On a store that loses no answers there are none.
async fn increment(bucket: &dyn Bucket, key: &str, client: usize, number: u64) -> u64 {
    let mut doubtful = 0;
    loop {
        let current = bucket.get(key).await.expect("get").expect("the counter");
        let body = format!("{} {client} {number}", count(&current.body) + 1);
        match settled(bucket, key, body, Guard::Match(current.version)).await {
            Settled::Applied(_) => return doubtful,
            Settled::Rejected(None) => {}
            Settled::Rejected(Some(_)) => doubtful += 1,
            Settled::Unknown(error) => panic!("an increment cannot be settled: {error}"),
        }
    }
}

pub(super) async fn a_stale_version_is_refused_and_changes_nothing(bench: Bench) {
    let key = bench.key("object");
    let first = applied(&bench, &key, "one", Guard::Absent).await;
    let second = applied(&bench, &key, "two", Guard::Match(first.clone())).await;
    assert_ne!(first, second);
    assert_refused(&bench, &key, "three", Guard::Match(first)).await;
    assert_refused(&bench, &key, "four", Guard::Absent).await;
    let object = bench.bucket.get(&key).await.expect("get").expect("the object");
    assert_eq!((object.body, object.version), (Bytes::from_static(b"two"), second));
}

pub(super) async fn a_match_on_a_deleted_key_is_refused_and_creates_nothing(bench: Bench) {
    let key = bench.key("object");
    let version = applied(&bench, &key, "one", Guard::Absent).await;
    bench.bucket.delete(&key).await.expect("delete");
    assert_refused(&bench, &key, "two", Guard::Match(version.clone())).await;
    assert!(bench.bucket.get(&key).await.expect("get").is_none());
    assert_refused(&bench, &bench.key("never"), "two", Guard::Match(version)).await;
    assert!(bench.bucket.get(&bench.key("never")).await.expect("get").is_none());
}

pub(super) async fn a_create_after_a_delete_is_applied(bench: Bench) {
    let key = bench.key("object");
    for body in ["one", "two", "three"] {
        let version = applied(&bench, &key, body, Guard::Absent).await;
        let object = bench.bucket.get(&key).await.expect("get").expect("the object");
        assert_eq!((object.body.as_ref(), object.version), (body.as_bytes(), version));
        bench.bucket.delete(&key).await.expect("delete");
    }
}
