//! `holdfast dev`: a whole fleet in one process, for development, and the application of a project's folder on it. It says
//! plainly that one machine's disk is all there is.

mod reload;
mod watched;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use holdfast_cellnode::Exit;
use holdfast_cellnode::config::parse_lease_ttl;
use holdfast_telemetry::program::causes;
use holdfast_types::NodeName;
use serde_json::json;

use crate::fleet::{Fleet, FleetOptions, Ground, NodeEnded};
use crate::output::{Output, count};
use crate::process::{Signals, raise_file_limit, take_signals, unless_again, write_ready};
use reload::{Application, Reloader};

/// Attempts to start a fenced node again: its old session may still be letting go of the directory.
const RESTARTS: u32 = 20;
/// Between them.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// Options of `dev`.
#[derive(Debug, clap::Args)]
pub struct Dev {
    /// The folder of a project: its application is deployed, and again whenever its files change. Default: none, which
    /// serves databases alone.
    project: Option<PathBuf>,
    /// Nodes to run. More than one shows placement, drain and takeover.
    #[arg(long, env = "HOLDFAST_DEV_NODES", default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=32))]
    nodes: u16,
    /// Followers to run: they fsync a write before the bucket has it, so it is answered sooner. 0: the bucket alone.
    #[arg(long, env = "HOLDFAST_DEV_FOLLOWERS", default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(0..=8))]
    followers: u16,
    /// Everything is kept here: the bucket and the programs' data directories. Start again on it and all is there.
    /// Default: `.holdfast`, in the project's folder where there is one.
    #[arg(long, env = "HOLDFAST_DEV_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Port on 127.0.0.1 of the HTTP API. 0 takes a free one.
    #[arg(long, env = "HOLDFAST_DEV_PORT", default_value_t = 8080, value_name = "P")]
    port: u16,
    /// Lifetime of the nodes' leases: how long after a node's death its cells can be taken over. From 1s to 10min.
    #[arg(long, env = "HOLDFAST_LEASE_TTL", default_value = "10s", value_parser = parse_lease_ttl, value_name = "TIME")]
    lease_ttl: Duration,
    /// Once ready, a JSON object with the addresses and the bucket is written to this file.
    #[arg(long, env = "HOLDFAST_DEV_READY_FILE", value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl Dev {
    /// Runs until a signal, and returns the exit code.
    pub async fn run(self, output: Output) -> Result<u8> {
        let started = Instant::now();
        let mut signals = take_signals()?;
        raise_file_limit();
        let options = FleetOptions {
            dir: self.dir(),
            nodes: usize::from(self.nodes),
            followers: usize::from(self.followers),
            port: self.port,
            lease_ttl: Some(self.lease_ttl),
        };
        let (fleet, project) = tokio::select! {
            biased;
            // Nothing is served yet, so there is nothing to give up; leases end by themselves.
            () = signals.next() => return Ok(0),
            started = self.start(options) => started?,
        };
        let (reloader, application) = project.unzip();
        let application = application.flatten();
        let ready = ready(&fleet, application.as_ref());
        if let Some(path) = &self.ready_file {
            write_ready(path, &ready)?;
        }
        let text = || banner(&fleet, self.project.is_some(), application.as_ref(), started.elapsed());
        output.print(&ready, text)?;
        let reloads = reloader.map(|reloader| tokio::spawn(reloader.run()));
        let ended = self.serve(fleet, &mut signals).await;
        if let Some(reloads) = reloads {
            reloads.abort();
        }
        ended
    }

    fn dir(&self) -> PathBuf {
        let beside = || self.project.clone().unwrap_or_default().join(".holdfast");
        self.dir.clone().unwrap_or_else(beside)
    }

    /// The application first: the programs find it in the bucket when they start.
    async fn start(&self, options: FleetOptions) -> Result<(Fleet, Option<(Reloader, Option<Application>)>)> {
        let Some(dir) = &self.project else { return Ok((Fleet::start(options).await?, None)) };
        // Nothing is made where there is no project.
        if !dir.is_dir() {
            bail!("`{}` is not a folder: name the folder of a project", dir.display());
        }
        let ground = Ground::take(&options).await?;
        let project = Reloader::start(dir, &ground.bucket_url).await?;
        Ok((Fleet::start_on(ground, options).await?, Some(project)))
    }

    async fn serve(&self, mut fleet: Fleet, signals: &mut Signals) -> Result<u8> {
        loop {
            let NodeEnded { name, result } = tokio::select! {
                biased;
                () = signals.next() => break,
                ended = fleet.next_ended() => ended?,
            };
            match result.with_context(|| format!("`{name}` failed"))? {
                Exit::Clean => {
                    eprintln!("holdfast: `{name}` has drained and stopped; {} left", fleet.running())
                }
                Exit::Fenced(cause) => {
                    eprintln!("holdfast: `{name}` fenced itself ({}); starting it again", cause.name());
                    if let Err(error) = restart(&mut fleet, &name).await {
                        eprintln!("holdfast: {}", causes(&error));
                        return Ok(Exit::Fenced(cause).code());
                    }
                }
            }
            if fleet.running() == 0 {
                break;
            }
        }
        eprintln!("holdfast: draining; press Ctrl-C again to stop at once");
        unless_again(signals, fleet.stop()).await?;
        Ok(0)
    }
}

/// What a supervisor would do, for example after the machine was asleep.
async fn restart(fleet: &mut Fleet, name: &NodeName) -> Result<()> {
    let mut attempt = 1;
    loop {
        match fleet.restart(name).await {
            Err(_) if attempt < RESTARTS => {
                attempt += 1;
                tokio::time::sleep(RESTART_PAUSE).await;
            }
            result => return result,
        }
    }
}

fn ready(fleet: &Fleet, application: Option<&Application>) -> serde_json::Value {
    let nodes = fleet.nodes.iter().map(|node| {
        let (internal, admin) = (node.addresses.internal.to_string(), node.addresses.admin.to_string());
        json!({ "node": node.name.to_string(), "internal": internal, "admin": admin })
    });
    json!({
        "public": fleet.addresses.public.to_string(),
        "admin": fleet.addresses.admin.to_string(),
        "url": fleet.url(),
        "bucket": fleet.bucket_url,
        "nodes": nodes.collect::<Vec<_>>(),
        "application": application.map(|application| {
            let Application { name, version } = application;
            json!({ "name": name, "version": version })
        }),
    })
}

fn banner(fleet: &Fleet, has_project: bool, application: Option<&Application>, elapsed: Duration) -> String {
    let (url, bucket) = (fleet.url(), &fleet.bucket_url);
    let nodes = count(u64::try_from(fleet.nodes.len()).unwrap_or(u64::MAX), "node");
    let try_it = match application {
        Some(Application { name, version }) => format!(
            "`{name}` (version {version}) is at {url}/ and is reloaded when its files change. In another terminal:\n\
             \n  curl {url}/\n"
        ),
        None if has_project => {
            "The application does not run yet: see above; it is loaded when its files change.\n".into()
        }
        None => format!("In another terminal:\n\n{}", statements(&url)),
    };
    format!(
        "holdfast dev is ready: {nodes} behind {url}, after {:.1} s\n\
         \n\
         {try_it}\
         \n\
         The bucket, for the other commands:\n\
         \n  export HOLDFAST_BUCKET={bucket}\n\
         \n\
         Everything is on this machine's disk alone: nothing here survives the machine.\n\
         Ctrl-C drains and stops; a second one stops at once.",
        elapsed.as_secs_f64()
    )
}

/// Lines that make a database and read it.
fn statements(url: &str) -> String {
    let statements = [
        r#"{"sql": "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)"}"#,
        r#"{"sql": "INSERT INTO notes (text) VALUES (?)", "args": ["remember the milk"]}"#,
        r#"{"sql": "SELECT * FROM notes"}"#,
    ];
    statements.iter().map(|body| format!("  curl {url}/-/db/demo/query -d '{body}'\n")).collect()
}
