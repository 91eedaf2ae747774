//! WebSockets to servers: the handshake of RFC 6455 over HTTP/1.1, then messages between the connection and two bodies, as
//! [`holdfast_rpc::SocketReader`] reads them. It connects where `fetch` may, and nowhere else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use holdfast_js::{JsError, Redirect};
use holdfast_rpc::{
    Body, BodyError, NO_CODE, SocketFrame, SocketReader, SocketWriter, socket_pipe, whole_body,
};
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tungstenite::protocol::frame::Frame;

use crate::body::Patient;
use crate::fetch::{self, FetchFrom, Fetched};
use crate::frames::{Ear, Said, Speaker, Stalled, Unheard, close_frame, message_frame, pass_on, say};
use crate::{Outbound, fields};

/// What every server adds to the key (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// KiB for messages that are not whole yet or that nobody has taken yet, of all sockets of a process together, beyond 64 KiB of
/// each: 128 MiB.
const MEMORY_KIB: usize = 128 << 10;
/// How often a server is pinged; one that says nothing for twice as long is gone.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long a server has to answer a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Notes between the two directions. Pongs beyond it are left out.
const NOTES_MAX: usize = 16;
/// Whoever held the socket is gone, or has nothing more to say.
const GOING_AWAY: u16 = 1001;

static MEMORY: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MEMORY_KIB)));

impl Outbound {
    /// Asks whoever is to answer a request for a WebSocket. Static files have none.
    ///
    /// # Errors
    /// As [`Outbound::open_socket`].
    pub async fn open_socket_from(
        &self,
        from: FetchFrom,
        request: Request<Body>,
    ) -> Result<Fetched, JsError> {
        match from {
            FetchFrom::Server => self.open_socket(request).await,
            FetchFrom::Assets(_) => {
                let request = request.map(|_| whole_body(Bytes::new()));
                self.fetch_from(from, request, Redirect::Manual).await
            }
        }
    }

    /// Asks the server that a request's URL names for a WebSocket. Where the answer has status 101 its body is what the server
    /// says, and the request's body is said to it; any other answer is an ordinary one. Redirects are not followed. Dropping
    /// either body closes the socket.
    ///
    /// # Errors
    /// As [`Outbound::fetch`]; an answer of status 101 that is none of this handshake.
    pub async fn open_socket(&self, request: Request<Body>) -> Result<Fetched, JsError> {
        let timeout = self.inner.options.connect_timeout + self.inner.options.response_timeout;
        let url = request.uri().to_string();
        let opened = tokio::time::timeout(timeout, self.shake_hands(request)).await;
        opened.unwrap_or_else(|_| {
            Err(JsError::new(format!("fetch of `{url}` failed: no answer came within {timeout:?}")))
        })
    }

    async fn shake_hands(&self, request: Request<Body>) -> Result<Fetched, JsError> {
        let (parts, said) = request.into_parts();
        let url = fetch::parse(&parts.uri.to_string())?;
        let failed = |reason: String| {
            JsError::new(format!("fetch of `{}` failed: {reason}", fetch::without_query(&url)))
        };
        let connected = self.inner.sockets.clone().open(parts.uri.clone()).await;
        let io = connected.map_err(|error| fetch::not_connected(&url, &error))?;
        let (mut sender, connection) =
            http1::handshake(io).await.map_err(|error| failed(error.to_string()))?;
        let connection = tokio::spawn(connection.with_upgrades());
        let key = key();
        let asked = ask(&parts.uri, parts.headers, &key);
        let offered = protocols(asked.headers());
        let mut answer = sender.send_request(asked).await.map_err(|error| failed(error.to_string()))?;
        let text = fetch::without_fragment(url.clone());
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let (mut head, body) = answer.into_parts();
            fields::strip_hop_by_hop(&mut head.headers);
            let body = Patient::new(body, self.inner.options.idle_timeout).boxed_unsync();
            return Ok(Fetched { response: Response::from_parts(head, body), url: text, redirected: false });
        }
        if let Err(reason) = check(answer.headers(), &key, &offered) {
            connection.abort();
            return Err(failed(reason.to_owned()));
        }
        let upgraded = hyper::upgrade::on(&mut answer).await.map_err(|error| failed(error.to_string()))?;
        let (writer, body) = socket_pipe();
        tokio::spawn(run(TokioIo::new(upgraded), SocketReader::new(said), writer));
        let (mut head, _) = answer.into_parts();
        fields::strip_hop_by_hop(&mut head.headers);
        Ok(Fetched { response: Response::from_parts(head, body), url: text, redirected: false })
    }
}

/// 16 random bytes in base64.
fn key() -> HeaderValue {
    let mut key = [0; 16];
    getrandom::fill(&mut key).expect("the system has random bytes");
    HeaderValue::try_from(STANDARD.encode(key)).expect("base64 is plain text")
}

fn ask(uri: &Uri, mut headers: HeaderMap, key: &HeaderValue) -> Request<Empty<Bytes>> {
    fields::clean_request(&mut headers);
    headers.remove(CONTENT_LENGTH);
    headers.remove(SEC_WEBSOCKET_EXTENSIONS);
    if let Some(host) =
        uri.authority().and_then(|host| HeaderValue::try_from(without_user(host.as_str())).ok())
    {
        headers.insert(HOST, host);
    }
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(SEC_WEBSOCKET_KEY, key.clone());
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::GET;
    // An origin server is asked by path.
    *request.uri_mut() = uri.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
    *request.headers_mut() = headers;
    request
}

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The protocols that the fields of a request offer, or those of an answer choose.
fn protocols(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().map(HeaderValue::as_bytes);
    let names = texts.flat_map(|text| text.split(|byte| *byte == b','));
    names.map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect()
}

/// Whether an answer completes the handshake, in which these protocols were offered.
fn check(headers: &HeaderMap, key: &HeaderValue, offered: &[String]) -> Result<(), &'static str> {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(GUID);
    let wanted = STANDARD.encode(hash.finalize());
    let is_upgrade =
        headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_upgrade || headers.get(SEC_WEBSOCKET_ACCEPT).is_none_or(|value| value != wanted.as_str()) {
        return Err("the server's answer does not complete a WebSocket handshake");
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        return Err("the server wants an extension of WebSockets that was not offered");
    }
    match &protocols(headers)[..] {
        [] => Ok(()),
        [chosen] if offered.contains(chosen) => Ok(()),
        _ => Err("the server did not choose one protocol of those that were offered"),
    }
}

/// What the direction from the server tells the other.
enum Note {
    Ping(Bytes),
    /// The server has closed, or is gone.
    Over,
    Invalid {
        code: u16,
        reason: &'static str,
    },
}

/// Carries messages both ways until both ends have closed, or one is gone. The directions are parts of one task, so that a slow
/// reader of one holds back nothing of the other.
async fn run<S>(io: S, said: SocketReader, writer: SocketWriter)
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (read, write) = tokio::io::split(io);
    let (notes, noted) = mpsc::channel(NOTES_MAX);
    let is_heard = AtomicBool::new(true);
    let mut listening = std::pin::pin!(listen(read, writer, notes, &is_heard));
    let mut speaking = std::pin::pin!(Speaking { write, said, noted, is_heard: &is_heard }.run());
    let mut is_listening = true;
    loop {
        tokio::select! {
            biased;
            () = &mut listening, if is_listening => is_listening = false,
            () = &mut speaking => return,
        }
    }
}

/// Server to isolate, until the server closes or is gone.
async fn listen<S: AsyncRead>(
    mut read: ReadHalf<S>,
    writer: SocketWriter,
    notes: mpsc::Sender<Note>,
    is_heard: &AtomicBool,
) {
    let mut ear = Ear::new(Speaker::Server, Arc::clone(&MEMORY));
    let last = loop {
        let frame = match ear.hear(&mut read, is_heard).await {
            Ok(Said::Text(text)) => SocketFrame::Text(text),
            Ok(Said::Binary(bytes)) => SocketFrame::Binary(bytes),
            Ok(Said::Ping(payload)) => {
                // A server that pings faster than it takes the answers gets fewer of them.
                let _ = notes.try_send(Note::Ping(payload));
                continue;
            }
            Ok(Said::Pong) => continue,
            Ok(Said::Close { code, reason }) => {
                writer.push(&SocketFrame::Close { code, reason });
                writer.end();
                break Note::Over;
            }
            // Dropped without an end, the body breaks: that is how the isolate hears of it.
            Err(Unheard::Lost) => break Note::Over,
            Err(Unheard::Invalid { code, reason }) => break Note::Invalid { code, reason },
        };
        pass_on(&writer, &frame, ear.give_room(), is_heard).await;
    };
    // Nobody may be there to hear it.
    let _ = notes.send(last).await;
}

struct Speaking<'a, S> {
    write: WriteHalf<S>,
    said: SocketReader,
    noted: mpsc::Receiver<Note>,
    is_heard: &'a AtomicBool,
}

impl<S: AsyncWrite> Speaking<'_, S> {
    async fn run(mut self) {
        let _ = self.carry().await;
        // The end of the connection says the rest.
        let _ = timeout(CLOSE_TIMEOUT, self.write.shutdown()).await;
    }

    /// Isolate to server, until both have closed, or the server is gone.
    async fn carry(&mut self) -> Result<(), Stalled> {
        let mut ping_at = Instant::now() + PING_INTERVAL;
        let mut is_closed_by_server = false;
        loop {
            tokio::select! {
                biased;
                note = self.noted.recv(), if !is_closed_by_server => match note {
                    Some(Note::Ping(payload)) => self.send(Frame::pong(payload)).await?,
                    Some(Note::Invalid { code, reason }) => return self.send(close_frame(code, reason)).await,
                    // What the isolate says to that is its own close, or nothing.
                    Some(Note::Over) | None => {
                        is_closed_by_server = true;
                        ping_at = Instant::now() + CLOSE_TIMEOUT;
                    }
                },
                () = sleep_until(ping_at) => {
                    if is_closed_by_server {
                        return self.send(close_frame(NO_CODE, "")).await;
                    }
                    if !self.is_heard.swap(false, Ordering::Relaxed) {
                        return Ok(());
                    }
                    ping_at = Instant::now() + PING_INTERVAL;
                    self.send(Frame::ping(Bytes::new())).await?;
                }
                said = self.said.next() => return match said {
                    Ok(Some(SocketFrame::Text(text))) => {
                        self.send(message_frame(true, text)).await?;
                        continue;
                    }
                    Ok(Some(SocketFrame::Binary(bytes))) => {
                        self.send(message_frame(false, bytes)).await?;
                        continue;
                    }
                    Ok(Some(SocketFrame::Close { code, reason })) => {
                        self.send(close_frame(code, &reason)).await?;
                        self.answered(is_closed_by_server).await;
                        Ok(())
                    }
                    Ok(None) | Err(_) => self.leave(is_closed_by_server, said.err()).await,
                },
            }
        }
    }

    /// The isolate has nothing more to say: it answers no close, or is gone.
    async fn leave(&mut self, is_closed: bool, lost: Option<BodyError>) -> Result<(), Stalled> {
        let (code, reason) = match (is_closed, lost) {
            (true, _) => (NO_CODE, ""),
            (false, None) => (NO_CODE, ""),
            (false, Some(_)) => (GOING_AWAY, "the client has gone"),
        };
        self.send(close_frame(code, reason)).await?;
        self.answered(is_closed).await;
        Ok(())
    }

    /// Waits until the server has answered a close, so that what it still sends does not cut the close off.
    async fn answered(&mut self, is_closed: bool) {
        if is_closed {
            return;
        }
        let answer = async {
            while let Some(note) = self.noted.recv().await {
                if !matches!(note, Note::Ping(_)) {
                    return;
                }
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, answer).await;
    }

    async fn send(&mut self, frame: Frame) -> Result<(), Stalled> {
        say(&mut self.write, frame, Speaker::Client).await
    }
}
