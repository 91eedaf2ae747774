//! A fleet that grows, and one whose programs are restarted one after the other: clients go on as if nothing was. What is smaller
//! here than it is promised for is run in full by `just fleet`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use holdfast_tests::client::Outcome;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use serde_json::{Value, json};

use crate::support::{SOON, TTL, is_in_full};
use crate::traffic::{Load, Ordinary, Traffic, make_cells};

/// Cells of each live node and its share, as an operator sees them.
async fn loads(cluster: &Cluster) -> Result<BTreeMap<String, (u64, u64)>> {
    let status = cluster.tool(&["node", "rebalance", "status", "--json"]).await?.json()?;
    let nodes = status["nodes"].as_array().into_iter().flatten();
    let row = |row: &Value| {
        let name = row["node"].as_str().unwrap_or_default().to_owned();
        (name, (row["cells"].as_u64().unwrap_or_default(), row["share"].as_u64().unwrap_or_default()))
    };
    Ok(nodes.map(row).collect())
}

fn must_have(loads: &BTreeMap<String, (u64, u64)>, nodes: usize, cells: u64) -> Result<()> {
    ensure!(loads.len() == nodes, "{loads:?}");
    ensure!(loads.values().map(|(cells, _)| cells).sum::<u64>() >= cells, "{loads:?}");
    Ok(())
}

fn must_be_even(loads: &BTreeMap<String, (u64, u64)>, nodes: usize, cells: u64) -> Result<()> {
    must_have(loads, nodes, cells)?;
    for (node, (cells, share)) in loads {
        ensure!(cells.abs_diff(*share) * 20 <= *share, "`{node}` is off by more than 5 %: {loads:?}");
    }
    Ok(())
}

/// What clients saw that went through all cells again and again.
#[derive(Debug, Default)]
struct Seen {
    answered: u64,
    failed: Vec<String>,
}

fn visit(ordinary: &Ordinary, dbs: &[String], stop: &Arc<AtomicBool>) -> Vec<tokio::task::JoinHandle<Seen>> {
    let visitors = (0..4).map(|first| {
        let (ordinary, dbs, stop) = (ordinary.clone(), dbs.to_vec(), Arc::clone(stop));
        tokio::spawn(async move {
            let mut seen = Seen::default();
            for db in dbs.iter().cycle().skip(first * dbs.len() / 4) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                match ordinary.query(db, "INSERT INTO t (id, n) VALUES (?, 1)", &[json!("x")]).await {
                    Outcome::Acked(..) => seen.answered += 1,
                    Outcome::Refused(reason) | Outcome::Unknown(reason) => {
                        seen.failed.push(format!("{db}: {reason}"));
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            seen
        })
    });
    visitors.collect()
}

/// A fourth node joins three that hold so many cells. How long it takes until all are even, and what clients saw.
async fn grow(cells: usize, within: Duration) -> (Duration, Seen) {
    // Leases of the usual length: what is judged is what nodes own, as they tell it.
    let options = ClusterOptions { nodes: 3, wakers: 1, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let dbs = make_cells(&cluster, cells).await;
    let count = u64::try_from(cells).unwrap();
    wait::until("leases that tell of all cells", SOON, async || must_have(&loads(&cluster).await?, 3, count))
        .await
        .unwrap();

    // Nothing moves while it is paused, whoever joins.
    let paused = cluster.tool(&["node", "rebalance", "pause", "--by", "ada", "--json"]).await.unwrap();
    assert_eq!(paused.json().unwrap()["by"], "ada");
    cluster.start_node("n4").await.unwrap();
    let looks = |cluster: &Cluster| {
        let trace = cluster.faults("w1").trace().into_iter();
        trace.filter(|seen| seen.target.contains("fleet/rebalance.json")).count()
    };
    let before =
        (looks(&cluster), cluster.metric("w1", "holdfast_waker_moves_count_total", "").await.unwrap());
    wait::until("looks at the switch", SOON, async || {
        ensure!(looks(&cluster) >= before.0 + 3, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    let moves = cluster.metric("w1", "holdfast_waker_moves_count_total", "").await.unwrap();
    assert_eq!(moves, before.1, "cells moved while it was paused");
    let status = cluster.tool(&["node", "rebalance", "status"]).await.unwrap();
    assert!(status.stdout.contains("paused by ada"), "{status:?}");

    let stop = Arc::new(AtomicBool::new(false));
    let ordinary = Ordinary::new(&cluster);
    let visitors = visit(&ordinary, &dbs, &stop);
    cluster.tool(&["node", "rebalance", "resume", "--json"]).await.unwrap();
    let resumed = Instant::now();
    wait::until("four even nodes", within, async || must_be_even(&loads(&cluster).await?, 4, count))
        .await
        .unwrap();
    let took = resumed.elapsed();
    stop.store(true, Ordering::SeqCst);
    let mut seen = Seen::default();
    for visitor in visitors {
        let Seen { answered, failed } = visitor.await.unwrap();
        seen.answered += answered;
        seen.failed.extend(failed);
    }
    // It has come to rest: looks go by, and nothing moves.
    let rest = async |cluster: &Cluster| cluster.metric("w1", "holdfast_waker_moves_count_total", "").await;
    let mut last = rest(&cluster).await.unwrap();
    wait::until("rest", SOON, async || {
        let (before, looked) = (last, looks(&cluster));
        wait::until("looks at the switch", SOON, async || {
            ensure!(looks(&cluster) >= looked + 3, "not yet");
            Ok(())
        })
        .await?;
        last = rest(&cluster).await?;
        ensure!(last == before, "cells move: {before} and {last}");
        Ok(())
    })
    .await
    .unwrap();
    println!(
        "{cells} cells: even after {took:?}, {last} moves; {} answers, {} tried again after 503, {} failed",
        seen.answered,
        ordinary.retried(),
        seen.failed.len()
    );
    cluster.finish().unwrap();
    (took, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_gets_its_share_and_no_request_fails() {
    let (took, seen) = grow(if is_in_full() { 3_000 } else { 600 }, Duration::from_secs(300)).await;
    assert!(seen.failed.is_empty() && seen.answered > 0, "{seen:?}");
    // What a machine that does other things takes is no fault.
    assert!(!is_in_full() || took < Duration::from_secs(120), "{took:?}");
}

/// Ends a program in order, and starts it again.
async fn restart(cluster: &mut Cluster, programs: &[&str]) {
    let began = Instant::now();
    for program in programs {
        cluster.process(program).unwrap().terminate().unwrap();
    }
    for program in programs {
        let status = cluster.process_mut(program).unwrap().wait_exit(Duration::from_secs(60)).await.unwrap();
        assert!(status.success(), "`{program}`: {status}; {}", cluster.process(program).unwrap().log_tail());
    }
    let stopped = began.elapsed();
    for program in programs {
        cluster.start_again(program).await.unwrap();
    }
    println!("{programs:?} stopped in {stopped:?}, back after {:?}", began.elapsed());
}

/// Restarts every program of a fleet, so many at a time, in order. Each cell's longest gap in service.
async fn roll(load: Load, steps: &[&[&str]]) -> Vec<Duration> {
    let options = ClusterOptions {
        nodes: 3,
        followers: 2,
        ingresses: 2,
        wakers: 1,
        lease_ttl: TTL,
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    let mut traffic = Traffic::begin(&cluster, load).await;
    for programs in steps {
        traffic.step(&programs.join(" and "));
        restart(&mut cluster, programs).await;
    }
    let gaps = traffic.end(&cluster).await;
    cluster.finish().unwrap();
    gaps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_every_program_fails_no_request_and_loses_no_write() {
    let load = match is_in_full() {
        true => Load { cells: 500, sockets: 20, pause: Duration::from_millis(2_500) },
        false => Load { cells: 24, sockets: 4, pause: Duration::from_millis(150) },
    };
    roll(load, &[&["n1"], &["n2"], &["n3"], &["f1"], &["f2"], &["i1"], &["i2"], &["w1"]]).await;
}

/// They take turns: what the first gives up, the second does not take, and gives its own to the one that stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_drain_at_once_fail_no_request_and_lose_no_write() {
    let load = match is_in_full() {
        true => Load { cells: 300, sockets: 10, pause: Duration::from_millis(1_500) },
        false => Load { cells: 24, sockets: 4, pause: Duration::from_millis(150) },
    };
    roll(load, &[&["n1", "n2"], &["n2", "n3"]]).await;
}
