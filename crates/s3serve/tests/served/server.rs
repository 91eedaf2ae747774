//! What the tests of this folder share: a server on a bucket, and clients of it.

use std::sync::Arc;

use holdfast_bucket::{Bucket, S3Bucket, S3Credentials, S3Options};
use holdfast_s3serve::{ServeError, ServeOptions, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const BUCKET: &str = "served";
pub(crate) const ACCESS_KEY: &str = "access";
pub(crate) const SECRET_KEY: &str = "secret";

/// A server; it stops when this is dropped.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    pub(crate) task: JoinHandle<Result<(), ServeError>>,
    pub(crate) stop: oneshot::Sender<()>,
}

pub(crate) async fn start(bucket: Arc<dyn Bucket>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let options = ServeOptions {
        listener,
        bucket_name: BUCKET.into(),
        access_key: ACCESS_KEY.into(),
        secret_key: SECRET_KEY.into(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(serve(bucket, options, async {
        let _ = stopped.await;
    }));
    Server { endpoint, task, stop }
}

impl Server {
    /// The client that the programs use.
    pub(crate) async fn bucket(&self, location: &str) -> Arc<dyn Bucket> {
        let credentials = S3Credentials { access_key: ACCESS_KEY.into(), secret_key: SECRET_KEY.into() };
        let options = S3Options {
            endpoint: Some(self.endpoint.clone()),
            region: Some("us-east-1".into()),
            path_style: None,
            credentials: Some(credentials),
        };
        Arc::new(S3Bucket::open(location, &options).await.unwrap())
    }
}
