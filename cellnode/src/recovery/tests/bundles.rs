//! Recoveries of sessions that bundled: what followers dropped comes from bundles.

use holdfast_core::recovery::{RecoveryFailure, RecoveryOutcome};

use super::support::{Fleet, frames_of, key_of};

/// Frames 1 to 6: three of each cell. The first two are covered, two bundles hold the next, the last is at followers alone.
async fn bundled() -> Fleet {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1), ("b", 1), ("a", 2), ("b", 2), ("b", 3), ("a", 3)]));
    for name in ["a", "b"] {
        let (_, _, body) = frames_of(&[(name, 1)]).remove(0);
        fleet.bucket.put(&key_of(name, 1, 1), body).await.unwrap();
    }
    fleet.mark_bundled(3, 6).await;
    fleet.bundle(3, 5, &[(3, "a", 2), (4, "b", 2)]).await;
    fleet.bundle(5, 6, &[(5, "b", 3)]).await;
    fleet
}

#[tokio::test]
async fn what_followers_dropped_comes_from_bundles() {
    let fleet = bundled().await;
    // Nobody is told of what does not follow: the session had not heard that it was stored.
    fleet.bundle(9, 10, &[(9, "a", 7)]).await;
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    let expected = [("a", 1, 1), ("a", 2, 2), ("a", 3, 3), ("b", 1, 1), ("b", 2, 2), ("b", 3, 3)];
    assert_eq!(fleet.level_zero().await, expected.map(|(cell, min, max)| key_of(cell, min, max)));
}

#[tokio::test]
async fn a_damaged_bundle_is_named_and_nothing_is_sealed_until_the_loss_is_declared() {
    let fleet = bundled().await;
    let key = fleet.bundle_key(3);
    let body = fleet.bucket.get(&key).await.unwrap().unwrap().body;
    fleet.bucket.put(&key, body.slice(..body.len() - 1)).await.unwrap();
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    let RecoveryOutcome::Failed(RecoveryFailure::Gather(reason)) = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains(&key) && reason.contains("bytes long"), "{reason}");
    fleet.declare_loss().await;
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    let RecoveryOutcome::Recovered { record } = outcome else { panic!("{outcome:?}") };
    assert!(record.loss_declared);
}
