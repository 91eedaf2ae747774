//! One HTTP/2 connection to one process of a follower for what is seldom asked, pinned by the name that its certificate must
//! have.

use std::pin::Pin;
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

use super::FollowerPeer;
use crate::identity::{ProcessIdentity, Role, server_name};
use crate::limits;

#[derive(Clone)]
pub(super) struct Connection {
    sender: SendRequest<tonic::body::Body>,
}

pub(super) async fn shake_hands(
    peer: &FollowerPeer,
    identity: &ProcessIdentity,
) -> Result<TlsStream<TcpStream>, String> {
    let tcp = TcpStream::connect(&peer.address).await.map_err(|e| format!("connect: {e}"))?;
    tcp.set_nodelay(true).map_err(|e| format!("TCP_NODELAY: {e}"))?;
    let name = ServerName::try_from(server_name(Role::Follower, peer.session))
        .expect("32 hex digits and fixed labels are a DNS name");
    TlsConnector::from(identity.client_config()).connect(name, tcp).await.map_err(|e| format!("TLS: {e}"))
}

async fn open(peer: &FollowerPeer, identity: &ProcessIdentity) -> Result<Connection, String> {
    let tls = shake_hands(peer, identity).await?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::PING_INTERVAL)
        .keep_alive_timeout(limits::PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(limits::APPEND_WINDOW_LEN)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_LEN)
        .max_frame_size(limits::APPEND_HTTP_FRAME_LEN)
        .handshake(TokioIo::new(tls))
        .await
        .map_err(|e| format!("HTTP/2: {e}"))?;
    let peer = peer.clone();
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, %peer, "a connection to a follower ended");
        }
    });
    Ok(Connection { sender })
}

/// What connecting comes to in the time that it may take, or why the peer cannot be reached.
pub(super) async fn reached<T>(
    peer: &FollowerPeer,
    connecting: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let limit = limits::CONNECT_TIMEOUT;
    match tokio::time::timeout(limit, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(reason)) => Err(format!("cannot reach {peer}: {reason}")),
        Err(_) => Err(format!("cannot reach {peer}: no connection within {limit:?}")),
    }
}

impl Connection {
    pub(super) async fn open(peer: &FollowerPeer, identity: &ProcessIdentity) -> Result<Self, String> {
        reached(peer, open(peer, identity)).await
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl Service<http::Request<tonic::body::Body>> for Connection {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.sender.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<tonic::body::Body>) -> Self::Future {
        trace_context::inject(&tracing::Span::current(), request.headers_mut());
        Box::pin(self.sender.send_request(request))
    }
}
