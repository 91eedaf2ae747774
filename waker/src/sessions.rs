//! Which sessions of cellnodes are alive, as their leases say: read at every tick, and at the moment when the lease of one
//! that does not renew is over, so that its cells are woken without a tick's delay.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use holdfast_bucket::{Bucket, BucketError};
use holdfast_records::{Key, NodeLease, Record};
use holdfast_types::{Millis, NodeName, SessionId};
use tokio::sync::watch;

use crate::clock;

/// Leases read at a time.
const READS_MAX: usize = 16;
/// Rows of one page.
const PAGE_LEN: usize = 1_000;
/// Shortest pause between readings.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Follows the leases.
pub(crate) struct Sessions {
    pub(crate) leases: Arc<dyn Bucket>,
    pub(crate) tick: Duration,
    pub(crate) clock_skew_max_ms: u64,
    /// Told after each reading; what could not be read changes nothing.
    pub(crate) live: watch::Sender<BTreeSet<SessionId>>,
}

impl Sessions {
    /// Reads for ever.
    pub(crate) async fn run(self) {
        loop {
            let pause = match self.read().await {
                Ok(leases) => self.judge(&leases),
                Err(error) => {
                    tracing::warn!(%error, "the leases of cellnodes could not be read; the next tick will");
                    self.tick
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Tells who is alive, and when to look again.
    fn judge(&self, leases: &[NodeLease]) -> Duration {
        let now = clock::wall();
        // Given up in order (0) is over at once.
        let end = |lease: &NodeLease| match lease.expires_ms {
            Millis::ZERO => Millis::ZERO,
            expires => expires.plus(self.clock_skew_max_ms),
        };
        let live: Vec<&NodeLease> = leases.iter().filter(|lease| now < end(lease)).collect();
        let next_end = live.iter().map(|lease| Duration::from_millis(end(lease).since(now))).min();
        self.live.send_replace(live.iter().map(|lease| lease.session).collect());
        next_end.unwrap_or(self.tick).clamp(PAUSE_MIN, self.tick.max(PAUSE_MIN))
    }

    async fn read(&self) -> Result<Vec<NodeLease>, BucketError> {
        let names = self.names().await?;
        let mut reads = Vec::with_capacity(names.len());
        for name in names {
            reads.push(self.lease(name));
        }
        let mut reads = stream::iter(reads).buffer_unordered(READS_MAX);
        let mut leases = Vec::new();
        while let Some(lease) = reads.next().await {
            leases.extend(lease?);
        }
        Ok(leases)
    }

    async fn lease(&self, node: NodeName) -> Result<Option<NodeLease>, BucketError> {
        let Some(object) = self.leases.get(&Key::NodeLease(node.clone()).to_string()).await? else {
            return Ok(None);
        };
        let lease = NodeLease::decode(&object.body);
        if let Err(error) = &lease {
            tracing::error!(%node, %error, "cannot decode a node's lease");
        }
        Ok(lease.ok())
    }

    async fn names(&self) -> Result<Vec<NodeName>, BucketError> {
        let mut names = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.leases.list("nodes/", after.as_deref(), PAGE_LEN).await?;
            names.extend(page.objects.iter().filter_map(|object| match Key::parse(&object.key) {
                Ok(Key::NodeLease(node)) => Some(node),
                Ok(_) | Err(_) => None,
            }));
            after = page.next;
            if after.is_none() {
                return Ok(names);
            }
        }
    }
}
