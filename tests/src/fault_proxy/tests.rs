//! The proxy before a store of a few lines that has keys, bodies and `If-None-Match: *`, and nothing else.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use super::*;

type Keys = Arc<Mutex<BTreeMap<String, (Bytes, http::HeaderMap)>>>;

async fn store() -> (SocketAddr, Keys) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let keys = Keys::default();
    let shared = keys.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let keys = shared.clone();
            let service = service_fn(move |request| {
                let keys = keys.clone();
                async move { Ok::<_, Infallible>(answer(request, &keys).await) }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service),
            );
        }
    });
    (address, keys)
}

async fn answer(request: Request<Incoming>, keys: &Keys) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let key = parts.uri.path_and_query().unwrap().to_string();
    let mut keys = keys.lock().unwrap();
    let mut response = Response::new(Full::new(Bytes::new()));
    if parts.method == Method::GET {
        match keys.get(&key) {
            Some((body, _)) => *response.body_mut() = Full::new(body.clone()),
            None => *response.status_mut() = StatusCode::NOT_FOUND,
        }
    } else if parts.headers.contains_key("if-none-match") && keys.contains_key(&key) {
        *response.status_mut() = StatusCode::PRECONDITION_FAILED;
    } else {
        keys.insert(key, (body, parts.headers));
    }
    response
}

struct Rig {
    proxy: FaultProxy,
    keys: Keys,
    client: Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>,
}

impl Rig {
    async fn new() -> Self {
        let (address, keys) = store().await;
        let credentials =
            Credentials { access_key: "k".into(), secret_key: "s".into(), region: "us-east-1".into() };
        let proxy = FaultProxy::start(address, credentials, 1).await.unwrap();
        let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
        Self { proxy, keys, client }
    }

    /// The status, or `None` when the connection closed in its place.
    async fn put(&self, key: &str, body: &'static str) -> Option<u16> {
        let request = Request::put(format!("{}{key}", self.proxy.endpoint()))
            .header("if-none-match", "*")
            .header("authorization", "original")
            .body(Full::new(Bytes::from_static(body.as_bytes())))
            .unwrap();
        let response = self.client.request(request).await.ok()?;
        Some(response.status().as_u16())
    }

    fn stored(&self, key: &str) -> Option<Bytes> {
        self.keys.lock().unwrap().get(key).map(|(body, _)| body.clone())
    }
}

#[tokio::test]
async fn what_no_rule_touches_passes_as_it_was() {
    let rig = Rig::new().await;
    let key = "/b/a%2Fb%20%C3%BC?x=%41&y";
    assert_eq!(rig.put(key, "one").await, Some(200));
    assert_eq!(rig.put(key, "two").await, Some(412));
    let keys = rig.keys.lock().unwrap();
    let (body, headers) = &keys[key];
    assert_eq!(body, "one");
    assert_eq!(headers["host"], rig.proxy.address().to_string(), "the Host the client signed");
    assert_eq!(headers["authorization"], "original");
}

#[tokio::test]
async fn a_lost_answer_is_an_applied_write() {
    let rig = Rig::new().await;
    let lost = Rule::new(Action::DropAnswer).method(&Method::PUT).contains("own.json").times(1);
    let id = rig.proxy.faults().add(lost);
    assert_eq!(rig.put("/b/cells/x/other", "v").await, Some(200));
    assert_eq!(rig.put("/b/cells/x/own.json", "v").await, None);
    assert_eq!(rig.stored("/b/cells/x/own.json").unwrap(), "v");
    assert_eq!(rig.proxy.faults().hits(id), 1);
    assert_eq!(rig.put("/b/cells/y/own.json", "v").await, Some(200), "the rule is spent");
}

#[tokio::test]
async fn a_forced_status_applies_nothing_and_a_late_one_applies() {
    let rig = Rig::new().await;
    let slow = Action::Status { status: 503, code: "SlowDown".into() };
    rig.proxy.faults().add(Rule::new(slow).times(1));
    assert_eq!(rig.put("/b/k", "v").await, Some(503));
    assert_eq!(rig.stored("/b/k"), None);
    let after = Action::AnswerAfter { status: 500, code: "InternalError".into() };
    rig.proxy.faults().add(Rule::new(after).times(1));
    assert_eq!(rig.put("/b/k", "v").await, Some(500));
    assert_eq!(rig.stored("/b/k").unwrap(), "v");
}

#[tokio::test]
async fn a_held_write_lands_though_its_client_has_gone() {
    let rig = Rig::new().await;
    rig.proxy.faults().add(Rule::new(Action::Hold { ms: 300 }));
    let gone = tokio::time::timeout(Duration::from_millis(50), rig.put("/b/k", "late")).await;
    assert!(gone.is_err() && rig.stored("/b/k").is_none());
    let landed = crate::wait::until("the held write", Duration::from_secs(5), || async {
        rig.stored("/b/k").ok_or_else(|| anyhow::anyhow!("not there"))
    });
    assert_eq!(landed.await.unwrap(), "late");
}

#[tokio::test]
async fn ignored_conditions_overwrite_and_are_signed_anew() {
    let rig = Rig::new().await;
    assert_eq!(rig.put("/b/k", "one").await, Some(200));
    rig.proxy.faults().add(Rule::new(Action::IgnoreConditions).conditional(true));
    assert_eq!(rig.put("/b/k", "two").await, Some(200));
    let keys = rig.keys.lock().unwrap();
    let (body, headers) = &keys["/b/k"];
    assert_eq!(body, "two");
    assert!(headers["authorization"].to_str().unwrap().starts_with("AWS4-HMAC-SHA256 "));
}

#[tokio::test]
async fn a_cut_closes_what_runs_and_what_comes_and_ends() {
    let rig = Rig::new().await;
    rig.proxy.faults().add(Rule::new(Action::Hold { ms: 60_000 }).times(1));
    let cut = async {
        crate::wait::until("the request", Duration::from_secs(5), || async {
            anyhow::ensure!(!rig.proxy.faults().trace().is_empty(), "not there");
            Ok(())
        })
        .await
        .unwrap();
        rig.proxy.faults().cut_for(Duration::from_millis(300));
        Instant::now()
    };
    let (running, cut_at) = tokio::join!(rig.put("/b/held", "v"), cut);
    assert_eq!(running, None);
    assert_eq!(rig.put("/b/k", "v").await, None);
    let back = crate::wait::until("the store", Duration::from_secs(5), || async {
        rig.put("/b/k2", "v").await.ok_or_else(|| anyhow::anyhow!("cut"))
    });
    assert_eq!(back.await.unwrap(), 200);
    assert!(cut_at.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn chances_follow_the_seed() {
    async fn run() -> Vec<Option<u16>> {
        let rig = Rig::new().await;
        rig.proxy.faults().add(Rule::new(Action::Cut).probability(0.5));
        let mut answers = Vec::new();
        for n in 0..32 {
            answers.push(rig.put(&format!("/b/{n}"), "v").await);
        }
        answers
    }
    let first = run().await;
    assert_eq!(first, run().await);
    let cut = first.iter().filter(|answer| answer.is_none()).count();
    assert!((8..=24).contains(&cut), "{cut} of 32");
}

#[tokio::test]
async fn scripts_switch_it_over_http() {
    let rig = Rig::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_control(listener, rig.proxy.faults().clone()));
    let send = async |method: Method, path: &str, body: &'static str| {
        let request = Request::builder().method(method).uri(format!("{control}{path}"));
        let response = rig.client.request(request.body(Full::from(body)).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    };
    let rule = r#"{"method": "PUT", "action": {"do": "status", "status": 409, "code": "OperationAborted"}}"#;
    assert_eq!(send(Method::POST, "/rules", rule).await, (200, "0\n".into()));
    assert_eq!(rig.put("/b/k", "v").await, Some(409));
    assert_eq!(send(Method::GET, "/hits?0", "").await, (200, "1\n".into()));
    assert_eq!(send(Method::DELETE, "/rules", "").await.0, 200);
    assert_eq!(rig.put("/b/k", "v").await, Some(200));
    assert_eq!(send(Method::POST, "/cut", "{}").await.0, 400);
}
