//! The program `follower`.

use std::process::ExitCode;

use clap::Parser;
use holdfast_follower::{Config, Service};
use holdfast_telemetry::program::{LogArgs, run};

/// Stores node logs: acknowledges writes of cellnodes when they are fsynced here.
#[derive(Parser)]
#[command(name = "follower", version)]
struct Arguments {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    let Arguments { config, log } = Arguments::parse();
    let instance = config.follower.to_string();
    run("follower", instance, log, async |shutdown| Ok(Service::run(config, None, shutdown).await?.code()))
}
