//! Executes claims and releases of the core against the bucket. The record's fields pass through unchanged; what they
//! mean is decided by [`Claim`] and [`Release`].

mod forced;
mod owned;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError, Commit, Version};
use holdfast_core::ownership::{
    Claim, ClaimEffect, ClaimEvent, ClaimOutcome, Claimant, Intent, LeaseView, OwnerState, OwnerView,
    Protocol, Release, ReleaseEffect, ReleaseEvent, ReleaseOutcome,
};
use holdfast_core::store::{self, Answer};
use holdfast_records::{Key, NodeLease, OwnerRecord, Record, RecordError, cell_prefix};
use holdfast_rpc::follower::LogName;
use holdfast_telemetry::names::span;
use holdfast_telemetry::{Stage, metrics};
use holdfast_types::{CellName, NodeName};
use tracing::Instrument as _;

use self::owned::Owned;
use crate::backoff::Backoff;
use crate::recovery::Recoveries;
use crate::{clock, random};

/// How long one conditional write of an owner record may take, its retries included, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Reads of one record before a claim is told that it cannot be read.
const READ_ATTEMPTS: u32 = 4;
/// Between them: 150 ms doubling to 600 ms.
const READ_PAUSES: Backoff = Backoff::new(150, 2);

/// A record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OwnerReadError {
    /// The store failed. Disposition: retry.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The record is not one. Disposition: corrupt, or reject (too new).
    #[error("`{key}`: {source}")]
    Record {
        /// The object.
        key: String,
        /// What is wrong with it.
        source: RecordError,
    },
}

/// Reads and writes owner records.
#[derive(Clone, Debug)]
pub struct Owners {
    records: Arc<dyn Bucket>,
    leases: Arc<dyn Bucket>,
    owned: Arc<Owned>,
    recoveries: Option<Recoveries>,
}

impl Owners {
    /// Over these buckets.
    #[must_use]
    pub fn new(records: Arc<dyn Bucket>, leases: Arc<dyn Bucket>) -> Self {
        Self { records, leases, owned: Arc::default(), recoveries: None }
    }

    /// With these recoveries. Without any, no cell of a dead session is ever claimed.
    #[must_use]
    pub fn recovering(self, recoveries: Recoveries) -> Self {
        Self { recoveries: Some(recoveries), ..self }
    }

    /// One read of a cell's owner record.
    ///
    /// # Errors
    /// [`OwnerReadError`]; absence is not an error.
    pub async fn read(&self, cell: &CellName) -> Result<Option<(OwnerView, Version)>, OwnerReadError> {
        let key = Key::Owner(cell.clone()).to_string();
        let Some(object) = self.records.get(&key).await? else { return Ok(None) };
        let record =
            OwnerRecord::decode(&object.body).map_err(|source| OwnerReadError::Record { key, source })?;
        Ok(Some((view(record), object.version)))
    }

    /// One read of a node's lease.
    ///
    /// # Errors
    /// [`OwnerReadError`]; absence is not an error.
    pub async fn read_lease(&self, node: &NodeName) -> Result<Option<NodeLease>, OwnerReadError> {
        let key = Key::NodeLease(node.clone()).to_string();
        let Some(object) = self.leases.get(&key).await? else { return Ok(None) };
        let lease =
            NodeLease::decode(&object.body).map_err(|source| OwnerReadError::Record { key, source })?;
        Ok(Some(lease))
    }

    /// Runs a claim to its end.
    pub async fn claim(&self, cell: &CellName, me: Claimant, intent: Intent) -> ClaimOutcome<Version> {
        self.run(cell, intent, Claim::start(me, intent, random::write_id())).await
    }

    /// Runs the claim of a cell that this session let sleep, whose record was then as given, to its end.
    pub async fn wake(
        &self,
        cell: &CellName,
        me: Claimant,
        record: (OwnerView, Version),
    ) -> ClaimOutcome<Version> {
        self.run(cell, Intent::Own, Claim::wake(me, random::write_id(), record)).await
    }

    async fn run(
        &self,
        cell: &CellName,
        intent: Intent,
        (mut claim, mut effect): (Claim<Version>, ClaimEffect<Version>),
    ) -> ClaimOutcome<Version> {
        loop {
            let event = match effect {
                ClaimEffect::ReadOwner => self.read_for_claim(cell).await,
                ClaimEffect::ReadLease { node } => self.read_lease_for_claim(&node).await,
                ClaimEffect::LookForHistory => self.look_for_history(cell).await,
                ClaimEffect::RecoverLog { node, session } => {
                    self.recover(cell, LogName { node, session }).await
                }
                ClaimEffect::WriteOwner { owner, guard } => {
                    ClaimEvent::ClaimAnswered(self.write(cell, &owner, guard).await)
                }
                ClaimEffect::Finish(outcome) => {
                    self.note(cell, intent, &outcome);
                    return outcome;
                }
            };
            effect = claim.on(event);
        }
    }

    /// Has the dead owner's log recovered, as long as an activation may wait.
    async fn recover(&self, cell: &CellName, log: LogName) -> ClaimEvent<Version> {
        let Some(recoveries) = &self.recoveries else { return ClaimEvent::LogBlocked };
        tracing::info!(%cell, node = %log.node, session = %log.session, "taking over from a dead session");
        let started = Instant::now();
        let span = tracing::info_span!(span::RECOVER, node = %log.node, session = %log.session);
        let is_recovered = recoveries.recover_for(cell, &log).instrument(span).await;
        metrics().activation_stage(Stage::Recover, started.elapsed());
        if is_recovered { ClaimEvent::LogRecovered } else { ClaimEvent::LogBlocked }
    }

    /// Why a cell cannot be claimed, where it waits for the recovery of a log.
    #[must_use]
    pub fn hold_up(&self, cell: &CellName) -> Option<String> {
        self.recoveries.as_ref()?.hold_up(cell)
    }

    /// Gives a cell up: the record becomes `released`, unless somebody has claimed it meanwhile.
    pub async fn release(&self, cell: &CellName, owned: &OwnerView, version: Version) -> ReleaseOutcome {
        let (mut release, mut effect) = Release::start(owned, version, random::write_id());
        loop {
            let event = match effect {
                ReleaseEffect::WriteOwner { owner, guard } => {
                    ReleaseEvent::Answered(self.write(cell, &owner, guard).await)
                }
                ReleaseEffect::ReadOwner => match self.read(cell).await {
                    Ok(owner) => ReleaseEvent::OwnerRead { owner },
                    Err(error) => {
                        tracing::debug!(%cell, %error, "the owner record could not be read during a release");
                        ReleaseEvent::ReadFailed
                    }
                },
                ReleaseEffect::Finish(outcome) => {
                    if outcome != ReleaseOutcome::Unknown {
                        self.lost(cell);
                    }
                    return outcome;
                }
            };
            effect = release.on(event);
        }
    }

    /// The owner record of a cell turned out to name another session.
    pub(crate) fn lost(&self, cell: &CellName) {
        self.owned.remove(cell);
    }

    fn note(&self, cell: &CellName, intent: Intent, outcome: &ClaimOutcome<Version>) {
        match (intent, outcome) {
            (Intent::Own, ClaimOutcome::Claimed { .. }) => self.owned.add(cell),
            (_, ClaimOutcome::NotOwner { .. } | ClaimOutcome::Incompatible { .. }) => self.lost(cell),
            // Whose it is now is unknown.
            (Intent::Purge, _) | (_, ClaimOutcome::Failed(_) | ClaimOutcome::NothingToPurge) => {}
        }
    }

    async fn read_for_claim(&self, cell: &CellName) -> ClaimEvent<Version> {
        for attempt in 0..READ_ATTEMPTS {
            match self.read(cell).await {
                Ok(owner) => return ClaimEvent::OwnerRead { owner },
                Err(error) => pause_after(&error, cell.as_str(), attempt).await,
            }
        }
        ClaimEvent::ReadFailed
    }

    async fn look_for_history(&self, cell: &CellName) -> ClaimEvent<Version> {
        let prefix = cell_prefix(cell);
        for attempt in 0..READ_ATTEMPTS {
            match self.records.list(&prefix, None, 2).await {
                Ok(page) => {
                    // The record itself may be there by now; then the guarded write is refused.
                    let record = Key::Owner(cell.clone()).to_string();
                    let is_there = page.objects.iter().any(|object| object.key != record);
                    return ClaimEvent::HistoryLookedFor { is_there };
                }
                Err(error) => pause_after(&error.into(), cell.as_str(), attempt).await,
            }
        }
        ClaimEvent::ReadFailed
    }

    async fn read_lease_for_claim(&self, node: &NodeName) -> ClaimEvent<Version> {
        for attempt in 0..READ_ATTEMPTS {
            // Taken before the read: an answer that was long on its way must not make a renewed lease look dead.
            let wall_now = clock::wall();
            match self.read_lease(node).await {
                Ok(lease) => {
                    let lease = lease.as_ref().map(lease_view);
                    return ClaimEvent::LeaseRead { lease, wall_now };
                }
                Err(error) => pause_after(&error, node.as_str(), attempt).await,
            }
        }
        ClaimEvent::ReadFailed
    }

    async fn write(
        &self,
        cell: &CellName,
        owner: &OwnerView,
        guard: store::Guard<Version>,
    ) -> Answer<Version> {
        let key = Key::Owner(cell.clone()).to_string();
        let body = Bytes::from(record(owner).encode());
        match self.records.put_if(&key, body, guard.into(), WRITE_DEADLINE_MS).await {
            Commit::Applied(version) => Answer::Applied(version),
            Commit::Rejected => Answer::Rejected,
            Commit::Unknown(error) => {
                tracing::debug!(%cell, %error, "the outcome of an owner record's write is unknown");
                Answer::Unknown
            }
        }
    }
}

async fn pause_after(error: &OwnerReadError, what: &str, attempt: u32) {
    tracing::debug!(what, %error, attempt, "a record could not be read");
    if attempt + 1 < READ_ATTEMPTS {
        READ_PAUSES.pause(attempt).await;
    }
}

/// What the core sees of a record.
#[must_use]
pub fn view(record: OwnerRecord) -> OwnerView {
    let OwnerRecord { version: _, write_id, node, session, epoch, state, floor } = record;
    let state = match state {
        holdfast_records::OwnerState::Owned => OwnerState::Owned,
        holdfast_records::OwnerState::Released => OwnerState::Released,
        holdfast_records::OwnerState::Purged => OwnerState::Purged,
    };
    OwnerView { node, session, epoch, state, floor, write_id }
}

fn record(view: &OwnerView) -> OwnerRecord {
    let OwnerView { node, session, epoch, state, floor, write_id } = view.clone();
    let state = match state {
        OwnerState::Owned => holdfast_records::OwnerState::Owned,
        OwnerState::Released => holdfast_records::OwnerState::Released,
        OwnerState::Purged => holdfast_records::OwnerState::Purged,
    };
    OwnerRecord { version: OwnerRecord::VERSION, write_id, node, session, epoch, state, floor }
}

/// What the core sees of a lease.
#[must_use]
pub fn lease_view(lease: &NodeLease) -> LeaseView {
    LeaseView {
        session: lease.session,
        expires_ms: lease.expires_ms,
        protocol: Protocol { min: lease.protocol.min, max: lease.protocol.max },
    }
}
