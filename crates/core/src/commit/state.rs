//! The machine that settles one conditional write.

use super::{CommitEffect, CommitEvent, Seen, Settlement};

/// Sends of one write. More would only add load to a store that already fails.
const SENDS_MAX: u32 = 3;

/// Failed reads in a row after which the outcome stays unknown.
const READS_FAILED_MAX: u32 = 3;

/// First pause after a failed read; doubles.
const READ_PAUSE_MS: u64 = 50;

/// Settles one conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommitSettler {
    /// Sends so far.
    sends: u32,
    /// Failed reads since the last send.
    reads_failed: u32,
    /// Whether some send was not answered cleanly, so that a refusal may be of our own write.
    is_open: bool,
    is_settled: bool,
}

impl CommitSettler {
    /// Begins with a write to send.
    #[must_use]
    pub fn start() -> (Self, CommitEffect) {
        let settler = Self { sends: 1, reads_failed: 0, is_open: false, is_settled: false };
        (settler, CommitEffect::Send)
    }

    /// Takes an event.
    ///
    /// # Panics
    /// After `Settle`.
    pub fn on(&mut self, event: CommitEvent) -> CommitEffect {
        assert!(!self.is_settled, "an event after the write was settled");
        match event {
            CommitEvent::AnsweredApplied => self.settle(Settlement::Applied),
            CommitEvent::AnsweredRejected if !self.is_open => self.settle(Settlement::Rejected),
            CommitEvent::AnsweredRejected => CommitEffect::ReadBack { pause_ms: 0 },
            CommitEvent::AnsweredUnknown => {
                self.is_open = true;
                CommitEffect::ReadBack { pause_ms: 0 }
            }
            CommitEvent::ReadBack(seen) => self.on_seen(seen),
            CommitEvent::ReadBackFailed => self.on_read_failed(),
            CommitEvent::DeadlinePassed => self.settle(Settlement::Unknown),
        }
    }

    fn on_seen(&mut self, seen: Seen) -> CommitEffect {
        match seen {
            Seen::Mine => self.settle(Settlement::AppliedAsRead),
            Seen::Other => self.settle(Settlement::RejectedAsRead),
            // An earlier send may still land; the same bytes landing twice are one write.
            Seen::Unchanged if self.sends < SENDS_MAX => {
                self.sends += 1;
                self.reads_failed = 0;
                CommitEffect::Send
            }
            Seen::Unchanged => self.settle(Settlement::Unknown),
        }
    }

    fn on_read_failed(&mut self) -> CommitEffect {
        self.reads_failed += 1;
        if self.reads_failed >= READS_FAILED_MAX {
            return self.settle(Settlement::Unknown);
        }
        CommitEffect::ReadBack { pause_ms: READ_PAUSE_MS << (self.reads_failed - 1) }
    }

    fn settle(&mut self, settlement: Settlement) -> CommitEffect {
        self.is_settled = true;
        CommitEffect::Settle(settlement)
    }
}
