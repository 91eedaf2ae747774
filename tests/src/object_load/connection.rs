//! One connection with one request in flight.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

/// What a counter answers.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Counted {
    /// What is stored.
    pub(super) value: u64,
    /// Requests since the object came into memory, this one included.
    pub(super) seen: u64,
}

pub(super) struct Connection(SendRequest<Empty<Bytes>>);

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Sends one request and reads its whole answer.
    pub(super) async fn send(&mut self, method: Method, path: &str) -> Result<Bytes> {
        let request =
            Request::builder().method(method).uri(path).header("host", "bench").body(Empty::new())?;
        self.0.ready().await?;
        let response = self.0.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "`{path}` answered {status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }

    /// Asks a counter.
    pub(super) async fn count(&mut self, method: Method, path: &str) -> Result<Counted> {
        let body = self.send(method, path).await?;
        serde_json::from_slice(&body)
            .with_context(|| format!("`{path}` answered `{}`", String::from_utf8_lossy(&body)))
    }
}
