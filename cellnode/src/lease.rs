//! Executes the lease machine of the core against the bucket. It decides nothing: what to write when, and when to stop,
//! is [`LeaseKeeper`]'s.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_bucket::{Bucket, Commit, Version};
use holdfast_core::lease::{FenceCause, LeaseEffect, LeaseEvent, LeaseKeeper, LeaseRecord, LeaseTiming};
use holdfast_core::store::{self, Answer};
use holdfast_records::{Key, NodeLease, Record, RecordError};
use holdfast_telemetry::{RenewalOutcome, metrics};
use holdfast_types::{Incarnation, Millis, NodeName, SessionId, WriteId};
use tokio::sync::{Notify, watch};

use crate::authority::Authority;
use crate::{clock, random};

/// How long one read of the lease record may take.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes the record that a renewal publishes: addresses and load as they are now.
pub type Describe = Box<dyn Fn(WriteId, Millis) -> NodeLease + Send + Sync>;

/// Keeps one session's lease.
pub struct LeaseLoop {
    bucket: Arc<dyn Bucket>,
    key: String,
    node: NodeName,
    keeper: LeaseKeeper<Version>,
    pending: Vec<LeaseEffect<Version>>,
    authority: Arc<Authority>,
    describe: Describe,
    /// Who holds the name instead, as last read: where to look for it.
    other: Option<NodeLease>,
    /// Set once the lease is held.
    held: watch::Sender<bool>,
    /// Asks for a renewal now, to publish a change (draining).
    nudge: Arc<Notify>,
}

/// How a lease loop ended.
#[derive(Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// The session must stop at once.
    Fenced(FenceCause),
    /// Given up in order.
    GivenUp,
}

impl LeaseLoop {
    /// Prepares to acquire the lease of `node` for the data directory `incarnation`.
    #[must_use]
    pub fn new(
        bucket: Arc<dyn Bucket>,
        node: NodeName,
        (timing, session, incarnation): (LeaseTiming, SessionId, Incarnation),
        authority: Arc<Authority>,
        describe: Describe,
    ) -> Self {
        let (keeper, pending) = LeaseKeeper::start(timing, session, incarnation);
        Self {
            bucket,
            key: Key::NodeLease(node.clone()).to_string(),
            node,
            keeper,
            pending,
            authority,
            describe,
            other: None,
            held: watch::Sender::new(false),
            nudge: Arc::default(),
        }
    }

    /// Tells when the lease is held.
    #[must_use]
    pub fn held(&self) -> watch::Receiver<bool> {
        self.held.subscribe()
    }

    /// Asks for a renewal soon.
    #[must_use]
    pub fn nudge(&self) -> Arc<Notify> {
        Arc::clone(&self.nudge)
    }

    /// Acquires and keeps the lease until it is lost or `give_up` resolves.
    pub async fn run(mut self, give_up: impl Future<Output = ()>) -> LeaseEnd {
        tokio::pin!(give_up);
        loop {
            let mut wake_at = None;
            while let Some(effect) = (!self.pending.is_empty()).then(|| self.pending.remove(0)) {
                match effect {
                    LeaseEffect::WakeAt(at) => wake_at = Some(at),
                    LeaseEffect::Fence(cause) => {
                        self.authority.end();
                        return LeaseEnd::Fenced(cause);
                    }
                    other => self.execute(other).await,
                }
            }
            self.show_authority();
            let pause = wake_at.map_or(0, |at| at.since(clock::monotonic()));
            tokio::select! {
                biased;
                () = &mut give_up => {
                    self.give_up().await;
                    return LeaseEnd::GivenUp;
                }
                () = self.nudge.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(pause)) => {}
            }
            let event = LeaseEvent::Woke { now: clock::now(), write_id: random::write_id() };
            self.on(event);
        }
    }

    /// After every step, so that a renewal that keeps failing shows as authority that runs out.
    fn show_authority(&self) {
        let remaining = self.authority.until().since(clock::monotonic());
        metrics().lease_authority(self.node.as_str(), Duration::from_millis(remaining).as_secs_f64());
    }

    fn on(&mut self, event: LeaseEvent<Version>) {
        let effects = self.keeper.on(event);
        self.pending.extend(effects);
    }

    async fn execute(&mut self, effect: LeaseEffect<Version>) {
        match effect {
            LeaseEffect::Read => {
                let event = self.read().await;
                self.on(event);
            }
            LeaseEffect::Write { write_id, expires_ms, guard, deadline_ms } => {
                let answer = self.write(write_id, expires_ms, guard, deadline_ms).await;
                let event = LeaseEvent::Written { answer, now: clock::now(), jitter: random::byte() };
                self.on(event);
            }
            LeaseEffect::Authority { until } => {
                self.authority.extend(until);
                self.held.send_replace(true);
            }
            LeaseEffect::Waiting { holder, until_wall } => self.tell_wait(holder, until_wall),
            LeaseEffect::WakeAt(_) | LeaseEffect::Fence(_) => unreachable!("handled by the loop"),
        }
    }

    /// Told at each look, at least once a lease's lifetime: a holder that lives renews its lease, and then this waits for ever.
    fn tell_wait(&self, holder: SessionId, until: Millis) {
        let seconds = until.since(clock::wall()).div_ceil(1_000);
        let (host, address) = match self.other.as_ref().filter(|lease| lease.session == holder) {
            Some(lease) => (lease.host.to_string(), lease.address.as_str()),
            None => ("unknown".to_owned(), "unknown"),
        };
        tracing::warn!(
            node = %self.node, session = %holder, host, address, until_ms = until.get(),
            "another data directory holds the name of this node for {seconds} s more, and longer each time that it renews; \
             waiting. If both are to run, give this one another --node"
        );
    }

    async fn read(&mut self) -> LeaseEvent<Version> {
        let failed = || LeaseEvent::ReadFailed { now: clock::now(), jitter: random::byte() };
        let object = match tokio::time::timeout(READ_TIMEOUT, self.bucket.get(&self.key)).await {
            Ok(Ok(object)) => object,
            Ok(Err(error)) => {
                tracing::debug!(event = "node_lease_read", outcome = "error", %error);
                return failed();
            }
            Err(_) => {
                tracing::debug!(event = "node_lease_read", outcome = "error", error = "timed out");
                return failed();
            }
        };
        let record = match object {
            None => {
                tracing::debug!(event = "node_lease_read", outcome = "missing");
                None
            }
            Some(object) => match NodeLease::decode(&object.body) {
                Ok(lease) => {
                    tracing::debug!(event = "node_lease_read", outcome = "found", session = %lease.session);
                    let seen = (view(&lease), object.version);
                    self.other = self.keeper.version().is_none().then_some(lease);
                    Some(seen)
                }
                Err(error) => {
                    tracing::warn!(event = "node_lease_read", outcome = "found", %error, "not a lease of ours");
                    Some((foreign(&error), object.version))
                }
            },
        };
        LeaseEvent::Read { record, now: clock::now(), write_id: random::write_id() }
    }

    async fn write(
        &self,
        write_id: WriteId,
        expires_ms: Millis,
        guard: store::Guard<Version>,
        deadline_ms: u64,
    ) -> Answer<Version> {
        let body = Bytes::from((self.describe)(write_id, expires_ms).encode());
        let put = self.bucket.put_if(&self.key, body, guard.into(), deadline_ms);
        let commit = tokio::time::timeout(Duration::from_millis(deadline_ms), put).await;
        match commit {
            Ok(Commit::Applied(version)) => {
                tracing::debug!(event = "node_lease_write", outcome = "applied");
                metrics().lease_renewal(RenewalOutcome::Applied);
                Answer::Applied(version)
            }
            Ok(Commit::Rejected) => {
                tracing::debug!(event = "node_lease_write", outcome = "rejected");
                metrics().lease_renewal(RenewalOutcome::Rejected);
                Answer::Rejected
            }
            Ok(Commit::Unknown(error)) => {
                tracing::debug!(event = "node_lease_write", outcome = "error", %error);
                metrics().lease_renewal(RenewalOutcome::Unknown);
                Answer::Unknown
            }
            Err(_) => {
                tracing::debug!(event = "node_lease_write", outcome = "error", error = "timed out");
                metrics().lease_renewal(RenewalOutcome::Unknown);
                Answer::Unknown
            }
        }
    }

    /// Publishes that the session is over, so that nobody waits for its end. Best effort: the end comes anyway.
    async fn give_up(&self) {
        self.authority.end();
        if let Some(version) = self.keeper.version() {
            let guard = store::Guard::Match(version.clone());
            self.write(random::write_id(), Millis::ZERO, guard, 2_000).await;
        }
    }
}

/// A record that is none of this release's: somebody else's for sure. One of a newer release is respected without end;
/// one that is no lease at all protects nobody.
fn foreign(error: &RecordError) -> LeaseRecord {
    let expires_ms = match error {
        RecordError::TooNew { .. } => Millis::new(u64::MAX),
        RecordError::Malformed { .. } => Millis::ZERO,
    };
    LeaseRecord {
        write_id: WriteId::from_bits(0),
        session: SessionId::from_bits(0),
        incarnation: Incarnation::from_bits(0),
        expires_ms,
    }
}

fn view(lease: &NodeLease) -> LeaseRecord {
    LeaseRecord {
        write_id: lease.write_id,
        session: lease.session,
        incarnation: lease.incarnation,
        expires_ms: lease.expires_ms,
    }
}
