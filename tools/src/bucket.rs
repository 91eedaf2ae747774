//! `holdfast bucket`: is a store fit, and a directory as a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use holdfast_bucket::probe::{ProbeVerdict, probe};
use holdfast_bucket::{BucketArgs, LocalBucket};
use holdfast_s3serve::ServeOptions;
use serde_json::json;
use tokio::net::TcpListener;

use crate::diagnose::{Check, store_checks};
use crate::output::Output;
use crate::process::{raise_file_limit, take_signals, unless_again, write_ready};

/// What can be done with buckets.
#[derive(Debug, Subcommand)]
pub enum BucketCommand {
    /// Check that a store does what safety needs, with a few small objects below `probe/` that are removed again.
    Probe {
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Serve a directory as an S3 bucket, on one machine, until a signal.
    Serve(Serve),
}

/// Options of `bucket serve`.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The directory; made when absent. The same as `file:///DIR`, and both may be used at once.
    #[arg(long, env = "HOLDFAST_BUCKET_SERVE_DIR", value_name = "DIR")]
    dir: PathBuf,
    /// Where to listen. Port 0 takes a free one.
    #[arg(
        long,
        env = "HOLDFAST_BUCKET_SERVE_LISTEN",
        default_value = "127.0.0.1:9000",
        value_name = "HOST:PORT"
    )]
    listen: String,
    /// The bucket's name in the protocol.
    #[arg(long, env = "HOLDFAST_BUCKET_SERVE_NAME", default_value = "holdfast", value_name = "NAME")]
    bucket_name: String,
    /// Once it listens, a JSON object with the address is written to this file.
    #[arg(long, env = "HOLDFAST_BUCKET_SERVE_READY_FILE", value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl BucketCommand {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::Probe { bucket } => probe_stores(&bucket, output).await,
            Self::Serve(serve) => serve.run(output).await,
        }
    }
}

async fn probe_stores(bucket: &BucketArgs, output: Output) -> Result<()> {
    let buckets = bucket.open().await?;
    let mut reports = vec![("bucket", probe(&*buckets.records).await)];
    if bucket.lease_bucket.is_some() {
        reports.push(("lease bucket", probe(&*buckets.leases).await));
    }
    let checks: Vec<Check> = reports.iter().flat_map(|(name, report)| store_checks(name, report)).collect();
    let faults: Vec<String> = reports
        .iter()
        .filter(|(_, report)| report.verdict != ProbeVerdict::Fit)
        .map(|(_, report)| report.describe())
        .collect();
    output.print(&json!({ "ok": faults.is_empty(), "checks": checks }), || {
        checks.iter().map(|check| format!("{check}\n")).collect()
    })?;
    if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("; ")) }
}

impl Serve {
    async fn run(self, output: Output) -> Result<()> {
        let (access_key, secret_key) = (key("AWS_ACCESS_KEY_ID")?, key("AWS_SECRET_ACCESS_KEY")?);
        let mut signals = take_signals()?;
        raise_file_limit();
        let bucket = LocalBucket::open(self.dir.clone()).await?;
        let listener = TcpListener::bind(&self.listen).await.with_context(|| {
            format!("cannot listen on `{}`; choose another address with --listen", self.listen)
        })?;
        let address = listener.local_addr()?;
        let options =
            ServeOptions { listener, bucket_name: self.bucket_name.clone(), access_key, secret_key };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = holdfast_s3serve::serve(Arc::new(bucket), options, async {
            let _ = stopped.await;
        });
        tokio::pin!(server);
        // Options that cannot be served end it at its first step, before anybody is told an address.
        if let Poll::Ready(ended) = futures::poll!(&mut server) {
            return Ok(ended?);
        }
        if let Some(path) = &self.ready_file {
            write_ready(path, &json!({ "s3": address.to_string() }))?;
        }
        self.announce(address, output)?;
        tokio::select! {
            biased;
            () = signals.next() => {}
            ended = &mut server => return Ok(ended?),
        }
        drop(stop);
        Ok(unless_again(&mut signals, server).await?)
    }

    fn announce(&self, address: std::net::SocketAddr, output: Output) -> Result<()> {
        let (dir, name) = (self.dir.display(), &self.bucket_name);
        let ready = json!({ "s3": address.to_string(), "bucket": name, "dir": self.dir });
        output.print(&ready, || {
            format!(
                "`{dir}` is served as an S3 bucket: --bucket s3://{name} --endpoint http://{address} --region us-east-1\n\
                 Clients sign with the AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of this process. Ctrl-C stops it."
            )
        })
    }
}

/// Secrets come from the environment alone: a command line is visible to every user of the machine.
fn key(name: &str) -> Result<String> {
    match std::env::var(name) {
        Ok(key) if !key.is_empty() => Ok(key),
        _ => bail!(
            "`{name}` is not set: choose an access key and a secret key, and set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY here and for every client"
        ),
    }
}
