//! History that no restore reads any more is deleted, and nothing else.

use std::time::Duration;

use holdfast_core::compaction::{ChainSize, CompactionEvent};
use holdfast_core::retire::EPOCHS_MAX;
use holdfast_records::{Key, Level, Record, Retired};
use holdfast_types::{Epoch, Txid};

use super::support::{Bench, PATIENCE};
use crate::clock;
use crate::replication::on_compaction;
use crate::restore::{self, RestoreError, RestoreJob};
use crate::retire::{HistoryHold, retire_due};

/// Long after everything that is queued.
const MUCH_LATER_MS: u64 = 3_600_000;

impl Bench {
    /// Looks after what is due, and after what that makes due.
    async fn retire(&self) {
        for _ in 0..4 {
            retire_due(&self.node, clock::monotonic().plus(MUCH_LATER_MS)).await;
        }
    }

    /// Waits until the chain is not being shortened.
    async fn compacted(&self) {
        self.quiet_thread().await;
        let done = async {
            while self.resident().is_compacting() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, done).await.expect("a compaction ends");
    }

    async fn insert(&self) {
        self.call("/insert").await.unwrap().text().await;
    }

    async fn rows(&self) -> String {
        self.call("/rows").await.unwrap().text().await
    }

    pub(super) async fn history(&self) -> Vec<String> {
        self.keys(&format!("cells/{}/ltx/", self.cell().to_key_segment())).await
    }

    pub(super) async fn mark(&self) -> Option<Retired> {
        let key = Key::Retired(self.cell()).to_string();
        let object = self.node.buckets.bulk.get(&key).await.unwrap()?;
        Some(Retired::decode(&object.body).unwrap())
    }

    /// Writes, and has a snapshot made of all that is written. Returns its last transaction.
    async fn write_with_snapshot(&self) -> Txid {
        let resident = self.resident();
        self.insert().await;
        on_compaction(&resident, CompactionEvent::ChainSeen { chain: ChainSize { files: 500, bytes: 1 } });
        let made = async {
            loop {
                let snapshot = self.history().await.into_iter().find_map(|key| match Key::parse(&key) {
                    Ok(Key::Ltx { level: Level::Snapshot, epoch, max, .. }) if epoch == resident.epoch => {
                        Some(max)
                    }
                    _ => None,
                });
                match snapshot {
                    // The cell is told right after the put.
                    Some(max) if resident.retire_state().last().has_snapshot => return max,
                    _ => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, made).await.expect("a snapshot is made")
    }

    fn job(&self, below: Epoch) -> RestoreJob {
        let files = self.node.data_dir.cell(&self.cell());
        let database = files.dir().join("aside.sqlite");
        RestoreJob { cell: self.cell(), below, floor: Epoch::ZERO, database, local: None }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_sleeps_and_wakes_a_thousand_times_keeps_a_bounded_number_of_objects() {
    let bench = Bench::new().await;
    let (mut most, mut rows) = (0, 0);
    for turn in 0..1_000 {
        if turn % 3 == 0 {
            bench.insert().await;
            rows += 1;
        } else {
            bench.call("/rows").await.unwrap();
        }
        bench.compacted().await;
        bench.retire().await;
        bench.sleep().await;
        most = most.max(bench.history().await.len());
    }
    // What a chain may have before it gets a snapshot, openers included; an opener and a file of each epoch since it was last
    // looked up; the snapshot, the mark and what is being written.
    let bound = 65 + 2 * usize::try_from(EPOCHS_MAX).unwrap() + 4;
    assert!(most <= bound, "{most} objects, expected at most {bound}");
    bench.forget_local_files();
    assert_eq!(bench.rows().await, format!("{rows} rows"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_retires_what_came_before_it_and_the_cell_restores_from_the_rest() {
    let bench = Bench::new().await;
    for _ in 0..3 {
        bench.insert().await;
        bench.sleep().await;
    }
    bench.insert().await;
    let at = bench.write_with_snapshot().await;
    bench.insert().await;
    let held = HistoryHold::of(&bench.resident());
    let before = bench.history().await;
    bench.retire().await;
    assert_eq!(bench.history().await, before, "somebody reads it");
    drop(held);
    bench.retire().await;
    let epoch = Epoch::new(4);
    let mark = bench.mark().await.unwrap();
    assert_eq!(
        (mark.by, mark.start.map(|start| (start.epoch, start.txid)), mark.swept),
        (epoch, Some((epoch, at)), true)
    );
    let file = |level, min: u64, max| {
        Key::Ltx { cell: bench.cell(), epoch, level, min: Txid::new(min), max }.to_string()
    };
    let expected = [
        file(Level::Zero, at.get() + 1, at.next()),
        file(Level::Snapshot, 1, at),
        Key::Opener(bench.cell(), epoch).to_string(),
        Key::Retired(bench.cell()).to_string(),
    ];
    assert_eq!(bench.history().await, expected);
    bench.sleep().await;
    bench.forget_local_files();
    assert_eq!(bench.rows().await, "6 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_whose_objects_are_retired_meanwhile_plans_again() {
    let bench = Bench::new().await;
    bench.insert().await;
    bench.sleep().await;
    bench.insert().await;
    let bucket = &bench.node.buckets.bulk;
    let job = bench.job(Epoch::new(3));
    let old = restore::plan(bucket, &job).await.unwrap();
    let at = bench.write_with_snapshot().await;
    bench.retire().await;
    let error = restore::apply_chain(bucket, &job, &old).await.unwrap_err();
    assert!(matches!(error, RestoreError::Vanished(_)) && error.is_transient(), "{error}");
    let new = restore::plan(bucket, &job).await.unwrap();
    assert_eq!(new.files.len(), 1, "the snapshot alone");
    let restored = restore::apply_chain(bucket, &job, &new).await.unwrap();
    assert_eq!(restored.end.map(|end| end.txid), Some(at));
    // One whose claim is not the newest any more learns that, whatever is left of what it would read.
    let error = restore::plan(bucket, &bench.job(Epoch::new(2))).await.unwrap_err();
    assert!(error.is_superseded(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lands_late_in_a_retired_epoch_harms_nobody_and_goes_with_the_next_mark() {
    let bench = Bench::new().await;
    bench.insert().await;
    bench.sleep().await;
    bench.insert().await;
    bench.write_with_snapshot().await;
    bench.retire().await;
    // Of an epoch whose opener is gone: without the mark it would look like damage.
    let txid = Txid::new(9);
    let late =
        Key::Ltx { cell: bench.cell(), epoch: Epoch::new(1), level: Level::Zero, min: txid, max: txid };
    bench.node.buckets.bulk.put(&late.to_string(), "late".into()).await.unwrap();
    bench.sleep().await;
    bench.forget_local_files();
    assert_eq!(bench.rows().await, "3 rows");
    bench.write_with_snapshot().await;
    bench.retire().await;
    assert!(!bench.history().await.contains(&late.to_string()));
    assert_eq!(bench.rows().await, "4 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_opener_above_the_mark_stays_an_error_and_is_no_empty_cell() {
    let bench = Bench::new().await;
    bench.insert().await;
    bench.write_with_snapshot().await;
    bench.retire().await;
    bench.sleep().await;
    bench.forget_local_files();
    let opener = Key::Opener(bench.cell(), Epoch::new(1)).to_string();
    let body = bench.node.buckets.bulk.get(&opener).await.unwrap().unwrap().body;
    bench.node.buckets.bulk.delete(&opener).await.unwrap();
    let Err(error) = bench.call("/rows").await else { panic!("an empty cell") };
    assert!(error.to_string().contains("opener.json` is gone"), "{error}");
    for key in bench.history().await {
        if !key.ends_with("retired.json") && !key.contains("/e0000000000000002/") {
            bench.node.buckets.bulk.delete(&key).await.unwrap();
        }
    }
    let error = restore::plan(&bench.node.buckets.bulk, &bench.job(Epoch::new(2))).await.unwrap_err();
    assert!(error.to_string().contains("it has no opener, nor has a later epoch"), "{error}");
    bench.node.buckets.bulk.put(&opener, body).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_comes_to_its_end_while_its_cell_sleeps_is_marked_by_the_next_wake() {
    let bench = Bench::new().await;
    bench.insert().await;
    bench.sleep().await;
    bench.insert().await;
    let held = bench.hold_uploads();
    let resident = bench.resident();
    on_compaction(&resident, CompactionEvent::ChainSeen { chain: ChainSize { files: 500, bytes: 1 } });
    bench.upload_is_held(&held).await;
    bench.sleep().await;
    held.release();
    let made = async {
        while resident.is_compacting() || !resident.retire_state().last().has_snapshot {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, made).await.expect("the snapshot is made");
    assert_eq!(bench.mark().await, None);
    assert_eq!(bench.rows().await, "2 rows");
    bench.retire().await;
    let start = bench.mark().await.and_then(|mark| mark.start).map(|start| start.epoch.get());
    assert_eq!(start, Some(2), "the snapshot of the epoch before");
    bench.sleep().await;
    bench.forget_local_files();
    assert_eq!(bench.rows().await, "2 rows");
}
