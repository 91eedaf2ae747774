//! Bounds: heads, bodies, requests in flight, time.

use std::time::Duration;

use super::support::*;

#[tokio::test]
async fn a_head_that_is_too_large_is_431() {
    let fleet = fleet(|config| config.header_max = 8192).await;
    let mut client = fleet.connect().await;
    let head = format!("GET /-/db/a HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "x".repeat(20_000));
    client.send(head.as_bytes()).await;
    assert_eq!(client.head().await.unwrap().status, 431);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413_whether_announced_or_not() {
    let fleet = fleet(|config| config.body_max = 1_000).await;
    let answer = fleet.ask(&post("/-/db/a/query?count", "", &"x".repeat(1_001))).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    let chunk = "x".repeat(0x300);
    let chunked = format!(
        "POST /-/db/a/query?count HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n300\r\n{chunk}\r\n300\r\n{chunk}\r\n0\r\n\r\n"
    );
    let answer = fleet.ask(&chunked).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    let answer = fleet.ask(&post("/-/db/a/query?count", "", &"x".repeat(1_000))).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "1000"));
}

#[tokio::test]
async fn a_large_body_streams_through_and_back() {
    let fleet = fleet(|_| {}).await;
    let body = "0123456789abcdef".repeat(200_000);
    let answer = fleet.ask(&post("/-/db/a/query?echo", "", &body)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body == body, "{} of {} bytes", answer.body.len(), body.len());
}

#[tokio::test]
async fn an_early_answer_to_a_large_body_arrives() {
    let fleet = fleet(|_| {}).await;
    let mut client = fleet.connect().await;
    for len in [1, 64 * 1024, 2 * 1024 * 1024] {
        let answer = client.ask(&post("/-/cells/Room/a", "", &"x".repeat(len))).await;
        assert_eq!(answer.status, 404, "{len} bytes");
    }
    assert_eq!(client.ask(&post("/-/db/a/query?count", "", "x")).await.body, "1");
}

#[tokio::test]
async fn too_many_requests_are_503_and_their_places_come_back() {
    let mut fleet = fleet(|config| config.requests_max = 1).await;
    let mut first = fleet.connect().await;
    first.send(post("/-/db/a/query?wait", "", "x").as_bytes()).await;
    fleet.begun.recv().await.unwrap();
    let answer = fleet.ask(&post("/-/db/a/query?count", "", "x")).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert!(answer.body.contains("overloaded"), "{}", answer.body);
    // Health is not counted.
    assert_eq!(fleet.ask(&get("/-/health")).await.status, 200);
    fleet.go.send(true).unwrap();
    let head = first.head().await.unwrap();
    assert_eq!(first.body(&head).await.unwrap(), "waited");
    assert_eq!(first.ask(&post("/-/db/a/query?count", "", "x")).await.body, "1");
}

#[tokio::test]
async fn a_request_that_takes_too_long_ends_as_an_unknown_outcome() {
    let fleet = fleet(|config| config.request_timeout = Duration::from_millis(300)).await;
    let answer = fleet.ask(&post("/-/db/a/query?wait", "", "x")).await;
    assert_eq!((answer.status, answer.header("holdfast-outcome")), (503, Some("unknown")));
}

#[tokio::test]
async fn malformed_http_is_400() {
    let fleet = fleet(|_| {}).await;
    for bytes in ["nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\0 HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let mut client = fleet.connect().await;
        client.send(bytes.as_bytes()).await;
        if let Some(answer) = client.head().await {
            assert_eq!(answer.status, 400, "{bytes:?}");
        }
    }
    assert_eq!(fleet.ask(&get("/-/health")).await.status, 200);
}
