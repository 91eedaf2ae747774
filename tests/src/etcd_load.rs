//! A load of puts on an etcd: clients with one put in flight each, as `holdfast bench acks` has updates. It speaks
//! etcd's own gRPC, as etcd's clients do; nothing else of etcd's protocol is here.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use http::uri::PathAndQuery;
use serde::Serialize;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};

/// Time before anything is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// Bytes of a value.
const VALUE_LEN: usize = 32;

/// What to send, where, and for how long.
#[derive(Clone, Debug)]
pub struct EtcdLoad {
    /// Members, `http://host:port`; the connections are dealt over them in turn.
    pub endpoints: Vec<String>,
    /// HTTP/2 connections, which the clients share.
    pub connections: usize,
    /// Puts in flight at once.
    pub clients: usize,
    /// Keys, which are dealt over the clients in turn.
    pub keys: usize,
    /// Measured time.
    pub time: Duration,
}

/// What was seen.
#[derive(Clone, Debug, Serialize)]
pub struct EtcdReport {
    /// Acknowledged puts per second.
    pub per_second: f64,
    /// Median latency, in microseconds.
    pub p50_us: u64,
    /// The latency that 99 of 100 do not exceed, in microseconds.
    pub p99_us: u64,
    /// Acknowledged puts within the measured time.
    pub puts: usize,
}

/// `etcdserverpb.PutRequest`, of etcd's api/etcdserverpb/rpc.proto; the fields that are not sent keep their defaults.
#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    key: bytes::Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: bytes::Bytes,
}

/// `etcdserverpb.PutResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct PutResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<ResponseHeader>,
}

/// `etcdserverpb.ResponseHeader`.
#[derive(Clone, PartialEq, prost::Message)]
struct ResponseHeader {
    /// Of the store, after the put: each put makes one.
    #[prost(int64, tag = "3")]
    revision: i64,
}

/// One connection.
#[derive(Clone, Debug)]
struct Kv(Grpc<Channel>);

impl Kv {
    async fn connect(endpoint: &str) -> Result<Self> {
        let channel = Endpoint::from_shared(endpoint.to_owned())?.tcp_nodelay(true).connect().await;
        Ok(Self(Grpc::new(channel.with_context(|| format!("connecting to `{endpoint}`"))?)))
    }

    /// Puts, and returns the store's revision.
    async fn put(&mut self, request: PutRequest) -> Result<i64> {
        self.0.ready().await?;
        let path = PathAndQuery::from_static("/etcdserverpb.KV/Put");
        let codec = tonic_prost::ProstCodec::<PutRequest, PutResponse>::default();
        let response = self.0.unary(tonic::Request::new(request), path, codec).await?.into_inner();
        Ok(response.header.context("a put was answered without a header")?.revision)
    }
}

/// Runs a load.
///
/// # Errors
/// When a member cannot be reached, refuses a put, or acknowledges puts that its store has not counted.
pub async fn run(load: &EtcdLoad) -> Result<EtcdReport> {
    ensure!(!load.endpoints.is_empty() && load.connections > 0 && load.keys > 0, "nothing to load");
    let endpoints = load.endpoints.iter().cycle().take(load.connections);
    let connections = try_join_all(endpoints.map(|endpoint| Kv::connect(endpoint))).await?;
    let request = |key: usize| PutRequest {
        key: format!("/bench/acks/{key}").into(),
        value: vec![b'v'; VALUE_LEN].into(),
    };
    let first = connections[0].clone().put(request(0)).await?;
    let begin = Instant::now() + WARM_UP;
    let end = begin + load.time;
    let clients: Vec<_> = (0..load.clients)
        .map(|client| {
            let connection = connections[client % connections.len()].clone();
            tokio::spawn(puts(connection, request(client % load.keys), begin, end))
        })
        .collect();
    let (mut latencies_us, mut acknowledged) = (Vec::new(), 0);
    for seen in try_join_all(clients).await? {
        let Seen { latencies_us: measured, acknowledged: count } = seen?;
        latencies_us.extend(measured);
        acknowledged += count;
    }
    // The put of the last revision is one of its own.
    let counted = connections[0].clone().put(request(0)).await? - first - 1;
    ensure!(
        counted == acknowledged,
        "{acknowledged} puts were acknowledged, the store has counted {counted}"
    );
    Ok(report(latencies_us, load.time))
}

struct Seen {
    latencies_us: Vec<u64>,
    acknowledged: i64,
}

/// One put after the other; what is sent is also waited for.
async fn puts(mut connection: Kv, request: PutRequest, begin: Instant, end: Instant) -> Result<Seen> {
    let mut seen = Seen { latencies_us: Vec::new(), acknowledged: 0 };
    loop {
        let sent = Instant::now();
        if sent >= end {
            return Ok(seen);
        }
        connection.put(request.clone()).await?;
        seen.acknowledged += 1;
        let answered = Instant::now();
        if sent >= begin && answered < end {
            seen.latencies_us.push(u64::try_from((answered - sent).as_micros()).unwrap_or(u64::MAX));
        }
    }
}

fn report(mut latencies_us: Vec<u64>, time: Duration) -> EtcdReport {
    latencies_us.sort_unstable();
    let permille = |permille: usize| {
        let rank = (latencies_us.len() * permille).div_ceil(1000).max(1) - 1;
        latencies_us.get(rank).copied().unwrap_or(0)
    };
    EtcdReport {
        per_second: latencies_us.len() as f64 / time.as_secs_f64().max(f64::EPSILON),
        p50_us: permille(500),
        p99_us: permille(990),
        puts: latencies_us.len(),
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn a_put_is_encoded_as_etcd_reads_it() {
        let put = PutRequest { key: "k".into(), value: "v".into() };
        assert_eq!(put.encode_to_vec(), [0x0a, 1, b'k', 0x12, 1, b'v']);
        // cluster_id 1, member_id 2, revision 300: the first two are skipped.
        let answer = [0x0a, 7, 0x08, 1, 0x10, 2, 0x18, 0xac, 0x02];
        let response = PutResponse::decode(&answer[..]).unwrap();
        assert_eq!(response.header.unwrap().revision, 300);
    }

    #[test]
    fn percentiles_are_ranks() {
        let EtcdReport { per_second, p50_us, p99_us, puts } =
            report((1..=100).rev().collect(), Duration::from_secs(2));
        assert_eq!((p50_us, p99_us, puts), (50, 99, 100));
        assert!((per_second - 50.0).abs() < 1e-9);
        assert_eq!(report(Vec::new(), Duration::from_secs(1)).p99_us, 0);
    }
}
