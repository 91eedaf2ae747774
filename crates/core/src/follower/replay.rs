//! A session's log as it is read back from a journal, entry by entry. The journal itself uses it too, to know what it has
//! written so far and must carry forward. Whatever may be missing makes the log incomplete, never shorter in silence.

use alloc::vec::Vec;

use holdfast_types::LogOffset;

use super::machine::{Milestone, Seal, SessionLog};
use super::{FollowerEffect, Holdings, LogEntry, Ticket};
use crate::log_record::MemberId;

/// What the entries so far say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogReplay {
    last: Ticket,
    holdings: Holdings,
    /// The frames read last, without a gap up to the end: `present_from <= offset < holdings.next`.
    present_from: LogOffset,
    is_sealed: bool,
    is_damaged: bool,
    is_damage_written: bool,
    /// Entries of this session may have been lost behind the last one that was read.
    is_suspect: bool,
    is_forgotten: bool,
}

impl Default for LogReplay {
    fn default() -> Self {
        Self {
            last: Ticket::default(),
            holdings: Holdings::NONE,
            present_from: Holdings::NONE.next,
            is_sealed: false,
            is_damaged: false,
            is_damage_written: false,
            is_suspect: false,
            is_forgotten: false,
        }
    }
}

impl LogReplay {
    /// The last entry.
    #[must_use]
    pub const fn last(&self) -> Ticket {
        self.last
    }

    /// The window.
    #[must_use]
    pub const fn holdings(&self) -> Holdings {
        self.holdings
    }

    /// Whether the session is forgotten: the replay may be dropped.
    #[must_use]
    pub const fn is_forgotten(&self) -> bool {
        self.is_forgotten
    }

    /// One entry that says all that those so far said, and bears the number of the last. Where it follows, the entries
    /// before it may be given up, except those of frames that are retained.
    #[must_use]
    pub const fn carried(&self) -> (Ticket, LogEntry) {
        let entry = LogEntry::Carried {
            holdings: self.holdings,
            is_sealed: self.is_sealed,
            is_damaged: self.is_damaged,
        };
        (self.last, entry)
    }

    /// Part of the journal cannot be read: entries of any session may have stood there. What follows can show that there
    /// were none of this one, by its number.
    pub const fn hole(&mut self) {
        self.is_suspect = true;
    }

    /// Takes the next entry of the session that can be read.
    pub fn apply(&mut self, ticket: Ticket, entry: &LogEntry) {
        let is_carried = matches!(entry, LogEntry::Carried { .. });
        if is_carried || ticket == self.last.next() {
            self.is_suspect = false;
        } else {
            self.is_damaged = true;
        }
        self.last = self.last.max(ticket);
        match *entry {
            LogEntry::Adopt { log_epoch, start } => {
                let before = self.holdings.next;
                self.holdings.adopt(log_epoch, start);
                if self.holdings.next != before {
                    self.present_from = self.holdings.next;
                }
            }
            LogEntry::Frames { first, last } => {
                if first != self.holdings.next {
                    self.present_from = first;
                }
                self.holdings.next = self.holdings.next.max(last.next());
            }
            LogEntry::Release { start } => self.holdings.release(start),
            LogEntry::Seal => self.is_sealed = true,
            LogEntry::Damage => {
                self.is_damaged = true;
                self.is_damage_written = true;
            }
            LogEntry::Forget => self.is_forgotten = true,
            LogEntry::Carried { holdings, is_sealed, is_damaged } => {
                self.is_sealed |= is_sealed;
                self.is_damaged |= is_damaged;
                self.is_damage_written |= is_damaged;
                self.apply_carried(holdings);
            }
        }
    }

    fn apply_carried(&mut self, carried: Holdings) {
        if carried.next != self.holdings.next {
            // The frames between stood in what was given up, or is lost: the end of the replay tells which, by `start`.
            self.present_from = carried.next;
        }
        self.holdings.log_epoch = self.holdings.log_epoch.max(carried.log_epoch);
        self.holdings.start = self.holdings.start.max(carried.start);
        self.holdings.next = self.holdings.next.max(carried.next);
    }

    /// Nothing more can be read: what may be missing counts as missing from now on, for ever.
    pub fn end(&mut self) {
        let is_present =
            self.holdings.start == self.holdings.next || self.present_from <= self.holdings.start;
        self.is_damaged |= self.is_suspect || !is_present;
        self.is_suspect = false;
    }
}

impl SessionLog {
    /// The log as it was read back to its end at the follower `me`. Everything that was read is fsynced. The effects are
    /// to be executed before anything else.
    #[must_use]
    pub fn reopen(me: MemberId, replay: &LogReplay) -> (Self, Vec<FollowerEffect>) {
        let mut replay = *replay;
        replay.end();
        let mut log = Self::new(me);
        log.accepted = replay.holdings;
        log.durable = replay.holdings;
        log.issued = replay.last;
        log.persisted = replay.last;
        log.seal = if replay.is_sealed { Seal::Sealed } else { Seal::Open };
        log.is_damaged = replay.is_damaged;
        log.is_damage_written = replay.is_damage_written;
        let mut effects = Vec::new();
        if log.is_damaged && !log.is_damage_written {
            log.is_damage_written = true;
            log.persist(LogEntry::Damage, Milestone::Noted, false, &mut effects);
        }
        (log, effects)
    }
}
