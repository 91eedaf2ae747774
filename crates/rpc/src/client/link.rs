//! One HTTP/2 connection to one session, for calls whose request is one message, and what is known of one that failed.
//! A call is written and answered by the task that makes it and the connection's own: none is spawned for it.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::PingPong;
use h2::client::{Builder, Connection, SendRequest};
use holdfast_telemetry::trace_context;
use http::{HeaderValue, Request, Uri};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Peer;
use super::channel::{self, ChannelError};
use super::pool::Pooled;
use crate::grpc;
use crate::identity::{ALPN_H2, ProcessIdentity};
use crate::limits;
use crate::ping::silence;

static CALL: LazyLock<Uri> =
    LazyLock::new(|| Uri::from_static("https://cellnode.holdfast.internal/holdfast.v1.CellService/Call"));

/// A connection. Clones share it; it closes when the last one is dropped and nothing is in flight.
#[derive(Clone)]
pub(super) struct Link {
    sender: SendRequest<Bytes>,
}

impl Pooled for Link {
    async fn open(peer: &Peer, identity: &ProcessIdentity) -> Result<Self, String> {
        let tls = channel::shake_hands(peer, identity, &[ALPN_H2]).await?;
        let (sender, mut connection) = Builder::new()
            .enable_push(false)
            .initial_window_size(limits::STREAM_WINDOW_LEN)
            .initial_connection_window_size(limits::CONNECTION_WINDOW_LEN)
            .initial_max_send_streams(limits::STREAMS_BEFORE_SETTINGS)
            // The guard is against strangers. Here the peer is a session of the fleet, and a caller that goes away in the
            // middle of its answer must not add to a count that ends everybody's connection.
            .max_local_error_reset_streams(None)
            .handshake(tls)
            .await
            .map_err(|e| format!("HTTP/2: {e}"))?;
        let pings = connection.ping_pong().expect("asked for once");
        let peer = peer.clone();
        tokio::spawn(async move {
            if let Err(reason) = drive(connection, pings).await {
                tracing::debug!(reason, %peer, "an internal connection ended");
            }
        });
        Ok(Self { sender })
    }

    fn is_closed(&self) -> bool {
        // A clone waits for no stream of its own, so this only tells whether the connection still opens new ones.
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        matches!(self.sender.clone().poll_ready(&mut cx), std::task::Poll::Ready(Err(_)))
    }
}

/// Moves bytes until the connection ends or the peer stops answering pings. The tasks that are ready when there is something
/// to move go first: what they send leaves with it, in one system call instead of one each.
async fn drive(connection: Connection<TlsStream<TcpStream>>, pings: PingPong) -> Result<(), String> {
    let mut connection = pin!(connection);
    let mut silence = pin!(silence(pings));
    let mut has_waited = false;
    poll_fn(|cx| {
        has_waited = !has_waited;
        if has_waited {
            // A task that wakes itself is put behind those that are ready.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(ended.map_err(|e| e.to_string()));
        }
        silence.as_mut().poll(cx).map(|()| Err("the peer does not answer pings".to_owned()))
    })
    .await
}

impl Link {
    /// Sends one message and waits for the head of the answer. Dropping the future, or the body it returns, cancels the
    /// call.
    pub(super) async fn call(
        &self,
        message: Bytes,
        wait: Duration,
    ) -> Result<http::Response<h2::RecvStream>, ChannelError> {
        let mut sender = self.sender.clone();
        let never_sent = |error: h2::Error| ChannelError::NeverSent(error.to_string());
        poll_fn(|cx| sender.poll_ready(cx)).await.map_err(never_sent)?;
        // What fails here was not queued: the connection was closed, or is going away.
        let (answer, mut body) = sender.send_request(head(wait), false).map_err(never_sent)?;
        drop(sender);
        body.send_data(message, true).map_err(ChannelError::from)?;
        answer.await.map_err(ChannelError::from)
    }
}

fn head(wait: Duration) -> Request<()> {
    let mut request = grpc::request(CALL.clone());
    let headers = request.headers_mut();
    headers.insert(grpc::TIMEOUT, timeout(wait));
    let span = tracing::Span::current();
    if !span.is_disabled() {
        trace_context::inject(&span, headers);
    }
    request
}

/// As the protocol spells a time: at most eight digits and a unit.
fn timeout(wait: Duration) -> HeaderValue {
    const DIGITS_MAX: u128 = 99_999_999;
    let micros = wait.as_micros();
    let text = match micros {
        0..=DIGITS_MAX => format!("{micros}u"),
        _ => format!("{}m", wait.as_millis().min(DIGITS_MAX)),
    };
    let mut value = HeaderValue::try_from(text).expect("digits and a letter");
    // Each call has its own: it must not push what all calls share out of the peer's table of headers.
    value.set_sensitive(true);
    value
}
