//! `object_load rate|each|work|sockets --address HOST:PORT …`: a load of the application in `tests/peers/objects`; prints
//! lines of JSON.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use holdfast_tests::object_load::{Each, Rate, Sockets, Work, each, hold, rate, work};

/// Measures an application's objects.
#[derive(Parser)]
struct Args {
    /// Who serves the application.
    #[arg(long, global = true, default_value = "127.0.0.1:8080")]
    address: SocketAddr,
    #[command(subcommand)]
    load: Load,
}

#[derive(Subcommand)]
enum Load {
    /// Reads or writes of counters.
    Rate {
        #[arg(long)]
        prefix: String,
        #[arg(long)]
        connections: usize,
        #[arg(long)]
        objects: usize,
        /// Add to the counters; otherwise they are read.
        #[arg(long)]
        writes: bool,
        #[arg(long)]
        seconds: f64,
    },
    /// One request to each counter.
    Each {
        #[arg(long)]
        prefix: String,
        #[arg(long, default_value_t = 1)]
        connections: usize,
        #[arg(long)]
        objects: usize,
        /// Add to the counters; otherwise they are read.
        #[arg(long)]
        writes: bool,
        /// Which request it must be to a counter since that came into memory.
        #[arg(long)]
        seen: u64,
    },
    /// A handler that only computes.
    Work {
        #[arg(long)]
        path: String,
        #[arg(long)]
        seconds: f64,
    },
    /// WebSockets that are kept until standard input ends; each line of it is a check of some.
    Sockets {
        #[arg(long)]
        prefix: String,
        #[arg(long)]
        objects: usize,
        #[arg(long)]
        sockets: usize,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { address, load } = Args::parse();
    let report = match load {
        Load::Rate { prefix, connections, objects, writes, seconds } => {
            let time = Duration::from_secs_f64(seconds);
            serde_json::to_string(
                &rate(&Rate { address, prefix, connections, objects, writes, time }).await?,
            )?
        }
        Load::Each { prefix, connections, objects, writes, seen } => serde_json::to_string(
            &each(&Each { address, prefix, connections, objects, writes, seen }).await?,
        )?,
        Load::Work { path, seconds } => {
            let time = Duration::from_secs_f64(seconds);
            serde_json::to_string(&work(&Work { address, path, time }).await?)?
        }
        Load::Sockets { prefix, objects, sockets } => {
            return hold(&Sockets { address, prefix, objects, sockets }).await;
        }
    };
    println!("{report}");
    Ok(())
}
