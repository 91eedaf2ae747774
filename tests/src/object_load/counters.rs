//! Reads and writes of counters.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use http::Method;
use serde::Serialize;

use super::connection::Connection;
use super::{Latencies, WARM_UP, micros_since};

/// Connections that read all counters before and after.
const READERS: usize = 32;

/// A load of counters for some time.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Who serves them.
    pub address: SocketAddr,
    /// What their names begin with.
    pub prefix: String,
    /// Connections with one request in flight each.
    pub connections: usize,
    /// Counters, dealt over the connections in turn.
    pub objects: usize,
    /// Whether to add or to read.
    pub writes: bool,
    /// Measured time.
    pub time: Duration,
}

/// What was seen.
#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// Answers per second.
    pub per_second: f64,
    /// How long they took.
    #[serde(flatten)]
    pub latencies: Latencies,
    /// Additions that were acknowledged, also before and after the measured time; the counters have grown by exactly that.
    pub acknowledged: u64,
}

/// Runs a load. All counters are read first, and last.
///
/// # Errors
/// When a request fails, or a counter has not grown by what was acknowledged.
pub async fn rate(load: &Rate) -> Result<RateReport> {
    ensure!(load.connections > 0 && load.objects > 0, "nothing to load");
    let before = values(load).await?;
    let connections = try_join_all((0..load.connections).map(|_| Connection::open(load.address))).await?;
    let begin = Instant::now() + WARM_UP;
    let clients = connections
        .into_iter()
        .enumerate()
        .map(|(number, connection)| tokio::spawn(requests(connection, load.clone(), number, begin)));
    let (mut latencies_us, mut acknowledged) = (Vec::new(), vec![0; load.objects]);
    for seen in try_join_all(clients).await? {
        let Seen { latencies_us: measured, acknowledged: counts } = seen?;
        latencies_us.extend(measured);
        acknowledged.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let after = values(load).await?;
    for (object, count) in acknowledged.iter().enumerate() {
        let grown = after[object] - before[object];
        ensure!(
            grown == *count,
            "{} has grown by {grown}, acknowledged were {count}",
            path(&load.prefix, object)
        );
    }
    Ok(RateReport {
        per_second: latencies_us.len() as f64 / load.time.as_secs_f64().max(f64::EPSILON),
        latencies: Latencies::of(latencies_us),
        acknowledged: acknowledged.iter().sum(),
    })
}

struct Seen {
    latencies_us: Vec<u64>,
    acknowledged: Vec<u64>,
}

/// One request after the other; what is sent is also waited for.
async fn requests(mut connection: Connection, load: Rate, number: usize, begin: Instant) -> Result<Seen> {
    let method = if load.writes { Method::POST } else { Method::GET };
    let paths: Vec<String> = (0..load.objects).map(|object| path(&load.prefix, object)).collect();
    let mut seen = Seen { latencies_us: Vec::new(), acknowledged: vec![0; load.objects] };
    let mut object = number % load.objects;
    loop {
        let sent = Instant::now();
        if sent >= begin + load.time {
            return Ok(seen);
        }
        connection.count(method.clone(), &paths[object]).await?;
        seen.acknowledged[object] += u64::from(load.writes);
        if sent >= begin && Instant::now() < begin + load.time {
            seen.latencies_us.push(micros_since(sent));
        }
        object = (object + load.connections) % load.objects;
    }
}

/// What is stored in each counter.
async fn values(load: &Rate) -> Result<Vec<u64>> {
    let readers = (0..READERS.min(load.objects)).map(|first| async move {
        let mut connection = Connection::open(load.address).await?;
        let mut values = Vec::new();
        for object in (first..load.objects).step_by(READERS) {
            let counted = connection.count(Method::GET, &path(&load.prefix, object)).await?;
            values.push((object, counted.value));
        }
        anyhow::Ok(values)
    });
    let mut values: Vec<_> = try_join_all(readers).await?.concat();
    values.sort_unstable();
    Ok(values.into_iter().map(|(_, value)| value).collect())
}

/// One request to each of so many counters.
#[derive(Clone, Debug)]
pub struct Each {
    /// Who serves them.
    pub address: SocketAddr,
    /// What their names begin with.
    pub prefix: String,
    /// Connections with one request in flight each.
    pub connections: usize,
    /// Counters.
    pub objects: usize,
    /// Whether to add or to read.
    pub writes: bool,
    /// Which request to a counter it must be since that came into memory: 1 where it is to be activated.
    pub seen: u64,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EachReport {
    /// How long the answers took.
    #[serde(flatten)]
    pub latencies: Latencies,
    /// Counters whose answer was not of the request that was expected.
    pub unexpected: usize,
}

/// Asks each counter once.
///
/// # Errors
/// When a request fails.
pub async fn each(load: &Each) -> Result<EachReport> {
    let method = if load.writes { Method::POST } else { Method::GET };
    let clients = (0..load.connections).map(|first| {
        let (load, method) = (load.clone(), method.clone());
        tokio::spawn(async move {
            let mut connection = Connection::open(load.address).await?;
            let mut answers = Vec::new();
            for object in (first..load.objects).step_by(load.connections) {
                let sent = Instant::now();
                let counted = connection.count(method.clone(), &path(&load.prefix, object)).await?;
                answers.push((micros_since(sent), counted.seen == load.seen));
            }
            anyhow::Ok(answers)
        })
    });
    let mut answers = Vec::new();
    for of_client in try_join_all(clients).await.context("a client ended")? {
        answers.extend(of_client?);
    }
    let unexpected = answers.iter().filter(|(_, is_expected)| !is_expected).count();
    Ok(EachReport { latencies: Latencies::of(answers.into_iter().map(|(us, _)| us).collect()), unexpected })
}

pub(super) fn path(prefix: &str, object: usize) -> String {
    format!("/counter/{prefix}-{object}")
}
