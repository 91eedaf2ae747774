//! Export over OTLP, against a collector of a few lines. The program under test is this test binary started again with
//! the `OTEL_…` variables set, since a process starts telemetry once and reads its environment then.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

const CHILD: &str = "HOLDFAST_OTLP_CHILD";

/// Not a test by itself: the body of the child process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_process() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let telemetry = holdfast_telemetry::init(holdfast_telemetry::TelemetryOptions {
        service_name: "child".into(),
        instance: "c1".into(),
        log_format: holdfast_telemetry::LogFormat::Json,
        log_filter: "info".into(),
    })
    .unwrap();
    holdfast_telemetry::metrics().capture(1);
    tracing::info_span!(holdfast_telemetry::names::span::UPLOAD).in_scope(|| tracing::info!("inside"));
    telemetry.shutdown().await;
}

async fn run_child(endpoint: Option<String>) -> std::process::Output {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_process", "--nocapture"]).env(CHILD, "1").kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(endpoint) = endpoint {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    }
    command.output().await.unwrap()
}

/// Answers every export with success and remembers which services were called.
async fn collector() -> (String, Arc<Mutex<BTreeSet<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let record = seen.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let record = record.clone();
            let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                record.lock().unwrap().insert(request.uri().path().to_owned());
                async {
                    request.into_body().collect().await.unwrap();
                    let mut trailers = http::HeaderMap::new();
                    trailers.insert("grpc-status", "0".parse().unwrap());
                    let empty_message = Full::new(axum::body::Bytes::from_static(&[0; 5]));
                    let body = empty_message.with_trailers(std::future::ready(Some(Ok(trailers))));
                    let answer = http::Response::builder().header("content-type", "application/grpc");
                    Ok::<_, Infallible>(answer.body(body).unwrap())
                }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(socket), service));
        }
    });
    (endpoint, seen)
}

#[tokio::test]
async fn spans_and_metrics_reach_the_collector_before_the_process_ends() {
    let (endpoint, seen) = collector().await;
    let output = run_child(Some(endpoint)).await;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && log.contains("\"message\":\"inside\""), "{log}");
    let services: Vec<String> = seen.lock().unwrap().iter().cloned().collect();
    assert_eq!(
        services,
        [
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        ],
        "{log}"
    );
}

#[tokio::test]
async fn a_collector_that_is_down_does_not_keep_the_process_alive() {
    // Bound and never accepting: connections are made and never answered.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let started = Instant::now();
    let output = run_child(Some(format!("http://{}", deaf.local_addr().unwrap()))).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(started.elapsed() < Duration::from_secs(9), "took {:?}", started.elapsed());
}

#[tokio::test]
async fn without_an_endpoint_nothing_is_exported() {
    let output = run_child(None).await;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !log.contains("opentelemetry"), "{log}");
}
