//! `holdfast deploy`: versions of the application. A project that does not bundle or does not compile stops here, with
//! nothing of it in the bucket; what runs goes on.

mod args;
mod list;
mod publish;
mod show;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use clap::error::ErrorKind;
use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_deploy::{Deployments, VersionName};
use serde_json::json;

use crate::args::open_existing;
use crate::output::{Output, count};
use args::SharedBucket;

/// How many versions a prune keeps, beside the one that runs and the one before it.
const KEEP: usize = 10;

/// Options of `deploy`.
#[derive(Debug, clap::Args)]
pub struct Deploy {
    /// The project's folder, with a wrangler.jsonc, wrangler.json or wrangler.toml. Default: this one.
    dir: Option<PathBuf>,
    /// Another configuration file; its folder is the project's.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What is new, for those who read `deploy list`.
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: SharedBucket,
    #[command(subcommand)]
    command: Option<DeployCommand>,
}

/// What else can be done with versions.
#[derive(Debug, Subcommand)]
enum DeployCommand {
    /// List the versions there are, newest first.
    List,
    /// Show a version: its modules, bindings and classes.
    Show {
        /// The version, or its first digits. Default: the one that runs.
        version: Option<VersionName>,
    },
    /// Run an earlier version again.
    Rollback {
        /// The version, or its first digits. Default: the one that ran before.
        version: Option<VersionName>,
    },
    /// Remove old versions, and what no other version needs.
    Prune {
        /// Keep so many of the newest, and in any case the one that runs and the one before it.
        #[arg(long, default_value_t = KEEP, value_name = "N")]
        keep: usize,
    },
}

impl Deploy {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { dir, config, message, bucket: SharedBucket(bucket), command } = self;
        let Some(command) = command else {
            let dir = dir.unwrap_or_else(|| PathBuf::from("."));
            return publish::publish(&dir, config, &message.unwrap_or_default(), &bucket, output).await;
        };
        if dir.is_some() || config.is_some() || message.is_some() {
            let text = "a folder, --config and --message are for `deploy` alone, not for its commands; a folder with the \
                        name of a command is `./NAME`\n";
            clap::Error::raw(ErrorKind::ArgumentConflict, text).exit();
        }
        let deployments = deployments(&open_existing(&bucket).await?);
        match command {
            DeployCommand::List => list::list(&deployments, output).await,
            DeployCommand::Show { version } => show::show(&deployments, version, output).await,
            DeployCommand::Rollback { version } => roll_back(&deployments, version, output).await,
            DeployCommand::Prune { keep } => prune(&deployments, keep, output).await,
        }
    }
}

/// The deployments of a bucket.
pub fn deployments(buckets: &Buckets) -> Deployments {
    Deployments::new(buckets.records.clone(), buckets.bulk.clone())
}

/// The deployments of a bucket that is there.
pub async fn open(bucket: &BucketArgs) -> Result<Deployments> {
    Ok(deployments(&open_existing(bucket).await?))
}

async fn roll_back(deployments: &Deployments, to: Option<VersionName>, output: Output) -> Result<()> {
    let done = deployments.roll_back(to.as_ref()).await?;
    let value = json!({
        "version": done.id.to_string(), "previous": done.previous.map(|previous| previous.to_string()),
        "changed": done.changed,
    });
    output.print(&value, || publish::outcome(&done))
}

async fn prune(deployments: &Deployments, keep: usize, output: Output) -> Result<()> {
    let pruned = deployments.prune(keep).await?;
    let versions: Vec<String> = pruned.versions.iter().map(ToString::to_string).collect();
    let value = json!({ "versions": versions, "blobs": pruned.blobs, "is_partial": pruned.is_partial });
    output.print(&value, || {
        let number = u64::try_from(versions.len()).unwrap_or(u64::MAX);
        let rest = if pruned.is_partial { "; time ran out: prune again for the rest" } else { "" };
        format!("removed {} and {}{rest}", count(number, "version"), count(pruned.blobs, "file"))
    })
}
