//! The floor of reads: a bare axum server that sends back what it got.

use std::net::SocketAddr;

use anyhow::Result;
use axum::Router;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Starts it; it ends when the handle is aborted.
pub(super) async fn start() -> Result<(SocketAddr, JoinHandle<()>)> {
    serve(Router::new().route("/echo", post(|body: Bytes| std::future::ready(body)))).await
}

/// Serves a router on a port of loopback until the handle is aborted.
pub(super) async fn serve(router: Router) -> Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let server = tokio::spawn(async move {
        let _ = axum::serve(listener, router).await;
    });
    Ok((address, server))
}
