//! The program `cellnode`.

use std::process::ExitCode;

use clap::Parser;
use holdfast_cellnode::{Config, Exit, Service};
use holdfast_telemetry::{LogFormat, TelemetryOptions};
use tokio::signal::unix::{SignalKind, signal};

/// What only the program itself needs.
#[derive(Parser)]
#[command(name = "cellnode", version, about)]
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

fn main() -> ExitCode {
    let Arguments { config, log_format, log } = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cellnode: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        let options = TelemetryOptions {
            service_name: "cellnode".into(),
            instance: config.node.to_string(),
            log_format,
            log_filter: log,
        };
        let telemetry = match holdfast_telemetry::init(options) {
            Ok(telemetry) => telemetry,
            Err(error) => {
                eprintln!("cellnode: {error}");
                return 2;
            }
        };
        let code = match Service::run(config, None, terminated()).await {
            Ok(exit) => exit.code(),
            Err(error) => {
                tracing::error!("cellnode cannot start: {error:#}");
                1
            }
        };
        telemetry.shutdown().await;
        code
    });
    // A fenced node must not wait for anything that is still under way.
    if code == (Exit::Fenced(holdfast_core::lease::FenceCause::Expired)).code() {
        std::process::exit(i32::from(code));
    }
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ExitCode::from(code)
}

/// Resolves on SIGTERM or SIGINT, also as process 1 of a container.
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
}
