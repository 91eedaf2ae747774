//! `gs://` at the level of HTTP, against a server of our own (no server that somebody else wrote speaks enough of Google's XML
//! API: see CONTRIBUTING). What is shown: each request carries the right generation precondition, every status comes to the
//! right outcome, and the whole suite holds where the server keeps its promises.
//!
//! Ignored without `tests/servers/run.sh`, which tells the client by the environment that there are no tokens.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "google/server.rs"]
mod server;

use std::sync::Arc;

use bytes::Bytes;
use holdfast_bucket::conformance::{Scope, run};
use holdfast_bucket::{Bucket, Commit, ErrorKind, Guard, OpenOptions, Version, open};
use http::{Method, StatusCode};

use server::{Asked, BUCKET, Script, Server};

/// Long enough for one attempt after another.
const DEADLINE_MS: u64 = 20_000;

async fn bucket_at(name: &str) -> (Server, Arc<dyn Bucket>) {
    let is_told = std::env::var("GOOGLE_SERVICE_ACCOUNT_KEY").is_ok_and(|key| key.contains("disable_oauth"));
    assert!(is_told, "GOOGLE_SERVICE_ACCOUNT_KEY is not set: run this under tests/servers/run.sh");
    let (server, address) = Server::start().await;
    let options = OpenOptions { endpoint: Some(format!("http://{address}")), ..OpenOptions::default() };
    let bucket = open(&format!("gs://{name}"), &options).await.unwrap();
    (server, bucket)
}

async fn bucket() -> (Server, Arc<dyn Bucket>) {
    bucket_at(BUCKET).await
}

async fn put_if(bucket: &Arc<dyn Bucket>, guard: Guard) -> Commit {
    bucket.put_if("k", Bytes::from_static(b"x"), guard, DEADLINE_MS).await
}

fn puts(server: &Server) -> Vec<Option<String>> {
    let asked = server.store().asked.clone();
    asked
        .into_iter()
        .filter(|Asked { method, .. }| method == Method::PUT)
        .map(|asked| asked.condition)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn a_server_of_generations_keeps_every_promise() {
    let (_server, bucket) = bucket().await;
    run(bucket, Scope::portable()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn each_write_carries_its_precondition() {
    let (server, bucket) = bucket().await;
    bucket.put("k", Bytes::from_static(b"plain")).await.unwrap();
    bucket.delete("k").await.unwrap();
    let Commit::Applied(first) = put_if(&bucket, Guard::Absent).await else { panic!("the key was free") };
    let Commit::Applied(second) = put_if(&bucket, Guard::Match(first.clone())).await else {
        panic!("the version was the newest")
    };
    assert!(matches!(put_if(&bucket, Guard::Absent).await, Commit::Rejected));
    assert!(matches!(put_if(&bucket, Guard::Match(first.clone())).await, Commit::Rejected));
    assert_eq!(bucket.get("k").await.unwrap().unwrap().version, second);
    let (first, zero) = (Some(first.as_str().to_owned()), Some("0".to_owned()));
    assert_eq!(puts(&server), [None, zero.clone(), first.clone(), zero, first], "plain, then by generation");
    let deletes = server.store().asked.iter().filter(|asked| asked.method == Method::DELETE).count();
    assert_eq!(deletes, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn every_status_of_a_conditional_write_comes_to_its_outcome() {
    // Not met: one request, and the caller lost.
    let matching = || Guard::Match(Version::new("7"));
    for (guard, status) in [
        (Guard::Absent, StatusCode::PRECONDITION_FAILED),
        (matching(), StatusCode::PRECONDITION_FAILED),
        (matching(), StatusCode::NOT_MODIFIED),
        (matching(), StatusCode::NOT_FOUND),
    ] {
        let (server, bucket) = bucket().await;
        server.store().script.push_back(Script::Refuse(status));
        assert!(matches!(put_if(&bucket, guard.clone()).await, Commit::Rejected), "{guard:?} {status}");
        assert_eq!(puts(&server).len(), 1, "{guard:?} {status}");
    }
    // Refused without a word on the condition: asked again, under the same condition, and then it is applied.
    for status in [StatusCode::CONFLICT, StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
        let (server, bucket) = bucket().await;
        server.store().script.push_back(Script::Refuse(status));
        assert!(matches!(put_if(&bucket, Guard::Absent).await, Commit::Applied(_)), "{status}");
        assert_eq!(puts(&server), [Some("0".to_owned()), Some("0".to_owned())], "{status}");
    }
    // Nobody knows: it may have landed, and the second attempt must not take its own first for somebody else's.
    for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_GATEWAY, StatusCode::GATEWAY_TIMEOUT] {
        let (server, bucket) = bucket().await;
        server.store().script.push_back(Script::DoAndSay(status));
        let commit = put_if(&bucket, Guard::Absent).await;
        assert!(!matches!(commit, Commit::Rejected), "{status}: {commit:?}");
        assert!(bucket.get("k").await.unwrap().is_some(), "{status}");
    }
    // The caller's own fault, or that of its rights: said, and never a lost condition.
    for (status, kind) in
        [(StatusCode::FORBIDDEN, ErrorKind::Denied), (StatusCode::BAD_REQUEST, ErrorKind::Invalid)]
    {
        let (server, bucket) = bucket().await;
        server.store().script.push_back(Script::Refuse(status));
        let commit = put_if(&bucket, Guard::Absent).await;
        let Commit::Unknown(error) = commit else { panic!("{status}: {commit:?}") };
        assert_eq!(error.kind, kind, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn a_missing_bucket_is_not_a_missing_key() {
    let (_server, bucket) = bucket_at("another-bucket").await;
    for error in [
        bucket.get("k").await.map(|_| ()).unwrap_err(),
        bucket.list("", None, 1).await.map(|_| ()).unwrap_err(),
        bucket.delete("k").await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("NoSuchBucket"), "{error}");
    }
    assert!(!matches!(put_if(&bucket, Guard::Match(Version::new("1"))).await, Commit::Rejected));
}
