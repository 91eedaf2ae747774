//! The program `ingress`.

use std::process::ExitCode;

use clap::Parser;
use holdfast_ingress::{Config, Exit, Service};
use holdfast_telemetry::program::{LogArgs, run};

/// The public edge: finds a cell's owner and forwards to it.
#[derive(Parser)]
#[command(name = "ingress", version)]
struct Arguments {
    #[command(flatten)]
    config: Config,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    let Arguments { config, log } = Arguments::parse();
    let instance = config.name.to_string();
    run("ingress", instance, log, async |shutdown| {
        let Exit::Clean = Service::run(config, None, shutdown).await?;
        Ok(0)
    })
}
