//! Serves a directory over the S3 protocol: `cargo run -p holdfast-s3serve --example serve -- DIRECTORY PORT`, with the
//! bucket `bucket` and the keys `access` and `secret`. For trying S3 tools on this crate.

use std::sync::Arc;

use holdfast_bucket::LocalBucket;
use holdfast_s3serve::{ServeOptions, serve};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("name a directory")?;
    let port: u16 = arguments.next().ok_or("name a port")?.parse()?;
    let options = ServeOptions {
        listener: tokio::net::TcpListener::bind(("127.0.0.1", port)).await?,
        bucket_name: "bucket".into(),
        access_key: "access".into(),
        secret_key: "secret".into(),
    };
    let bucket = Arc::new(LocalBucket::open(directory).await?);
    serve(bucket, options, async {
        let _ = tokio::signal::ctrl_c().await;
    })
    .await?;
    Ok(())
}
