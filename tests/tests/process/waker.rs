//! Cells with due alarms are opened whoever owned them: without any request, after the death of owners and of wakers, and
//! while the store fails (field cases 60, 61 and 110). The entries are put by hand, as an owner would.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use holdfast_records::{NodeLogState, Record, WakeEntry, WakerLease};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::fault_proxy::{Action, Rule};
use holdfast_tests::wait;
use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, CellName};

use crate::support::{SOON, TTL, client, create, db_on, ids, insert, owner};
use crate::tier::{tier, wait_ensemble};

/// A tick of the cluster's wakers, and what opening a cell may take besides.
const TICK_AND_OPENING: Duration = Duration::from_secs(1 + 3);

async fn fleet_with_wakers(nodes: usize, wakers: usize) -> Cluster {
    let options = ClusterOptions { nodes, wakers, lease_ttl: TTL, ..ClusterOptions::default() };
    Cluster::start(options).await.unwrap()
}

/// The entry of an alarm of a database that is due now.
async fn put_entry(cluster: &Cluster, db: &str) -> String {
    let epoch = cluster.owner(db).await.unwrap().unwrap().epoch;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let due = AlarmTime::new(i64::try_from(now.as_millis()).unwrap());
    let id = AlarmId { epoch, seq: AlarmSeq::new(1) };
    let entry = WakeEntry::new(CellName::new("db", db).unwrap(), due, id);
    let key = entry.key().to_string();
    cluster.raw_store().put(&key, entry.encode()).await.unwrap();
    key
}

/// Waits until a database has another owner than before.
async fn moved(cluster: &Cluster, db: &str, from: &str, limit: Duration) -> Result<()> {
    wait::until(&format!("another owner of `{db}`"), limit, async || {
        let now = owner(cluster, db).await;
        ensure!(now != from, "`{from}` has it");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_due_cell_of_a_dead_owner_is_opened_elsewhere_without_a_request() {
    let mut cluster = fleet_with_wakers(2, 1).await;
    let client = client();
    let db = db_on(&cluster, &client, "n1").await;
    put_entry(&cluster, &db).await;
    // Its owner lives, and is asked; then it is gone.
    wait::until("a hint", SOON, async || {
        let hints = cluster.metric("w1", "holdfast_waker_hints_count_total", "outcome=\"other\"").await?;
        ensure!(hints >= 1.0, "none yet");
        Ok(())
    })
    .await
    .unwrap();
    cluster.kill("n1").unwrap();
    let killed = Instant::now();
    let limit = TTL + Duration::from_millis(500) + TICK_AND_OPENING;
    moved(&cluster, &db, "n1", limit).await.unwrap();
    assert_eq!(owner(&cluster, &db).await, "n2");
    println!("opened {:?} after the death of its owner", killed.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_waker_goes_on_where_one_was_killed() {
    let mut cluster = fleet_with_wakers(2, 2).await;
    let client = client();
    let holders = async |cluster: &Cluster| -> Result<Vec<String>> {
        let mut holders = Vec::new();
        for key in cluster.raw_store().list("wake/waker-").await? {
            let body = cluster.raw_store().get(&key).await?.unwrap_or_default();
            holders.push(WakerLease::decode(&body)?.waker.to_string());
        }
        holders.sort();
        holders.dedup();
        Ok(holders)
    };
    wait::until("both wakers to share the shards", SOON, async || {
        ensure!(holders(&cluster).await? == ["w1", "w2"], "not yet");
        Ok(())
    })
    .await
    .unwrap();
    cluster.kill("w1").unwrap();
    let mut dbs = Vec::new();
    for number in 0..12 {
        let db = format!("due-{number}");
        create(&client, cluster.ingress(), &db).await.unwrap();
        put_entry(&cluster, &db).await;
        dbs.push((owner(&cluster, &db).await, db));
    }
    cluster.kill("n1").unwrap();
    for (from, db) in dbs.iter().filter(|(from, _)| from == "n1") {
        moved(&cluster, db, from, SOON).await.unwrap();
    }
    assert_eq!(holders(&cluster).await.unwrap(), ["w2"]);
    cluster.process("w2").unwrap().terminate().unwrap();
    let status = cluster.process_mut("w2").unwrap().wait_exit(SOON).await.unwrap();
    assert!(status.success(), "{status}");
}

/// 503 for two seconds, from a moment after the death of the owner on: every cell is opened all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_during_the_take_over_strands_no_cell() {
    let mut cluster = fleet_with_wakers(2, 1).await;
    let client = client();
    let mut dbs = Vec::new();
    for number in 0..60 {
        let db = format!("due-{number}");
        create(&client, cluster.ingress(), &db).await.unwrap();
        put_entry(&cluster, &db).await;
        if owner(&cluster, &db).await == "n1" {
            dbs.push(db);
        }
    }
    assert!(dbs.len() > 5, "{} of 60 cells are on n1", dbs.len());
    cluster.kill("n1").unwrap();
    tokio::time::sleep(TTL + Duration::from_millis(700)).await;
    let rule = || Rule::new(Action::Status { status: 503, code: "SlowDown".into() });
    let broken = ["w1", "n2"].map(|name| {
        let rule = if name == "n2" { rule().contains("cells/") } else { rule() };
        (name, cluster.faults(name).add(rule))
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (name, id) in broken {
        cluster.faults(name).remove(id);
    }
    for db in &dbs {
        moved(&cluster, db, "n1", SOON).await.unwrap();
    }
}

/// What only followers hold reaches the bucket although nobody asks for the cells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_dead_node_is_recovered_without_a_request() {
    let mut cluster = tier(1, 2, &["--upload-pace", "10min"]).await;
    cluster.start_waker("w1").await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    create(&client, ingress, "held").await.unwrap();
    insert(&client, ingress, "held", "row").await.into_result().unwrap();
    let session = cluster.lease("n1").await.unwrap().unwrap().session;
    cluster.start_node("n2").await.unwrap();
    cluster.kill("n1").unwrap();
    wait::until("the log of n1 to be sealed", SOON, async || {
        let log = cluster.node_log("n1", session).await?.unwrap();
        ensure!(log.state == NodeLogState::Sealed, "it is {:?}", log.state);
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(owner(&cluster, "held").await, "n1", "nobody asked for the cell");
    let asked =
        cluster.metric("w1", "holdfast_waker_sweeps_recoveries_count_total", "recovered").await.unwrap();
    assert!(asked >= 1.0, "{asked}");
    for follower in ["f1", "f2"] {
        cluster.kill(follower).unwrap();
    }
    assert_eq!(ids(&client, ingress, "held").await.unwrap(), ["row"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_alarm_index_is_refused_by_name() {
    let mut cluster = Cluster::start_store(ClusterOptions::default()).await.unwrap();
    cluster.raw_store().put("wake/format.json", r#"{"version":"2.0"}"#).await.unwrap();
    cluster.allow_in_logs("alarm index format");
    for (name, started) in [("w1", cluster.start_waker("w1").await), ("n1", cluster.start_node("n1").await)] {
        let error = format!("{:#}", started.unwrap_err());
        let text =
            "alarm index format record has version 2.x, this program reads up to 1.x: upgrade this program";
        assert!(error.contains(text), "{name}: {error}");
    }
}
