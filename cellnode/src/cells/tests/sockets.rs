//! Sockets of objects: in order, through the gate, and over everything that ends an isolate.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use holdfast_js::Limits;
use holdfast_rpc::{BodyError, SocketFrame, SocketReader, SocketWriter, socket_pipe};

use super::js::{Js, application};
use super::support::{Client, PATIENCE};

const ROOM: &str = r"
    import { DurableObject } from 'cloudflare:workers';
    export default {};
    export class Rows extends DurableObject {
        constructor(ctx, env) {
            super(ctx, env);
            ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
            this.seen = 0;
        }
        write(text) { this.ctx.storage.sql.exec('INSERT INTO t VALUES (?)', text); }
        rows() { return this.ctx.storage.sql.exec('SELECT a FROM t').toArray().map(row => row.a).join(); }
        async fetch(request) {
            const { pathname } = new URL(request.url);
            if (pathname === '/rows') return new Response(this.rows());
            if (pathname === '/abort') this.ctx.abort(new Error('enough'));
            if (pathname === '/until-closed') return new Response(`${await request.text()} ${await this.closed}`);
            if (pathname === '/gate') return new Response(await request.text().then(this.open));
            if (pathname === '/gated') await new Promise(resolve => { this.open = resolve; });
            const { 0: client, 1: server } = new WebSocketPair();
            if (pathname === '/told' || pathname === '/gated') {
                server.accept();
                this.closed = new Promise(resolve => server.addEventListener('close', ({ code }) => resolve(code)));
                if (pathname === '/gated') this.ctx.waitUntil(this.closed.then(code => this.write(`closed ${code}`)));
            } else if (pathname === '/classic') {
                server.accept();
                server.addEventListener('message', ({ data }) => server.send(`${data} ${++this.seen}`));
                server.addEventListener('close', ({ code }) => { this.write(`closed ${code}`); });
            } else {
                this.ctx.acceptWebSocket(server, [pathname.slice(1)]);
                this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'));
                server.serializeAttachment(pathname);
            }
            return new Response(null, { status: 101, webSocket: client });
        }
        webSocketMessage(ws, message) {
            if (message === 'write') this.write(message);
            if (message === 'close') return ws.close(4000, 'asked');
            if (message === 'half a flood') { for (let n = 0; n < 15; n++) ws.send('x'.repeat(1 << 20)); return; }
            if (message === 'flood') { for (let n = 0; n < 40; n++) ws.send('x'.repeat(1 << 20)); return; }
            if (message === 'all') { for (const one of this.ctx.getWebSockets()) one.send('to all'); return; }
            ws.send(`${message} ${++this.seen} ${this.ctx.getTags(ws)} ${ws.deserializeAttachment()}`);
        }
        webSocketClose(ws, code, reason, wasClean) { this.write(`closed ${code} ${reason} ${wasClean}`); }
        webSocketError(ws, error) { this.write('error'); }
    }
";

/// A client of one socket.
struct Talk {
    says: Option<SocketWriter>,
    hears: SocketReader,
}

impl Talk {
    async fn open(js: &Js, path: &str) -> Self {
        let (says, said) = socket_pipe();
        let reply = js.bench.open(path, said).await.unwrap().reply;
        assert_eq!(reply.response.status(), 101);
        Self { says: Some(says), hears: SocketReader::new(reply.response.into_body()) }
    }

    fn say(&self, text: &str) {
        let frame = SocketFrame::Text(Bytes::copy_from_slice(text.as_bytes()));
        self.says.as_ref().unwrap().push(&frame).unwrap();
    }

    async fn next(&mut self) -> Result<Option<SocketFrame>, BodyError> {
        tokio::time::timeout(PATIENCE, self.hears.next()).await.expect("something comes")
    }

    async fn hear(&mut self) -> String {
        match self.next().await.unwrap() {
            Some(SocketFrame::Text(text)) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// What the client is told when it says that it closes.
    async fn close(&mut self, code: u16) -> Option<SocketFrame> {
        let says = self.says.take().unwrap();
        says.push(&SocketFrame::Close { code, reason: "bye".into() }).unwrap();
        says.end();
        self.next().await.unwrap()
    }
}

/// A bench whose objects' isolates leave memory after this.
async fn idling(idle_ms: u64) -> Js {
    let limits = Limits { turn: PATIENCE, start: PATIENCE, ..Limits::default() };
    Js::idling(ROOM, limits, idle_ms).await
}

/// Waits until the object's rows are these.
async fn rows(js: &Js, wanted: &str) {
    let come = async {
        while js.text("/rows").await != wanted {
            tokio::task::yield_now().await;
        }
    };
    if tokio::time::timeout(PATIENCE, come).await.is_err() {
        assert_eq!(js.text("/rows").await, wanted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_answered_in_order_and_a_close_passes_unchanged() {
    let js = Js::new(ROOM).await;
    let mut talk = Talk::open(&js, "/a").await;
    for n in 0..100 {
        talk.say(&n.to_string());
    }
    for n in 0..100 {
        assert_eq!(talk.hear().await, format!("{n} {} a /a", n + 1));
    }
    talk.say("close");
    assert_eq!(talk.next().await.unwrap(), Some(SocketFrame::Close { code: 4000, reason: "asked".into() }));
    // The object did close, so its end says nothing more.
    assert_eq!(talk.close(4000).await, None);
    rows(&js, "closed 4000 bye true").await;
    let mut other = Talk::open(&js, "/b").await;
    // It does not answer a close, and so its caller is to echo it.
    assert_eq!(other.close(3001).await, None);
    rows(&js, "closed 4000 bye true,closed 3001 bye true").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_lost_closes_with_1006() {
    let js = Js::new(ROOM).await;
    let reason = "WebSocket disconnected without sending Close frame.";
    let mut talk = Talk::open(&js, "/a").await;
    drop(talk.says.take());
    rows(&js, &format!("closed 1006 {reason} false")).await;
    assert_eq!(talk.next().await.unwrap(), None);
    let mut talk = Talk::open(&js, "/classic").await;
    talk.say("x");
    assert_eq!(talk.hear().await, "x 1");
    drop(talk.says.take());
    rows(&js, &format!("closed 1006 {reason} false,closed 1006")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hibernated_object_wakes_with_all_that_it_left() {
    let js = idling(1).await;
    let mut talk = Talk::open(&js, "/a").await;
    let mut other = Talk::open(&js, "/b").await;
    talk.say("1");
    assert_eq!(talk.hear().await, "1 1 a /a");
    // Not the isolate before: it counts anew.
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        talk.say("2");
        assert_eq!(talk.hear().await, "2 1 a /a");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    other.say("ping");
    assert_eq!(other.hear().await, "pong");
    other.say("all");
    assert_eq!((talk.hear().await, other.hear().await), ("to all".into(), "to all".into()));
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(other.says.take());
    rows(&js, "closed 1006 WebSocket disconnected without sending Close frame. false").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_of_accept_keeps_its_isolate() {
    let js = idling(1).await;
    let mut talk = Talk::open(&js, "/classic").await;
    for n in 1..4 {
        talk.say("x");
        assert_eq!(talk.hear().await, format!("x {n}"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_socket_leaves_while_proofs_are_blocked() {
    let js = Js::new(ROOM).await;
    let mut talk = Talk::open(&js, "/a").await;
    talk.say("first");
    assert_eq!(talk.hear().await, "first 1 a /a");
    let held = js.bench.hold_uploads();
    for text in ["write", "after", "ping", "close"] {
        talk.say(text);
    }
    js.bench.upload_is_held(&held).await;
    js.bench.quiet_thread().await;
    assert!(talk.hears.next().now_or_never().is_none());
    held.release();
    assert_eq!(talk.hear().await, "write 2 a /a");
    assert_eq!(talk.hear().await, "after 3 a /a");
    assert_eq!(talk.hear().await, "pong");
    assert_eq!(talk.next().await.unwrap(), Some(SocketFrame::Close { code: 4000, reason: "asked".into() }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_ends_the_object_breaks_its_sockets() {
    let js = idling(1).await;
    for (path, is_hibernated) in [("/a", true), ("/a", false), ("/classic", false)] {
        let open = async || {
            let mut talk = Talk::open(&js, path).await;
            talk.say("x");
            talk.hear().await;
            if is_hibernated {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            talk
        };
        let mut talk = open().await;
        js.bench.call("/abort").await.unwrap();
        assert!(talk.next().await.is_err(), "{path} after an abort");

        let mut talk = open().await;
        js.deploy.send_replace(application(ROOM, "v2"));
        js.bench.resident().tell_deployed();
        assert!(talk.next().await.is_err(), "{path} after a deployment");

        let mut talk = open().await;
        js.bench.release().await.unwrap().unwrap();
        assert!(talk.next().await.is_err(), "{path} after a release");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_nothing_is_given_up() {
    let js = Js::new(ROOM).await;
    let mut talk = Talk::open(&js, "/a").await;
    talk.say("flood");
    rows(&js, "error,closed 1006 WebSocket disconnected without sending Close frame. false").await;
    let mut taken = 0;
    while let Ok(Some(_)) = talk.next().await {
        taken += 1;
    }
    assert!((14..=16).contains(&taken), "{taken} MiB were kept for it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_take_nothing_share_what_the_node_has_for_them() {
    let js = Js::new(ROOM).await;
    let mut first = Talk::open(&js, "/a").await;
    let mut second = Talk::open(&js, "/b").await;
    first.say("half a flood");
    assert_eq!(first.hear().await.len(), 1 << 20, "all of it was sent in one turn");
    second.say("flood");
    rows(&js, "error,closed 1006 WebSocket disconnected without sending Close frame. false").await;
    let mut third = Talk::open(&js, "/c").await;
    third.say("x");
    assert_eq!(third.hear().await, "x 1 c /c", "one that takes what it is sent has room");
    for _ in 0..14 {
        assert_eq!(first.hear().await.len(), 1 << 20);
    }
    let mut taken = 0;
    while let Ok(Some(_)) = second.next().await {
        taken += 1;
    }
    assert!((8..=10).contains(&taken), "{taken} MiB were kept for it beside 14 of another");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_waits_while_the_node_has_no_room_for_what_it_begins() {
    let js = Js::new(ROOM).await;
    let mut talk = Talk::open(&js, "/a").await;
    let mut other = Talk::open(&js, "/b").await;
    talk.say("1");
    assert_eq!(talk.hear().await, "1 1 a /a");
    let node = &js.bench.node;
    let full = node.answers.hold(node.config.answers_max);
    talk.say("2");
    assert!(js.bench.call("/rows").await.is_err(), "a request is refused");
    assert!(talk.hears.next().now_or_never().is_none(), "a message is not begun");
    let waits = async {
        while !js.bench.resident().is_busy() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("a cell is busy while a message waits");
    assert_eq!(other.close(4001).await, None, "that a client has gone is told at once");
    assert!(talk.hears.next().now_or_never().is_none(), "and does not bring the message with it");
    drop(full);
    assert_eq!(talk.hear().await, "2 2 a /a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_tells_an_isolate_of_the_sockets_that_end_with_it() {
    let js = Js::new(ROOM).await;
    let _talk = Talk::open(&js, "/told").await;
    let (body, client) = Client::body();
    let waiting = js.bench.spawn("/until-closed", body);
    client.is_awaited().await;
    js.deploy.send_replace(application(ROOM, "v2"));
    js.bench.resident().tell_deployed();
    client.send("closed").await;
    client.end();
    // It ends as its handler says; it is not broken off.
    assert_eq!(waiting.await.unwrap().unwrap().text().await, "closed 1006");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_isolate_hears_at_once_that_its_version_was_replaced_before_it_answered_with_a_socket() {
    let js = Js::new(ROOM).await;
    assert_eq!(js.text("/rows").await, "");
    let (body, client) = Client::body();
    let (_says, said) = socket_pipe();
    let answered = js.bench.open("/gated", said);
    let mut answered = std::pin::pin!(answered);
    assert!(futures::poll!(&mut answered).is_pending());
    js.bench.quiet_thread().await;
    let gate = js.bench.spawn("/gate", body);
    client.is_awaited().await;
    js.deploy.send_replace(application(ROOM, "v2"));
    client.end();
    gate.await.unwrap().unwrap();
    let mut hears = SocketReader::new(answered.await.unwrap().reply.response.into_body());
    assert!(hears.next().await.is_err(), "its client is to connect again");
    // It was told, and wrote so; broken off it would have written nothing.
    assert_eq!(js.text("/rows").await, "closed 1006");
}
