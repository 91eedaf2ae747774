//! A load generator: connections that each send one request after another, and what they saw.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use futures::future::try_join_all;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpStream;

use super::Line;

/// Time before anything is counted: connections, caches, and routes settle.
const WARM_UP: Duration = Duration::from_millis(500);

/// What one connection sends again and again.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) path: String,
    pub(super) body: Bytes,
}

impl Target {
    /// A query of a database.
    pub(super) fn query(address: SocketAddr, db: &str, sql: &str) -> Self {
        let body = serde_json::json!({ "sql": sql }).to_string();
        Self { address, path: format!("/-/db/{db}/query"), body: body.into() }
    }
}

/// One connection.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authorization: Option<HeaderValue>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, authorization: None })
    }

    /// The same, with this `Authorization` in each request.
    pub(super) fn with_authorization(self, authorization: Option<HeaderValue>) -> Self {
        Self { authorization, ..self }
    }

    /// Sends one request and reads its whole answer.
    pub(super) async fn send(&mut self, target: &Target) -> Result<Bytes> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&target.path)
            .header("host", "bench")
            .header("content-type", "application/json")
            .body(Full::new(target.body.clone()))?;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(http::header::AUTHORIZATION, authorization.clone());
        }
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{} answered {status}: {}", target.path, String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

/// What a load saw.
#[derive(Debug, Default)]
pub(super) struct Measured {
    latencies_us: Vec<u32>,
    elapsed: Duration,
    cpu: Option<Duration>,
}

impl Measured {
    /// Of these latencies, in this time.
    pub(super) fn new(mut latencies_us: Vec<u32>, elapsed: Duration) -> Self {
        latencies_us.sort_unstable();
        Self { latencies_us, elapsed, cpu: None }
    }

    /// With the CPU that the process took meanwhile.
    fn with_cpu(self, cpu: Duration) -> Self {
        Self { cpu: Some(cpu), ..self }
    }

    pub(super) fn per_second(&self) -> f64 {
        self.latencies_us.len() as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    /// The latency that so many of a thousand do not exceed.
    pub(super) fn permille_us(&self, permille: usize) -> u64 {
        let rank = (self.latencies_us.len() * permille).div_ceil(1000).max(1) - 1;
        self.latencies_us.get(rank).map_or(0, |latency| u64::from(*latency))
    }

    /// As a line of a result.
    pub(super) fn line(&self, what: impl Into<String>, floor: Option<&Self>) -> Line {
        Line {
            what: what.into(),
            requests_per_s: self.per_second(),
            p50_us: self.permille_us(500),
            p99_us: self.permille_us(990),
            cpu_us: self.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / self.latencies_us.len().max(1) as f64),
            ratio_to_floor: floor.map(|floor| self.per_second() / floor.per_second().max(f64::EPSILON)),
        }
    }
}

/// CPU time of all threads of this process.
pub(super) fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).expect("time is positive"),
        u32::try_from(time.tv_nsec).expect("below a second"),
    )
}

pub(super) fn micros(elapsed: Duration) -> u32 {
    u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX)
}

/// One connection for each target, all at once, for so long.
pub(super) async fn run(targets: Vec<Target>, time: Duration) -> Result<Measured> {
    let connections = targets.into_iter().map(|target| async move {
        let connection = Connection::open(target.address).await?;
        anyhow::Ok((connection, target))
    });
    let connections = try_join_all(connections).await?;
    let begin = Instant::now() + WARM_UP;
    let end = begin + time;
    let tasks = connections.into_iter().map(|(mut connection, target)| {
        tokio::spawn(async move {
            let mut latencies_us = Vec::new();
            loop {
                let sent = Instant::now();
                connection.send(&target).await?;
                let answered = Instant::now();
                if answered >= end {
                    return anyhow::Ok(latencies_us);
                }
                if sent >= begin {
                    latencies_us.push(micros(answered - sent));
                }
            }
        })
    });
    let cpu = async {
        tokio::time::sleep_until(begin.into()).await;
        let before = process_cpu();
        tokio::time::sleep_until(end.into()).await;
        anyhow::Ok(process_cpu().saturating_sub(before))
    };
    let (tasks, cpu) = tokio::try_join!(async { Ok(try_join_all(tasks).await?) }, cpu)?;
    let mut all = Vec::new();
    for latencies in tasks {
        all.extend(latencies?);
    }
    Ok(Measured::new(all, time).with_cpu(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permilles_are_ranks() {
        let measured = Measured::new((1..=100).rev().collect(), Duration::from_secs(2));
        assert_eq!(
            (measured.permille_us(500), measured.permille_us(990), measured.permille_us(1000)),
            (50, 99, 100)
        );
        assert!((measured.per_second() - 50.0).abs() < 1e-9);
        let line = measured.line("x", Some(&Measured::new(vec![1; 200], Duration::from_secs(2))));
        assert!((line.ratio_to_floor.unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(Measured::default().permille_us(990), 0);
    }
}
