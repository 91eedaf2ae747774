//! The death of an owner, quick and slow (field cases 18 and 23).

use std::time::{Duration, Instant};

use holdfast_tests::client::Outcome;
use holdfast_tests::fault_proxy::{Action, Rule};
use holdfast_tests::wait;
use http::Method;

use crate::support::{SOON, TTL, client, create, db_on, fleet, ids, insert, owner, time_to_ack};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_of_a_killed_node_serve_within_the_ttl_and_two_seconds() {
    let mut cluster = fleet(2, 1).await;
    let (client, ingress) = (client(), cluster.ingress());
    let dbs: Vec<String> = (0..12).map(|number| format!("small-{number}")).collect();
    for db in &dbs {
        create(&client, ingress, db).await.unwrap();
        insert(&client, ingress, db, "before").await.into_result().unwrap();
    }
    let mut orphans = Vec::new();
    for db in &dbs {
        if owner(&cluster, db).await == "n1" {
            orphans.push(db.clone());
        }
    }
    assert!(!orphans.is_empty() && orphans.len() < dbs.len(), "placement uses both nodes: {orphans:?}");
    cluster.kill("n1").unwrap();
    let waits = orphans.iter().map(|db| time_to_ack(&client, ingress, db, "after"));
    let times: Vec<Duration> =
        futures::future::join_all(waits).await.into_iter().collect::<anyhow::Result<_>>().unwrap();
    let longest = times.iter().max().unwrap();
    println!("takeover of {} cells: longest {longest:?}", times.len());
    assert!(*longest <= TTL + Duration::from_secs(2), "{times:?}");
    for db in &dbs {
        let found = ids(&client, ingress, db).await.unwrap();
        assert_eq!(found[0], "before", "{db}: {found:?}");
        if orphans.contains(db) {
            assert_eq!(owner(&cluster, db).await, "n2");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_owner_hangs_nobody() {
    let mut cluster = fleet(2, 1).await;
    cluster.allow_in_logs("SELF-FENCE");
    let (client, ingress) = (client(), cluster.ingress());
    let db = db_on(&cluster, &client, "n1").await;
    insert(&client, ingress, &db, "before").await.into_result().unwrap();
    cluster.process("n1").unwrap().pause().unwrap();
    let frozen = Instant::now();
    // Each request of the time ends, whatever its answer.
    let mut acked_at = None;
    let mut number = 0;
    while acked_at.is_none() && frozen.elapsed() < SOON {
        let asked = Instant::now();
        let outcome = insert(&client, ingress, &db, &format!("during-{number}")).await;
        number += 1;
        let took = asked.elapsed();
        assert!(took <= TTL + Duration::from_secs(3), "a request hung for {took:?}: {outcome:?}");
        if matches!(outcome, Outcome::Acked(..)) {
            acked_at = Some(frozen.elapsed());
        }
    }
    let acked_at = acked_at.expect("the other node takes over");
    println!("served {acked_at:?} after the freeze");
    assert!(acked_at <= TTL + Duration::from_secs(3), "{acked_at:?}");
    cluster.process("n1").unwrap().resume().unwrap();
    let status = cluster.process_mut("n1").unwrap().wait_exit(SOON).await.unwrap();
    assert_eq!(status.code(), Some(3), "a session whose lease is over fences itself");
    insert(&client, ingress, &db, "after").await.into_result().unwrap();
    let found = ids(&client, ingress, &db).await.unwrap();
    assert!(found.contains(&"before".into()) && found.contains(&"after".into()), "{found:?}");
    assert_eq!(owner(&cluster, &db).await, "n2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_wakes_after_its_takeover_acknowledges_nothing() {
    let mut cluster = fleet(2, 1).await;
    cluster.allow_in_logs("SELF-FENCE");
    let (client, ingress) = (client(), cluster.ingress());
    let db = db_on(&cluster, &client, "n1").await;
    insert(&client, ingress, &db, "before").await.into_result().unwrap();
    // The write is committed at its owner and waits for its upload, which lands long after the takeover.
    let hold = Rule::new(Action::Hold { ms: 9_000 }).method(&Method::PUT).contains(".ltx");
    let held = cluster.faults("n1").add(hold);
    let late = {
        let (client, db) = (client.clone(), db.clone());
        tokio::spawn(async move { insert(&client, ingress, &db, "late").await })
    };
    wait::until("the upload to be held", SOON, async || {
        anyhow::ensure!(cluster.faults("n1").hits(held) > 0, "no upload yet");
        Ok(())
    })
    .await
    .unwrap();
    cluster.process("n1").unwrap().pause().unwrap();
    time_to_ack(&client, ingress, &db, "taken-over").await.unwrap();
    cluster.process("n1").unwrap().resume().unwrap();
    let late = late.await.unwrap();
    assert!(matches!(late, Outcome::Unknown(_)), "{late:?}");
    let status = cluster.process_mut("n1").unwrap().wait_exit(SOON).await.unwrap();
    assert_eq!(status.code(), Some(3));
    // The held upload lands, at an epoch that nobody reads from any more.
    wait::until("the held upload to land", SOON, async || {
        use holdfast_tests::fault_proxy::Stage;
        let trace = cluster.faults("n1").trace();
        let is_landed = |seen: &holdfast_tests::fault_proxy::Seen| {
            seen.method == Method::PUT && seen.target.contains(".ltx") && seen.stage != Stage::Arrived
        };
        let arrived = trace.iter().filter(|s| s.method == Method::PUT && s.target.contains(".ltx")).count();
        let landed = trace.iter().filter(|s| is_landed(s)).count();
        anyhow::ensure!(landed * 2 == arrived, "{landed} answers of {arrived} lines");
        Ok(())
    })
    .await
    .unwrap();
    cluster.kill("n2").unwrap();
    std::fs::remove_dir_all(cluster.data_dir("n2")).unwrap();
    cluster.start_node("n3").await.unwrap();
    let found = ids(&client, ingress, &db).await.unwrap();
    assert!(!found.contains(&"late".into()), "{found:?}");
    assert!(found.starts_with(&["before".to_owned()]) && found.contains(&"taken-over".into()), "{found:?}");
}
