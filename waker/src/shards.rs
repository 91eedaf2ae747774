//! The leases on shards, read and written at every tick as `holdfast_core::waker::plan_shards` says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use holdfast_bucket::{Bucket, BucketError, Commit, Guard, Version};
use holdfast_core::waker::{ShardAction, ShardHolder, ShardLease, plan_shards};
use holdfast_records::{Key, Record, ShardWish, WakerLease};
use holdfast_telemetry::{LeaseWriteOutcome, metrics};
use holdfast_types::{Millis, SessionId, WakerName};
use tokio::sync::{oneshot, watch};

use crate::{clock, random};

/// How long one lease's write may take, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 3_000;

/// Until when each shard counts as held, by the monotonic clock: whoever cannot renew must not go on for ever.
type Ends = BTreeMap<u16, Millis>;

/// Keeps this waker's share of the shards.
pub(crate) struct Shards {
    pub(crate) records: Arc<dyn Bucket>,
    pub(crate) waker: WakerName,
    pub(crate) session: SessionId,
    pub(crate) shards: u16,
    pub(crate) tick: Duration,
    pub(crate) ttl_ms: u64,
    /// Those that are ours.
    pub(crate) held: watch::Sender<BTreeSet<u16>>,
}

/// A lease as read.
#[derive(Clone)]
struct Found {
    /// None: of a newer release, or damaged. Somebody else's, then.
    lease: Option<WakerLease>,
    version: Version,
}

impl Found {
    fn view(&self) -> ShardLease {
        let Some(WakerLease { session, expires_ms, wish, .. }) = &self.lease else {
            let nobody = SessionId::from_bits(0);
            return ShardLease { holder: holder(nobody, Millis::new(u64::MAX)), wish: None };
        };
        let wish = wish.map(|ShardWish { session, expires_ms }| holder(session, expires_ms));
        ShardLease { holder: holder(*session, *expires_ms), wish }
    }

    fn is_of(&self, session: SessionId) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.session == session)
    }
}

const fn holder(session: SessionId, expires_ms: Millis) -> ShardHolder {
    ShardHolder { session, expires_ms }
}

impl Shards {
    /// The first look: takes what is free.
    pub(crate) async fn begin(&self) -> Ends {
        let mut ends = Ends::new();
        self.round(&mut ends).await;
        ends
    }

    /// Keeps them until `stop` resolves, and gives them up then.
    pub(crate) async fn run(self, mut ends: Ends, mut stop: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + self.tick, self.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                _ = ticks.tick() => self.round(&mut ends).await,
            }
        }
        self.give_up(ends.into_keys().collect()).await;
    }

    async fn round(&self, ends: &mut Ends) {
        let began = clock::monotonic();
        match self.read().await {
            Ok(found) => {
                let leases: Vec<Option<ShardLease>> =
                    found.iter().map(|found| found.as_ref().map(Found::view)).collect();
                let wall = clock::wall();
                let plan = plan_shards(&leases, self.session, wall);
                let writes = plan.into_iter().map(|action| self.write(action, &found, wall));
                for (action, is_applied) in join_all(writes).await {
                    match action {
                        ShardAction::Hold(shard) if is_applied => {
                            ends.insert(shard, began.plus(self.ttl_ms));
                        }
                        ShardAction::GiveUp(shard) => {
                            ends.remove(&shard);
                        }
                        ShardAction::Hold(_) | ShardAction::Wish(_) => {}
                    }
                }
                // What another holds now is not ours, whatever we held.
                ends.retain(|shard, _| {
                    let found = found.get(usize::from(*shard)).and_then(Option::as_ref);
                    found.is_none_or(|found| {
                        found.is_of(self.session) || found.view().holder.expires_ms <= wall
                    })
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the leases of shards could not be read; the next tick will");
            }
        }
        let now = clock::monotonic();
        ends.retain(|_, end| now < *end);
        let held: BTreeSet<u16> = ends.keys().copied().collect();
        metrics().waker_shards(self.waker.as_str(), held.len());
        self.held.send_if_modified(|before| {
            let is_news = *before != held;
            if is_news {
                tracing::info!(waker = %self.waker, shards = ?held, "looks after these shards");
                *before = held;
            }
            is_news
        });
    }

    async fn read(&self) -> Result<Vec<Option<Found>>, BucketError> {
        let read = |shard| async move {
            let key = Key::WakerLease(shard).to_string();
            let Some(object) = self.records.get(&key).await? else { return Ok(None) };
            let lease = WakerLease::decode(&object.body);
            if let Err(error) = &lease {
                tracing::error!(key, %error, "a waker's lease cannot be used: this shard is left to others");
            }
            Ok(Some(Found { lease: lease.ok(), version: object.version }))
        };
        join_all((0..self.shards).map(read)).await.into_iter().collect()
    }

    async fn write(&self, action: ShardAction, found: &[Option<Found>], wall: Millis) -> (ShardAction, bool) {
        let (ShardAction::Hold(shard) | ShardAction::GiveUp(shard) | ShardAction::Wish(shard)) = action;
        let found = found[usize::from(shard)].as_ref();
        let lease = found.and_then(|found| found.lease.as_ref());
        let until = wall.plus(self.ttl_ms);
        let mine = |expires_ms| WakerLease {
            version: WakerLease::VERSION,
            write_id: random::write_id(),
            waker: self.waker.clone(),
            session: self.session,
            expires_ms,
            // Of another, while it stands.
            wish: lease
                .and_then(|lease| lease.wish)
                .filter(|wish| wish.session != self.session && wall < wish.expires_ms),
        };
        let record = match (action, lease) {
            (ShardAction::Wish(_), Some(lease)) => WakerLease {
                write_id: random::write_id(),
                wish: Some(ShardWish { session: self.session, expires_ms: until }),
                ..lease.clone()
            },
            (ShardAction::GiveUp(_), _) => mine(Millis::ZERO),
            (ShardAction::Hold(_) | ShardAction::Wish(_), _) => mine(until),
        };
        let guard = found.map_or(Guard::Absent, |found| Guard::Match(found.version.clone()));
        let key = Key::WakerLease(shard).to_string();
        let commit = self.records.put_if(&key, Bytes::from(record.encode()), guard, WRITE_DEADLINE_MS).await;
        metrics().waker_lease_write(match &commit {
            Commit::Applied(_) => LeaseWriteOutcome::Applied,
            Commit::Rejected => LeaseWriteOutcome::Rejected,
            Commit::Unknown(_) => LeaseWriteOutcome::Unknown,
        });
        (action, commit.is_applied())
    }

    /// Whoever comes next need not wait for the leases to end.
    async fn give_up(&self, held: Vec<u16>) {
        let Ok(found) = self.read().await else { return };
        let wall = clock::wall();
        let ours = held.into_iter().filter(|shard| {
            let found = found.get(usize::from(*shard)).and_then(Option::as_ref);
            found.is_some_and(|found| found.is_of(self.session))
        });
        join_all(ours.map(|shard| self.write(ShardAction::GiveUp(shard), &found, wall))).await;
        metrics().waker_shards(self.waker.as_str(), 0);
    }
}
