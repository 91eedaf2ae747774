//! The public listener: accepts, shakes hands, and serves HTTP/1.1 or HTTP/2 on each connection until told to stop.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::edge::{Client, Edge};
use crate::tracked::Tracked;

/// Time for a client's TLS handshake, and for the head of its next request once that has begun.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause of the accept loop after a failure of the machine, such as no file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often an HTTP/2 client is pinged, and how long it may take to answer.
const PING: Duration = Duration::from_secs(20);
/// Requests at a time on one HTTP/2 connection.
const STREAMS_MAX: u32 = 256;

/// What the listener is told.
pub(crate) struct Listener {
    pub(crate) tcp: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) header_max: u32,
    pub(crate) connections_max: usize,
    pub(crate) drain_delay: Duration,
    pub(crate) drain_timeout: Duration,
}

impl Listener {
    /// Serves until `shutdown` resolves, and for the drain's delay; then lets what is in flight finish, up to the drain's time.
    pub(crate) async fn run(self, edge: Arc<Edge>, shutdown: impl Future<Output = ()>) {
        let Self { tcp, tls, header_max, connections_max, drain_delay, drain_timeout } = self;
        let http = Arc::new(http(header_max));
        let graceful = GracefulShutdown::new();
        let slots = Arc::new(Semaphore::new(connections_max));
        let shutdown = async {
            shutdown.await;
            tokio::time::sleep(drain_delay).await;
        };
        tokio::pin!(shutdown);
        let serve = |stream: TcpStream, address: SocketAddr, slot| {
            let client = Client { address: address.ip(), is_tls: tls.is_some() };
            let (http, tls, watcher) = (Arc::clone(&http), tls.clone(), graceful.watcher());
            let edge = Arc::clone(&edge);
            tokio::spawn(async move {
                let _slot: OwnedSemaphorePermit = slot;
                connection(stream, (edge, client), http, tls, watcher).await;
            });
        };
        loop {
            let slot = tokio::select! {
                biased;
                () = &mut shutdown => break,
                slot = Arc::clone(&slots).acquire_owned() => slot.expect("never closed"),
            };
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = tcp.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            serve(stream, address, slot);
        }
        // Who was let in by the kernel meanwhile would see its request reset.
        while let Some(Ok((stream, address))) = tcp.accept().now_or_never()
            && let Ok(slot) = Arc::clone(&slots).try_acquire_owned()
        {
            serve(stream, address, slot);
        }
        drop(tcp);
        if tokio::time::timeout(drain_timeout, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests in flight did not finish in time and are cut off");
        }
    }
}

type Http = Builder<TokioExecutor>;
/// Who answers, and whom.
type Serves = (Arc<Edge>, Client);
type Watcher = hyper_util::server::graceful::Watcher;

fn http(header_max: u32) -> Http {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(usize::try_from(header_max).expect("fits"));
    http.http2()
        .timer(TokioTimer::new())
        .max_header_list_size(header_max)
        .max_concurrent_streams(STREAMS_MAX)
        // For WebSockets (RFC 8441).
        .enable_connect_protocol()
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    http
}

async fn connection(
    stream: TcpStream,
    edge: Serves,
    http: Arc<Http>,
    tls: Option<TlsAcceptor>,
    watcher: Watcher,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let Some(tls) = tls else { return serve(stream, edge, http, watcher).await };
    match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve(stream, edge, http, watcher).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve<S>(stream: S, (edge, client): Serves, http: Arc<Http>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let edge = Arc::clone(&edge);
        async move { Ok::<_, Infallible>(answer(&edge, request, client).await) }
    });
    let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a public connection broke");
    }
}

/// Answers. The last answer on a connection of HTTP/1.1 says so, so that its client does not use it again: HTTP/2 has a message for it.
async fn answer(edge: &Arc<Edge>, request: Request<Incoming>, client: Client) -> Response<Tracked> {
    let is_first_version = request.version() <= Version::HTTP_11;
    let mut response = Arc::clone(edge).handle(request, client).await;
    if is_first_version && edge.is_draining() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
