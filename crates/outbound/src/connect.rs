//! Connections to servers. The name is looked up here and the addresses are judged here, so that what is judged is what is
//! connected to: a name that changes its address in between changes nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use holdfast_rpc::Body;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::OutboundOptions;
use crate::addresses::Policy;

/// Idle connections to one server.
const IDLE_PER_HOST_MAX: usize = 32;
/// A connection that nobody used for this long is closed: many servers close theirs after a minute or two.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// An address that does not answer gets at least this much of the time, however many there are.
const ATTEMPT_MIN: Duration = Duration::from_secs(1);

/// A pool of connections to servers.
pub(crate) type Client = legacy::Client<Connector, Body>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The URL names no server.
    #[error("the URL names no host")]
    NoHost,
    /// The name has no address.
    #[error("the name `{0}` cannot be looked up: {1}")]
    Lookup(String, io::Error),
    /// All its addresses are refused.
    #[error(
        "`{host}` is at {address}, which is not a public address, or this machine's own: an operator may allow it with `--allow-outbound`"
    )]
    Refused {
        /// As the URL names it.
        host: String,
        /// One of them.
        address: IpAddr,
    },
    /// No address answers.
    #[error("cannot connect to `{0}`: {1}")]
    Unreachable(String, io::Error),
    /// The handshake failed.
    #[error("the TLS handshake with `{0}` failed: {1}")]
    Tls(String, io::Error),
    /// It took too long.
    #[error("connecting took longer than {0:?}")]
    Late(Duration),
}

/// Connects to allowed addresses.
#[derive(Clone)]
pub(crate) struct Connector {
    policy: Arc<Policy>,
    tls: TlsConnector,
    timeout: Duration,
}

/// The certificate authorities that the machine trusts.
pub(crate) fn machine_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate authority of this machine cannot be read");
    }
    let mut roots = RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(added, ignored, "certificate authorities for `fetch`");
    if added == 0 {
        tracing::warn!(
            "this machine trusts no certificate authority, so `fetch` of `https:` fails: install ca-certificates"
        );
    }
    roots
}

/// What connects to servers that `roots` vouch for, and offers these protocols.
pub(crate) fn connector(
    options: &OutboundOptions,
    roots: RootCertStore,
    protocols: &[&[u8]],
) -> Result<Connector, rustls::Error> {
    let mut tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Connector {
        policy: Arc::new(Policy::new(options.allow.clone())),
        tls: TlsConnector::from(Arc::new(tls)),
        timeout: options.connect_timeout,
    })
}

/// A client that trusts `roots`.
pub(crate) fn client(options: &OutboundOptions, roots: RootCertStore) -> Result<Client, rustls::Error> {
    let connector = connector(options, roots, &[b"h2", b"http/1.1"])?;
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
        .build(connector))
}

impl Connector {
    /// A connection of its own.
    pub(crate) async fn open(self, uri: Uri) -> Result<Stream, ConnectError> {
        self.connect(uri).await
    }

    /// A connection without TLS.
    pub(crate) async fn open_tcp(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let host = without_brackets(host);
        self.in_time(self.reach(host, port)).await
    }

    /// TLS on a connection, with a server of this name.
    pub(crate) async fn secure(
        &self,
        host: &str,
        tcp: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ConnectError> {
        self.in_time(self.shake_hands(without_brackets(host), tcp)).await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        tokio::time::timeout(self.timeout, work).await.map_err(|_| ConnectError::Late(self.timeout))?
    }

    async fn connect(self, uri: Uri) -> Result<Stream, ConnectError> {
        self.in_time(self.connect_untimed(uri)).await
    }

    async fn connect_untimed(&self, uri: Uri) -> Result<Stream, ConnectError> {
        let is_tls = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or(ConnectError::NoHost)?;
        let host = without_brackets(host);
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tcp = self.reach(host, port).await?;
        if !is_tls {
            return Ok(Stream::Plain(TokioIo::new(tcp)));
        }
        Ok(Stream::Tls(TokioIo::new(Box::new(self.shake_hands(host, tcp).await?))))
    }

    async fn shake_hands(&self, host: &str, tcp: TcpStream) -> Result<TlsStream<TcpStream>, ConnectError> {
        let failed = |error: io::Error| ConnectError::Tls(host.to_owned(), error);
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(io::Error::other(error)))?;
        self.tls.connect(name, tcp).await.map_err(failed)
    }

    /// A connection to the first allowed address that answers.
    async fn reach(&self, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
        let found = tokio::net::lookup_host((host, port))
            .await
            .map_err(|error| ConnectError::Lookup(host.to_owned(), error))?;
        let (allowed, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
            found.partition(|address| self.policy.allows(address.ip()));
        if allowed.is_empty() {
            return Err(match refused.first() {
                Some(address) => ConnectError::Refused { host: host.to_owned(), address: address.ip() },
                None => ConnectError::Lookup(host.to_owned(), io::Error::other("it has no address")),
            });
        }
        let share = self.timeout / u32::try_from(allowed.len()).unwrap_or(u32::MAX);
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for address in allowed {
            match tokio::time::timeout(share.max(ATTEMPT_MIN), TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "cannot set TCP_NODELAY");
                    }
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(ConnectError::Unreachable(host.to_owned(), last))
    }
}

/// An IPv6 address as the system reads it.
fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Stream, ConnectError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection.
pub(crate) enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(TokioIo<Box<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Plain(_) => Connected::new(),
            Self::Tls(stream) if stream.inner().get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            Self::Tls(_) => Connected::new(),
        }
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
