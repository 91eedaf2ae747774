//! A planned drain: every cell moves, with a short time without service, and nobody's request is lost on the way
//! (field cases 95 and 106).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_tests::client::{Outcome, SqlClient};
use holdfast_tests::cluster::Cluster;
use http::Method;

use crate::support::{SOON, client, create, fleet, ids, insert, owner};

/// What one writer saw of its database.
struct Watch {
    db: String,
    acked: Vec<String>,
    unknown: Vec<String>,
    longest_gap: Duration,
}

/// Writes one row after the other with a pause between, until stopped.
async fn watch(client: SqlClient, ingress: SocketAddr, db: String, stop: Arc<AtomicBool>) -> Watch {
    let mut watch = Watch { db, acked: Vec::new(), unknown: Vec::new(), longest_gap: Duration::ZERO };
    let mut last_ack = Instant::now();
    let mut number = 0_u64;
    while !stop.load(Ordering::SeqCst) {
        let id = number.to_string();
        number += 1;
        match insert(&client, ingress, &watch.db, &id).await {
            Outcome::Acked(..) => {
                watch.acked.push(id);
                watch.longest_gap = watch.longest_gap.max(last_ack.elapsed());
                last_ack = Instant::now();
            }
            Outcome::Refused(_) => {}
            Outcome::Unknown(reason) => watch.unknown.push(reason),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    watch
}

/// The store's view of one cell's move, for a person who looks at a gap that is too long.
fn print_store_calls(cluster: &Cluster, db: &str, since: Instant) {
    let cell = format!("cells/db:{db}/");
    let mut calls = Vec::new();
    for (name, faults) in cluster.all_faults() {
        let trace = faults.trace().into_iter().filter(|seen| seen.at >= since && seen.target.contains(&cell));
        calls.extend(trace.map(|seen| (seen.at, name.to_owned(), seen)));
    }
    calls.sort_by_key(|(at, ..)| *at);
    for (at, name, seen) in calls.into_iter().take(60) {
        let ms = (at - since).as_millis();
        println!("{ms:>5} ms {name}: {} {} {:?}", seen.method, seen.target, seen.stage);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_moves_every_cell_with_a_median_gap_below_200_ms() {
    let mut cluster = fleet(2, 1).await;
    let (client, ingress) = (client(), cluster.ingress());
    let dbs: Vec<String> = (0..24).map(|number| format!("moved-{number}")).collect();
    let mut moving = Vec::new();
    for db in &dbs {
        create(&client, ingress, db).await.unwrap();
        if owner(&cluster, db).await == "n1" {
            moving.push(db.clone());
        }
    }
    assert!(moving.len() >= 3, "placement uses both nodes: {moving:?}");
    let stop = Arc::new(AtomicBool::new(false));
    let watches: Vec<_> = moving
        .iter()
        .map(|db| tokio::spawn(watch(client.clone(), ingress, db.clone(), stop.clone())))
        .collect();
    // Every writer has its first rows before the drain begins.
    for db in &moving {
        holdfast_tests::wait::until("the first rows", SOON, async || {
            anyhow::ensure!(ids(&client, ingress, db).await?.len() >= 3, "too few");
            Ok(())
        })
        .await
        .unwrap();
    }
    cluster.process("n1").unwrap().terminate().unwrap();
    let drained = Instant::now();
    let status = cluster.process_mut("n1").unwrap().wait_exit(Duration::from_secs(40)).await.unwrap();
    assert!(status.success(), "{status}; log:\n{}", cluster.process("n1").unwrap().log_tail());
    for db in &moving {
        let before = ids(&client, ingress, db).await.unwrap().len();
        holdfast_tests::wait::until("rows after the drain", SOON, async || {
            anyhow::ensure!(ids(&client, ingress, db).await?.len() > before, "none");
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(owner(&cluster, db).await, "n2");
    }
    stop.store(true, Ordering::SeqCst);
    let mut gaps = Vec::new();
    for watch in watches {
        let watch = watch.await.unwrap();
        let found = ids(&client, ingress, &watch.db).await.unwrap();
        assert!(watch.unknown.is_empty(), "a planned drain leaves nothing unknown: {:?}", watch.unknown);
        assert_eq!(found, watch.acked, "{}", watch.db);
        gaps.push(watch.longest_gap);
    }
    gaps.sort();
    let median = gaps[gaps.len() / 2];
    print_store_calls(&cluster, &moving[0], drained);
    println!("drain of {} cells: median gap {median:?}, longest {:?}", gaps.len(), gaps[gaps.len() - 1]);
    assert!(median < Duration::from_millis(200), "{gaps:?}");
    let deleted = cluster.faults("n1").trace().into_iter().filter(|seen| {
        seen.method == Method::DELETE && (seen.target.contains("own.json") || seen.target.contains("/nodes/"))
    });
    assert_eq!(deleted.count(), 0, "ownership and leases are given up by an overwrite, never by a DELETE");
}
