//! WebSockets against a server that a library of others runs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use holdfast_rpc::{Body, NO_CODE, SocketFrame, SocketReader, SocketWriter, socket_pipe, whole_body};
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::support::{Server, allowed, outbound, outbound_trusting, text};
use crate::frames::{Ear, Said, Speaker, pass_on};
use crate::{Outbound, OutboundOptions};

/// The server's side of a request for a socket. `kind` says what it does with that.
pub(super) fn answer(kind: String, mut request: Request<Incoming>) -> Response<Body> {
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    if kind == "none" {
        return Response::builder().status(426).body(whole_body("upgrade yourself")).unwrap();
    }
    assert_eq!(
        (
            header("upgrade").as_deref(),
            header("connection").as_deref(),
            header("sec-websocket-version").as_deref()
        ),
        (Some("websocket"), Some("Upgrade"), Some("13"))
    );
    assert_eq!(header("sec-websocket-extensions"), None);
    let key = header("sec-websocket-key").unwrap();
    assert_eq!(STANDARD.decode(&key).unwrap().len(), 16);
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let accept = if kind == "liar" { "AAAA".to_owned() } else { STANDARD.encode(hash.finalize()) };
    let mut response = Response::builder()
        .status(101)
        .header("upgrade", "websocket")
        .header("connection", "Upgrade")
        .header("sec-websocket-accept", accept);
    let offered = header("sec-websocket-protocol").unwrap_or_default();
    let chosen = match kind.as_str() {
        "uninvited" => "c",
        "both" => &offered,
        _ => offered.split(',').next().unwrap(),
    };
    if !chosen.is_empty() {
        response = response.header("sec-websocket-protocol", HeaderValue::from_str(chosen).unwrap());
    }
    if kind == "extension" {
        response = response.header("sec-websocket-extensions", "permessage-deflate");
    }
    tokio::spawn(serve(kind, hyper::upgrade::on(&mut request)));
    response.body(whole_body(Bytes::new())).unwrap()
}

async fn serve(kind: String, upgrade: OnUpgrade) {
    let Ok(io) = upgrade.await else { return };
    let mut io = TokioIo::new(io);
    match kind.as_str() {
        // A frame of a server that is masked.
        "masked" => io.write_all(b"\x81\x81\0\0\0\0a").await.unwrap(),
        // A message in pieces, with a ping between them.
        "pieces" => io.write_all(b"\x01\x02he\x89\x01p\x80\x03llo").await.unwrap(),
        "gone" => return,
        _ => {}
    }
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Text(text) if text.as_str() == "close" => {
                let close = CloseFrame { code: 4000.into(), reason: "asked".into() };
                socket.close(Some(close)).await.unwrap();
            }
            Message::Text(text) if text.as_str() == "ping" => {
                socket.send(Message::Ping(Bytes::from_static(b"p"))).await.unwrap();
            }
            Message::Pong(payload) => {
                let text = format!("pong {}", String::from_utf8_lossy(&payload));
                socket.send(Message::text(text)).await.unwrap();
            }
            Message::Close(close) => {
                let text = close.map(|close| format!("{} {}", u16::from(close.code), close.reason));
                CLOSED.lock().unwrap().push((kind.clone(), text));
            }
            message @ (Message::Text(_) | Message::Binary(_)) => socket.send(message).await.unwrap(),
            Message::Ping(_) | Message::Frame(_) => {}
        }
    }
}

/// What clients closed with, by the kind of socket.
static CLOSED: std::sync::Mutex<Vec<(String, Option<String>)>> = std::sync::Mutex::new(Vec::new());

async fn closed(kind: &str) -> Option<String> {
    for _ in 0..500 {
        let found = CLOSED.lock().unwrap().iter().find(|(of, _)| of == kind).cloned();
        if let Some((_, text)) = found {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("`{kind}` was not closed")
}

/// An open socket.
struct Talk {
    says: Option<SocketWriter>,
    hears: SocketReader,
}

impl Talk {
    async fn open(client: &Outbound, url: &str) -> Self {
        let (says, said) = socket_pipe();
        let fetched = client.open_socket(Request::get(url).body(said).unwrap()).await.unwrap();
        assert_eq!((fetched.response.status().as_u16(), fetched.url.as_str()), (101, url));
        Self { says: Some(says), hears: SocketReader::new(fetched.response.into_body()) }
    }

    fn say(&self, frame: &SocketFrame) {
        self.says.as_ref().unwrap().push(frame).unwrap();
    }

    async fn hear(&mut self) -> Option<SocketFrame> {
        let next = tokio::time::timeout(Duration::from_secs(20), self.hears.next());
        next.await.expect("something comes").ok().flatten()
    }
}

fn words(text: &'static str) -> SocketFrame {
    SocketFrame::Text(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn messages_cross_whole_and_in_order() {
    let server = Server::start().await;
    let mut talk = Talk::open(&outbound(allowed()), &server.url("/socket/echo")).await;
    let large = SocketFrame::Binary((0..300_000_u32).map(|n| (n % 251) as u8).collect());
    for frame in [words("héllo"), large.clone(), words(""), words("ping")] {
        talk.say(&frame);
    }
    for frame in [words("héllo"), large, words(""), words("pong p")] {
        assert_eq!(talk.hear().await, Some(frame));
    }
    talk.say(&words("close"));
    let close = SocketFrame::Close { code: 4000, reason: "asked".into() };
    assert_eq!(talk.hear().await, Some(close.clone()));
    talk.say(&close);
    assert_eq!(talk.hear().await, None);
}

#[tokio::test]
async fn a_close_of_ours_and_an_end_without_one_reach_the_server() {
    let server = Server::start().await;
    let client = outbound(allowed());
    let mut talk = Talk::open(&client, &server.url("/socket/closed")).await;
    talk.say(&SocketFrame::Close { code: 4001, reason: "bye".into() });
    assert_eq!(talk.hear().await, Some(SocketFrame::Close { code: 4001, reason: "bye".into() }));
    assert_eq!(closed("closed").await.as_deref(), Some("4001 bye"));
    let talk = Talk::open(&client, &server.url("/socket/bare")).await;
    talk.say(&SocketFrame::Close { code: NO_CODE, reason: String::new() });
    assert_eq!(closed("bare").await, None);
    let mut talk = Talk::open(&client, &server.url("/socket/left")).await;
    drop(talk.says.take());
    assert_eq!(closed("left").await.as_deref(), Some("1001 the client has gone"));
}

#[tokio::test]
async fn pieces_are_put_together_and_what_breaks_the_protocol_ends() {
    let server = Server::start().await;
    let client = outbound(allowed());
    let mut talk = Talk::open(&client, &server.url("/socket/pieces")).await;
    assert_eq!(talk.hear().await, Some(words("hello")));
    assert_eq!(talk.hear().await, Some(words("pong p")));
    let mut talk = Talk::open(&client, &server.url("/socket/masked")).await;
    assert!(talk.hears.next().await.is_err());
    assert_eq!(closed("masked").await.as_deref(), Some("1002 frames of servers are not masked"));
    let mut talk = Talk::open(&client, &server.url("/socket/gone")).await;
    assert!(talk.hears.next().await.is_err());
}

#[tokio::test]
async fn what_is_no_socket_is_an_ordinary_answer_or_an_error() {
    let server = Server::start().await;
    let client = outbound(allowed());
    let get = |kind: &str| {
        let url = server.url(&format!("/socket/{kind}"));
        Request::get(url).header("sec-websocket-protocol", "a, b").body(socket_pipe().1).unwrap()
    };
    let fetched = client.open_socket(get("none")).await.unwrap();
    assert_eq!(fetched.response.status(), 426);
    assert_eq!(text(fetched).await, "upgrade yourself");
    let fetched = client.open_socket(get("echo")).await.unwrap();
    assert_eq!(fetched.response.headers()["sec-websocket-protocol"], "a");
    for (kind, reason) in [
        ("liar", "the server's answer does not complete a WebSocket handshake"),
        ("extension", "the server wants an extension of WebSockets that was not offered"),
        ("uninvited", "the server did not choose one protocol of those that were offered"),
        ("both", "the server did not choose one protocol of those that were offered"),
    ] {
        let error = client.open_socket(get(kind)).await.unwrap_err().to_string();
        assert!(error.ends_with(reason), "{error}");
    }
}

#[tokio::test]
async fn sockets_go_where_fetch_may() {
    let server = Server::start_tls().await;
    let url = format!("https://localhost:{}/socket/echo", server.address.port());
    let mut talk = Talk::open(&outbound_trusting(&server, allowed()), &url).await;
    talk.say(&words("secret"));
    assert_eq!(talk.hear().await, Some(words("secret")));
    let open = async |client: &Outbound| {
        let request = Request::get(&url).body(socket_pipe().1).unwrap();
        client.open_socket(request).await.unwrap_err().to_string()
    };
    let error = open(&outbound(allowed())).await;
    assert!(error.contains("TLS handshake"), "{error}");
    let error = open(&outbound_trusting(&server, OutboundOptions::default())).await;
    assert!(error.starts_with("TypeError") && error.contains("not a public address"), "{error}");
}

#[tokio::test]
async fn a_server_that_says_much_waits_for_its_reader() {
    let server = Server::start().await;
    let mut talk = Talk::open(&outbound(allowed()), &server.url("/socket/echo")).await;
    let piece = SocketFrame::Binary(Bytes::from(vec![7; 64 << 10]));
    let says = talk.says.take().unwrap();
    let frame = piece.clone();
    // 64 MiB: more than the kernel and the pipes on the way hold together.
    let said = tokio::spawn(async move {
        for _ in 0..1_024 {
            assert!(says.send(&frame).await);
        }
        says
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!said.is_finished(), "what nobody reads is held back");
    for _ in 0..1_024 {
        assert_eq!(talk.hear().await, Some(piece.clone()));
    }
    said.await.unwrap();
}

#[tokio::test]
async fn a_protocol_is_not_chosen_where_none_was_offered() {
    let server = Server::start().await;
    let request = Request::get(server.url("/socket/uninvited")).body(socket_pipe().1).unwrap();
    let error = outbound(allowed()).open_socket(request).await.unwrap_err().to_string();
    assert!(error.ends_with("of those that were offered"), "{error}");
}

#[tokio::test]
async fn a_message_keeps_its_room_in_the_pool_until_somebody_has_taken_it() {
    let pool = Arc::new(Semaphore::new(1_000));
    let mut ear = Ear::new(Speaker::Server, Arc::clone(&pool));
    let (mut server, mut connection) = tokio::io::duplex(1 << 20);
    let message = vec![7; 300_000];
    let mut frame = vec![0x82, 127];
    frame.extend(300_000_u64.to_be_bytes());
    frame.extend(&message);
    server.write_all(&frame).await.unwrap();
    let is_heard = AtomicBool::new(false);
    let Ok(Said::Binary(bytes)) = ear.hear(&mut connection, &is_heard).await else { panic!("a message") };
    let (writer, body) = socket_pipe();
    let mut reader = SocketReader::new(body);
    pass_on(&writer, &SocketFrame::Binary(bytes), ear.give_room(), &is_heard).await;
    // The connection is read on: what it said before is still here.
    assert!(ear.hear(&mut connection, &is_heard).now_or_never().is_none());
    assert!(pool.available_permits() < 1_000 - 290, "{}", pool.available_permits());
    assert_eq!(reader.next().await.unwrap(), Some(SocketFrame::Binary(message.into())));
    assert!(pool.available_permits() < 1_000 - 290, "{}", pool.available_permits());
    assert!(reader.next().now_or_never().is_none());
    assert_eq!(pool.available_permits(), 1_000);
}
