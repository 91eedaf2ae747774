//! The turn to drain, `fleet/drain.json`: nodes that are told to leave at the same time do it one after the other, so that a cell is
//! not given to a node that leaves next. Advisory: a node that has waited long enough goes on without it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_bucket::{Bucket, Guard, Version};
use holdfast_core::advisory::{AdvisoryLease, Turn, turn};
use holdfast_records::{DrainLease, Key, Record};
use holdfast_types::{Millis, NodeName, SessionId};

use crate::node::Node;
use crate::{clock, random};

/// Lifetime of the lease: how long others wait for a node that died while it drained.
const TTL_MS: u64 = 5_000;
/// It is renewed so often.
const RENEWAL: Duration = Duration::from_millis(TTL_MS / 3);
/// Whoever waits looks so often.
const LOOK: Duration = Duration::from_millis(200);
/// How long one write may take, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 2_000;

/// Takes, keeps and gives up the turn for one session.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    records: Arc<dyn Bucket>,
    node: NodeName,
    session: SessionId,
}

type Found = Option<(Option<DrainLease>, Version)>;

impl Turns {
    pub(crate) fn of(node: &Node) -> Self {
        Self { records: Arc::clone(&node.buckets.records), node: node.name.clone(), session: node.session }
    }

    /// Waits for the turn, so long at most. False: it goes on without.
    pub(crate) async fn take(&self, patience: Duration) -> bool {
        let began = Instant::now();
        let patience_ms = clock::millis(patience);
        let mut is_told = false;
        loop {
            let waited_ms = clock::millis(began.elapsed());
            let found = self.read().await;
            // What cannot be read may be anybody's.
            let holder = found.as_ref().map_or(Some(SOMEBODY), view);
            match turn(holder, self.session, clock::wall(), (waited_ms, patience_ms)) {
                Turn::Take => {
                    if self.write(found.unwrap_or_default(), TTL_MS).await {
                        return true;
                    }
                }
                Turn::GoWithout => {
                    tracing::warn!(node = %self.node, ?patience, "another node drains still; going on all the same");
                    return false;
                }
                Turn::Wait => {
                    if !std::mem::replace(&mut is_told, true) {
                        let other = found.flatten().and_then(|(lease, _)| lease);
                        let other =
                            other.map_or_else(|| "unknown".to_owned(), |lease| lease.node.to_string());
                        tracing::info!(node = %self.node, other, "waits until another node has drained");
                    }
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Renews for ever, unless another has it.
    pub(crate) async fn keep(self) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            self.write_mine(TTL_MS).await;
        }
    }

    /// The next one need not wait for its end.
    pub(crate) async fn give_up(&self) {
        self.write_mine(0).await;
    }

    async fn write_mine(&self, ttl_ms: u64) {
        if let Some(Some((Some(lease), version))) = self.read().await
            && lease.session == self.session
        {
            self.write(Some((Some(lease), version)), ttl_ms).await;
        }
    }

    /// None: the bucket does not say.
    async fn read(&self) -> Option<Found> {
        match self.records.get(&Key::DrainLease.to_string()).await {
            Ok(object) => Some(object.map(|object| (DrainLease::decode(&object.body).ok(), object.version))),
            Err(error) => {
                tracing::debug!(%error, "the drain's lease could not be read");
                None
            }
        }
    }

    async fn write(&self, found: Found, ttl_ms: u64) -> bool {
        let lease = DrainLease {
            version: DrainLease::VERSION,
            write_id: random::write_id(),
            node: self.node.clone(),
            session: self.session,
            expires_ms: if ttl_ms == 0 { Millis::ZERO } else { clock::wall().plus(ttl_ms) },
        };
        let guard = found.map_or(Guard::Absent, |(_, version)| Guard::Match(version));
        let body = Bytes::from(lease.encode());
        self.records.put_if(&Key::DrainLease.to_string(), body, guard, WRITE_DEADLINE_MS).await.is_applied()
    }
}

/// Nobody in particular, for ever.
const SOMEBODY: AdvisoryLease =
    AdvisoryLease { session: SessionId::from_bits(0), expires_ms: Millis::new(u64::MAX) };

/// What the lease says; one of a newer release is somebody else's.
fn view(found: &Found) -> Option<AdvisoryLease> {
    let (lease, _) = found.as_ref()?;
    let view = |lease: &DrainLease| AdvisoryLease { session: lease.session, expires_ms: lease.expires_ms };
    Some(lease.as_ref().map_or(SOMEBODY, view))
}

#[cfg(test)]
mod tests {
    use holdfast_bucket::MemoryBucket;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn turns(bucket: &Arc<MemoryBucket>, session: u128) -> Turns {
        let records = Arc::clone(bucket) as Arc<dyn Bucket>;
        let node = NodeName::parse(&format!("n{session}")).unwrap();
        Turns { records, node, session: SessionId::from_bits(session) }
    }

    #[tokio::test]
    async fn one_drains_at_a_time_and_the_next_when_it_is_done() {
        let bucket = Arc::new(MemoryBucket::new());
        let (first, second) = (turns(&bucket, 1), turns(&bucket, 2));
        assert!(first.take(LONG).await);
        // Its own turn again: an answer may have been lost.
        assert!(first.take(LONG).await);
        let waiting = tokio::spawn(async move { second.take(LONG).await });
        tokio::time::sleep(LOOK * 2).await;
        assert!(!waiting.is_finished());
        first.give_up().await;
        assert!(waiting.await.unwrap());
        // What another has is not given up.
        first.give_up().await;
        assert!(!turns(&bucket, 3).take(LOOK / 2).await, "its patience is over first");
    }

    #[tokio::test]
    async fn neither_a_dead_node_nor_a_record_of_the_future_holds_others_up_for_ever() {
        let bucket = Arc::new(MemoryBucket::new());
        let dead = turns(&bucket, 1);
        assert!(dead.write(None, 1).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(turns(&bucket, 2).take(LONG).await);
        bucket.put(&Key::DrainLease.to_string(), r#"{"version":"9.0"}"#.into()).await.unwrap();
        assert!(!turns(&bucket, 3).take(LOOK / 2).await);
    }
}
