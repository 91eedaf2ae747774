//! The load against a database server of one map, honest and not.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::*;
use crate::checker::{Contents, check};

#[derive(Clone, Copy, PartialEq)]
enum Server {
    Honest,
    /// Acknowledges each hundredth write without keeping it.
    Forgetful,
    /// Refuses each tenth write, and keeps it.
    Liar,
}

type Store = Arc<Mutex<BTreeMap<String, Contents>>>;

/// Answers `/query` and `/v2/pipeline` as far as the load asks. The SQL is not looked at.
fn answer(path: &str, body: &Value, store: &Store, server: Server) -> (u16, String, Value) {
    let db = path.split('/').nth(3).unwrap().replace("%2D", "-");
    let mut store = store.lock().unwrap();
    let contents = store.entry(db).or_default();
    let text = body.to_string();
    let position = |contents: &Contents| format!("1/{}", contents.counter + 1);
    if !text.contains("INSERT INTO ledger") {
        let row = json!([contents.counter, contents.ops.len()]);
        let ok = json!([{ "type": "ok" }]);
        let answer = json!({ "columns": ["n", "count"], "rows": [row], "results": ok });
        return (200, position(contents), answer);
    }
    let is_batch = path.ends_with("pipeline");
    let op = if is_batch {
        body["requests"][0]["batch"]["steps"][1]["stmt"]["args"][0]["value"].clone()
    } else {
        body["args"][0].clone()
    };
    let n = contents.counter + 1;
    contents.counter = n;
    if server != Server::Forgetful || !n.is_multiple_of(100) {
        contents.ops.push(op.as_str().unwrap().to_owned());
    }
    let status = if server == Server::Liar && n.is_multiple_of(10) { 503 } else { 200 };
    let rows = json!({ "rows": [[{ "type": "integer", "value": n.to_string() }]] });
    let result = json!({ "step_results": [{}, rows, {}, {}, null] });
    let answer = if is_batch {
        json!({ "results": [{ "type": "ok", "response": { "type": "batch", "result": result } }] })
    } else {
        json!({ "columns": ["n"], "rows": [[n]] })
    };
    (status, position(contents), answer)
}

async fn serve(server: Server) -> (SocketAddr, Store) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let store = Store::default();
    let shared = store.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let store = shared.clone();
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let store = store.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let body = serde_json::from_slice(&body).unwrap();
                    let (status, position, answer) = answer(parts.uri.path(), &body, &store, server);
                    let response = Response::builder().status(status).header("holdfast-position", position);
                    Ok::<_, Infallible>(response.body(Full::new(Bytes::from(answer.to_string()))).unwrap())
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service),
            );
        }
    });
    (address, store)
}

/// Runs until so many writes have ended; what the load itself saw, and what the checker finds.
async fn run(server: Server, writes: u64) -> (Vec<String>, Vec<String>) {
    let (address, store) = serve(server).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger");
    let (ledger, writer) = Ledger::create(&path).unwrap();
    let options = WorkloadOptions { dbs: 20, workers: 4, seed: 5, timeout: Duration::from_secs(5) };
    let ingresses = Arc::new(RwLock::new(vec![address]));
    let load = Workload::start(&options, &ingresses, &ledger);
    let tally = load.tally().clone();
    crate::wait::until("the writes", Duration::from_secs(60), || async {
        let ended = tally.acked.load(Ordering::Relaxed) + tally.refused.load(Ordering::Relaxed);
        anyhow::ensure!(ended >= writes, "{ended} of {writes}");
        Ok(())
    })
    .await
    .unwrap();
    load.stop().await.unwrap();
    drop(ledger);
    writer.close().unwrap();
    let entries = crate::ledger::read(&path).unwrap();
    let contents = store.lock().unwrap().clone();
    (tally.violations(), check(&entries, &contents))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_honest_server_passes() {
    let (seen, found) = run(Server::Honest, 400).await;
    assert_eq!((seen, found), (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loses_a_write_is_caught() {
    let (_, found) = run(Server::Forgetful, 6_000).await;
    assert!(found.iter().any(|text| text.contains("is lost")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_and_runs_is_caught() {
    let (_, found) = run(Server::Liar, 1_000).await;
    assert!(found.iter().any(|text| text.contains("though it was refused")), "{found:?}");
}
