//! Handlers that only compute.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use http::Method;
use serde::Serialize;

use super::connection::Connection;
use super::{Latencies, WARM_UP, micros_since};

/// A load of one handler, by one connection.
#[derive(Clone, Debug)]
pub struct Work {
    /// Who serves it.
    pub address: SocketAddr,
    /// Its path.
    pub path: String,
    /// Measured time.
    pub time: Duration,
}

/// What was seen.
#[derive(Clone, Debug, Serialize)]
pub struct WorkReport {
    /// Answers per second.
    pub per_second: f64,
    /// How long they took.
    #[serde(flatten)]
    pub latencies: Latencies,
    /// What every one of them was.
    pub answer: String,
}

/// Asks again and again.
///
/// # Errors
/// When a request fails, or is answered otherwise than the first.
pub async fn work(load: &Work) -> Result<WorkReport> {
    let mut connection = Connection::open(load.address).await?;
    let answer = connection.send(Method::GET, &load.path).await?;
    let begin = Instant::now() + WARM_UP;
    let mut latencies_us = Vec::new();
    loop {
        let sent = Instant::now();
        if sent >= begin + load.time {
            break;
        }
        let again = connection.send(Method::GET, &load.path).await?;
        ensure!(again == answer, "`{}` answers {again:?} after {answer:?}", load.path);
        if sent >= begin {
            latencies_us.push(micros_since(sent));
        }
    }
    let taken = begin.elapsed();
    Ok(WorkReport {
        per_second: latencies_us.len() as f64 / taken.as_secs_f64().max(f64::EPSILON),
        latencies: Latencies::of(latencies_us),
        answer: String::from_utf8_lossy(&answer).into_owned(),
    })
}
