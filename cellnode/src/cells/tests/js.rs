//! Cells of a deployed application: what its handlers write, answer and throw, through the gate.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::poll;
use holdfast_bucket::Buckets;
use holdfast_js::{Application, Binding, Limits, SourceKind, id_from_name};
use holdfast_outbound::{Outbound, OutboundOptions};
use holdfast_r2::R2;
use holdfast_routing::{Router, RouterOptions};
use holdfast_rpc::{Body, CallError, CellClient, ProcessIdentity};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::{mpsc, watch};

use super::support::{Bench, Client, PATIENCE, Reply};
use crate::runtime::{Applications, Classes, SocketRoom};

/// A list of rows, and handlers by path.
const ROWS: &str = r"
    import { DurableObject } from 'cloudflare:workers';
    export default {};
    export class Rows extends DurableObject {
        constructor(ctx, env) {
            super(ctx, env);
            ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
            this.made = ++globalThis.made || (globalThis.made = 1);
        }
        insert() { this.ctx.storage.sql.exec('INSERT INTO t VALUES (1)'); return this.count(); }
        count() { return this.ctx.storage.sql.exec('SELECT count(*) AS n FROM t').one().n; }
        async fetch(request) {
            const { pathname } = new URL(request.url);
            switch (pathname) {
                case '/insert': return new Response(`${this.insert()} rows`);
                case '/rows': return new Response(`${this.count()} rows`);
                case '/insert-throw': this.insert(); throw new RangeError('after the write');
                case '/url': return new Response(request.url);
                case '/version': return new Response(this.env.VERSION);
                case '/loop': this.insert(); for (;;);
                case '/abort': this.ctx.abort(new Error('enough')); return new Response('not reached');
                case '/forever': return new Response(new ReadableStream({
                    start: controller => controller.enqueue(new TextEncoder().encode('first')),
                    cancel: () => this.insert(),
                }));
                case '/echo': return new Response(request.body);
                case '/insert-after': {
                    const text = await request.text();
                    return new Response(`${text} ${this.insert()} ${this.env.VERSION}`);
                }
                case '/each': {
                    const pass = new TransformStream({ transform: (chunk, controller) => {
                        this.insert();
                        controller.enqueue(chunk);
                    } });
                    return new Response(request.body.pipeThrough(pass));
                }
            }
        }
    }
    export class NotBound extends DurableObject {}
";

/// What may wait for the clients of all sockets.
pub(super) const SOCKETS_MEMORY: u64 = 24 << 20;

/// A bench whose cell is an object.
pub(super) struct Js {
    pub(super) bench: Bench,
    pub(super) deploy: watch::Sender<Option<Arc<Application>>>,
}

pub(super) fn application(source: &str, version: &str) -> Option<Arc<Application>> {
    let module = ("main.js".to_owned(), SourceKind::EsModule, Bytes::copy_from_slice(source.as_bytes()));
    let application = Application::new(version, "main.js", [module])
        .unwrap()
        .bind("ROWS", Binding::ObjectNamespace { class: "Rows".into() })
        .bind("FILES", Binding::R2Bucket { name: "files".into() })
        .bind("VERSION", Binding::Text(version.into()));
    Some(Arc::new(application))
}

fn outbound(buckets: &Buckets, identity: &ProcessIdentity) -> Outbound {
    let (records, leases) = (Arc::clone(&buckets.records), Arc::clone(&buckets.leases));
    let client = CellClient::new(identity.clone());
    let router = Router::with_lease_bucket(records, leases, client, RouterOptions::default());
    let r2 = Some(R2::new(Arc::clone(&buckets.bulk)));
    // Servers of tests are on loopback.
    let allow = vec!["127.0.0.1".parse().unwrap()];
    Outbound::new(router, OutboundOptions { r2, allow, ..OutboundOptions::default() }).unwrap()
}

impl Js {
    pub(super) async fn new(source: &str) -> Self {
        Self::limited(source, Limits { turn: PATIENCE, start: PATIENCE, ..Limits::default() }).await
    }

    pub(super) async fn limited(source: &str, limits: Limits) -> Self {
        Self::idling(source, limits, 60_000).await
    }

    pub(super) async fn idling(source: &str, limits: Limits, idle_ms: u64) -> Self {
        let (deploy, running) = watch::channel(application(source, "v1"));
        let (_, log) = mpsc::unbounded_channel();
        let cell = format!("Rows:{}", id_from_name("Rows", "x"));
        let classes = |buckets: &Buckets, identity: &ProcessIdentity| {
            let outbound = outbound(buckets, identity);
            let sockets = SocketRoom::new(SOCKETS_MEMORY);
            Arc::new(Applications { running, outbound, limits, sockets, idle_ms }) as Arc<dyn Classes>
        };
        Self { bench: Bench::of(&cell, classes, log, PATIENCE).await, deploy }
    }

    pub(super) async fn text(&self, path: &str) -> String {
        self.bench.call(path).await.unwrap().text().await
    }
}

fn thrown(reply: Result<Reply, CallError>) -> (String, String) {
    let thrown = reply.unwrap().reply.thrown.expect("the handler threw");
    (thrown.name, thrown.message)
}

fn whole(bytes: &'static [u8]) -> Body {
    Full::new(Bytes::from_static(bytes)).map_err(|never| match never {}).boxed_unsync()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_keeps_its_rows_beyond_its_isolate() {
    let js = Js::new(ROWS).await;
    assert_eq!(js.text("/insert").await, "1 rows");
    assert_eq!(js.text("/insert").await, "2 rows");
    js.bench.release().await.unwrap().unwrap();
    assert_eq!(js.text("/rows").await, "2 rows");
    assert_eq!(js.text("/url").await, "http://localhost/url");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_takes_and_gives_clones() {
    let js = Js::new(ROWS).await;
    // `[]` and the number 1, in V8's format.
    let reply = js.bench.call_method_with("/", "x", "insert", whole(b"\xff\x0fA\0$\0\0")).await.unwrap();
    let result = reply.reply.response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(result.last_chunk::<2>(), Some(b"I\x02"));
    let (name, message) =
        thrown(js.bench.call_method_with("/", "x", "nothing", whole(b"\xff\x0fA\0$\0\0")).await);
    assert_eq!(name, "TypeError");
    assert!(message.contains("\"nothing\""), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_handler_leaves_while_proofs_are_blocked() {
    let js = Js::new(ROWS).await;
    assert_eq!(js.text("/rows").await, "0 rows");
    let held = js.bench.hold_uploads();
    let mut throwing = js.bench.spawn("/insert-throw", Client::empty());
    js.bench.upload_is_held(&held).await;
    let mut reading = js.bench.spawn("/rows", Client::empty());
    js.bench.quiet_thread().await;
    assert!(poll!(&mut throwing).is_pending() && poll!(&mut reading).is_pending());
    held.release();
    let (name, message) = thrown(throwing.await.unwrap());
    assert_eq!((name.as_str(), message.as_str()), ("RangeError", "after the write"));
    // The write was committed before the handler threw, as its next reader sees.
    assert_eq!(reading.await.unwrap().unwrap().text().await, "1 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_chunk_of_a_handler_waits_for_what_it_wrote() {
    let js = Js::new(ROWS).await;
    assert_eq!(js.text("/rows").await, "0 rows");
    let (body, client) = Client::body();
    let mut reply = js.bench.spawn("/each", body).await.unwrap().unwrap();
    client.send("a").await;
    assert_eq!(reply.frame().await.unwrap(), "a");
    let held = js.bench.hold_uploads();
    client.send("b").await;
    js.bench.upload_is_held(&held).await;
    js.bench.quiet_thread().await;
    assert!(poll!(std::pin::pin!(reply.frame())).is_pending());
    held.release();
    assert_eq!(reply.frame().await.unwrap(), "b");
    client.end();
    assert_eq!(reply.text().await, "");
    assert_eq!(js.text("/rows").await, "2 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_stream_both_ways() {
    let js = Js::new(ROWS).await;
    let (body, client) = Client::body();
    let mut reply = js.bench.spawn("/echo", body).await.unwrap().unwrap();
    for piece in ["one", "two"] {
        client.send(piece).await;
        assert_eq!(reply.frame().await.unwrap(), piece);
    }
    client.end();
    assert_eq!(reply.text().await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_nobody_reads_any_more_ends_its_event() {
    let js = Js::new(ROWS).await;
    let mut reply = js.bench.call("/forever").await.unwrap();
    assert_eq!(reply.frame().await.unwrap(), "first");
    assert_eq!(js.bench.node.requests(), 1);
    drop(reply);
    let ends = async {
        while js.bench.node.requests() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ends).await.expect("the event ends");
    assert_eq!(js.text("/rows").await, "1 rows", "its source was told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_never_ends_is_reset_and_its_turn_undone() {
    let limits = Limits { turn: Duration::from_millis(500), start: PATIENCE, ..Limits::default() };
    let js = Js::limited(ROWS, limits).await;
    assert_eq!(js.text("/insert").await, "1 rows");
    let (body, client) = Client::body();
    let waiting = js.bench.spawn("/insert-after", body);
    client.is_awaited().await;
    let (_, message) = thrown(js.bench.call("/loop").await);
    assert_eq!(message, "Durable Object exceeded its CPU time limit and was reset.");
    // Whatever else was open in the isolate has gone with it.
    assert_eq!(thrown(waiting.await.unwrap()).1, message);
    drop(client);
    assert_eq!(js.text("/rows").await, "1 rows");
    let (_, message) = thrown(js.bench.call("/abort").await);
    assert_eq!(message, "Error: enough");
    assert_eq!(js.text("/rows").await, "1 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_ends_on_the_version_that_it_began_on() {
    let js = Js::new(ROWS).await;
    assert_eq!(js.text("/version").await, "v1");
    let (body, client) = Client::body();
    let old = js.bench.spawn("/insert-after", body);
    client.send("late").await;
    client.is_awaited().await;
    js.deploy.send_replace(application(ROWS, "v2"));
    let mut new = js.bench.spawn("/version", Client::empty());
    js.bench.quiet_thread().await;
    assert!(poll!(&mut new).is_pending(), "never two versions in one object");
    client.end();
    assert_eq!(old.await.unwrap().unwrap().text().await, "late 1 v1");
    assert_eq!(new.await.unwrap().unwrap().text().await, "v2");
    assert_eq!(js.text("/rows").await, "1 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_that_nothing_defines_is_refused_before_it_is_claimed() {
    let js = Js::new(ROWS).await;
    let refused = |cell: String| {
        let error =
            js.bench.node.classes.check(&holdfast_types::CellName::parse(&cell).unwrap()).unwrap_err();
        let CallError::Rejected { status, reason } = error else { panic!("{error}") };
        (status.as_u16(), reason)
    };
    let (status, reason) = refused(format!("NotBound:{}", id_from_name("NotBound", "x")));
    assert_eq!(status, 404);
    assert!(reason.contains("`NotBound`") && reason.contains("v1"), "{reason}");
    let (status, reason) = refused(format!("Rows:{}", id_from_name("NotBound", "x")));
    assert_eq!(status, 400);
    assert!(reason.contains("not an id"), "{reason}");
    js.deploy.send_replace(None);
    let (status, reason) = refused(format!("Rows:{}", id_from_name("Rows", "x")));
    assert_eq!(status, 404);
    assert!(reason.contains("no application is deployed"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_does_not_start_says_why_and_loses_nothing() {
    let js = Js::new(ROWS).await;
    assert_eq!(js.text("/insert").await, "1 rows");
    js.deploy.send_replace(application("throw new TypeError('at the top')", "v2"));
    let (_, message) = thrown(js.bench.call("/rows").await);
    assert!(message.contains("TypeError: at the top"), "{message}");
    js.deploy
        .send_replace(application(&ROWS.replace("CREATE TABLE IF NOT", "CREATE TABLE IF NOT NOT"), "v3"));
    let (_, message) = thrown(js.bench.call("/rows").await);
    assert!(message.contains("syntax error"), "{message}");
    js.deploy.send_replace(application(ROWS, "v4"));
    assert_eq!(js.text("/rows").await, "1 rows");
}
