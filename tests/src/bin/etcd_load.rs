//! `etcd_load --endpoints URL,… --clients N --keys N --seconds N`: puts on an etcd; prints one line of JSON.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use holdfast_tests::etcd_load::{EtcdLoad, run};

/// Measures the acknowledged puts of an etcd.
#[derive(Parser)]
struct Args {
    /// Members, `http://host:port`, with commas between.
    #[arg(long, value_delimiter = ',', required = true)]
    endpoints: Vec<String>,
    /// HTTP/2 connections, which the clients share, dealt over the members in turn.
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Clients with one put in flight each.
    #[arg(long, default_value_t = 1)]
    clients: usize,
    /// Keys, dealt over the clients in turn.
    #[arg(long, default_value_t = 1)]
    keys: usize,
    /// Measured time, after half a second that is not counted.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { endpoints, connections, clients, keys, seconds } = Args::parse();
    let load = EtcdLoad { endpoints, connections, clients, keys, time: Duration::from_secs(seconds) };
    println!("{}", serde_json::to_string(&run(&load).await?)?);
    Ok(())
}
