//! The program `cellnode`.

use std::process::ExitCode;

use clap::Parser;
use holdfast_cellnode::{Config, Exit, Service};
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
    run("cellnode", instance, log, async |shutdown| {
        let exit = Service::run(config, None, shutdown).await?;
        if let Exit::Fenced(_) = exit {
            // A fenced process writes nothing more, and waits for nothing.
            std::process::exit(i32::from(exit.code()));
        }
        Ok(exit.code())
    })
}
