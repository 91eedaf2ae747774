//! Followers that leave and return under a client that never stops writing: no write fails, and service does not pause
//! for longer than half a second.

use std::time::{Duration, Instant};

use holdfast_records::NodeLogRecord;
use holdfast_tests::wait;

use crate::support::{SOON, client, create, db_on, ids};
use crate::tier::{Steady, names, tier, wait_bucket_proofs, wait_ensemble};

/// Longest time without an acknowledgement when a follower is removed: 500 ms is promised, and a machine that tests
/// several things at once gets as much again.
const GAP_MAX: Duration = Duration::from_millis(1_000);
/// Acknowledgements that show that things go on.
const MANY: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_go_on_while_followers_leave_and_return() {
    let mut cluster = tier(1, 2, &[]).await;
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "db").await.unwrap();
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    let steady = Steady::start(&client, ingress, "db");
    steady.more(MANY).await;
    let mut spans = Vec::new();

    let began = Instant::now();
    cluster.kill("f1").unwrap();
    wait_ensemble(&cluster, "n1", &["f2"]).await;
    steady.more(MANY).await;
    spans.push(("one of two is killed", began, Instant::now()));

    let began = Instant::now();
    cluster.start_follower("f1").await.unwrap();
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    steady.more(MANY).await;
    spans.push(("it returns", began, Instant::now()));

    let began = Instant::now();
    cluster.kill("f1").unwrap();
    cluster.kill("f2").unwrap();
    wait_bucket_proofs(&cluster, "n1").await;
    steady.more(MANY).await;
    spans.push(("both are killed", began, Instant::now()));

    let began = Instant::now();
    cluster.start_follower("f2").await.unwrap();
    cluster.start_follower("f1").await.unwrap();
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    steady.more(MANY).await;
    spans.push(("both return", began, Instant::now()));

    let began = Instant::now();
    cluster.process("f2").unwrap().pause().unwrap();
    wait_ensemble(&cluster, "n1", &["f1"]).await;
    steady.more(MANY).await;
    spans.push(("one of two stands still", began, Instant::now()));

    let written = steady.stop().await;
    written.must_be_without_failure();
    let found = ids(&client, ingress, "db").await.unwrap();
    assert_eq!(found, written.acked);
    let gaps: Vec<(&str, Duration)> =
        spans.into_iter().map(|(what, from, to)| (what, written.longest_gap(from, to))).collect();
    println!("{} acknowledgements; longest gaps: {gaps:?}", written.acked.len());
    assert!(gaps.iter().all(|(_, gap)| *gap <= GAP_MAX), "{gaps:?}");
    for reason in ["unreachable", "slow"] {
        let label = format!("reason=\"{reason}\"");
        let evictions = cluster.metric("n1", "holdfast_cellnode_log_evictions_count_total", &label).await;
        assert!(evictions.unwrap() >= 1.0, "no member was given up as {reason}");
    }
}

fn is_named(log: &NodeLogRecord, follower: &str) -> bool {
    let ensembles = std::iter::once(&log.ensemble).chain(&log.prior);
    ensembles.flat_map(|ensemble| &ensemble.members).any(|member| member.follower.as_str() == follower)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_drains_ends_when_no_owner_needs_it_and_no_client_notices() {
    let mut cluster = tier(2, 3, &[]).await;
    let (client, ingress) = (client(), cluster.ingress());
    let dbs = [db_on(&cluster, &client, "n1").await, db_on(&cluster, &client, "n2").await];
    for node in ["n1", "n2"] {
        wait::until("an ensemble of two", SOON, async || {
            let log = cluster.present_log(node).await?;
            anyhow::ensure!(log.active && log.ensemble.members.len() == 2, "{log:?}");
            Ok(())
        })
        .await
        .unwrap();
    }
    let steady = dbs.each_ref().map(|db| Steady::start(&client, ingress, db));
    for steady in &steady {
        steady.more(MANY).await;
    }
    let began = Instant::now();
    // Of three followers with two ensembles of two, one is in both.
    let (first, second) =
        (cluster.present_log("n1").await.unwrap(), cluster.present_log("n2").await.unwrap());
    let leaving = names(&first).into_iter().find(|name| is_named(&second, name)).unwrap();
    cluster.process(&leaving).unwrap().terminate().unwrap();
    let status = cluster.process_mut(&leaving).unwrap().wait_exit(Duration::from_secs(30)).await.unwrap();
    let after = cluster.open_logs().await.unwrap();
    println!("`{leaving}` left after {:?}: {status}", began.elapsed());
    assert_eq!(status.code(), Some(0), "{}", cluster.log(&leaving));
    assert_eq!(after.len(), 2);
    for log in &after {
        assert!(!is_named(log, &leaving), "an owner still needs it: {log:?}");
    }
    for steady in &steady {
        steady.more(MANY).await;
    }
    let mut all = Vec::new();
    for steady in steady {
        all.push(steady.stop().await);
    }
    for (db, written) in dbs.iter().zip(&all) {
        let gap = written.longest_gap(began, Instant::now());
        println!("`{db}`: {} acknowledgements, longest gap {gap:?}", written.acked.len());
        written.must_be_without_failure();
        assert!(gap <= GAP_MAX, "{gap:?}");
    }
    for node in ["n1", "n2"] {
        cluster.kill(node).unwrap();
        cluster.wipe_node(node).unwrap();
    }
    cluster.start_node("n3").await.unwrap();
    for (db, written) in dbs.iter().zip(all) {
        assert_eq!(ids(&client, ingress, db).await.unwrap(), written.acked, "`{db}`");
    }
}
