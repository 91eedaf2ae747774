//! The program `cellnode`.

use std::process::ExitCode;

use clap::Parser;
use holdfast_cellnode::{Config, Service};
use holdfast_telemetry::program::{LogArgs, run};

/// Owns cells: their databases, their writes, their replication.
#[derive(Parser)]
#[command(name = "cellnode", version)]
struct Arguments {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    let Arguments { config, log } = Arguments::parse();
    let instance = config.node.to_string();
    run("cellnode", instance, log, async |shutdown| Ok(Service::run(config, None, shutdown).await?.code()))
}
