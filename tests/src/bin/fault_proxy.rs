//! `fault_proxy --upstream HOST:PORT`: the fault proxy as a command, for scripts and containers; switched over HTTP at
//! `--control-listen`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use holdfast_tests::fault_proxy::{FaultProxy, serve_control};
use holdfast_tests::sigv4::Credentials;
use tokio::net::TcpListener;

/// Breaks the requests to an S3 endpoint as told.
#[derive(Parser)]
struct Args {
    /// The S3 endpoint.
    #[arg(long)]
    upstream: SocketAddr,
    /// Where clients connect.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where scripts switch faults on and off.
    #[arg(long, default_value = "127.0.0.1:0")]
    control_listen: SocketAddr,
    /// Gets `{"proxy": "…", "control": "…"}` once both listen.
    #[arg(long)]
    ready_file: Option<PathBuf>,
    /// The seed of the rules' chances.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The store's region, for requests that must be signed anew.
    #[arg(long, default_value = "us-east-1")]
    region: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let variable = |name: &str| std::env::var(name).with_context(|| format!("`{name}` is not set"));
    let credentials = Credentials {
        access_key: variable("AWS_ACCESS_KEY_ID")?,
        secret_key: variable("AWS_SECRET_ACCESS_KEY")?,
        region: args.region,
    };
    let listener = TcpListener::bind(args.listen).await?;
    let control = TcpListener::bind(args.control_listen).await?;
    let proxy = FaultProxy::serve(listener, args.upstream, credentials, args.seed)?;
    let ready = serde_json::json!({ "proxy": proxy.address(), "control": control.local_addr()? }).to_string();
    println!("{ready}");
    if let Some(path) = args.ready_file {
        let unfinished = path.with_extension("tmp");
        std::fs::write(&unfinished, ready)?;
        std::fs::rename(unfinished, path)?;
    }
    serve_control(control, proxy.faults().clone()).await
}
