//! Which sessions of cellnodes are alive, as their leases say: read at every tick, and at the moment when the lease of one
//! that does not renew is over, so that its cells are woken without a tick's delay.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::Bucket;
use holdfast_records::NodeLease;
use holdfast_types::{Millis, SessionId};
use tokio::sync::watch;

use crate::clock;
use crate::leases::read_leases;

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
            let pause = match read_leases(&*self.leases).await {
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
}
