//! `holdfast r2`: the R2 buckets of applications, as an operator looks after them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use holdfast_bucket::BucketArgs;
use holdfast_r2::R2;
use holdfast_types::R2BucketName;
use humantime::parse_duration;
use serde_json::{Value, json};

use crate::args::open_existing;
use crate::output::{Output, Table};

/// What can be done with R2 buckets.
#[derive(Debug, Subcommand)]
pub enum R2Command {
    /// List the R2 buckets in which something lies.
    List {
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Delete bodies that no object has: of puts that did not end. Safe at any time, while applications run.
    Sweep {
        /// Only this R2 bucket.
        name: Option<R2BucketName>,
        /// Younger ones may be of puts that go on, and are left alone.
        #[arg(long, default_value = "1d", value_name = "TIME", value_parser = parse_duration)]
        older_than: Duration,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
}

impl R2Command {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::List { bucket } => {
                let names = open(&bucket).await?.names().await?;
                let rows: Vec<String> = names.iter().map(ToString::to_string).collect();
                output.print(&json!({ "buckets": rows }), || {
                    if rows.is_empty() { "there are no R2 buckets".into() } else { rows.join("\n") }
                })
            }
            Self::Sweep { name, older_than, bucket } => sweep(&bucket, name, older_than, output).await,
        }
    }
}

async fn open(bucket: &BucketArgs) -> Result<R2> {
    Ok(R2::new(Arc::clone(&open_existing(bucket).await?.bulk)))
}

async fn sweep(
    bucket: &BucketArgs,
    name: Option<R2BucketName>,
    older_than: Duration,
    output: Output,
) -> Result<()> {
    let r2 = open(bucket).await?;
    let names = match name {
        Some(name) => vec![name],
        None => r2.names().await?,
    };
    let mut swept = Vec::new();
    for name in names {
        swept.push((name.to_string(), r2.sweep(&name, older_than).await?));
    }
    let rows: Vec<Value> = swept
        .iter()
        .map(|(name, swept)| json!({ "bucket": name, "bodies": swept.bodies, "deleted": swept.deleted }))
        .collect();
    output.print(&json!({ "swept": rows }), || {
        if swept.is_empty() {
            return "there are no R2 buckets".into();
        }
        let mut table = Table::new(["BUCKET", "BODIES", "DELETED"]);
        for (name, swept) in &swept {
            table.row([name.as_str(), &swept.bodies.to_string(), &swept.deleted.to_string()]);
        }
        table.to_string()
    })
}
