//! Recoveries against followers in memory: what reaches the bucket, what blocks, what is resumed, what memory it takes.

mod bundles;
mod support;

use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::faults::{Fault, FaultBucket, Operation, Rule};
use holdfast_bucket::{Bucket, ErrorKind, Guard, MemoryBucket};
use holdfast_core::log_record::LogState;
use holdfast_core::recovery::{RECOVERY_SILENCE_MS, RecoveryFailure, RecoveryOutcome};
use holdfast_records::{Key, Level, NodeLogState, Record};
use holdfast_rpc::CallError;
use holdfast_types::{Epoch, LogOffset, Txid};

use self::support::{Fleet, cell, frames_of, key_of, member, recoveries_of};

#[tokio::test]
async fn frames_reach_their_cells_as_aligned_pieces_and_the_log_is_sealed() {
    let fleet = Fleet::new().await;
    // Two cells in turn: `a` from transaction 4 on, `b` from 1 on.
    fleet.append(frames_of(&[("a", 4), ("b", 1), ("a", 5), ("b", 2), ("a", 6), ("b", 3), ("a", 7)]));
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    let RecoveryOutcome::Recovered { record } = outcome else { panic!("{outcome:?}") };
    assert_eq!((record.state, record.loss_declared), (LogState::Sealed, false));
    let expected = [("a", 4, 4), ("a", 5, 6), ("a", 7, 7), ("b", 1, 2), ("b", 3, 3)];
    assert_eq!(fleet.level_zero().await, expected.map(|(cell, min, max)| key_of(cell, min, max)));
    let stored = fleet.bucket.get(&key_of("a", 5, 6)).await.unwrap().unwrap();
    let header = *holdfast_ltx::Decoder::new(&stored.body[..]).unwrap().header();
    assert_eq!((header.min, header.max), (Txid::new(5), Txid::new(6)));
    fleet.followers.wait_released(&[member("f1"), member("f2")]).await;
}

#[tokio::test]
async fn one_follower_of_the_ensemble_suffices() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1)]));
    fleet.followers.lose("f1");
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    assert_eq!(fleet.level_zero().await, [key_of("a", 1, 1)]);
}

#[tokio::test]
async fn without_a_follower_it_blocks_says_whom_it_needs_and_goes_on_when_one_returns() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1)]));
    fleet.followers.lose("f1");
    fleet.followers.lose("f2");
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    let RecoveryOutcome::Blocked { missing, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(missing.len(), 2);
    let recovery = fleet.record().await.recovery.unwrap();
    assert!(recovery.blocked.contains("`f1`") && recovery.blocked.contains("`f2`"), "{}", recovery.blocked);
    assert_eq!(fleet.recoveries.blocked().len(), 1);
    assert!(fleet.level_zero().await.is_empty());

    let waiting = tokio::spawn({
        let (recoveries, log) = (fleet.recoveries.clone(), fleet.log.clone());
        async move { recoveries.recover_for(&cell("a"), &log).await }
    });
    while fleet.recoveries.hold_up(&cell("a")).is_none() {
        tokio::task::yield_now().await;
    }
    assert!(fleet.recoveries.hold_up(&cell("a")).unwrap().contains("`f2`"));
    fleet.followers.find("f2");
    assert!(waiting.await.unwrap());
    assert_eq!(fleet.level_zero().await, [key_of("a", 1, 1)]);
    assert!(fleet.recoveries.blocked().is_empty() && fleet.recoveries.hold_up(&cell("a")).is_none());
}

#[tokio::test]
async fn what_another_process_ends_or_is_at_is_blocked_no_more() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1)]));
    fleet.followers.lose("f1");
    fleet.followers.lose("f2");
    let other = recoveries_of(&fleet, 60);
    for recoveries in [&fleet.recoveries, &other] {
        let outcome = recoveries.attempt(&fleet.log).await;
        assert!(matches!(outcome, RecoveryOutcome::Blocked { .. }), "{outcome:?}");
        recoveries.review().await;
        assert_eq!(recoveries.blocked().len(), 1, "it is still");
    }
    fleet.mark_recovering(0, 0).await;
    fleet.recoveries.review().await;
    assert!(fleet.recoveries.blocked().is_empty(), "somebody is at it");
    assert!(matches!(fleet.recoveries.attempt(&fleet.log).await, RecoveryOutcome::Blocked { .. }));
    fleet.followers.find("f1");
    assert!(matches!(other.attempt(&fleet.log).await, RecoveryOutcome::Recovered { .. }));
    assert!(other.blocked().is_empty());
    assert_eq!(fleet.recoveries.blocked().len(), 1, "nobody asked");
    fleet.recoveries.review().await;
    assert!(fleet.recoveries.blocked().is_empty());
}

#[tokio::test]
async fn a_declared_loss_ends_it_and_leaves_out_what_would_make_a_gap() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1), ("a", 2), ("b", 1), ("a", 3)]));
    fleet.followers.lose("f1");
    // What is left of `f2` begins at offset 3: the first two frames of `a` are gone.
    fleet.followers.damage("f2", LogOffset::new(3));
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Blocked { .. }), "{outcome:?}");
    fleet.declare_loss().await;
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    let RecoveryOutcome::Recovered { record } = outcome else { panic!("{outcome:?}") };
    assert!(record.loss_declared);
    assert_eq!(fleet.level_zero().await, [key_of("b", 1, 1)]);
}

#[tokio::test]
async fn a_session_without_a_record_can_never_begin_a_log() {
    let fleet = Fleet::new().await;
    let key = Key::NodeLog(fleet.log.node.clone(), fleet.log.session).to_string();
    fleet.bucket.delete(&key).await.unwrap();
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    assert_eq!(fleet.record().await.state, NodeLogState::Sealed);
    let late = fleet.bucket.put_if(&key, "late".into(), Guard::Absent, 1_000).await;
    assert!(!late.is_applied());
}

#[tokio::test]
async fn a_frame_that_does_not_match_its_crc_is_taken_from_the_other_follower() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1), ("a", 2)]));
    fleet.followers.corrupt("f1", 1);
    fleet.followers.seals_last("f2");
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    assert_eq!(fleet.level_zero().await, [key_of("a", 1, 2)]);
    assert!(fleet.followers.tails("f2") > 0);
}

#[tokio::test]
async fn long_files_are_not_merged() {
    let fleet = Fleet::new().await;
    // Files of 700 KiB: any two of them are longer than a mebibyte.
    fleet.followers.generate(4, 1_400);
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    let expected: Vec<String> = (1..=4).map(|txid| key_of("a", txid, txid)).collect();
    assert_eq!(fleet.level_zero().await, expected);
}

#[tokio::test]
async fn a_tail_that_breaks_is_resumed_where_it_broke() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&(1..=40).map(|txid| ("a", txid)).collect::<Vec<_>>()));
    fleet.followers.break_after("f1", 7);
    fleet.followers.lose("f2");
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    assert_eq!(fleet.followers.tails("f1"), 6, "seven frames each");
    assert_eq!(fleet.level_zero().await, [key_of("a", 1, 32), key_of("a", 33, 40)]);
}

/// Restores cell `a` below epoch 2: where it ends, and the database.
async fn restored(bucket: &Arc<dyn Bucket>) -> (Option<Txid>, Vec<u8>) {
    let key = Key::Opener(cell("a"), Epoch::new(1)).to_string();
    bucket.put(&key, support::opener().encode().into()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let job = crate::RestoreJob {
        cell: cell("a"),
        below: Epoch::new(2),
        floor: Epoch::ZERO,
        database: folder.path().join("db"),
        local: None,
    };
    let restored = crate::restore(bucket, &job).await.unwrap();
    (restored.end.map(|end| end.txid), std::fs::read(&job.database).unwrap())
}

#[tokio::test]
async fn an_old_listing_hides_no_block_however_it_was_cut() {
    let files = frames_of(&(1..=9).map(|txid| ("a", txid)).collect::<Vec<_>>());
    let memory = Arc::new(MemoryBucket::new());
    let put = |min: u64, max: u64| {
        let (first, last) = (usize::try_from(min - 1).unwrap(), usize::try_from(max).unwrap());
        let bodies: Vec<_> = files[first..last].iter().map(|(_, _, body)| body.clone()).collect();
        let (memory, body) = (&memory, holdfast_ltx::merge(&bodies).unwrap());
        async move { memory.put(&key_of("a", min, max), body.into()).await.unwrap() }
    };
    // An owner cut 1 to 6 as it went; whoever recovered it cut anew, and no listing shows that yet.
    for (min, max) in [(1, 1), (2, 2), (3, 4), (5, 5), (6, 6), (1, 8), (9, 9)] {
        put(min, max).await;
    }
    let bucket = FaultBucket::new(Arc::clone(&memory) as Arc<dyn Bucket>);
    for hidden in [key_of("a", 1, 8), key_of("a", 9, 9)] {
        bucket.add(Rule::new(Fault::StaleList(hidden)).on(Operation::List));
    }
    let bucket: Arc<dyn Bucket> = Arc::new(bucket);
    assert_eq!(restored(&bucket).await, (Some(Txid::new(9)), support::database_at(9)));
}

#[tokio::test]
async fn a_cell_can_be_restored_from_what_two_recoverers_and_an_owner_cut() {
    let fleet = Fleet::new().await;
    let frames = frames_of(&(1..=20).map(|txid| ("a", txid)).collect::<Vec<_>>());
    fleet.append(frames.clone());
    // The owner had brought the first three there, one by one.
    for (_, txid, body) in &frames[..3] {
        fleet.bucket.put(&key_of("a", *txid, *txid), body.clone()).await.unwrap();
    }
    fleet.recoveries.attempt(&fleet.log).await;
    // A late landing of the owner's next upload.
    fleet.bucket.put(&key_of("a", 4, 4), frames[3].2.clone()).await.unwrap();
    assert_eq!(restored(&fleet.bucket).await, (Some(Txid::new(20)), support::database_at(20)));
}

#[tokio::test]
async fn another_recoverer_that_works_is_left_alone_and_one_that_fell_silent_taken_over() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1), ("a", 2), ("a", 3)]));
    fleet.recoverer_lease(true).await;
    fleet.mark_recovering(0, 1).await;
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Busy { .. }), "{outcome:?}");
    fleet.mark_recovering(RECOVERY_SILENCE_MS, 3).await;
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    assert_eq!(fleet.level_zero().await, [key_of("a", 3, 3)], "the first two were done before");
}

#[tokio::test]
async fn a_recoverer_that_died_is_taken_over_at_once_where_it_was() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1), ("a", 2), ("a", 3)]));
    fleet.recoverer_lease(false).await;
    fleet.mark_recovering(0, 3).await;
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    assert_eq!(fleet.level_zero().await, [key_of("a", 3, 3)], "the first two were done before");
}

#[tokio::test]
async fn recoverers_that_race_all_end_with_the_same_log() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&(1..=50).map(|txid| ("a", txid)).collect::<Vec<_>>()));
    let racers: Vec<_> = (0..4).map(|at| recoveries_of(&fleet, 100 + at)).collect();
    let ends = racers.iter().map(|racer| async { racer.recover_for(&cell("a"), &fleet.log).await });
    assert_eq!(futures::future::join_all(ends).await, [true; 4]);
    let stored = fleet.level_zero().await;
    assert_eq!(stored, [key_of("a", 1, 32), key_of("a", 33, 48), key_of("a", 49, 50)]);
}

#[tokio::test]
async fn a_bucket_that_refuses_uploads_ends_the_attempt_and_nothing_is_sealed() {
    let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Denied)).on(Operation::Put).prefix("cells/"));
    let fleet = Fleet::over(Arc::new(bucket)).await;
    fleet.append(frames_of(&[("a", 1)]));
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    assert!(matches!(outcome, RecoveryOutcome::Failed(RecoveryFailure::Gather(_))), "{outcome:?}");
    assert_eq!(fleet.record().await.state, NodeLogState::Recovering);
}

#[tokio::test]
async fn callers_of_one_process_share_an_attempt() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1)]));
    let attempts = (0..20).map(|_| fleet.recoveries.attempt(&fleet.log));
    let outcomes = futures::future::join_all(attempts).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, RecoveryOutcome::Recovered { .. })));
    assert_eq!(fleet.followers.seals("f1"), 1);
}

#[tokio::test]
async fn a_sealed_log_is_looked_at_once_however_many_cells_its_owner_had() {
    let bucket = Arc::new(FaultBucket::new(Arc::new(MemoryBucket::new())));
    let fleet = Fleet::over(bucket.clone()).await;
    fleet.append(frames_of(&[("a", 1)]));
    let record = Key::NodeLog(fleet.log.node.clone(), fleet.log.session).to_string();
    let cell = |number: usize| cell(&format!("c{number}"));
    assert!(fleet.recoveries.recover_for(&cell(0), &fleet.log).await);
    let reads = bucket.count(Operation::Get, &record);
    assert!(reads > 0);
    for number in 1..50 {
        assert!(fleet.recoveries.recover_for(&cell(number), &fleet.log).await);
        assert_eq!(fleet.recoveries.hold_up(&cell(number)), None);
    }
    assert_eq!(bucket.count(Operation::Get, &record), reads);
}

#[tokio::test]
async fn a_recovery_that_is_asked_for_leaves_the_living_alone() {
    let fleet = Fleet::new().await;
    fleet.append(frames_of(&[("a", 1)]));
    fleet.node_lease(fleet.log.session, true).await;
    let refused = fleet.recover_dead().await.unwrap_err();
    assert!(matches!(&refused, CallError::Rejected { status, .. } if status.as_u16() == 409), "{refused:?}");
    assert_eq!(fleet.record().await.state, NodeLogState::Open, "its session lives");
    fleet.node_lease(fleet.log.session, false).await;
    fleet.followers.lose("f1");
    fleet.followers.lose("f2");
    let refused = fleet.recover_dead().await.unwrap_err();
    assert!(
        matches!(&refused, CallError::Unavailable { reason } if reason.contains("followers is needed")),
        "{refused:?}"
    );
    fleet.followers.find("f1");
    fleet.recover_dead().await.unwrap();
    assert_eq!(fleet.record().await.state, NodeLogState::Sealed);
    fleet.recover_dead().await.unwrap();
}

/// Run by hand, alone: `cargo test -p holdfast-cellnode --release -- --ignored a_tail_of_a_gibibyte`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: a gibibyte"]
async fn a_tail_of_a_gibibyte_takes_less_than_256_mebibytes() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = holdfast_bucket::LocalBucket::open(folder.path()).await.unwrap();
    let fleet = Fleet::over(Arc::new(bucket)).await;
    // 1,024 frames of a mebibyte, made when they are asked for.
    fleet.followers.generate(1_024, 2_048);
    fleet.followers.lose("f2");
    let before = support::resident_bytes();
    let peak = tokio::spawn(async move {
        let mut peak = 0;
        loop {
            peak = support::resident_bytes().max(peak);
            support::note_peak(peak);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let started = std::time::Instant::now();
    let outcome = fleet.recoveries.attempt(&fleet.log).await;
    let elapsed = started.elapsed();
    peak.abort();
    assert!(matches!(outcome, RecoveryOutcome::Recovered { .. }), "{outcome:?}");
    let used = support::noted_peak().saturating_sub(before);
    println!("a gibibyte in {elapsed:?}, {} MiB above {} MiB", used >> 20, before >> 20);
    assert!(used < 256 << 20, "{used}");
    let stored = fleet.level_zero().await.len();
    println!("{stored} objects");
    // The floor: the same frames from the same followers to the same store, one object each, in as many lanes.
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Bucket> = Arc::new(holdfast_bucket::LocalBucket::open(folder.path()).await.unwrap());
    let started = std::time::Instant::now();
    support::copy(&fleet, store).await;
    println!("copying them takes {:?}", started.elapsed());
}
