//! HTTP/2, with and without TLS.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_rpc::Body;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::support::*;

async fn client<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(stream: S) -> SendRequest<Body> {
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(query: &str, body: Body) -> http::Request<Body> {
    http::Request::post(format!("https://x/-/db/a/query?{query}")).body(body).unwrap()
}

fn whole(text: &'static str) -> Body {
    Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed_unsync()
}

#[tokio::test]
async fn http2_works_without_tls_and_many_requests_share_a_connection() {
    let fleet = fleet(|_| {}).await;
    let sender = client(TcpStream::connect(fleet.addresses.public).await.unwrap()).await;
    let ask = |_| {
        let mut sender = sender.clone();
        async move {
            let answer = sender.send_request(request("count", whole("12345"))).await.unwrap();
            answer.into_body().collect().await.unwrap().to_bytes()
        }
    };
    let answers = futures::future::join_all((0..50).map(ask)).await;
    assert!(answers.iter().all(|answer| answer == "5"), "{answers:?}");
}

#[tokio::test]
async fn a_broken_answer_is_a_reset_stream_and_the_connection_goes_on() {
    let fleet = fleet(|_| {}).await;
    let mut sender = client(TcpStream::connect(fleet.addresses.public).await.unwrap()).await;
    let mut answer = sender.send_request(request("break", whole(""))).await.unwrap().into_body();
    assert_eq!(answer.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
    fleet.go.send(true).unwrap();
    answer.frame().await.unwrap().unwrap_err();
    let answer = sender.send_request(request("count", whole("1"))).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_reset_stream_cancels_its_request() {
    let mut fleet = fleet(|_| {}).await;
    let mut sender = client(TcpStream::connect(fleet.addresses.public).await.unwrap()).await;
    let asking = tokio::spawn(async move { sender.send_request(request("wait", whole("1"))).await });
    fleet.begun.recv().await.unwrap();
    asking.abort();
    let cancelled = tokio::time::timeout(std::time::Duration::from_secs(5), fleet.cancelled.recv());
    cancelled.await.expect("cancelled").unwrap();
}

#[tokio::test]
async fn tls_offers_http2() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["x".to_owned()]).unwrap().self_signed(&key).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (cert_file, key_file) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert_file, certificate.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let fleet = fleet(|config| {
        (config.tls_cert, config.tls_key) = (Some(cert_file), Some(key_file));
    })
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = TcpStream::connect(fleet.addresses.public).await.unwrap();
    let name = ServerName::try_from("x").unwrap();
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let answer = client(tls).await.send_request(request("count", whole("12"))).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "2");
}
