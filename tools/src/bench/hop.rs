//! The floor of whatever crosses from one program to another: the same echo, answered behind one unary gRPC call over
//! mutual TLS, by axum and tonic as they come. It knows no cells, finds no owner and proves nothing.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse as _;
use axum::routing::post;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::StatusCode;
use http::uri::PathAndQuery;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::server::{NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::echo;

const SERVICE: &str = "holdfast.bench.Echo";
const METHOD: &str = "/holdfast.bench.Echo/Echo";
const SERVER_NAME: &str = "echo";

type Codec = ProstCodec<Bytes, Bytes>;

/// Both ends; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Hop {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Starts both ends.
pub(super) async fn start() -> Result<Hop> {
    let authority = Authority::new()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let inner = listener.local_addr()?;
    let tls = ServerTlsConfig::new().identity(authority.leaf()?).client_ca_root(authority.root());
    let server = Server::builder().tls_config(tls)?.add_service(Echo);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let far = tokio::spawn(async move {
        let _ = server.serve_with_incoming(incoming).await;
    });
    let tls = ClientTlsConfig::new()
        .identity(authority.leaf()?)
        .ca_certificate(authority.root())
        .domain_name(SERVER_NAME);
    let channel = Endpoint::from_shared(format!("https://{inner}"))?
        .tcp_nodelay(true)
        .tls_config(tls)?
        .connect()
        .await
        .context("the echo behind a call cannot be reached")?;
    let router = Router::new().route("/echo", post(front)).with_state(channel);
    let (address, near) = echo::serve(router).await?;
    Ok(Hop { address, tasks: [far, near] })
}

async fn front(State(channel): State<Channel>, body: Bytes) -> axum::response::Response {
    let mut client = tonic::client::Grpc::new(channel);
    if let Err(error) = client.ready().await {
        return (StatusCode::BAD_GATEWAY, error.to_string()).into_response();
    }
    let path = PathAndQuery::from_static(METHOD);
    match client.unary(Request::new(body), path, Codec::default()).await {
        Ok(answer) => answer.into_inner().into_response(),
        Err(status) => (StatusCode::BAD_GATEWAY, status.to_string()).into_response(),
    }
}

/// Sends back what it got.
#[derive(Clone, Copy, Debug)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = SERVICE;
}

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = std::future::Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        std::future::ready(Ok(Response::new(request.into_inner())))
    }
}

impl tower::Service<http::Request<tonic::body::Body>> for Echo {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async { Ok(tonic::server::Grpc::new(Codec::default()).unary(Self, request).await) })
    }
}

/// Signs the two ends' certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    fn root(&self) -> Certificate {
        Certificate::from_pem(self.0.pem())
    }

    fn leaf(&self) -> Result<Identity> {
        let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Identity::from_pem(certificate.pem(), key.serialize_pem()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::{Connection, Target};
    use super::*;

    #[tokio::test]
    async fn what_is_sent_comes_back_from_behind_the_call() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let hop = start().await.unwrap();
        let target = Target { address: hop.address, path: "/echo".into(), body: "a body".into() };
        let mut connection = Connection::open(hop.address).await.unwrap();
        assert_eq!(connection.send(&target).await.unwrap(), "a body");
    }
}
