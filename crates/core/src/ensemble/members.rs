//! The followers that a node log is linked with, and how far each has fsynced.

use alloc::collections::{BTreeMap, VecDeque};

use holdfast_types::{LogEpoch, LogOffset, Millis};

use crate::log_record::MemberId;

/// How far a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Link {
    /// Asked to adopt the epoch at this time.
    Adopting { log_epoch: LogEpoch, since: Millis },
    /// Refused an epoch: the record named `found` by then. To be asked anew once this session knows that record.
    Outdated { found: LogEpoch, since: Millis },
    /// Adopted: frames are on their way.
    Streaming { log_epoch: LogEpoch },
}

/// A latency sample: when it was taken, and how long the frame took, in milliseconds.
pub(super) type Sample = (Millis, u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) link: Link,
    /// Every retained frame below is fsynced there.
    pub(super) durable_below: LogOffset,
    /// When frames began to be sent to it.
    pub(super) streaming_since: Millis,
    /// When it last fsynced something new...
    pub(super) progress_at: Millis,
    /// ...and how long it had owed that, sent again or not, in milliseconds.
    pub(super) took_ms: u64,
    pub(super) samples: VecDeque<Sample>,
    pub(super) slow_since: Option<Millis>,
}

impl Member {
    pub(super) const fn new(link: Link) -> Self {
        Self {
            link,
            durable_below: LogOffset::ZERO,
            streaming_since: Millis::ZERO,
            progress_at: Millis::ZERO,
            took_ms: 0,
            samples: VecDeque::new(),
            slow_since: None,
        }
    }

    pub(super) fn is_streaming(&self, log_epoch: LogEpoch) -> bool {
        self.link == Link::Streaming { log_epoch }
    }
}

pub(super) type Members = BTreeMap<MemberId, Member>;
