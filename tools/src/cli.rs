//! The command line as a whole: what there is, what the exit codes mean, and how an error is told.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use holdfast_telemetry::program::causes;
use holdfast_telemetry::{LogFormat, TelemetryOptions};

use crate::output::Output;
use crate::{bench, bucket, cell, deploy, dev, diagnose, keys, log, node, r2, secret, token};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it failed, or a check found a fault; the text says what and what to do
  2  the command line is wrong
  3  `dev`: a node fenced itself and could not be started again
  130  stopped at once by a second Ctrl-C

Every option can be given by the environment variable that its help names.";

/// Durable cells on a bucket: run, look at and look after them.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
struct Cli {
    /// Print JSON, for programs.
    #[arg(long, global = true, env = "HOLDFAST_JSON", value_parser = clap::builder::BoolishValueParser::new())]
    json: bool,
    /// What is logged to stderr, as in RUST_LOG. `console` is what applications of `dev` log.
    #[arg(
        long,
        global = true,
        env = "RUST_LOG",
        default_value = "warn,console=debug",
        value_name = "FILTER"
    )]
    log: String,
    /// Log lines: `pretty` for people, `json` for machines.
    #[arg(long, global = true, env = "HOLDFAST_LOG_FORMAT", default_value = "pretty", value_name = "FORMAT")]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a whole fleet in this process, for development: an ingress, nodes, and a bucket in a directory; with a project's
    /// folder, its application too, reloaded as it changes.
    Dev(dev::Dev),
    /// Deploy the application in a folder: bundle it, check it, and make it the version that runs.
    Deploy(deploy::Deploy),
    /// Put, list and delete the application's secrets.
    #[command(subcommand)]
    Secret(secret::Secret),
    /// Check the bucket, the fleet's identity, and every node.
    Diagnose(diagnose::Diagnose),
    /// Look at cells, query, export and delete them.
    #[command(subcommand)]
    Cell(cell::Cell),
    /// Show and rotate the keys that the fleet's processes trust each other by.
    #[command(subcommand)]
    Fleet(keys::Fleet),
    /// List nodes, drain one, and even their cells out.
    #[command(subcommand)]
    Node(node::Node),
    /// Look at the node logs of sessions, and recover those of dead ones.
    #[command(subcommand)]
    Log(log::Log),
    /// Check a store, or serve a directory as one.
    #[command(subcommand)]
    Bucket(bucket::BucketCommand),
    /// List the R2 buckets of applications, and sweep what puts that did not end have left.
    #[command(subcommand)]
    R2(r2::R2Command),
    /// Make and read the bearer tokens of the SQL API.
    #[command(subcommand)]
    Token(token::Token),
    /// Measure this machine, each figure beside its floor from the same run.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Parses, runs, and turns the result into an exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // Whichever library makes a TLS connection first finds the provider that the others use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tell(cli.json, &anyhow::Error::new(error).context("the runtime cannot start")),
    };
    let is_json = cli.json;
    let code = match runtime.block_on(run(cli)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => tell(is_json, &error),
    };
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

async fn run(cli: Cli) -> Result<u8> {
    let Cli { json, log: log_filter, log_format, command } = cli;
    let telemetry = holdfast_telemetry::init(TelemetryOptions {
        service_name: "holdfast".into(),
        instance: std::process::id().to_string(),
        log_format,
        log_filter,
    })?;
    let output = Output::new(json);
    let result = match command {
        Command::Dev(dev) => dev.run(output).await,
        Command::Deploy(deploy) => deploy.run(output).await.map(|()| 0),
        Command::Secret(secret) => secret.run(output).await.map(|()| 0),
        Command::Diagnose(diagnose) => diagnose.run(output).await.map(|()| 0),
        Command::Cell(cell) => cell.run(output).await.map(|()| 0),
        Command::Fleet(fleet) => fleet.run(output).await.map(|()| 0),
        Command::Node(node) => node.run(output).await.map(|()| 0),
        Command::Log(log) => log.run(output).await.map(|()| 0),
        Command::Bucket(bucket) => bucket.run(output).await.map(|()| 0),
        Command::R2(r2) => r2.run(output).await.map(|()| 0),
        Command::Token(token) => token.run(output).await.map(|()| 0),
        Command::Bench(bench) => bench.run(output).await.map(|()| 0),
        Command::Completions { shell } => completions(output, shell).map(|()| 0),
    };
    telemetry.shutdown().await;
    result
}

fn completions(output: Output, shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "holdfast", &mut script);
    output.raw(&script)
}

fn tell(is_json: bool, error: &anyhow::Error) -> ExitCode {
    let is_closed_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe);
    if is_closed_pipe {
        // Whoever read the output has seen enough.
        return ExitCode::SUCCESS;
    }
    if is_json {
        // The shape of the HTTP API's errors.
        let (message, code) = (causes(error), "failed");
        eprintln!("{}", serde_json::json!({ "error": { "message": message, "code": code } }));
    } else {
        eprintln!("holdfast: {}", causes(error));
    }
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_that_names_its_options() {
        let mut cli = Cli::command();
        cli.build();
        for command in cli.get_subcommands() {
            assert!(command.get_about().is_some(), "`{}` has no help", command.get_name());
        }
        let help = cli.render_long_help().to_string();
        assert!(help.contains("Exit codes:") && help.contains("130"), "{help}");
    }

    #[test]
    fn switches_in_variables_are_as_people_write_them() {
        let mut cli = Cli::command();
        cli.build();
        let json = cli.get_arguments().find(|argument| argument.get_id() == "json").expect("there is --json");
        assert_eq!(json.get_env().and_then(|name| name.to_str()), Some("HOLDFAST_JSON"));
        let parser = json.get_value_parser().clone();
        for (text, is_on) in [("1", true), ("yes", true), ("true", true), ("0", false), ("no", false)] {
            let command = clap::Command::new("x").arg(clap::Arg::new("v").value_parser(parser.clone()));
            let matches = command.try_get_matches_from(["x", text]).expect("it is a switch's value");
            assert_eq!(matches.get_one::<bool>("v"), Some(&is_on), "{text}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_told_at_once() {
        for bad in [
            vec!["holdfast"],
            vec!["holdfast", "dev", "--nodes", "0"],
            vec!["holdfast", "dev", "--lease-ttl", "100ms"],
            vec!["holdfast", "cell", "show", "users", "--bucket", "file:///x"],
            vec!["holdfast", "token", "create", "--cell", "*", "--bucket", "file:///x"],
            vec!["holdfast", "deploy", "rollback", "xyz", "--bucket", "file:///x"],
            vec!["holdfast", "secret", "put", "NAME", "value", "--bucket", "file:///x"],
        ] {
            assert!(Cli::try_parse_from(&bad).is_err(), "{bad:?}");
        }
    }
}
