//! `log recover`: one attempt by hand.

use anyhow::{Result, bail};
use holdfast_bucket::BucketArgs;
use holdfast_core::log_record::LogRecord;
use holdfast_core::recovery::{MissingMember, RecoveryOutcome};
use holdfast_rpc::follower::LogName;
use serde_json::json;

use super::{Which, must_be_dead, recoveries};
use crate::args::open_existing;
use crate::output::Output;
use crate::progress;

/// Options of `log recover`.
#[derive(Debug, clap::Args)]
pub struct Recover {
    #[command(flatten)]
    pub(super) which: Which,
    /// Where the bucket is.
    #[command(flatten)]
    pub(super) bucket: BucketArgs,
}

impl Recover {
    /// Recovers.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { which, bucket } = self;
        let buckets = open_existing(&bucket).await?;
        let log = which.find(&buckets).await?;
        must_be_dead(&buckets, &log).await?;
        let recoveries = recoveries(&buckets).await?;
        let spinner = progress::spinner(format!("recovering the log of {log}"));
        let outcome = recoveries.attempt(&log).await;
        spinner.finish_and_clear();
        let record = recovered(&log, outcome)?;
        print(output, &log, &record)
    }
}

/// The sealed record, or why there is none.
pub(super) fn recovered(log: &LogName, outcome: RecoveryOutcome) -> Result<LogRecord> {
    match outcome {
        RecoveryOutcome::Recovered { record } => Ok(record),
        RecoveryOutcome::Busy { claimant } => {
            bail!(
                "the log of {log} is being recovered by session {claimant}; `holdfast log show` tells how far it is"
            )
        }
        RecoveryOutcome::Superseded => {
            bail!("another recoverer of the log of {log} took over; `holdfast log show` tells how far it is")
        }
        RecoveryOutcome::Blocked { log_epoch, missing } => bail!(
            "the log of {log} cannot be recovered: of log epoch {log_epoch} {}. Start one of these followers on its disk; \
             only when no such disk is left, `holdfast log declare-loss`",
            missing_text(&missing)
        ),
        RecoveryOutcome::Failed(failure) => bail!("the log of {log} is not recovered: {failure}; try again"),
    }
}

fn missing_text(missing: &[MissingMember]) -> String {
    let members: Vec<String> = missing.iter().map(ToString::to_string).collect();
    format!("one of these followers is needed: {}", members.join("; "))
}

pub(super) fn print(output: Output, log: &LogName, record: &LogRecord) -> Result<()> {
    let value = json!({
        "node": log.node.to_string(), "session": log.session.to_string(), "state": "sealed",
        "loss_declared": record.loss_declared,
    });
    output.print(&value, || {
        if record.loss_declared {
            format!("the log of {log} is sealed; what no follower could show is lost, as was declared")
        } else {
            format!("the log of {log} is recovered: everything it acknowledged is in the bucket")
        }
    })
}
