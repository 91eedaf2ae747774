//! What every program's `main` does around its service: options of the log, telemetry from the first line to the flush,
//! signals, the limit of open files, the ready file, and the exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{LogFormat, TelemetryOptions, init};

/// What is logged, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct LogArgs {
    /// Log lines: `pretty` for people, `json` for machines.
    #[arg(long, env = "HOLDFAST_LOG_FORMAT", default_value = "pretty")]
    pub log_format: LogFormat,
    /// What is logged, as in RUST_LOG.
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    pub log: String,
}

/// Runs a program: `body` gets a future that resolves at the first SIGTERM or SIGINT and returns the exit code. A second
/// signal ends the process at once. An error of `body` is logged and is exit code 1; one of the telemetry is 2.
pub fn run<S, F>(program: &'static str, instance: String, log: LogArgs, body: S) -> ExitCode
where
    S: FnOnce(futures::future::BoxFuture<'static, ()>) -> F,
    F: Future<Output = anyhow::Result<u8>>,
{
    raise_file_limit();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{program}: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        // Before anything else: a signal that comes during the start must not kill the process.
        let signals = Signals::take().ok();
        let LogArgs { log_format, log } = log;
        let options =
            TelemetryOptions { service_name: program.into(), instance, log_format, log_filter: log };
        let telemetry = match init(options) {
            Ok(telemetry) => telemetry,
            Err(error) => {
                eprintln!("{program}: {error}");
                return 2;
            }
        };
        let code = body(Box::pin(terminated(signals))).await.unwrap_or_else(|error| {
            tracing::error!("{program} cannot start: {}", causes(&error));
            1
        });
        telemetry.shutdown().await;
        code
    });
    // What still runs ends with the process. Taking the runtime down first would cut tasks off in the middle and let
    // them see it.
    std::process::exit(i32::from(code))
}

/// An error and its causes on one line, each once: many errors tell their cause in their own text already.
#[must_use]
pub fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// SIGTERM and SIGINT, also as process 1 of a container.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes both signals over from their default, which ends the process.
    ///
    /// # Errors
    /// The system has no handlers to give; then the default stays.
    pub fn take() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Resolves at the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Resolves on the first signal. A second one ends the process at once. Without handlers the default does it all.
async fn terminated(signals: Option<Signals>) {
    let Some(mut signals) = signals else { return std::future::pending().await };
    signals.next().await;
    tokio::spawn(async move {
        // The first signal may have come twice: a terminal and a supervisor send it at the same moment.
        tokio::time::sleep(Duration::from_millis(200)).await;
        signals.next().await;
        tracing::warn!("a second signal: what is in flight is cut off");
        std::process::exit(1);
    });
}

/// Allows as many open files as the system lets us: each resident cell and each connection needs some, and the usual limit
/// is 1,024.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        eprintln!("the limit of open files stays as it is");
    }
}

/// The ready file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the ready file `{path}` cannot be written: {source}")]
pub struct ReadyFileError {
    /// The file.
    path: String,
    /// Why.
    source: io::Error,
}

/// Writes what a supervisor waits for, as JSON. Whoever reads the file sees all of it or none.
///
/// # Errors
/// [`ReadyFileError`] with the path.
pub fn write_ready(path: &Path, ready: &serde_json::Value) -> Result<(), ReadyFileError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    std::fs::write(&temporary, ready.to_string())
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(|source| ReadyFileError { path: path.display().to_string(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the key is bad: {source}")]
        struct Outer {
            source: io::Error,
        }
        let outer = || Outer { source: io::Error::other("it is too short") };
        let error = anyhow::Error::new(outer());
        assert_eq!(causes(&error), "the key is bad: it is too short");
        assert_eq!(causes(&error.context("no start")), "no start: the key is bad: it is too short");
        let told = anyhow::Error::new(io::Error::other("it is too short")).context("the key is bad");
        assert_eq!(causes(&told), "the key is bad: it is too short");
    }

    #[test]
    fn a_ready_file_is_whole_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ready");
        write_ready(&path, &serde_json::json!({ "s3": "127.0.0.1:9" })).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"s3":"127.0.0.1:9"}"#);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = write_ready(&folder.path().join("no/ready"), &serde_json::Value::Null).unwrap_err();
        assert!(error.to_string().contains("no/ready"), "{error}");
    }
}
