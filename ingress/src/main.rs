//! The program `ingress`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use holdfast_ingress::{Config, Exit, Service};
use holdfast_telemetry::{LogFormat, TelemetryOptions};
use tokio::signal::unix::{SignalKind, signal};

/// What only the program itself needs.
#[derive(Parser)]
#[command(name = "ingress", version, about)]
struct Arguments {
    #[command(flatten)]
    config: Config,
    /// Log lines: `pretty` for people, `json` for machines.
    #[arg(long, env = "HOLDFAST_LOG_FORMAT", default_value = "pretty")]
    log_format: LogFormat,
    /// What is logged, as in RUST_LOG.
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    log: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { config, log_format, log } = Arguments::parse();
    let options = TelemetryOptions {
        service_name: "ingress".into(),
        instance: config.name.to_string(),
        log_format,
        log_filter: log,
    };
    let telemetry = match holdfast_telemetry::init(options) {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("ingress: {error}");
            return ExitCode::from(2);
        }
    };
    let code = match Service::run(config, None, terminated()).await {
        Ok(Exit::Clean) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("ingress cannot start: {error:#}");
            ExitCode::FAILURE
        }
    };
    telemetry.shutdown().await;
    code
}

/// Resolves on SIGTERM or SIGINT, also as process 1 of a container. A second signal ends the process at once.
async fn terminated() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without signal handlers the default action ends the process.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tokio::spawn(async move {
        // The first signal may have come twice: a terminal and a supervisor send it at the same moment.
        tokio::time::sleep(Duration::from_millis(200)).await;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::warn!("a second signal: requests in flight are cut off");
        std::process::exit(1);
    });
}
