//! What passes the edge, who may, and what a caller learns when something fails.

use std::time::{Duration, SystemTime};

use holdfast_rpc::Access;
use holdfast_rpc::tokens::{CellPattern, mint};

use super::support::*;
use crate::AuthMode;

#[tokio::test]
async fn a_request_reaches_its_cell_and_the_answer_comes_back() {
    let fleet = fleet(|_| {}).await;
    let headers = "content-type: application/json\r\nx-forwarded-for: 9.9.9.9\r\nauthorization: Bearer x\r\n";
    let answer = fleet.ask(&post("/-/db/a%2Fb/v2/pipeline", headers, "{}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.starts_with("db:a/b POST /v2/pipeline ReadWrite\n"), "{}", answer.body);
    assert!(answer.body.contains("content-type: application/json"), "{}", answer.body);
    assert!(!answer.body.contains("forwarded") && !answer.body.contains("authorization"), "{}", answer.body);
    assert_eq!(answer.header("holdfast-position"), Some("3/14"));
    assert_eq!(answer.header("keep-alive"), None);
}

#[tokio::test]
async fn several_requests_share_a_connection() {
    let fleet = fleet(|_| {}).await;
    let mut client = fleet.connect().await;
    for _ in 0..3 {
        assert_eq!(client.ask(&post("/-/db/a/query?count", "", "12345")).await.body, "5");
    }
}

#[tokio::test]
async fn head_answers_with_the_head_alone_and_the_connection_goes_on() {
    let fleet = fleet(|_| {}).await;
    let mut client = fleet.connect().await;
    client.send(b"HEAD /-/db/a HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 200);
    assert_ne!(head.header("content-length"), Some("0"));
    assert!(client.ask(&get("/-/db/a")).await.body.starts_with("db:a GET / ReadWrite"));
}

#[tokio::test]
async fn a_client_may_wait_for_100_continue() {
    let fleet = fleet(|_| {}).await;
    let mut client = fleet.connect().await;
    client.send(b"POST /-/db/a/query?count HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n").await;
    assert_eq!(client.head().await.unwrap().status, 100);
    let answer = client.ask("abc").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "3"));
    // Refused by its head: nobody asks for the body.
    let mut client = fleet.connect().await;
    client
        .send(
            b"POST /-/cells/Room/a HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n",
        )
        .await;
    assert_eq!(client.head().await.unwrap().status, 404);
}

#[tokio::test]
async fn a_broken_answer_is_broken_for_the_client() {
    let fleet = fleet(|_| {}).await;
    let mut client = fleet.connect().await;
    client.send(post("/-/db/a/query?break", "", "").as_bytes()).await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 200);
    fleet.go.send(true).unwrap();
    assert_eq!(client.body(&head).await, None, "a clean end");
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_request() {
    let mut fleet = fleet(|_| {}).await;
    let mut client = fleet.connect().await;
    client.send(post("/-/db/a/query?wait", "", "x").as_bytes()).await;
    fleet.begun.recv().await.unwrap();
    drop(client);
    tokio::time::timeout(Duration::from_secs(5), fleet.cancelled.recv()).await.expect("cancelled").unwrap();
}

#[tokio::test]
async fn an_unknown_outcome_is_told_apart_from_a_refusal() {
    let fleet = fleet(|_| {}).await;
    let answer = fleet.ask(&post("/-/db/a/query?unknown", "", "")).await;
    assert_eq!((answer.status, answer.header("holdfast-outcome")), (503, Some("unknown")));
    assert!(answer.body.contains("fenced") && answer.body.contains("outcome_unknown"), "{}", answer.body);
    let answer = fleet.ask(&post("/-/db/a/query?overloaded", "", "")).await;
    assert_eq!((answer.status, answer.header("holdfast-outcome")), (503, None));
    assert_eq!(answer.header("retry-after"), Some("5"));
}

#[tokio::test]
async fn what_is_not_there_has_a_clear_answer() {
    let fleet = fleet(|_| {}).await;
    for (request, status, code) in [
        (get("/"), 404, "no_application"),
        (get("/-/nothing"), 404, "not_found"),
        (get("/-/cells/Room/a/b"), 404, "unknown_class"),
        (get("/-/db/a/query"), 405, "wrong_method"),
        (get(&format!("/-/db/{}", "x".repeat(300))), 400, "bad_name"),
        (get("/-/db/a%00"), 400, "bad_name"),
        (post("/-/db/../x/query", "", "{}"), 404, "not_found"),
    ] {
        let answer = fleet.ask(&request).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.contains(&format!("\"code\":\"{code}\"")), "{}", answer.body);
    }
}

#[tokio::test]
async fn only_a_good_token_opens_a_cell() {
    let fleet = fleet(|config| config.auth = AuthMode::Token).await;
    let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let token = |cells: &str, access, expires_s| {
        let text =
            mint(&fleet.identity, CellPattern::parse(cells).unwrap(), access, now_s, expires_s).unwrap();
        format!("authorization: Bearer {text}\r\n")
    };
    let good = token("db:tenant-*", READ_ONLY, now_s + 60);
    let answer = fleet.ask(&post("/-/db/tenant-1/query", &good, "")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("ReadOnly") && !answer.body.contains("authorization"), "{}", answer.body);
    for (headers, status, code) in [
        (String::new(), 401, "no_token"),
        ("authorization: Bearer hf1.x\r\n".into(), 401, "malformed_token"),
        (token("db:*", Access::ReadWrite, now_s), 401, "expired_token"),
        (token("db:other", Access::ReadWrite, now_s + 60), 403, "not_for_this_cell"),
    ] {
        let answer = fleet.ask(&post("/-/db/tenant-1/query", &headers, "")).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.contains(code), "{}", answer.body);
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
    }
    // Health needs no token.
    assert_eq!(fleet.ask(&get("/-/health")).await.status, 200);
}

#[tokio::test]
async fn an_open_listener_beyond_loopback_does_not_start() {
    let config =
        crate::Config::embedded(holdfast_bucket::BucketArgs::at("file:///nowhere"), "0.0.0.0:0".into());
    let error = crate::Service::run(config, None, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("loopback"), "{error}");
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_and_says_that_it_is_not_ready() {
    let mut fleet = fleet(|_| {}).await;
    let ready: serde_json::Value =
        serde_json::from_slice(&std::fs::read(fleet.dir.path().join("ready.json")).unwrap()).unwrap();
    assert_eq!(ready["public"], fleet.addresses.public.to_string());
    assert_eq!(ready["admin"], fleet.addresses.admin.to_string());
    assert_eq!(fleet.ask(&get("/-/ready")).await.status, 200);
    let mut client = fleet.connect().await;
    client.send(post("/-/db/a/query?wait", "", "x").as_bytes()).await;
    fleet.begun.recv().await.unwrap();
    fleet.stop();
    let mut admin = Client::new(fleet.addresses.admin).await;
    while admin.ask(&get("/ready")).await.status != 503 {}
    fleet.go.send(true).unwrap();
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 200);
    assert_eq!(client.body(&head).await.unwrap(), "waited");
    drop((client, admin));
    fleet.ingress.await.unwrap().unwrap();
}

#[tokio::test]
async fn metrics_are_on_the_admin_listener() {
    let fleet = fleet(|_| {}).await;
    fleet.ask(&post("/-/db/a/query?count", "", "x")).await;
    let mut admin = Client::new(fleet.addresses.admin).await;
    let answer = admin.ask(&get("/metrics")).await;
    assert!(answer.body.contains("holdfast_ingress_requests_count"), "{}", answer.body);
    assert!(answer.body.contains("holdfast_routing_lookups_count"), "{}", answer.body);
}
