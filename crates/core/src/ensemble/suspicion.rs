//! When all members are slow at once (design 5.2) the owner suspects itself and gives up nobody: its own thread, its own
//! network may be slow. The suspicion ends when it has lasted while the owner was on time, and then one member at a time makes
//! room for a follower that is idle. The old ensemble goes on proving until the new one has adopted, copied and is active:
//! that is what shows that the other follower can be reached and does better than nothing.

use holdfast_types::Millis;

use super::health::WINDOW_MS;
use crate::log_record::MemberId;

/// For how long all members must have been slow, in milliseconds: five windows. A hiccup of a network, of a store that all
/// share or of the owner lasts one or two.
pub(super) const SUSPICION_MS: u64 = 5 * WINDOW_MS;
/// Each replacement after which all are slow again doubles that, up to this often: 320 s, the pause of a slow follower.
const DOUBLINGS_MAX: u32 = 5;
/// Ticks further apart than this, in milliseconds, are late by as much again as they are wanted: the time before says nothing
/// of the members.
const TICK_MS_MAX: u64 = 100;
/// Without general slowness for this long the next suspicion is the first again, in milliseconds.
const CALM_MS: u64 = SUSPICION_MS;

/// What is held against the owner itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Suspicion {
    /// For how long all members have been slow while the owner was on time, in milliseconds.
    lasted_ms: u64,
    last_tick: Option<Millis>,
    /// When all were last slow.
    seen_at: Option<Millis>,
    /// Members replaced in a row.
    replaced: u32,
    /// The member that is to go when its substitute is active.
    leaving: Option<MemberId>,
}

impl Suspicion {
    /// Notes whether all members are slow. True: not because of the owner.
    pub(super) fn tick(&mut self, are_all_slow: bool, now: Millis) -> bool {
        let passed = self.last_tick.map_or(0, |before| now.since(before));
        self.last_tick = Some(now);
        if are_all_slow {
            self.seen_at = Some(now);
            if passed <= TICK_MS_MAX {
                self.lasted_ms += passed;
            }
        } else if let Some(seen_at) = self.seen_at {
            // A member that answers once in a while is not well.
            let calm = now.since(seen_at);
            if calm >= WINDOW_MS {
                self.lasted_ms = 0;
            }
            if calm >= CALM_MS {
                (self.seen_at, self.replaced) = (None, 0);
            }
        }
        are_all_slow && self.lasted_ms >= SUSPICION_MS << self.replaced.min(DOUBLINGS_MAX)
    }

    /// This member is to make room.
    pub(super) fn replace(&mut self, member: MemberId) {
        self.lasted_ms = 0;
        self.replaced = self.replaced.saturating_add(1);
        self.leaving = Some(member);
    }

    pub(super) fn leaving(&self) -> Option<&MemberId> {
        self.leaving.as_ref()
    }

    /// It has gone, or stays after all.
    pub(super) fn settle(&mut self) -> Option<MemberId> {
        self.leaving.take()
    }
}
