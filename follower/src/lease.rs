//! Executes the core's lease machine for a follower. The lease helps to find followers and no promise rests on it: when it
//! expires because the bucket is away, the follower goes on and acquires it anew. Only a name that another process
//! holds is the end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_bucket::{Bucket, Commit, Version};
use holdfast_core::lease::{FenceCause, LeaseEffect, LeaseEvent, LeaseKeeper, LeaseRecord, LeaseTiming};
use holdfast_core::store::{self, Answer};
use holdfast_records::{FollowerLease, Key, Record, RecordError};
use holdfast_types::{FollowerName, Incarnation, Millis, SessionId, WriteId};
use tokio::sync::{Notify, watch};

use crate::{clock, random};

/// How long one read of the lease record may take.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the last write may take.
const GIVE_UP_TIMEOUT_MS: u64 = 2_000;

/// Makes the record that a renewal publishes.
pub(crate) type Describe = Box<dyn Fn(WriteId, Millis) -> FollowerLease + Send + Sync>;

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    /// Another process has the name.
    Lost(FenceCause),
    /// Given up in order.
    GivenUp,
}

/// Keeps one process's lease.
pub(crate) struct LeaseLoop {
    bucket: Arc<dyn Bucket>,
    key: String,
    follower: FollowerName,
    identity: (LeaseTiming, SessionId, Incarnation),
    keeper: LeaseKeeper<Version>,
    pending: Vec<LeaseEffect<Version>>,
    describe: Describe,
    held: watch::Sender<bool>,
    nudge: Arc<Notify>,
}

impl LeaseLoop {
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        follower: FollowerName,
        identity: (LeaseTiming, SessionId, Incarnation),
        describe: Describe,
    ) -> Self {
        let (timing, session, incarnation) = identity;
        let (keeper, pending) = LeaseKeeper::start(timing, session, incarnation);
        Self {
            bucket,
            key: Key::FollowerLease(follower.clone()).to_string(),
            follower,
            identity,
            keeper,
            pending,
            describe,
            held: watch::Sender::new(false),
            nudge: Arc::default(),
        }
    }

    /// Tells when the lease was held once.
    pub(crate) fn held(&self) -> watch::Receiver<bool> {
        self.held.subscribe()
    }

    /// Asks for a renewal soon, to publish a change.
    pub(crate) fn nudge(&self) -> Arc<Notify> {
        Arc::clone(&self.nudge)
    }

    /// Acquires and keeps the lease until another process has the name or `give_up` resolves.
    pub(crate) async fn run(mut self, give_up: impl Future<Output = ()>) -> LeaseEnd {
        tokio::pin!(give_up);
        loop {
            let mut wake_at = None;
            while let Some(effect) = (!self.pending.is_empty()).then(|| self.pending.remove(0)) {
                match effect {
                    LeaseEffect::WakeAt(at) => wake_at = Some(at),
                    LeaseEffect::Fence(cause) => match self.fence(cause) {
                        Some(end) => return end,
                        None => wake_at = None,
                    },
                    LeaseEffect::Waiting { holder, until_wall } => {
                        if *self.held.borrow() {
                            return LeaseEnd::Lost(FenceCause::RecordMismatch);
                        }
                        self.tell_wait(holder, until_wall);
                    }
                    other => self.execute(other).await,
                }
            }
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

    /// An expiry is followed by another acquisition: whoever took the name meanwhile is found there.
    fn fence(&mut self, cause: FenceCause) -> Option<LeaseEnd> {
        if cause == FenceCause::RecordMismatch {
            return Some(LeaseEnd::Lost(cause));
        }
        tracing::warn!(follower = %self.follower, cause = cause.name(), "the lease ended; acquiring it anew");
        let (timing, session, incarnation) = self.identity;
        (self.keeper, self.pending) = LeaseKeeper::start(timing, session, incarnation);
        None
    }

    fn tell_wait(&self, holder: SessionId, until: Millis) {
        let seconds = until.since(clock::wall()).div_ceil(1_000);
        tracing::warn!(
            follower = %self.follower, session = %holder,
            "another log directory holds the name of this follower for {seconds} s more, and longer each time that it \
             renews; waiting. If both are to run, give this one another --follower"
        );
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
                self.on(LeaseEvent::Written { answer, now: clock::now(), jitter: random::byte() });
            }
            LeaseEffect::Authority { .. } => {
                self.held.send_replace(true);
            }
            LeaseEffect::WakeAt(_) | LeaseEffect::Fence(_) | LeaseEffect::Waiting { .. } => {
                unreachable!("handled by the loop")
            }
        }
    }

    async fn read(&self) -> LeaseEvent<Version> {
        let failed = || LeaseEvent::ReadFailed { now: clock::now(), jitter: random::byte() };
        let object = match tokio::time::timeout(READ_TIMEOUT, self.bucket.get(&self.key)).await {
            Ok(Ok(object)) => object,
            Ok(Err(error)) => {
                tracing::debug!(event = "follower_lease_read", outcome = "error", %error);
                return failed();
            }
            Err(_) => {
                tracing::debug!(event = "follower_lease_read", outcome = "error", error = "timed out");
                return failed();
            }
        };
        let record = object.map(|object| {
            let lease = FollowerLease::decode(&object.body);
            let lease = lease.as_ref().map_or_else(foreign, view);
            tracing::debug!(event = "follower_lease_read", outcome = "found", session = %lease.session);
            (lease, object.version)
        });
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
        let (answer, outcome) = match tokio::time::timeout(Duration::from_millis(deadline_ms), put).await {
            Ok(Commit::Applied(version)) => (Answer::Applied(version), "applied"),
            Ok(Commit::Rejected) => (Answer::Rejected, "rejected"),
            Ok(Commit::Unknown(_)) | Err(_) => (Answer::Unknown, "error"),
        };
        tracing::debug!(event = "follower_lease_write", outcome);
        answer
    }

    /// Publishes that the process is over. Best effort: the end comes anyway.
    async fn give_up(&self) {
        if let Some(version) = self.keeper.version() {
            let guard = store::Guard::Match(version.clone());
            self.write(random::write_id(), Millis::ZERO, guard, GIVE_UP_TIMEOUT_MS).await;
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

fn view(lease: &FollowerLease) -> LeaseRecord {
    LeaseRecord {
        write_id: lease.write_id,
        session: lease.session,
        incarnation: lease.incarnation,
        expires_ms: lease.expires_ms,
    }
}
