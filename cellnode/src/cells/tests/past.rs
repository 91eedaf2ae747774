//! A state of the past in the place of the present one.

use std::sync::Arc;

use holdfast_bucket::ErrorKind;
use holdfast_bucket::faults::{Fault, Operation, Rule};
use holdfast_core::lineage::PastTarget;
use holdfast_rpc::CallError;
use holdfast_types::{Epoch, Position, Txid};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::{Bench, PATIENCE};
use crate::past::restore_cell;
use crate::runtime::BuiltIn;

fn at(epoch: u64, txid: u64) -> Position {
    Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) }
}

/// Threads of cells that have one of their own.
fn threads_alone() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.trim() == "cells-alone").count()
}

impl Bench {
    async fn numbers(&self, sql: &str) -> Value {
        let reply = self.post("/query", json!({ "sql": sql }).to_string()).await.unwrap();
        serde_json::from_str::<Value>(&reply.text().await).unwrap()["rows"].clone()
    }

    /// Once what failed a moment ago is tried again.
    async fn numbers_again(&self, sql: &str) -> Value {
        let again = async {
            while self.post("/query", json!({ "sql": "SELECT 1" }).to_string()).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, again).await.expect("the cell is opened again");
        self.numbers(sql).await
    }

    async fn restore(&self, position: Position) -> Result<(Position, Position), CallError> {
        let restored = restore_cell(&self.node, &self.cell(), PastTarget::Position(position)).await?;
        Ok((restored.before, restored.now))
    }
}

/// A cell, opened paged wherever that is possible, with a row of each of three transactions.
async fn bench() -> Bench {
    let (_, log) = mpsc::unbounded_channel();
    let bench =
        Bench::configured("db:old", |_, _| Arc::new(BuiltIn), log, |config| config.paged_from = 0).await;
    bench.numbers("CREATE TABLE t(a)").await;
    bench.numbers("INSERT INTO t VALUES (2)").await;
    bench.numbers("INSERT INTO t VALUES (3)").await;
    bench
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_cell_takes_its_past_on_a_thread_of_its_own_and_none_of_it_page_by_page() {
    let bench = bench().await;
    bench.release().await.unwrap().unwrap();
    bench.forget_local_files();
    bench.bucket().add(Rule::new(Fault::Hold).on(Operation::GetStream).containing(".ltx"));
    assert_eq!(bench.numbers("SELECT a FROM t").await, json!([[2], [3]]));
    assert!(bench.resident().paged.as_ref().is_some_and(|paged| !paged.is_whole()));
    bench.bucket().clear();

    assert_eq!(threads_alone(), 0);
    let (before, now) = bench.restore(at(1, 2)).await.unwrap();
    assert_eq!((before, now), (at(1, 3), at(3, 4)));
    assert!(bench.resident().paged.is_none());
    assert_eq!(threads_alone(), 1);
    assert_eq!(bench.numbers("SELECT a FROM t").await, json!([[2]]));
    // The next stay is on the thread of all.
    bench.sleep().await;
    assert_eq!(bench.numbers("SELECT a FROM t").await, json!([[2]]));
    let ended = async {
        while threads_alone() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("its thread ends when it has left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_fails_before_the_cell_is_opened_happens_at_no_later_time() {
    let bench = bench().await;
    // The cell falls asleep, and its opener cannot be written.
    bench.bucket().add(Rule::new(Fault::Fail(ErrorKind::Denied)).on(Operation::Put).containing("opener"));
    let refused = bench.restore(at(1, 2)).await;
    assert!(matches!(refused, Err(CallError::Unavailable { .. })), "{refused:?}");
    bench.bucket().clear();
    assert_eq!(bench.numbers_again("SELECT a FROM t").await, json!([[2], [3]]));
    bench.restore(at(1, 2)).await.unwrap();
    assert_eq!(bench.numbers("SELECT a FROM t").await, json!([[2]]));
}
