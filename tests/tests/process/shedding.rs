//! A node with more cells than memory: those that were used least recently sleep, and the process stays below its cap.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use holdfast_tests::client::{Outcome, SqlClient};
use holdfast_tests::cluster::{Cluster, ClusterOptions};

use crate::sockets::{self, Socket};
use crate::support::{SOON, TTL, client, is_in_full};

const MIB: u64 = 1 << 20;
/// Cells asked for at once.
const LANES: usize = 16;
/// Answers 503 in a row before a client gives up.
const TRIES_MAX: usize = 60;

/// Resident memory of a process, in bytes, and the most that it ever had.
fn rss(id: u32) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

fn db(number: u64) -> String {
    format!("cell-{number}")
}

/// Asks, and comes again as long as it is told to. How long the last try took; none: it was not answered.
async fn ask(
    client: &SqlClient,
    ingress: SocketAddr,
    db: &str,
    sql: &str,
    refused: &AtomicU64,
) -> Option<Duration> {
    for _ in 0..TRIES_MAX {
        let began = Instant::now();
        match client.query(ingress, db, sql, &[]).await {
            Outcome::Acked(..) => return Some(began.elapsed()),
            Outcome::Refused(reason) if reason.starts_with("503") => {
                refused.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            Outcome::Refused(reason) | Outcome::Unknown(reason) => panic!("`{db}`: {reason}"),
        }
    }
    None
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Makes so many cells on one node with a cap, then asks for any of them, in any order.
async fn crowd(cells: u64, memory_max: u64, visits: u64) {
    let node_args =
        ["--memory-max", &memory_max.to_string(), "--cells-max", "40000"].map(Into::into).to_vec();
    let options = ClusterOptions { nodes: 1, lease_ttl: TTL, node_args, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    let id = cluster.process("n1").unwrap().id();
    let (first, _) = rss(id);
    let refused = AtomicU64::new(0);
    // Measured more often than the node measures itself.
    let (stop, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let watch = std::thread::spawn({
        let (stop, most) = (Arc::clone(&stop), Arc::clone(&most));
        move || {
            while !stop.load(Ordering::Relaxed) {
                most.fetch_max(rss(id).0, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    });
    let began = Instant::now();
    let made = futures::stream::iter(0..cells)
        .map(|number| {
            let (client, refused) = (&client, &refused);
            async move {
                let sql = "CREATE TABLE IF NOT EXISTS t (id TEXT NOT NULL, n INTEGER)";
                ask(client, ingress, &db(number), sql, refused).await.is_some()
            }
        })
        .buffer_unordered(LANES)
        .filter(|is_made| std::future::ready(*is_made))
        .count()
        .await;
    assert_eq!(u64::try_from(made).unwrap(), cells, "cells could not be made");
    let took = began.elapsed();
    let (full, _) = rss(id);
    let resident = cluster.metric("n1", "holdfast_cellnode_cells_resident_count", "").await.unwrap();
    println!(
        "{cells} cells made in {took:?}: {resident} resident in {} MiB ({} MiB without any), {} refused for a while",
        full / MIB,
        first / MIB,
        refused.swap(0, Ordering::Relaxed)
    );

    // All over, by a stride that has no divisor in common with their number.
    let sleeps = cluster.metric("n1", "holdfast_cellnode_cells_sleeps_count_total", "").await.unwrap();
    let began = Instant::now();
    let times: Vec<Option<Duration>> = futures::stream::iter(0..visits)
        .map(|visit| {
            let (client, refused) = (&client, &refused);
            let number = visit.wrapping_mul(7_919) % cells;
            async move { ask(client, ingress, &db(number), "SELECT count(*) FROM t", refused).await }
        })
        .buffer_unordered(LANES)
        .collect()
        .await;
    let took = began.elapsed();
    assert!(times.iter().all(Option::is_some), "a cell was refused for too long");
    let slept = cluster.metric("n1", "holdfast_cellnode_cells_sleeps_count_total", "").await.unwrap();
    // One after the other, for the time that it takes to wake.
    let mut alone = Vec::new();
    for visit in 0..200_u64.min(visits) {
        let number = visit.wrapping_mul(104_729) % cells;
        alone.extend(ask(&client, ingress, &db(number), "SELECT count(*) FROM t", &refused).await);
    }
    stop.store(true, Ordering::Relaxed);
    watch.join().unwrap();
    let most = most.load(Ordering::Relaxed);
    let resident = cluster.metric("n1", "holdfast_cellnode_cells_resident_count", "").await.unwrap();
    println!(
        "{visits} visits in {took:?}, median {:?} ({LANES} at once), {:?} alone; {} sleeps before and {} then, {} refused for a while; {resident} \
         resident; at most {} MiB of {} MiB (kernel: {} MiB)",
        median(times.into_iter().flatten().collect()),
        median(alone),
        sleeps,
        slept - sleeps,
        refused.load(Ordering::Relaxed),
        most / MIB,
        memory_max / MIB,
        rss(id).1 / MIB,
    );
    assert!(slept > 0.0, "no cell had to sleep");
    assert!(rss(id).1 <= memory_max, "it had {} bytes", rss(id).1);
    assert!(cluster.process_mut("n1").unwrap().exit_status().unwrap().is_none());
    cluster.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_more_cells_than_memory_lets_them_sleep_and_stays_below_its_cap() {
    match is_in_full() {
        true => crowd(20_000, 2_048 * MIB, 40_000).await,
        false => crowd(2_000, 128 * MIB, 2_000).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_whose_sockets_say_nothing_make_room_and_their_clients_come_again() {
    const ROOMS: usize = 20;
    let options = ClusterOptions {
        nodes: 1,
        lease_ttl: TTL,
        node_args: ["--object-idle", "200ms", "--cells-max", "20"].map(Into::into).to_vec(),
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    // The Worker does not catch what its stub throws.
    cluster.allow_in_logs("has no room for another cell");
    let project = tempfile::tempdir().unwrap();
    sockets::deploy(&cluster, project.path(), "").await;
    let ingress = cluster.ingress();
    let mut sockets = Vec::new();
    for room in 0..ROOMS {
        sockets.push(Socket::open_soon(ingress, &format!("/hibernating/{room}")).await);
    }
    // Nobody can be asked to leave yet: there is no room for another.
    let one_more = format!("/hibernating/{ROOMS}");
    assert!(Socket::open(ingress, &one_more).await.is_err());
    // The last one is in use all the time, and stays.
    let mut last = sockets.pop().unwrap();
    let stays = async {
        let until = Instant::now() + SOON;
        while Instant::now() < until {
            match last.ask("x").await {
                Ok(answer) => assert!(answer.starts_with("x "), "{answer}"),
                Err(code) => panic!("a socket that is used was closed with {code:?}"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let leaves = async {
        // The first that was opened is the first to go.
        assert_eq!(sockets[0].closed().await, Some(1012));
        let mut again = Socket::open_soon(ingress, "/hibernating/0").await;
        let mut more = Socket::open_soon(ingress, &one_more).await;
        assert_eq!(again.ask("x").await, Ok("x 1".to_owned()));
        assert_eq!(more.ask("x").await, Ok("x 1".to_owned()));
    };
    tokio::pin!(stays);
    tokio::select! {
        () = &mut stays => panic!("nobody made room"),
        () = leaves => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_may_open_few_files_has_few_cells_in_memory_and_serves_all() {
    const CELLS: u64 = 150;
    let options = ClusterOptions { nodes: 0, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    // 256 are left to others, three are a cell's.
    cluster.start_node_with_files("n1", 256 + 3 * 40).await.unwrap();
    let (client, ingress, refused) = (client(), cluster.ingress(), AtomicU64::new(0));
    for round in 0..2 {
        let answered = futures::stream::iter(0..CELLS)
            .map(|number| {
                let (client, refused) = (&client, &refused);
                let sql = "CREATE TABLE IF NOT EXISTS t (id TEXT NOT NULL, n INTEGER)";
                async move { ask(client, ingress, &db(number), sql, refused).await.is_some() }
            })
            .buffer_unordered(LANES)
            .filter(|is_answered| std::future::ready(*is_answered))
            .count()
            .await;
        assert_eq!(u64::try_from(answered).unwrap(), CELLS, "round {round}");
    }
    let resident = cluster.metric("n1", "holdfast_cellnode_cells_resident_count", "").await.unwrap();
    assert!(resident <= 40.0, "{resident}");
    assert!(cluster.log("n1").contains("raise its limit of open files"));
    // No file could not be opened: that would be an error in the log.
    cluster.finish().unwrap();
}
