//! TCP connections against servers of ours.

use std::time::Duration;

use bytes::Bytes;
use holdfast_js::{ConnectTo, JsError, OutgoingBody, OutgoingConnection, Security};
use holdfast_rpc::{Body, BodyError};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::support::{Server, allowed, outbound, outbound_trusting};
use crate::{Connected, Outbound, OutboundOptions};

const SOON: Duration = Duration::from_secs(10);

/// What an isolate writes.
struct Said(mpsc::Sender<Result<Frame<Bytes>, BodyError>>);

impl Said {
    async fn say(&self, bytes: impl Into<Bytes>) {
        self.0.send(Ok(Frame::data(bytes.into()))).await.unwrap();
    }

    async fn abort(self) {
        self.0.send(Err("given up".into())).await.unwrap();
    }
}

fn said() -> (Said, Body) {
    let (sender, mut receiver) = mpsc::channel(1);
    let frames = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
    (Said(sender), StreamBody::new(frames).boxed_unsync())
}

async fn open(client: &Outbound, to: ConnectTo, security: Security) -> Result<(Said, Connected), JsError> {
    let (says, body) = said();
    let connection = OutgoingConnection { to, security, body: OutgoingBody::None };
    Ok((says, client.open_connection(connection, body).await?))
}

fn to(listener: &TcpListener) -> ConnectTo {
    ConnectTo::Address { hostname: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() }
}

/// A connection and the server's end of it.
async fn pair(security: Security) -> (Said, Connected, TcpStream, Outbound) {
    let client = outbound(allowed());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (says, connected) = open(&client, to(&listener), security).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (says, connected, server, client)
}

async fn hear(connected: &mut Connected) -> Option<Result<Bytes, String>> {
    let frame = timeout(SOON, connected.heard.frame()).await.expect("something comes")?;
    Some(frame.map(|frame| frame.into_data().unwrap()).map_err(|error| error.to_string()))
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_way_ends_alone() {
    let (says, mut connected, mut server, _) = pair(Security::Off).await;
    assert!(connected.key.is_empty());
    says.say("hello").await;
    let mut buffer = [0; 5];
    server.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"hello");
    drop(says);
    assert_eq!(server.read(&mut buffer).await.unwrap(), 0, "what is written has ended");
    server.write_all(b"still here").await.unwrap();
    assert_eq!(hear(&mut connected).await, Some(Ok("still here".into())));
    drop(server);
    assert_eq!(hear(&mut connected).await, None);
}

#[tokio::test]
async fn what_is_broken_off_closes_the_connection() {
    let (says, mut connected, mut server, _) = pair(Security::Off).await;
    says.say("half").await;
    says.abort().await;
    let mut all = Vec::new();
    // A reset tells it, too.
    let _ = timeout(SOON, server.read_to_end(&mut all)).await.expect("it is closed");
    assert_eq!(all, b"half");
    assert_eq!(hear(&mut connected).await, Some(Err("the connection was closed".to_owned())));
}

#[tokio::test]
async fn a_reset_breaks_what_is_heard_and_is_told_to_whoever_writes() {
    let (says, mut connected, server, _) = pair(Security::Off).await;
    server.set_zero_linger().unwrap();
    drop(server);
    assert!(hear(&mut connected).await.unwrap().is_err());
    timeout(SOON, says.0.closed()).await.expect("nobody takes more");
}

#[tokio::test]
async fn a_server_that_does_not_read_holds_the_writer_back_and_is_heard_all_the_same() {
    let (says, mut connected, mut server, _) = pair(Security::Off).await;
    let piece = Bytes::from(vec![7; 1 << 20]);
    let mut pieces = 0_u64;
    while timeout(Duration::from_millis(300), says.0.reserve()).await.is_ok() {
        says.say(piece.clone()).await;
        pieces += 1;
        assert!(pieces < 64, "the system's buffers are smaller");
    }
    server.write_all(b"meanwhile").await.unwrap();
    assert_eq!(hear(&mut connected).await, Some(Ok("meanwhile".into())));
    drop(says);
    let mut all = Vec::new();
    timeout(SOON, server.read_to_end(&mut all)).await.unwrap().unwrap();
    assert_eq!(all.len() as u64, pieces << 20);
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_the_server_back() {
    let (says, mut connected, mut server, _) = pair(Security::Off).await;
    let piece = vec![7; 1 << 20];
    let mut written = 0_usize;
    while let Ok(len) = timeout(Duration::from_millis(300), server.write(&piece)).await {
        written += len.unwrap();
        assert!(written < 64 << 20, "the system's buffers are smaller");
    }
    drop((says, server));
    let mut heard = 0;
    while let Some(bytes) = hear(&mut connected).await {
        let len = bytes.unwrap().len();
        assert!(len <= 16 << 10);
        heard += len;
    }
    assert_eq!(heard, written);
}

#[tokio::test]
async fn tls_is_with_a_server_that_the_roots_vouch_for() {
    let server = Server::start_tls().await;
    let port = server.address.port();
    let to = |hostname: &str| ConnectTo::Address { hostname: hostname.to_owned(), port };
    let trusting = outbound_trusting(&server, allowed());
    let (says, mut connected) = open(&trusting, to("localhost"), Security::On).await.unwrap();
    says.say("GET /to/0 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let mut text = String::new();
    while let Some(Ok(bytes)) = hear(&mut connected).await {
        text += &String::from_utf8_lossy(&bytes);
    }
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("arrived GET"), "{text}");
    let other = open(&trusting, to("127.0.0.1"), Security::On).await.err().unwrap();
    assert!(other.message.contains("the TLS handshake with `127.0.0.1` failed"), "{other}");
    let wary = open(&outbound(allowed()), to("localhost"), Security::On).await.err().unwrap();
    assert!(wary.message.contains("the TLS handshake with `localhost` failed"), "{wary}");
}

#[tokio::test]
async fn tls_begins_on_a_connection_once_all_before_it_is_written() {
    let tls = Server::start_tls().await;
    let client = outbound_trusting(&tls, allowed());
    // A server that is told in the clear, then passes on to the other.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tls.address;
    let plain = to(&listener);
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut asked = vec![0; 300_000];
        near.read_exact(&mut asked).await.unwrap();
        let mut far = TcpStream::connect(address).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    });
    let (says, connected) = open(&client, plain, Security::StartTls).await.unwrap();
    let key = String::from_utf8(connected.key.to_vec()).unwrap();
    says.say(vec![1; 200_000]).await;
    says.say(vec![1; 100_000]).await;
    let upgrade = ConnectTo::Upgraded { key, written: 300_000, server_name: "localhost".to_owned() };
    let (secretly, mut secure) =
        timeout(SOON, open(&client, upgrade.clone(), Security::On)).await.unwrap().unwrap();
    secretly.say("GET /to/0 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(hear(&mut secure).await.unwrap().unwrap().starts_with(b"HTTP/1.1 200"));
    let again = open(&client, upgrade, Security::On).await.err().unwrap();
    assert_eq!(again.message, "the connection was lost before TLS could begin");
    assert!(client.inner.upgrades.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_connection_that_is_over_cannot_be_upgraded_and_leaves_nothing() {
    let (says, connected, server, client) = pair(Security::StartTls).await;
    assert_eq!(client.inner.upgrades.lock().unwrap().len(), 1);
    drop((says, connected, server));
    let is_empty = async {
        while !client.inner.upgrades.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, is_empty).await.unwrap();
}

#[tokio::test]
async fn what_may_not_be_reached_is_refused_before_a_byte_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused =
        open(&outbound(OutboundOptions::default()), to(&listener), Security::Off).await.err().unwrap();
    assert_eq!(refused.name, "TypeError");
    assert!(refused.message.contains("is not a public address"), "{refused}");
    assert!(refused.message.contains("--allow-outbound"), "{refused}");
    let mail = ConnectTo::Address { hostname: "127.0.0.1".to_owned(), port: 25 };
    let refused = open(&outbound(allowed()), mail, Security::Off).await.err().unwrap();
    assert_eq!(refused.to_string(), "TypeError: Connections to port 25 are prohibited");
    let nobody = ConnectTo::Address { hostname: "127.0.0.1".to_owned(), port: 1 };
    let refused = open(&outbound(allowed()), nobody, Security::Off).await.err().unwrap();
    assert!(refused.to_string().starts_with("Error: cannot connect to `127.0.0.1`"), "{refused}");
}
