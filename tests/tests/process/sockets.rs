//! WebSockets from a client's side: through the Worker and straight to objects, over hibernation, and over everything that
//! takes an object away.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use crate::support::{SOON, TTL};

/// A client of one socket, by a library that is not ours.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: WebSocketStream<TokioIo<Upgraded>>,
}

impl Socket {
    /// Opens a socket, or says what was answered instead.
    pub(crate) async fn open(address: SocketAddr, path: &str) -> Result<Self> {
        tokio::time::timeout(SOON, Self::shake_hands(address, path)).await.context("no answer")?
    }

    async fn shake_hands(address: SocketAddr, path: &str) -> Result<Self> {
        let tcp = TcpStream::connect(address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await?;
        tokio::spawn(connection.with_upgrades());
        let request = Request::get(path)
            .header("host", address.to_string())
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(Empty::<Bytes>::new())?;
        let response = sender.send_request(request).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            bail!("`{path}` was answered with {}", response.status());
        }
        ensure!(response.headers()["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let upgraded = TokioIo::new(hyper::upgrade::on(response).await?);
        Ok(Self { stream: WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await })
    }

    /// Opens a socket as soon as the application lets it.
    pub(crate) async fn open_soon(address: SocketAddr, path: &str) -> Self {
        wait::until("a socket", SOON, async || Self::open(address, path).await).await.unwrap()
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.unwrap();
    }

    /// Says something and hears the answer; or the code with which the socket was closed meanwhile, 1005 where it had none, and none
    /// where the connection broke.
    pub(crate) async fn ask(&mut self, text: &str) -> Result<String, Option<u16>> {
        // What a socket that is being closed does not take any more, its close tells.
        let _ = self.stream.send(Message::text(text)).await;
        match self.next().await {
            Some(Message::Text(text)) => Ok(text.to_string()),
            Some(Message::Close(close)) => Err(Some(close.map_or(1005, |close| close.code.into()))),
            Some(other) => panic!("no text: {other:?}"),
            None => Err(None),
        }
    }

    pub(crate) async fn hear(&mut self) -> String {
        match self.next().await {
            Some(Message::Text(text)) => text.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// The next message or close; none at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            let message = tokio::time::timeout(SOON, self.stream.next()).await.expect("something comes");
            match message {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// Waits for the close, which must be the last that comes; its code, none where it has none.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        let close = loop {
            match self.next().await {
                Some(Message::Close(close)) => break close,
                Some(_) => {}
                None => panic!("the connection ended without a close"),
            }
        };
        assert_eq!(self.next().await, None, "something came after the close");
        close.map(|close| close.code.into())
    }

    pub(crate) async fn close(&mut self, close: Option<(u16, &str)>) {
        let frame = close.map(|(code, reason)| CloseFrame { code: code.into(), reason: reason.into() });
        self.stream.send(Message::Close(frame)).await.unwrap();
    }
}

const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Room extends DurableObject {
      constructor(ctx, env) {
        super(ctx, env);
        ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
        this.seen = 0;
      }
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname === '/log') return new Response(this.ctx.storage.sql.exec('SELECT a FROM t').toArray().map(row => row.a).join());
        const { 0: client, 1: server } = new WebSocketPair();
        if (pathname === '/classic') {
          server.accept();
          server.addEventListener('message', ({ data }) => server.send(`${data} ${++this.seen}`));
        } else {
          this.ctx.acceptWebSocket(server);
        }
        return new Response(null, { status: 101, webSocket: client });
      }
      webSocketMessage(ws, message) { ws.send(`${message} ${++this.seen}`); }
      webSocketClose(ws, code, reason, wasClean) { this.ctx.storage.sql.exec('INSERT INTO t VALUES (?)', `${code} ${reason} ${wasClean}`); }
    }
    export default { async fetch(request, env) {
      const [, what, name] = new URL(request.url).pathname.split('/');
      if (what === 'held') {
        const { 0: client, 1: server } = new WebSocketPair();
        server.accept();
        server.addEventListener('message', ({ data }) => server.send(`the Worker heard ${data}`));
        return new Response(null, { status: 101, webSocket: client });
      }
      return env.ROOMS.getByName(name).fetch(new Request(`http://room/${what}`, request));
    } };";

async fn fleet(nodes: usize) -> (Cluster, tempfile::TempDir) {
    let options = ClusterOptions {
        nodes,
        lease_ttl: TTL,
        node_args: vec!["--object-idle".into(), "200ms".into()],
        ingress_args: vec!["--direct-cells".into(), "--socket-ping".into(), "1s".into()],
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let project = tempfile::tempdir().unwrap();
    deploy(&cluster, project.path(), "").await;
    (cluster, project)
}

pub(crate) async fn deploy(cluster: &Cluster, project: &Path, more: &str) {
    let config = r#"{ "name": "rooms", "main": "index.js", "compatibility_date": "2026-11-01",
        "durable_objects": { "bindings": [{ "name": "ROOMS", "class_name": "Room" }] },
        "migrations": [{ "tag": "v1", "new_sqlite_classes": ["Room"] }] }"#;
    std::fs::write(project.join("wrangler.jsonc"), config).unwrap();
    std::fs::write(project.join("index.js"), format!("{SOURCE}{more}")).unwrap();
    let deployed = cluster.tool(&["deploy", project.to_str().unwrap()]).await.unwrap();
    assert_eq!(deployed.code, 0, "{deployed:?}");
}

/// Says something and hears the answer: how often the isolate was spoken to.
async fn count(socket: &mut Socket) -> u32 {
    socket.say("x").await;
    let answer = socket.hear().await;
    answer.strip_prefix("x ").unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_reach_workers_and_objects_and_close_as_each_side_says() {
    let (cluster, _project) = fleet(2).await;
    let ingress = cluster.ingress();
    let mut held = Socket::open_soon(ingress, "/held").await;
    held.say("x").await;
    assert_eq!(held.hear().await, "the Worker heard x");
    held.close(Some((1000, ""))).await;
    assert_eq!(held.closed().await, Some(1000));

    for path in ["/hibernating/a", "/classic/b", "/-/cells/Room/c/hibernating"] {
        let mut socket = Socket::open_soon(ingress, path).await;
        for n in 1..=20 {
            socket.say(&"é".repeat(n * 1_000)).await;
        }
        for n in 1..=20 {
            let answer = socket.hear().await;
            assert!(answer.starts_with(&"é".repeat(n * 1_000)), "{path}: {}", answer.len());
        }
        socket.close(Some((3001, "bye"))).await;
        assert_eq!(socket.closed().await, Some(3001), "{path}");
        let mut bare = Socket::open(ingress, path).await.unwrap();
        bare.close(None).await;
        assert_eq!(bare.closed().await, None, "{path}");
    }
    assert!(Socket::open(ingress, "/log/a").await.unwrap_err().to_string().contains("200"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hibernated_object_keeps_its_sockets_and_hears_of_those_that_break_off() {
    let (cluster, _project) = fleet(1).await;
    let ingress = cluster.ingress();
    let mut classic = Socket::open_soon(ingress, "/classic/pinned").await;
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(Socket::open_soon(ingress, "/hibernating/a").await);
    }
    assert_eq!((count(&mut classic).await, count(&mut sockets[0]).await), (1, 1));
    let hibernated = async |wanted: f64| {
        let what = format!("{wanted} sockets without an isolate");
        wait::until(&what, SOON, async || {
            let seen = cluster.metric("n1", "holdfast_cellnode_sockets_hibernated_count", "").await?;
            ensure!(seen == wanted, "{seen}");
            Ok(())
        })
        .await
        .unwrap();
    };
    hibernated(3.0).await;
    // A fresh isolate for one, the same one for the other.
    assert_eq!((count(&mut classic).await, count(&mut sockets[1]).await), (2, 1));
    hibernated(3.0).await;
    // Without a close: the object is told, and the others stay.
    drop(sockets.pop());
    let http = holdfast_tests::client::SqlClient::new(SOON);
    wait::until("the object hears of it", SOON, async || {
        let answer = http.send(http::Method::GET, ingress, "/log/a", Bytes::new()).await.into_result()?;
        ensure!(
            answer.text() == "1006 WebSocket disconnected without sending Close frame. false",
            "{}",
            answer.text()
        );
        Ok(())
    })
    .await
    .unwrap();
    hibernated(2.0).await;
    assert_eq!(count(&mut sockets[0]).await, 1);
    let open = cluster.metric("i1", "holdfast_ingress_sockets_count", "").await.unwrap();
    assert_eq!(open, 3.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_takes_an_object_away_closes_its_sockets_with_1012_once() {
    let (mut cluster, project) = fleet(1).await;
    let ingress = cluster.ingress();
    let open = async || {
        let mut sockets = Vec::new();
        for path in ["/hibernating/a", "/classic/b", "/hibernating/c"] {
            let mut socket = Socket::open_soon(ingress, path).await;
            count(&mut socket).await;
            sockets.push(socket);
        }
        sockets
    };
    let restarted = async |what: &str, sockets: Vec<Socket>| {
        for mut socket in sockets {
            assert_eq!(socket.closed().await, Some(1012), "{what}");
        }
    };

    let sockets = open().await;
    deploy(&cluster, project.path(), "globalThis.version = 2;").await;
    restarted("a deployment", sockets).await;

    let sockets = open().await;
    cluster.kill("n1").unwrap();
    restarted("the death of the node", sockets).await;

    cluster.start_node("n1").await.unwrap();
    let sockets = open().await;
    cluster.process("n1").unwrap().terminate().unwrap();
    restarted("a drain of the node", sockets).await;
    cluster.process_mut("n1").unwrap().wait_exit(SOON).await.unwrap();

    cluster.start_node("n1").await.unwrap();
    let sockets = open().await;
    cluster.process("i1").unwrap().terminate().unwrap();
    restarted("the end of the ingress", sockets).await;
    cluster.process_mut("i1").unwrap().wait_exit(SOON).await.unwrap();
}
