//! The network stores against servers that nobody here wrote: an S3 server (moto) and Azure's emulator (Azurite).
//!
//! `tests/servers/run.sh cargo nextest run -p holdfast-bucket --test external --run-ignored all` starts both and says by
//! environment variables where they are. Without them these tests are ignored, and fail when asked for.

#![allow(clippy::unwrap_used)]

use std::env;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_bucket::conformance::{Scope, cases, run, run_case};
use holdfast_bucket::{Bucket, ErrorKind, OpenOptions, open};

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this under tests/servers/run.sh"))
}

async fn bucket(kind: &str) -> Arc<dyn Bucket> {
    let endpoint = Some(variable(&format!("HOLDFAST_TEST_{kind}_ENDPOINT")));
    let options = OpenOptions { endpoint, ..OpenOptions::default() };
    open(&variable(&format!("HOLDFAST_TEST_{kind}_URL")), &options).await.unwrap()
}

async fn missing(kind: &str) -> Arc<dyn Bucket> {
    let endpoint = Some(variable(&format!("HOLDFAST_TEST_{kind}_ENDPOINT")));
    let options = OpenOptions { endpoint, ..OpenOptions::default() };
    open(&format!("{}-that-is-not-there", variable(&format!("HOLDFAST_TEST_{kind}_URL"))), &options)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn an_s3_server_keeps_every_promise() {
    run(bucket("S3").await, Scope::portable()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn azures_emulator_keeps_every_promise() {
    let bucket = bucket("AZ").await;
    for case in cases() {
        // One of its keys has a backslash, which Azure takes for a slash: see the next test.
        if case.name != "unusual_keys_are_kept_apart" {
            run_case(Arc::clone(&bucket), Scope::portable(), case.name).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn azure_keeps_unusual_keys_or_refuses_them() {
    let bucket = bucket("AZ").await;
    for name in [
        "a b",
        "a+b",
        "a%2Fb",
        "a%252Fb",
        "ü",
        "日本語/キー",
        "'\"&<>`;=?#",
        "*[x]{y}|^~$!()@,:",
        "...",
        "x%",
    ] {
        let key = format!("unusual/{name}");
        bucket.put(&key, Bytes::from(name)).await.unwrap();
        assert_eq!(bucket.get(&key).await.unwrap().unwrap().body, name);
        assert_eq!(bucket.list(&key, None, 10).await.unwrap().objects[0].key, key);
        bucket.delete(&key).await.unwrap();
    }
    for name in ["back\\slash", "x//y", "x/./y", "x/../y", "x/", "a\u{1}b"] {
        let answer = bucket.put(&format!("unusual/{name}"), Bytes::new()).await;
        assert_eq!(answer.unwrap_err().kind, ErrorKind::Invalid, "{name:?}");
    }
    assert_eq!(bucket.list("unusual/", None, 10).await.unwrap().objects, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tests/servers/run.sh"]
async fn a_missing_bucket_is_not_a_missing_key() {
    for kind in ["S3", "AZ"] {
        let bucket = missing(kind).await;
        assert_eq!(bucket.get("k").await.unwrap_err().kind, ErrorKind::Invalid, "{kind}");
        assert_eq!(bucket.put("k", Bytes::new()).await.unwrap_err().kind, ErrorKind::Invalid, "{kind}");
        assert_eq!(bucket.list("", None, 1).await.unwrap_err().kind, ErrorKind::Invalid, "{kind}");
    }
}
