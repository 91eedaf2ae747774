//! The sweep: finds dead sessions whose logs are not recovered, in one waker of the fleet, and has cellnodes recover them; buries leases
//! of nodes that are long gone. So
//! what only followers hold reaches the bucket without anybody asking for the cells. Every round looks at everything anew, so
//! that a failure strands nothing; whoever claims a cell of a dead session still recovers its log by itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use holdfast_bucket::{Bucket, BucketError, Guard};
use holdfast_core::advisory::{AdvisoryLease, may_take};
use holdfast_core::ownership::{LeaseView, Protocol, is_session_dead};
use holdfast_core::waker::{Burials, recoverer};
use holdfast_records::{Key, NodeLease, NodeLogRecord, NodeLogState, Record, SweepLease};
use holdfast_rpc::follower::LogName;
use holdfast_rpc::{CellClient, Peer};
use holdfast_telemetry::{SweepResult, metrics};
use holdfast_types::{Millis, NodeName, SessionId};
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;

use crate::bury::bury;
use crate::leases::read_leases;
use crate::{clock, random};

/// How long the lease's write may take, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Recoveries at once: most of their time is a wait for followers that may not answer.
const RECOVERIES_MAX: usize = 16;
/// Rows of one page of a listing.
const PAGE: usize = 1_000;
/// Records read at once.
const READS: usize = 16;
/// After a round that left something to do, the next one comes in this part of the interval.
const HURRY: u32 = 6;

/// What a sweep works with.
pub(crate) struct Sweep {
    /// The waker, as the lease names it.
    pub(crate) name: NodeName,
    /// Its session.
    pub(crate) session: SessionId,
    /// Between rounds.
    pub(crate) interval: Duration,
    /// Where log records and the sweep's lease are.
    pub(crate) records: Arc<dyn Bucket>,
    /// Where nodes' leases are.
    pub(crate) leases: Arc<dyn Bucket>,
    /// Asks nodes.
    pub(crate) client: CellClient,
    /// How far two machines' clocks may differ, in milliseconds.
    pub(crate) clock_skew_max_ms: u64,
    /// How long tombstones of leases stay, in milliseconds.
    pub(crate) forget_after_ms: u64,
    /// Told whether this waker is the one that sweeps.
    pub(crate) mine: watch::Sender<bool>,
}

/// What one waker knows from earlier rounds.
pub(crate) struct Known {
    /// Logs that are sealed, which is for ever.
    sealed: HashSet<LogName>,
    burials: Burials,
}

impl Sweep {
    /// Nothing is known yet.
    pub(crate) fn known(&self) -> Known {
        Known { sealed: HashSet::new(), burials: Burials::new(self.forget_after_ms) }
    }

    /// Sweeps until `stop` resolves, and gives the lease up then.
    pub(crate) async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval((self.interval / HURRY).max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = self.known();
        let (mut wait, mut is_mine) = (0, false);
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                _ = ticks.tick() => {}
            }
            if wait > 0 {
                wait -= 1;
                continue;
            }
            is_mine = self.take_lease(self.interval * 3).await;
            self.mine.send_replace(is_mine);
            let is_done = !is_mine
                || self.round(&mut known).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "a sweep for dead sessions could not read the bucket; the next one will");
                    false
                });
            wait = if is_done { HURRY - 1 } else { 0 };
        }
        if is_mine {
            self.take_lease(Duration::ZERO).await;
        }
    }

    /// Takes or renews the sweep's lease; for no time at all: gives it up. False: somebody else sweeps, or the store does
    /// not say.
    async fn take_lease(&self, span: Duration) -> bool {
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
        let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let mine = SweepLease {
            version: SweepLease::VERSION,
            write_id: random::write_id(),
            node: self.name.clone(),
            session: self.session,
            expires_ms: wall_now.plus(span_ms),
        };
        let guard = found.map_or(Guard::Absent, |object| Guard::Match(object.version));
        self.records.put_if(&key, Bytes::from(mine.encode()), guard, WRITE_DEADLINE_MS).await.is_applied()
    }

    /// One look at every log. True: nothing is left to do.
    ///
    /// # Errors
    /// [`BucketError`]; what was found until then is recovered.
    pub(crate) async fn round(&self, known: &mut Known) -> Result<bool, BucketError> {
        let Known { sealed, burials } = known;
        let Listed { logs, bundles } = list(&*self.records).await?;
        let open: Vec<LogName> = logs.into_iter().filter(|log| !sealed.contains(log)).collect();
        let mut states = futures::stream::iter(open)
            .map(|log| async move { (is_sealed(&*self.records, &log).await, log) })
            .buffer_unordered(READS);
        let mut unsealed = HashSet::new();
        while let Some((is_sealed, log)) = states.next().await {
            if is_sealed? {
                sealed.insert(log);
            } else {
                unsealed.insert(log);
            }
        }
        drop(states);
        // The leases are read after the logs were listed: who has a log had the lease before.
        let wall_now = clock::wall();
        let all = read_leases(&*self.leases).await?;
        let leases: HashMap<NodeName, NodeLease> =
            all.iter().map(|lease| (lease.node.clone(), lease.clone())).collect();
        let dead: Vec<LogName> = unsealed
            .iter()
            .filter(|log| {
                let lease = leases.get(&log.node).map(view);
                is_session_dead(lease.as_ref(), log.session, wall_now, self.clock_skew_max_ms)
            })
            .cloned()
            .collect();
        let recovered: Vec<bool> = futures::stream::iter(dead)
            .map(|log| self.recover(log, &leases, wall_now))
            .buffer_unordered(RECOVERIES_MAX)
            .collect()
            .await;
        // Last: a store that deletes nothing keeps nobody from being recovered.
        delete_debris(&*self.records, bundles, sealed).await?;
        bury(&*self.leases, burials, (&all, &unsealed), clock::now(), self.clock_skew_max_ms).await?;
        Ok(recovered.into_iter().all(|is_recovered| is_recovered))
    }

    /// Has a live node recover a log. False: not yet.
    async fn recover(&self, log: LogName, leases: &HashMap<NodeName, NodeLease>, wall_now: Millis) -> bool {
        let live = |lease: &&NodeLease| wall_now < lease.expires_ms && !lease.draining;
        let takers = leases.values().filter(live).map(|lease| &lease.node);
        let Some(lease) = recoverer(log.session, takers).and_then(|node| leases.get(node)) else {
            tracing::warn!(%log, "a dead session's log waits for a cellnode that recovers it: none is live");
            metrics().waker_sweep(SweepResult::NoNode);
            return false;
        };
        let peer = Peer::of(lease);
        match self.client.recover_log(&peer, &log).await {
            Ok(()) => {
                tracing::info!(%log, by = %peer, "the log of a dead session is recovered");
                metrics().waker_sweep(SweepResult::Recovered);
                true
            }
            Err(error) => {
                tracing::info!(%log, by = %peer, %error, "the log of a dead session is not recovered yet");
                metrics().waker_sweep(SweepResult::NotYet);
                false
            }
        }
    }
}

fn view(lease: &NodeLease) -> LeaseView {
    LeaseView {
        session: lease.session,
        expires_ms: lease.expires_ms,
        protocol: Protocol { min: lease.protocol.min, max: lease.protocol.max },
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
