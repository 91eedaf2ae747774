//! `chaos --minutes N --seed S --cells N`: the long test as a command. Prints one line of JSON; the exit code is 0 when no
//! promise was broken.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use holdfast_tests::chaos::{ChaosOptions, run};

/// Loads a fleet of real processes, breaks it, and looks for every acknowledgement.
#[derive(Parser)]
struct Args {
    /// How long load and faults run, in minutes.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// The seed of load and faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Databases.
    #[arg(long, default_value_t = 200)]
    cells: usize,
    /// Clients with databases of their own.
    #[arg(long, default_value_t = 16)]
    workers: usize,
    /// Cellnodes.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Ingresses.
    #[arg(long, default_value_t = 2)]
    ingresses: usize,
    /// Followers; without any, the bucket alone proves writes.
    #[arg(long, default_value_t = 3)]
    followers: usize,
    /// The lease TTL of nodes and followers, in milliseconds.
    #[arg(long, default_value_t = 3_000)]
    lease_ttl_ms: u64,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let report = run(&ChaosOptions {
        duration: Duration::from_secs_f64(args.minutes * 60.0),
        seed: args.seed,
        cells: args.cells,
        workers: args.workers,
        nodes: args.nodes,
        ingresses: args.ingresses,
        followers: args.followers,
        lease_ttl: Duration::from_millis(args.lease_ttl_ms),
    })
    .await?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
