//! `log declare-loss`: a person gives up what no follower can show. The one place in Holdfast that makes a loss record
//! (INV-REC-3), and it tries to recover first.

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use holdfast_bucket::{BucketArgs, Buckets, Commit, Guard};
use holdfast_core::recovery::RecoveryOutcome;
use holdfast_records::{Key, LogLoss, Record};
use holdfast_rpc::follower::LogName;
use holdfast_types::WriteId;

use super::recover::{print, recovered};
use super::{Which, must_be_dead, recoveries};
use crate::args::open_existing;
use crate::output::Output;
use crate::peers;

/// How long the record's write may take, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 10_000;

/// Options of `log declare-loss`.
#[derive(Debug, clap::Args)]
pub struct DeclareLoss {
    #[command(flatten)]
    which: Which,
    /// Why the disks will not come back. Kept for ever, and shown by `diagnose`.
    #[arg(long)]
    reason: String,
    /// Yes: acknowledged writes may be gone for ever.
    #[arg(long)]
    yes: bool,
    /// Declare it although the recovery did not find itself blocked (it failed, or another process is at it).
    #[arg(long)]
    force: bool,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

impl DeclareLoss {
    #[cfg(test)]
    pub(super) fn new(which: Which, reason: &str, yes: bool, bucket: BucketArgs) -> Self {
        Self { which, reason: reason.into(), yes, force: false, bucket }
    }

    /// Recovers what can be, and declares the rest lost.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { which, reason, yes, force, bucket } = self;
        if reason.trim().is_empty() {
            bail!("say why the disks will not come back: --reason is kept for ever");
        }
        let buckets = open_existing(&bucket).await?;
        let log = which.find(&buckets).await?;
        must_be_dead(&buckets, &log).await?;
        let recoveries = recoveries(&buckets).await?;
        let outcome = recoveries.attempt(&log).await;
        match &outcome {
            RecoveryOutcome::Recovered { record } => {
                // Nothing was lost after all, or it was declared before.
                return print(output, &log, record);
            }
            RecoveryOutcome::Blocked { .. } => {}
            _ if force => {}
            _ => {
                let cause = recovered(&log, outcome).expect_err("it is not recovered");
                return Err(cause.context(
                    "no loss is declared, since the recovery is not blocked; --force does it all the same",
                ));
            }
        }
        if !yes {
            let cause = recovered(&log, outcome).expect_err("it is not recovered");
            return Err(cause.context(
                "this gives up writes that clients were told are safe, for ever. Bring one of the disks back if any exists; \
                 add --yes if none does",
            ));
        }
        declare(&buckets, &log, reason).await?;
        let record = recovered(&log, recoveries.attempt(&log).await)
            .context("the loss is declared; the recovery goes on by itself")?;
        print(output, &log, &record)
    }
}

/// Creates the loss record. One that is there already stays as it is.
async fn declare(buckets: &Buckets, log: &LogName, reason: String) -> Result<()> {
    let LogName { node, session } = log.clone();
    let key = Key::LogLoss(node.clone(), session).to_string();
    let loss = LogLoss {
        version: LogLoss::VERSION,
        write_id: WriteId::from_bits(peers::fresh_session()?.bits()),
        node,
        session,
        declared_ms: peers::now(),
        reason,
    };
    match buckets.records.put_if(&key, Bytes::from(loss.encode()), Guard::Absent, WRITE_DEADLINE_MS).await {
        Commit::Applied(_) | Commit::Rejected => Ok(()),
        Commit::Unknown(error) => {
            Err(anyhow::Error::new(error)
                .context(format!("whether `{key}` was written is unknown; try again")))
        }
    }
}
