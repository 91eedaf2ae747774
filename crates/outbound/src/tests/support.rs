//! A server that answers by path, and clients that may reach it.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use futures::SinkExt as _;
use holdfast_js::Redirect;
use holdfast_routing::{Router, RouterOptions};
use holdfast_rpc::{Body, BodyError, CellClient, ProcessIdentity, Role, identity, whole_body};
use holdfast_types::SessionId;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::body::read_whole;
use crate::{Fetched, Outbound, OutboundOptions};

pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<AtomicUsize>,
    certificate: Option<CertificateDer<'static>>,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::run(None, None).await
    }

    pub(super) async fn start_tls() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate.clone()], key)
                .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self::run(Some(TlsAcceptor::from(Arc::new(config))), Some(certificate)).await
    }

    async fn run(tls: Option<TlsAcceptor>, certificate: Option<CertificateDer<'static>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (tls, count) = (tls.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(tcp).await {
                                serve(stream, address, count).await;
                            }
                        }
                        None => serve(tcp, address, count).await,
                    }
                });
            }
        });
        Self { address, seen, certificate }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Requests so far.
    pub(super) fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

async fn serve<S>(stream: S, address: SocketAddr, count: Arc<AtomicUsize>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Infallible>(answer(request, address).await) }
    });
    let builder = Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, address: SocketAddr) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let redirect = |status: u16, to: &str| {
        Response::builder().status(status).header("location", to).body(whole_body(Bytes::new())).unwrap()
    };
    let mut segments = path.split('/').skip(1);
    match (segments.next().unwrap(), segments.next()) {
        ("echo" | "kept", _) => echo(request).await,
        ("mirror", _) => Response::new(request.into_body().map_err(BodyError::from).boxed_unsync()),
        ("break", _) => {
            let (mut upload, body) = stream();
            tokio::spawn(async move {
                upload.chunk("some").await;
                upload.fail().await;
            });
            Response::new(body)
        }
        ("coded", Some(coding)) => coded(coding),
        ("to", Some("0")) => Response::new(whole_body(format!("arrived {}", request.method()))),
        ("to", Some(count)) => redirect(302, &format!("/to/{}", count.parse::<u32>().unwrap() - 1)),
        ("keep", _) => redirect(307, "kept"),
        ("away", _) => redirect(302, "ftp://example.com/"),
        ("inside", _) => redirect(302, &format!("http://127.0.0.2:{}/echo", address.port())),
        ("socket", kind) => super::websockets::answer(kind.unwrap_or_default().to_owned(), request),
        ("silent", _) => std::future::pending().await,
        ("stalled", _) => {
            let (upload, body) = stream();
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(upload);
            });
            Response::new(body)
        }
        _ => Response::builder().status(StatusCode::NOT_FOUND).body(whole_body(Bytes::new())).unwrap(),
    }
}

async fn echo(request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path_and_query().unwrap();
    let mut seen = format!("{} {path}\n", request.method());
    for (name, value) in request.headers() {
        seen += &format!("{name}: {}\n", value.to_str().unwrap());
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    seen += &format!("\n{}", String::from_utf8_lossy(&body));
    Response::builder()
        .header("x-answer", "yes")
        .header("keep-alive", "timeout=9")
        .body(whole_body(seen))
        .unwrap()
}

fn coded(coding: &str) -> Response<Body> {
    let text = "hello ".repeat(100_000);
    let bytes = match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        }
        _ => b"what nobody here can read".to_vec(),
    };
    Response::builder().header("content-encoding", coding).body(whole_body(bytes)).unwrap()
}

/// The writing end of a streamed body.
pub(super) struct Upload(futures::channel::mpsc::Sender<Result<Frame<Bytes>, BodyError>>);

impl Upload {
    pub(super) async fn chunk(&mut self, text: &'static str) {
        self.0.send(Ok(Frame::data(Bytes::from_static(text.as_bytes())))).await.unwrap();
    }

    async fn fail(&mut self) {
        let _ = self.0.send(Err("broken".into())).await;
    }
}

pub(super) fn stream() -> (Upload, Body) {
    let (sender, receiver) = futures::channel::mpsc::channel(1);
    (Upload(sender), StreamBody::new(receiver).boxed_unsync())
}

/// What lets clients reach the server.
pub(super) fn allowed() -> OutboundOptions {
    let allow = ["127.0.0.1", "::1"].map(|range| range.parse().unwrap()).to_vec();
    OutboundOptions { allow, ..OutboundOptions::default() }
}

/// A router that nobody asks anything of.
fn router() -> Router {
    let fleet = identity::create().unwrap();
    let process = ProcessIdentity::new(fleet, Role::Ingress, "i", SessionId::from_bits(1)).unwrap();
    let bucket = Arc::new(holdfast_bucket::MemoryBucket::new());
    Router::new(bucket, CellClient::new(process), RouterOptions::default())
}

pub(super) fn outbound(options: OutboundOptions) -> Outbound {
    Outbound::with_roots(router(), options, rustls::RootCertStore::empty()).unwrap()
}

pub(super) fn outbound_trusting(server: &Server, options: OutboundOptions) -> Outbound {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(server.certificate.clone().unwrap()).unwrap();
    Outbound::with_roots(router(), options, roots).unwrap()
}

pub(super) fn get(url: &str) -> Request<Body> {
    Request::builder().uri(url).body(whole_body(Bytes::new())).unwrap()
}

pub(super) async fn text(fetched: Fetched) -> String {
    let bytes = read_whole(fetched.response.into_body(), 16 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(super) async fn fails(client: &Outbound, request: Request<Body>, redirect: Redirect) -> String {
    client.fetch(request, redirect).await.expect_err("it fails").to_string()
}
