//! The listener: accepts connections, hands them to the S3 service, drains at shutdown.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::{Bucket, BucketError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::multipart;
use crate::service::BucketService;

/// Most connections at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 2048;

/// How long a connection may take to send the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// How long requests in progress may take to finish at shutdown.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// The pause after the kernel refused a connection: it is out of descriptors or memory, which passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What to serve, to whom.
#[derive(Debug)]
pub struct ServeOptions {
    /// Where connections arrive.
    pub listener: TcpListener,
    /// The one bucket's name in the protocol: 3 to 63 lower-case letters, digits, dots and dashes.
    pub bucket_name: String,
    /// The access key that requests must be signed with.
    pub access_key: String,
    /// Its secret key.
    pub secret_key: String,
}

/// Why serving ended or could not begin. Disposition: reject; the first two name a bad option.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Clients would refuse the name.
    #[error("`{0}` is not a bucket name: use 3 to 63 lower-case letters, digits, dots and dashes")]
    BucketName(String),
    /// Anybody could sign with an empty key.
    #[error("the access key and the secret key must not be empty")]
    EmptyKey,
    /// The bucket behind could not be read.
    #[error("the bucket cannot be served: {0}")]
    Bucket(#[from] BucketError),
}

/// Serves `bucket` until `shutdown` resolves; then finishes the requests in progress, for at most ten seconds.
///
/// # Errors
/// [`ServeError`], before anything is served.
pub async fn serve(
    bucket: Arc<dyn Bucket>,
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let ServeOptions { listener, bucket_name, access_key, secret_key } = options;
    if !s3s::path::check_bucket_name(&bucket_name) {
        return Err(ServeError::BucketName(bucket_name));
    }
    if access_key.is_empty() || secret_key.is_empty() {
        return Err(ServeError::EmptyKey);
    }
    multipart::remove_stale(&*bucket).await?;
    let mut builder = S3ServiceBuilder::new(BucketService::new(bucket, bucket_name));
    builder.set_auth(SimpleAuth::from_single(access_key, secret_key));
    accept(listener, builder.build(), shutdown).await;
    Ok(())
}

async fn accept(listener: TcpListener, service: S3Service, shutdown: impl Future<Output = ()>) {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    server.http2().timer(TokioTimer::new());
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            next = next => next,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let connection = graceful.watch(connection(&server, stream, service.clone()));
        tokio::spawn(async move {
            // A broken connection is the client's affair.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_LIMIT, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still in progress at the end of the drain limit");
    }
}

fn connection(
    server: &auto::Builder<TokioExecutor>,
    stream: TcpStream,
    service: S3Service,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>>
+ Send
+ 'static {
    // Without this a GET waits 40 ms for the client's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    server.serve_connection(TokioIo::new(stream), service).into_owned()
}
