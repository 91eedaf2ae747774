//! The sweep: finds dead sessions whose logs are not recovered, every half minute, in one process of the fleet. So what
//! only followers hold reaches the bucket without anybody asking for the cells.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use holdfast_bucket::{Bucket, BucketError, Guard};
use holdfast_core::advisory::{AdvisoryLease, may_take};
use holdfast_core::ownership::is_session_dead;
use holdfast_records::{Key, NodeLogRecord, NodeLogState, Record, SweepLease};
use holdfast_rpc::follower::LogName;
use holdfast_types::{NodeName, SessionId};
use tokio::time::MissedTickBehavior;

use super::shared::Recoveries;
use crate::owners::{OwnerReadError, Owners, lease_view};
use crate::{clock, random};

/// Between rounds.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long whoever swept last is left alone, in milliseconds: three rounds.
const LEASE_TTL_MS: u64 = 90_000;
/// How long the lease's write may take, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Recoveries at once: most of their time is a wait for followers that may not answer.
const RECOVERIES_MAX: usize = 16;
/// Rows of one page of a listing.
const PAGE: usize = 1_000;
/// Records read at once.
const READS: usize = 16;

/// What a sweep works with.
#[derive(Debug)]
pub struct Sweep {
    /// The node that sweeps.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
    /// Where log records and the sweep's lease are.
    pub records: Arc<dyn Bucket>,
    /// Reads nodes' leases.
    pub owners: Owners,
    /// Recovers.
    pub recoveries: Recoveries,
    /// How far two machines' clocks may differ, in milliseconds.
    pub clock_skew_max_ms: u64,
}

impl Sweep {
    /// Sweeps until it is dropped.
    pub async fn run(self) {
        // Not all nodes of a fleet at the same moment.
        let first = INTERVAL * u32::from(random::byte()) / 256;
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + first, INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Sealed is for ever.
        let mut sealed = HashSet::new();
        loop {
            ticks.tick().await;
            self.recoveries.review().await;
            if self.holds_lease().await
                && let Err(error) = self.round(&mut sealed).await
            {
                tracing::debug!(%error, "a sweep could not read the bucket; the next one will");
            }
        }
    }

    /// Takes or renews the sweep's lease. False: somebody else sweeps, or the store does not say.
    async fn holds_lease(&self) -> bool {
        let key = Key::SweepLease.to_string();
        let wall_now = clock::wall();
        let found = match self.records.get(&key).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "the sweep's lease could not be read");
                return false;
            }
        };
        let lease = found.as_ref().and_then(|object| SweepLease::decode(&object.body).ok());
        let view = lease.map(|lease| AdvisoryLease { session: lease.session, expires_ms: lease.expires_ms });
        if !may_take(view, self.session, wall_now) {
            return false;
        }
        let mine = SweepLease {
            version: SweepLease::VERSION,
            write_id: random::write_id(),
            node: self.node.clone(),
            session: self.session,
            expires_ms: wall_now.plus(LEASE_TTL_MS),
        };
        let guard = found.map_or(Guard::Absent, |object| Guard::Match(object.version));
        self.records.put_if(&key, Bytes::from(mine.encode()), guard, WRITE_DEADLINE_MS).await.is_applied()
    }

    /// One look at every log.
    ///
    /// # Errors
    /// [`OwnerReadError`]; what was found until then is recovered.
    pub(super) async fn round(&self, sealed: &mut HashSet<LogName>) -> Result<(), OwnerReadError> {
        let Listed { logs, bundles } = list(&*self.records).await?;
        let open: Vec<LogName> = logs.into_iter().filter(|log| !sealed.contains(log)).collect();
        let mut states = futures::stream::iter(open)
            .map(|log| async move { (is_sealed(&*self.records, &log).await, log) })
            .buffer_unordered(READS);
        let mut unsealed = Vec::new();
        while let Some((is_sealed, log)) = states.next().await {
            if is_sealed? {
                sealed.insert(log);
            } else {
                unsealed.push(log);
            }
        }
        drop(states);
        delete_debris(&*self.records, bundles, sealed).await?;
        let dead = self.dead(unsealed).await?;
        futures::stream::iter(dead)
            .for_each_concurrent(RECOVERIES_MAX, |log| async move {
                self.recoveries.attempt(&log).await;
            })
            .await;
        Ok(())
    }

    /// Those whose session is dead. The leases are read after the logs were listed: who has a log had the lease before.
    async fn dead(&self, logs: Vec<LogName>) -> Result<Vec<LogName>, OwnerReadError> {
        let mut leases = HashMap::new();
        let mut dead = Vec::new();
        for log in logs {
            if !leases.contains_key(&log.node) {
                let wall_now = clock::wall();
                let lease = self.owners.read_lease(&log.node).await?;
                leases.insert(log.node.clone(), (lease.as_ref().map(lease_view), wall_now));
            }
            let (lease, wall_now) = &leases[&log.node];
            if is_session_dead(lease.as_ref(), log.session, *wall_now, self.clock_skew_max_ms) {
                dead.push(log);
            }
        }
        Ok(dead)
    }
}

async fn is_sealed(records: &dyn Bucket, log: &LogName) -> Result<bool, BucketError> {
    let key = Key::NodeLog(log.node.clone(), log.session).to_string();
    let object = records.get(&key).await?;
    let record = object.and_then(|object| NodeLogRecord::decode(&object.body).ok());
    Ok(record.is_some_and(|record| record.state == NodeLogState::Sealed))
}

/// Deletes the bundles of sealed logs: nobody reads them, and what lands late is deleted by the next round.
async fn delete_debris(
    records: &dyn Bucket,
    bundles: HashMap<LogName, Vec<String>>,
    sealed: &HashSet<LogName>,
) -> Result<(), BucketError> {
    for (log, keys) in bundles {
        if sealed.contains(&log) {
            records.delete_many(&keys).await?;
            tracing::debug!(%log, bundles = keys.len(), "the bundles of a sealed log are deleted");
        }
    }
    Ok(())
}

/// Every log that has a record.
///
/// # Errors
/// [`BucketError`].
pub async fn list_logs(records: &dyn Bucket) -> Result<Vec<LogName>, BucketError> {
    Ok(list(records).await?.logs)
}

/// What is below `log/`.
#[derive(Default)]
struct Listed {
    logs: Vec<LogName>,
    bundles: HashMap<LogName, Vec<String>>,
}

async fn list(records: &dyn Bucket) -> Result<Listed, BucketError> {
    let mut listed = Listed::default();
    let mut after: Option<String> = None;
    loop {
        let page = records.list("log/", after.as_deref(), PAGE).await?;
        for object in page.objects {
            match Key::parse(&object.key) {
                Ok(Key::NodeLog(node, session)) => listed.logs.push(LogName { node, session }),
                Ok(Key::Bundle(node, session, _)) => {
                    listed.bundles.entry(LogName { node, session }).or_default().push(object.key);
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(listed),
        }
    }
}
