//! The program `waker`.

use std::process::ExitCode;

use clap::Parser;
use holdfast_telemetry::program::{LogArgs, run};
use holdfast_waker::{Config, Exit, Service};

/// Wakes cells whose alarms are due, also those that nobody has in memory.
#[derive(Parser)]
#[command(name = "waker", version)]
struct Arguments {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    let Arguments { config, log } = Arguments::parse();
    let instance = config.name.to_string();
    run("waker", instance, log, async |shutdown| {
        let Exit::Clean = Service::run(config, None, shutdown).await?;
        Ok(0)
    })
}
