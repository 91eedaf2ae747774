//! One HTTP/2 connection to one session for what streams and for what is seldom asked, by hyper and tonic; and what is
//! known of a request that failed on a connection.

use std::error::Error as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use holdfast_telemetry::trace_context;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::Service;

use super::Peer;
use super::pool::Pooled;
use super::upload::{Held, Outgoing};
use crate::identity::{ALPN_H2, ALPN_SOCKETS, ProcessIdentity, Role, server_name};
use crate::limits;

/// A request failed before there was an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChannelError {
    /// Nothing of it was handed to HTTP/2, or the peer refused the stream unprocessed.
    #[error("{0}")]
    NeverSent(String),
    /// Anything else.
    #[error("{0}")]
    MayHaveRun(String),
}

/// A connection. Clones share it; it closes when the last one is dropped and nothing is in flight.
#[derive(Clone)]
pub(super) struct Channel {
    sender: SendRequest<Outgoing>,
}

/// Connects, with the session pinned by the name that its certificate must have. `protocols` are what may be spoken, the
/// best first.
pub(super) async fn shake_hands(
    peer: &Peer,
    identity: &ProcessIdentity,
    protocols: &[&[u8]],
) -> Result<TlsStream<TcpStream>, String> {
    let tcp = TcpStream::connect(&peer.address).await.map_err(|e| format!("connect: {e}"))?;
    tcp.set_nodelay(true).map_err(|e| format!("TCP_NODELAY: {e}"))?;
    let name = ServerName::try_from(server_name(Role::Cellnode, peer.session))
        .expect("32 hex digits and fixed labels are a DNS name");
    let tls = TlsConnector::from(identity.client_config())
        .with_alpn(protocols.iter().map(|protocol| protocol.to_vec()).collect())
        .connect(name, tcp)
        .await
        .map_err(|e| format!("TLS: {e}"))?;
    match tls.get_ref().1.alpn_protocol() {
        Some(spoken) if protocols.contains(&spoken) => Ok(tls),
        _ => Err("TLS: the peer does not speak HTTP/2".into()),
    }
}

/// A connection for WebSockets alone: they stay, and none of them may hold up another.
#[derive(Clone)]
pub(super) struct SocketChannel(pub(super) Channel);

impl Pooled for SocketChannel {
    async fn open(peer: &Peer, identity: &ProcessIdentity) -> Result<Self, String> {
        let windows = (limits::SOCKET_WINDOW_LEN, limits::SOCKETS_WINDOW_LEN);
        // A node of an older version takes it as any other connection.
        Channel::open_with(peer, identity, &[ALPN_SOCKETS, ALPN_H2], windows).await.map(Self)
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Pooled for Channel {
    async fn open(peer: &Peer, identity: &ProcessIdentity) -> Result<Self, String> {
        let windows = (limits::STREAM_WINDOW_LEN, limits::CONNECTION_WINDOW_LEN);
        Self::open_with(peer, identity, &[ALPN_H2], windows).await
    }

    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl Channel {
    /// Connects; `windows` are the bytes that the peer may send ahead on one stream and on all.
    async fn open_with(
        peer: &Peer,
        identity: &ProcessIdentity,
        protocols: &[&[u8]],
        windows: (u32, u32),
    ) -> Result<Self, String> {
        let tls = shake_hands(peer, identity, protocols).await?;
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(limits::PING_INTERVAL)
            .keep_alive_timeout(limits::PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(windows.0)
            .initial_connection_window_size(windows.1)
            .handshake(TokioIo::new(tls))
            .await
            .map_err(|e| format!("HTTP/2: {e}"))?;
        let peer = peer.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, %peer, "an internal connection ended");
            }
        });
        Ok(Self { sender })
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node `{}` session {} at {}", self.node, self.session, self.address)
    }
}

impl Service<http::Request<tonic::body::Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = ChannelError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ChannelError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ChannelError>> {
        // A closed connection is found out by sending, which then gives the request back; an error from here would
        // reach the caller as text, and a request that was never sent would count as one that may have run.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<tonic::body::Body>) -> Self::Future {
        trace_context::inject(&tracing::Span::current(), request.headers_mut());
        let held = request.extensions_mut().remove::<Arc<Held>>();
        let request = request.map(|body| Outgoing::new(body, held));
        let answer = self.sender.try_send_request(request);
        Box::pin(async move {
            answer.await.map_err(|mut failed| {
                let returned = failed.take_message().is_some();
                let error = failed.into_error();
                let h2 = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
                if returned || h2.is_some_and(is_unprocessed) {
                    ChannelError::NeverSent(describe(&error))
                } else {
                    ChannelError::MayHaveRun(describe(&error))
                }
            })
        })
    }
}

impl From<h2::Error> for ChannelError {
    fn from(error: h2::Error) -> Self {
        if is_unprocessed(&error) {
            Self::NeverSent(error.to_string())
        } else {
            Self::MayHaveRun(error.to_string())
        }
    }
}

/// Whether the peer said that it did not and will not process the request: `REFUSED_STREAM` (RFC 9113, 8.7), or a
/// `GOAWAY` that names an earlier stream as its last (6.8). h2 fails a stream with the peer's `GOAWAY` only when the
/// stream is above that last one or was not opened any more; those below it end with the connection's own error. A test
/// holds it to that.
fn is_unprocessed(error: &h2::Error) -> bool {
    let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    error.is_remote() && (is_refused || error.is_go_away())
}

fn describe(error: &hyper::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
