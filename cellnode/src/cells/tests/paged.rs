//! Large cells: opened over holes, filled in the background, and never used again unless whole.

use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::faults::{Fault, Operation, Rule, RuleHandle};
use holdfast_bucket::{Bucket, ErrorKind};
use holdfast_rpc::CallError;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::{Bench, PATIENCE};
use crate::config::Config;
use crate::restore::{RestoreJob, restore};
use crate::retire::look_after;
use crate::runtime::BuiltIn;

const SUMS: &str = "SELECT count(*), sum(a), sum(length(b)) FROM t";

fn reads(operation: Operation, fault: Fault) -> Rule {
    Rule::new(fault).on(operation).containing(".ltx")
}

/// A node that opens every cell paged.
async fn bench() -> Bench {
    configured(|_| {}).await
}

async fn configured(change: impl FnOnce(&mut Config)) -> Bench {
    let (_, log) = mpsc::unbounded_channel();
    let change = |config: &mut Config| {
        config.paged_from = 0;
        change(config);
    };
    Bench::configured("db:large", |_, _| Arc::new(BuiltIn), log, change).await
}

impl Bench {
    async fn answer(&self, sql: &str) -> Result<(u16, Value), CallError> {
        let reply = self.post("/query", json!({ "sql": sql }).to_string()).await?;
        let status = reply.reply.response.status().as_u16();
        Ok((status, serde_json::from_str(&reply.text().await).unwrap()))
    }

    /// The rows of a statement that succeeds.
    async fn sql(&self, sql: &str) -> Value {
        let (status, answer) = self.answer(sql).await.unwrap();
        assert_eq!(status, 200, "{sql}: {answer}");
        answer["rows"].clone()
    }

    /// A cell of 3,000 rows, 1.5 MB that do not compress, and a few newer objects.
    async fn write(&self) {
        self.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b)").await;
        self.sql(
            "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             INSERT INTO t SELECT i, randomblob(500) FROM n",
        )
        .await;
        self.sql("UPDATE t SET b = randomblob(400) WHERE a % 100 = 7").await;
        self.sql("INSERT INTO t VALUES (9000, zeroblob(100))").await;
    }

    /// Gives the cell up and forgets its files: the next activation finds nothing here.
    async fn leave(&self) {
        if !self.node.cells.is_empty() {
            self.release().await.unwrap().unwrap();
        }
        self.forget_local_files();
    }

    /// Fills the cell and leaves it: all of it is in the bucket alone. What it holds.
    async fn write_and_leave(&self) -> Value {
        self.write().await;
        let sums = self.sql(SUMS).await;
        self.leave().await;
        sums
    }

    fn is_whole(&self) -> bool {
        self.resident().paged.as_ref().expect("the cell is opened paged").is_whole()
    }

    async fn until_whole(&self) {
        let whole = async {
            while !self.is_whole() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, whole).await.expect("the file becomes whole");
        assert!(!self.resident().reads_chain());
    }

    /// The background waits from now on.
    fn hold_fill(&self) -> RuleHandle {
        self.bucket().add(reads(Operation::GetStream, Fault::Hold))
    }

    /// Bytes of everything in the cell's chain.
    async fn chain_bytes(&self) -> u64 {
        let page = self.bucket().inner().list("cells/", None, 1_000).await.unwrap();
        page.objects.iter().filter(|object| object.key.ends_with(".ltx")).map(|object| object.len).sum()
    }

    /// The database as a restore of everything makes it now.
    async fn restored(&self) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("restored");
        let (owner, _) = self.node.owners.read(&self.cell()).await.unwrap().unwrap();
        let job = RestoreJob {
            cell: self.cell(),
            below: owner.epoch.next(),
            floor: owner.floor,
            database: database.clone(),
            local: None,
        };
        let bucket: Arc<dyn Bucket> = Arc::clone(self.bucket().inner());
        restore(&bucket, &job).await.unwrap();
        std::fs::read(&database).unwrap()
    }

    /// The local files of the cell, by their names' ends.
    fn local_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.node.data_dir.cell(&self.cell()).dir()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.contains("sqlite"));
        names.sort();
        names
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_answers_from_a_few_pages_and_its_file_becomes_a_restored_one() {
    let bench = bench().await;
    bench.write().await;
    let (sums, row) = (bench.sql(SUMS).await, bench.sql("SELECT hex(b) FROM t WHERE a = 1234").await);
    bench.leave().await;
    let held = bench.hold_fill();
    assert_eq!(bench.sql("SELECT hex(b) FROM t WHERE a = 1234").await, row);
    assert!(!bench.is_whole() && bench.resident().reads_chain(), "nothing of the chain may be deleted");
    bench.upload_is_held(&held).await;
    assert_eq!(bench.bucket().count(Operation::GetStream, ".ltx"), 1, "of the background alone");
    assert_eq!(bench.sql(SUMS).await, sums, "all of it, by fetches of single ranges");
    held.release();
    bench.until_whole().await;
    assert_eq!(bench.sql(SUMS).await, sums);

    // Now it is a file like any other: it sleeps and wakes without a look at the bucket's objects.
    bench.sleep().await;
    assert_eq!(bench.local_files(), ["e0000000000000002.sqlite"]);
    let file = bench.node.data_dir.cell(&bench.cell()).database(holdfast_types::Epoch::new(2));
    assert!(std::fs::read(file).unwrap() == bench.restored().await);
    let before = bench.looks();
    assert_eq!(bench.sql(SUMS).await, sums);
    assert!(bench.looks() <= before + 1 && bench.resident().paged.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_over_holes_is_kept_and_an_unfinished_file_is_not() {
    let bench = bench().await;
    bench.write().await;
    for step in [
        "UPDATE t SET b = randomblob(450) WHERE a BETWEEN 2000 AND 2040",
        "INSERT INTO t SELECT a + 10000, randomblob(600) FROM t WHERE a < 800",
        "DELETE FROM t WHERE a % 3 = 0",
        "VACUUM",
        "INSERT INTO t SELECT a + 20000, randomblob(700) FROM t WHERE a < 500",
    ] {
        bench.leave().await;
        let held = bench.hold_fill();
        bench.sql(step).await;
        let sums = bench.sql(SUMS).await;
        assert!(!bench.is_whole(), "{step}");
        assert_eq!(bench.sql("PRAGMA integrity_check").await, json!([["ok"]]), "{step}");
        // Given up, it leaves nothing; asleep, too.
        bench.sleep().await;
        assert_eq!(bench.local_files(), [""; 0], "{step}");
        assert_eq!(bench.sql(SUMS).await, sums, "{step}");
        assert!(!bench.is_whole(), "{step}: opened from the chain again");
        held.release();
        bench.until_whole().await;
        assert_eq!(bench.sql(SUMS).await, sums, "{step}");
        let whole = bench.restored().await;
        let (database, epoch) = (bench.resident().files.clone(), bench.resident().epoch);
        bench.sleep().await;
        assert!(std::fs::read(database.database(epoch)).unwrap() == whole, "{step}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_does_not_come_in_time_fails_its_statement_alone() {
    let bench = configured(|config| config.statement_budget = Duration::from_millis(300)).await;
    let sums = bench.write_and_leave().await;
    let fill = bench.hold_fill();
    assert_eq!(bench.sql("SELECT count(*) FROM sqlite_schema").await, json!([[1]]));
    let held = bench.bucket().add(reads(Operation::GetRange, Fault::Hold));
    let (status, answer) = bench.answer(SUMS).await.unwrap();
    assert_eq!(status, 503, "{answer}");
    let text = answer.to_string();
    assert!(text.contains("could not be fetched") && text.contains("no answer within"), "{text}");
    assert!(text.contains("try again") && text.contains("db:large"), "{text}");
    held.release();
    // The cell is the same, and the failure is not remembered.
    let epoch = bench.resident().epoch;
    let read = async { while bench.answer(SUMS).await.unwrap().0 != 200 {} };
    tokio::time::timeout(PATIENCE, read).await.expect("each try gets further");
    assert_eq!((bench.sql(SUMS).await, bench.resident().epoch), (sums, epoch));
    fill.release();
    bench.until_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_is_asked_again_and_named_when_it_goes_on() {
    let bench = bench().await;
    let sums = bench.write_and_leave().await;
    let fill = bench.hold_fill();
    assert_eq!(bench.sql("SELECT count(*) FROM sqlite_schema").await, json!([[1]]));
    let epoch = bench.resident().epoch;
    // Three tries of one fetch.
    bench.bucket().add(reads(Operation::GetRange, Fault::Fail(ErrorKind::Unavailable)).times(3));
    let (status, answer) = bench.answer(SUMS).await.unwrap();
    assert!(status == 503 && answer.to_string().contains("could not be fetched from `cells/"), "{answer}");
    // Two are no more than a delay; so are a body that breaks and one that is damaged on its way.
    bench.bucket().add(reads(Operation::GetRange, Fault::Fail(ErrorKind::Unavailable)).times(2));
    let short = bench.bucket().add(reads(Operation::GetRange, Fault::ShortBody(100)).after(3).times(1));
    let wrong = bench.bucket().add(reads(Operation::GetRange, Fault::WrongBytes).after(5).times(2));
    assert_eq!(bench.sql(SUMS).await, sums);
    assert_eq!((short.struck(), wrong.struck()), (1, 2));
    // So are they for the background, which goes on where its body broke.
    let short = bench.bucket().add(reads(Operation::GetStream, Fault::ShortBody(100_000)).times(2));
    fill.release();
    bench.until_whole().await;
    assert_eq!(short.struck(), 2);
    assert_eq!((bench.sql(SUMS).await, bench.resident().epoch), (sums, epoch));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_gone_discards_the_cell_and_is_named() {
    let bench = bench().await;
    let sums = bench.write_and_leave().await;
    let fill = bench.hold_fill();
    assert_eq!(bench.sql("SELECT count(*) FROM sqlite_schema").await, json!([[1]]));
    let resident = bench.resident();
    let page = bench.bucket().inner().list("cells/", None, 1_000).await.unwrap();
    let largest = page.objects.into_iter().max_by_key(|object| object.len).unwrap().key;
    let object = bench.bucket().inner().get(&largest).await.unwrap().unwrap();
    bench.bucket().inner().delete(&largest).await.unwrap();
    // The statement is told why; its answer leaves, or is withheld with the cell.
    match bench.answer(SUMS).await {
        Ok((status, answer)) => {
            assert!(status == 503 && answer.to_string().contains("is gone"), "{answer}");
        }
        Err(error) => assert!(matches!(error, CallError::OutcomeUnknown { .. }), "{error}"),
    }
    tokio::time::timeout(PATIENCE, resident.settled().wait_for(|settled| *settled)).await.unwrap().unwrap();
    assert!(resident.has_failed());
    // The next activation reads everything and says what is missing; then it is as ever.
    let error = bench.answer(SUMS).await.unwrap_err();
    assert!(matches!(&error, CallError::Unavailable { reason } if reason.contains(&largest)), "{error}");
    bench.bucket().inner().put(&largest, object.body).await.unwrap();
    fill.release();
    let again = async {
        // The failure stands for a second.
        while bench.answer(SUMS).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("it is restored");
    assert_eq!(bench.sql(SUMS).await, sums);
    assert!(bench.resident().paged.is_none(), "restored whole");
    bench.leave().await;
    assert_eq!(bench.sql(SUMS).await, sums);
    assert!(bench.resident().paged.is_some(), "trusted again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_the_background_finds_discards_the_cell() {
    let bench = bench().await;
    let sums = bench.write_and_leave().await;
    let held = bench.hold_fill();
    bench.bucket().add(reads(Operation::GetStream, Fault::WrongBytes).times(1));
    assert_eq!(bench.sql("SELECT count(*) FROM sqlite_schema").await, json!([[1]]));
    assert!(!bench.is_whole());
    bench.upload_is_held(&held).await;
    held.release();
    let discarded = async {
        while bench.node.cells.residents().iter().any(|resident| resident.paged.is_some()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, discarded).await.expect("the cell is discarded");
    assert_eq!(bench.sql(SUMS).await, sums);
    assert!(bench.resident().paged.is_none(), "restored whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_chains_are_restored_whole_and_nothing_of_them_is_read_twice() {
    let bench = configured(|config| config.paged_from = 64 << 20).await;
    let sums = bench.write_and_leave().await;
    assert_eq!(bench.sql(SUMS).await, sums);
    assert!(bench.resident().paged.is_none() && bench.chain_bytes().await < 64 << 20);
    assert_eq!(bench.bucket().count(Operation::GetRange, ".ltx"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_retired_only_once_the_file_is_whole() {
    let bench = bench().await;
    let sums = bench.write_and_leave().await;
    // An epoch that writes nothing, and is in nobody's chain.
    assert_eq!(bench.sql("SELECT 1").await, json!([[1]]));
    bench.leave().await;
    let held = bench.hold_fill();
    assert_eq!(bench.sql("SELECT count(*) FROM t WHERE a = 1").await, json!([[1]]));
    let resident = bench.resident();
    assert!(resident.is_history_held());
    let before = bench.history().await;
    look_after(&bench.node, &resident).await;
    assert_eq!(bench.mark().await, None, "objects are still read");
    held.release();
    bench.until_whole().await;
    look_after(&bench.node, &resident).await;
    assert_eq!(bench.mark().await.map(|mark| (mark.by.get(), mark.swept)), Some((3, true)));
    let after = bench.history().await;
    let gone: Vec<_> = before.iter().filter(|key| !after.contains(key)).collect();
    assert_eq!(gone, ["cells/db:large/ltx/e0000000000000002/opener.json"]);
    bench.leave().await;
    assert_eq!(bench.sql(SUMS).await, sums);
}
