//! A Worker with one application, and bodies that tests write to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt as _;
use holdfast_bucket::MemoryBucket;
use holdfast_js::{Application, Binding, IncomingBody, IncomingRequest, Limits, SourceKind, StartError};
use holdfast_outbound::{Outbound, OutboundOptions};
use holdfast_routing::{Router, RouterOptions};
use holdfast_rpc::{Body, BodyError, CellClient, ProcessIdentity, Role, identity};
use holdfast_types::SessionId;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::Span;

use crate::worker::{Worker, WorkerError, WorkerOptions};

/// One thread, and limits for a machine that is busy with other tests.
pub(super) fn options() -> WorkerOptions {
    let generous = Duration::from_secs(20);
    WorkerOptions {
        threads: 1,
        limits: Limits { turn: generous, start: generous, ..Limits::default() },
        request_timeout: Duration::from_secs(20),
        afterwards: Duration::from_secs(20),
        events_max: 100,
    }
}

fn outbound(allow: &[&str]) -> Outbound {
    let fleet = identity::create().unwrap();
    let process = ProcessIdentity::new(fleet, Role::Ingress, "i", SessionId::from_bits(1)).unwrap();
    let router =
        Router::new(Arc::new(MemoryBucket::new()), CellClient::new(process), RouterOptions::default());
    let allow = allow.iter().map(|range| range.parse().unwrap()).collect();
    Outbound::new(router, OutboundOptions { allow, ..OutboundOptions::default() }).unwrap()
}

pub(super) struct World {
    pub(super) worker: Worker,
}

impl World {
    /// Nothing is deployed.
    pub(super) fn empty() -> Self {
        Self { worker: Worker::start(options(), &outbound(&[])).unwrap() }
    }

    pub(super) async fn running(source: &str) -> Self {
        Self::start(options(), source).await
    }

    /// Loopback is not allowed.
    pub(super) async fn closed(source: &str) -> Self {
        let world = Self::empty();
        world.adopt(source).await.unwrap();
        world
    }

    /// What does not start is not adopted.
    pub(super) async fn start(options: WorkerOptions, source: &str) -> Self {
        let world = Self { worker: Worker::start(options, &outbound(&["127.0.0.1"])).unwrap() };
        // For the test to look at.
        let _ = world.adopt(source).await;
        world
    }

    pub(super) async fn adopt(&self, source: &str) -> Result<(), StartError> {
        let module = ("main.js".to_owned(), SourceKind::EsModule, Bytes::copy_from_slice(source.as_bytes()));
        let application = Application::new("v", "main.js", [module])
            .unwrap()
            .bind("ROOMS", Binding::ObjectNamespace { class: "Room".into() });
        self.worker.adopt(Arc::new(application)).await
    }

    pub(super) async fn get(&self, path: &str) -> Result<Response<Body>, WorkerError> {
        let empty = Empty::new().map_err(|never| match never {}).boxed_unsync();
        self.fetch_with(head(Method::GET, path), empty).await
    }

    pub(super) async fn fetch_with(
        &self,
        head: IncomingRequest,
        body: Body,
    ) -> Result<Response<Body>, WorkerError> {
        self.worker.fetch(head, (body, None), Span::none()).await
    }

    pub(super) fn spawn_get(&self, path: &'static str) -> JoinHandle<Result<Response<Body>, WorkerError>> {
        let world = Self { worker: self.worker.clone() };
        tokio::spawn(async move { world.get(path).await })
    }
}

pub(super) fn head(method: Method, path: &str) -> IncomingRequest {
    let url = format!("https://x.example{path}");
    IncomingRequest { method, url, headers: HeaderMap::new(), body: IncomingBody::None, cf: None }
}

pub(super) fn whole(text: &'static str) -> Body {
    Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed_unsync()
}

pub(super) async fn text(answer: Response<Body>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Isolates that there are now. Each test is a process of its own.
pub(super) fn isolates() -> u32 {
    let text = holdfast_telemetry::render_prometheus();
    let line = text.lines().find_map(|line| line.strip_prefix("holdfast_ingress_worker_isolates_count "));
    line.expect("the metric").parse().unwrap()
}

/// The writing end of a streamed body.
pub(super) struct Upload(futures::channel::mpsc::Sender<Result<Frame<Bytes>, BodyError>>);

impl Upload {
    pub(super) async fn chunk(&mut self, text: &'static str) {
        self.0.send(Ok(Frame::data(Bytes::from_static(text.as_bytes())))).await.unwrap();
    }

    pub(super) async fn fail(&mut self, text: &str) {
        self.0.send(Err(text.into())).await.unwrap();
    }
}

pub(super) fn stream() -> (Upload, Body) {
    let (sender, receiver) = futures::channel::mpsc::channel(1);
    (Upload(sender), StreamBody::new(receiver).boxed_unsync())
}

/// A server that says what it got.
pub(super) async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let service = service_fn(async |request: Request<Incoming>| {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let text = format!("got {}", String::from_utf8_lossy(&body));
                    let answer = Response::builder().header("x-from", "server");
                    Ok::<_, Infallible>(answer.body(Full::new(Bytes::from(text))).unwrap())
                });
                let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(tcp), service).await;
            });
        }
    });
    address
}
