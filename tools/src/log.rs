//! `holdfast log`: the node logs of sessions, who holds what of them, and the recovery of dead ones. It never declares a
//! loss by itself.

mod declare;
mod list;
mod recover;
mod show;
mod view;

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use holdfast_bucket::Buckets;
use holdfast_cellnode::Owners;
use holdfast_cellnode::recovery::{Followers, Recoveries, RecoveryParts, list_logs};
use holdfast_core::ownership::{LeaseView, Protocol, is_session_dead};
use holdfast_rpc::FollowerClient;
use holdfast_rpc::follower::LogName;
use holdfast_types::{NodeName, SessionId};

use crate::output::Output;
use crate::peers::{self, CLOCK_SKEW_MAX_MS};

pub use view::{FoundLog, losses, read_logs};

/// What can be done with node logs.
#[derive(Debug, Subcommand)]
pub enum Log {
    /// List the logs that are not sealed: their sessions, ensembles, and what followers hold of them.
    List(list::List),
    /// Show everything of one log, and ask its followers.
    Show(show::Show),
    /// Recover the log of a dead session now.
    Recover(recover::Recover),
    /// Give up what no follower can show, for ever. The last resort.
    DeclareLoss(declare::DeclareLoss),
}

impl Log {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::List(list) => list.run(output).await,
            Self::Show(show) => show.run(output).await,
            Self::Recover(recover) => recover.run(output).await,
            Self::DeclareLoss(declare) => declare.run(output).await,
        }
    }
}

/// Which log.
#[derive(Debug, clap::Args)]
struct Which {
    /// The node.
    node: NodeName,
    /// Its session, or the first digits of it.
    session: String,
}

impl Which {
    /// The one log that is meant. A whole session need not have a record.
    async fn find(&self, buckets: &Buckets) -> Result<LogName> {
        let Self { node, session } = self;
        if let Ok(session) = SessionId::parse(session) {
            return Ok(LogName { node: node.clone(), session });
        }
        let logs = list_logs(&*buckets.records).await?;
        let mut found = logs.into_iter().filter(|log| log.node == *node);
        let mut found = found.by_ref().filter(|log| log.session.to_string().starts_with(session.as_str()));
        match (found.next(), found.next()) {
            (Some(log), None) => Ok(log),
            (None, _) => {
                bail!(
                    "node `{node}` has no log of a session `{session}…`; `holdfast log list --all` shows those there are"
                )
            }
            (Some(_), Some(_)) => {
                bail!("several sessions of node `{node}` begin with `{session}`: give more digits")
            }
        }
    }
}

/// Calls followers as this tool.
async fn follower_client(buckets: &Buckets) -> Result<FollowerClient> {
    Ok(FollowerClient::new(peers::identity(buckets).await?))
}

/// Recoveries by this tool, under a session of its own.
pub async fn recoveries(buckets: &Buckets) -> Result<Recoveries> {
    let followers = Followers::new(Arc::clone(&buckets.leases), follower_client(buckets).await?);
    Ok(Recoveries::new(RecoveryParts {
        claimant: peers::fresh_session()?,
        claimant_node: None,
        clock_skew_max_ms: CLOCK_SKEW_MAX_MS,
        records: Arc::clone(&buckets.records),
        leases: Arc::clone(&buckets.leases),
        bulk: Arc::clone(&buckets.bulk),
        witness: Arc::new(followers),
        retry: std::time::Duration::from_secs(1),
    }))
}

/// Whether the log's session is dead, judged as every program does.
async fn is_dead(buckets: &Buckets, log: &LogName) -> Result<bool> {
    let owners = Owners::new(Arc::clone(&buckets.records), Arc::clone(&buckets.leases));
    // Before the read: an answer that was long on its way must not make a renewed lease look dead.
    let now = peers::now();
    let lease = owners.read_lease(&log.node).await.context("whether the session lives is unknown")?;
    let lease = lease.map(|lease| LeaseView {
        session: lease.session,
        expires_ms: lease.expires_ms,
        protocol: Protocol { min: lease.protocol.min, max: lease.protocol.max },
    });
    Ok(is_session_dead(lease.as_ref(), log.session, now, CLOCK_SKEW_MAX_MS))
}

/// Refuses to touch the log of a session that lives.
async fn must_be_dead(buckets: &Buckets, log: &LogName) -> Result<()> {
    if !is_dead(buckets, log).await? {
        bail!("{log} is alive: its log is its own. Stop the node first, or wait for its lease to end");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
