//! A node in this process, over the embedded bucket, called through its real internal listener.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_cellnode::{Addresses, Config, Exit, Service};
use holdfast_records::{Key, NodeLease, OwnerRecord, OwnerState, Record};
use holdfast_rpc::{Access, CallError, CellCall, CellClient, ForwardError, Peer, ProcessIdentity, Role};
use holdfast_types::{CellName, NodeName, SessionId};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Fleet {
    dir: TempDir,
}

struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<Exit>>,
    client: CellClient,
    peer: Peer,
}

impl Fleet {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// In memory, for tests of many writes that are not about the disk.
    fn in_memory() -> Self {
        Self { dir: tempfile::tempdir_in("/dev/shm").unwrap() }
    }

    fn args(&self) -> BucketArgs {
        BucketArgs::at(&format!("file://{}", self.dir.path().join("bucket").display()))
    }

    async fn buckets(&self) -> Buckets {
        self.args().open().await.unwrap()
    }

    fn config(&self, node: &str) -> Config {
        let node = NodeName::parse(node).unwrap();
        let data_dir = self.dir.path().join(node.as_str());
        Config { threads: Some(2), ..Config::embedded(self.args(), node, data_dir) }
    }

    async fn start(&self, node: &str) -> Running {
        self.start_with(self.config(node)).await
    }

    async fn start_with(&self, config: Config) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = oneshot::channel::<Addresses>();
        let node = config.node.clone();
        let task = tokio::spawn(Service::run(config, Some(ready), async {
            let _ = stopped.await;
        }));
        let addresses = is_ready.await.expect("the node becomes ready");
        let buckets = self.buckets().await;
        let object = buckets.leases.get(&Key::NodeLease(node.clone()).to_string()).await.unwrap().unwrap();
        let lease = NodeLease::decode(&object.body).unwrap();
        let fleet = holdfast_rpc::identity::load_or_create(&*buckets.records).await.unwrap();
        let identity = ProcessIdentity::new(fleet, Role::Tools, "test", SessionId::from_bits(1)).unwrap();
        let peer = Peer { node, session: lease.session, address: addresses.internal.to_string() };
        Running { stop, task, client: CellClient::new(identity), peer }
    }

    async fn owner(&self, cell: &str) -> OwnerRecord {
        let key = Key::Owner(CellName::parse(cell).unwrap()).to_string();
        OwnerRecord::decode(&self.buckets().await.records.get(&key).await.unwrap().unwrap().body).unwrap()
    }
}

impl Running {
    /// What keeps the node from running a statement.
    async fn refusal(&self, cell: &str) -> String {
        match self.client.call(&self.peer, call(cell, "SELECT 1")).await {
            Ok(reply) => panic!("answered with {}", reply.response.status()),
            Err(error) => error.to_string(),
        }
    }

    async fn query(&self, cell: &str, sql: &str) -> (u16, Value) {
        let reply = self.client.call(&self.peer, call(cell, sql)).await.expect("the node answers");
        let status = reply.response.status().as_u16();
        let body = reply.response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        assert_eq!(self.task.await.unwrap().unwrap(), Exit::Clean);
    }
}

fn call(cell: &str, sql: &str) -> CellCall {
    let body = Bytes::from(json!({ "sql": sql }).to_string());
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    CellCall {
        cell: CellName::parse(cell).unwrap(),
        access: Access::ReadWrite,
        request: http::Request::post("/query").body(body).unwrap(),
        object: holdfast_rpc::ObjectCall::default(),
        deadline: tokio::time::Instant::now() + Duration::from_secs(20),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_only_looks_makes_no_cell() {
    let fleet = Fleet::new();
    let node = fleet.start("a").await;
    let ask = async |method: &str, path: &str, access: Access| {
        let mut call = call("db:x", "SELECT 1");
        *call.request.method_mut() = method.parse().unwrap();
        *call.request.uri_mut() = path.parse().unwrap();
        call.access = access;
        match node.client.call(&node.peer, call).await {
            Ok(reply) => (reply.response.status().as_u16(), String::new()),
            Err(ForwardError::Refused { error: CallError::Rejected { status, reason }, .. }) => {
                (status.as_u16(), reason)
            }
            Err(error) => panic!("{error}"),
        }
    };
    for (method, path, access) in [
        ("GET", "/", Access::ReadWrite),
        ("HEAD", "/", Access::ReadWrite),
        ("POST", "/query", Access::ReadOnly),
        ("POST", "/v2/pipeline", Access::ReadOnly),
    ] {
        let (status, reason) = ask(method, path, access).await;
        assert!(
            status == 404 && reason.contains("there is no cell `db:x`"),
            "{method} {path}: {status} {reason}"
        );
    }
    // Clients ask for versions before they make their database.
    assert_eq!(ask("GET", "/v3", Access::ReadWrite).await.0, 200);
    assert_eq!(ask("GET", "/v2/", Access::ReadOnly).await.0, 200);
    let key = Key::Owner(CellName::parse("db:x").unwrap()).to_string();
    assert!(fleet.buckets().await.records.get(&key).await.unwrap().is_none());
    assert_eq!(node.query("db:x", "CREATE TABLE t(a)").await.0, 200);
    assert_eq!(ask("GET", "/", Access::ReadOnly).await.0, 200);
    assert_eq!(ask("POST", "/query", Access::ReadOnly).await.0, 200);
    node.stop().await;
}

#[track_caller]
fn rows((status, body): (u16, Value)) -> Value {
    assert_eq!(status, 200, "{body}");
    body["rows"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_read_after_a_restart_and_on_another_node() {
    let fleet = Fleet::new();
    let first = fleet.start("a").await;
    rows(first.query("db:x", "CREATE TABLE t(v INTEGER)").await);
    rows(first.query("db:x", "INSERT INTO t VALUES (1), (2)").await);
    assert_eq!(rows(first.query("db:x", "SELECT sum(v) FROM t").await), json!([[3]]));
    assert_eq!(fleet.owner("db:x").await.state, OwnerState::Owned);
    first.stop().await;
    let released = fleet.owner("db:x").await;
    assert_eq!(released.state, OwnerState::Released);

    let again = fleet.start("a").await;
    assert_eq!(rows(again.query("db:x", "SELECT sum(v) FROM t").await), json!([[3]]));
    rows(again.query("db:x", "INSERT INTO t VALUES (10)").await);
    assert_eq!(fleet.owner("db:x").await.epoch, released.epoch.next());
    again.stop().await;

    let other = fleet.start("b").await;
    assert_eq!(rows(other.query("db:x", "SELECT sum(v) FROM t").await), json!([[13]]));
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_chain_is_compacted_and_restores_in_few_reads() {
    let fleet = Fleet::new();
    let node = fleet.start("a").await;
    rows(node.query("db:x", "CREATE TABLE t(v INTEGER)").await);
    for value in 0..600 {
        rows(node.query("db:x", &format!("INSERT INTO t VALUES ({value})")).await);
    }
    node.stop().await;
    let listed = list(&fleet, "cells/db:x/ltx/e0000000000000001/1/").await;
    assert!(!listed.is_empty(), "600 transactions make at least one compaction");
    std::fs::remove_dir_all(fleet.dir.path().join("a")).unwrap();
    let node = fleet.start("b").await;
    assert_eq!(rows(node.query("db:x", "SELECT count(*), sum(v) FROM t").await), json!([[600, 179_700]]));
    node.stop().await;
}

/// Reads of single objects so far, by this process's own metrics.
fn object_reads() -> u64 {
    let reads =
        ["get", "get_range", "get_stream", "head"].map(|operation| format!("operation=\"{operation}\""));
    let text = holdfast_telemetry::render_prometheus();
    let counts = text.lines().filter(|line| {
        line.starts_with("holdfast_bucket_operations_count") && reads.iter().any(|read| line.contains(read))
    });
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum()
}

fn memory_peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_forty_thousand_commits_restores_in_under_two_hundred_reads() {
    let fleet = Fleet::in_memory();
    let node = fleet.start("a").await;
    rows(node.query("db:x", "CREATE TABLE t(v INTEGER)").await);
    for value in 0..40_000 {
        rows(node.query("db:x", &format!("INSERT INTO t VALUES ({value})")).await);
    }
    node.stop().await;
    std::fs::remove_dir_all(fleet.dir.path().join("a")).unwrap();
    let node = fleet.start("b").await;
    let before = object_reads();
    assert!(before > 0, "reads are counted");
    let answer = rows(node.query("db:x", "SELECT count(*), sum(v) FROM t").await);
    let reads = object_reads() - before;
    assert_eq!(answer, json!([[40_000, 799_980_000_i64]]));
    assert!(reads < 200, "{reads} reads");
    let peak = memory_peak_kib();
    assert!(peak < 256 << 10, "{peak} KiB");
    println!("{reads} object reads, {peak} KiB at most");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_record_is_an_error_that_names_it_and_never_an_empty_cell() {
    let fleet = Fleet::new();
    let node = fleet.start("a").await;
    for cell in ["db:opener", "db:owner"] {
        rows(node.query(cell, "CREATE TABLE t(v INTEGER)").await);
    }
    node.stop().await;
    std::fs::remove_dir_all(fleet.dir.path().join("a")).unwrap();
    let bulk = fleet.buckets().await.bulk;
    bulk.delete("cells/db:opener/ltx/e0000000000000001/opener.json").await.unwrap();
    bulk.delete("cells/db:owner/own.json").await.unwrap();
    let node = fleet.start("b").await;
    let error = node.refusal("db:opener").await;
    assert!(error.contains("ltx/e0000000000000001/opener.json` is gone"), "{error}");
    let error = node.refusal("db:owner").await;
    assert!(error.contains("owner record is gone"), "{error}");
    assert!(bulk.get("cells/db:owner/own.json").await.unwrap().is_none(), "nothing was claimed");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_directory_is_refused() {
    let fleet = Fleet::new();
    let node = fleet.start("a").await;
    let error = Service::run(fleet.config("a"), None, std::future::pending()).await.unwrap_err().to_string();
    assert!(error.contains("in use by another process"), "{error}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_data_directory_is_named() {
    let fleet = Fleet::new();
    let file = fleet.dir.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let config = Config { data_dir: file.join("data"), ..fleet.config("a") };
    let error = format!("{:#}", Service::run(config, None, std::future::pending()).await.unwrap_err());
    assert!(error.contains("file/data"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_lease_record_fences_the_node_with_its_cause() {
    let fleet = Fleet::new();
    let config = Config { lease_ttl: Duration::from_secs(2), ..fleet.config("a") };
    let node = fleet.start_with(config).await;
    rows(node.query("db:x", "CREATE TABLE t(v INTEGER)").await);
    let key = Key::NodeLease(node.peer.node.clone()).to_string();
    fleet.buckets().await.leases.delete(&key).await.unwrap();
    let exit = node.task.await.unwrap().unwrap();
    assert_eq!(exit, Exit::Fenced(holdfast_core::lease::FenceCause::RecordMissing));
    assert_eq!(exit.code(), 3);
}

async fn list(fleet: &Fleet, prefix: &str) -> Vec<String> {
    assert!(Path::new(fleet.dir.path()).exists());
    let page = fleet.buckets().await.bulk.list(prefix, None, 1_000).await.unwrap();
    page.objects.into_iter().map(|object| object.key).collect()
}
