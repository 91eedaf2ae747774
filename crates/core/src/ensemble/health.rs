//! Which members are too slow (design 5.2), from the time each frame took. A member is given up only where a sibling does
//! well; where nobody does, the owner suspects itself ([`super::suspicion`]).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use holdfast_types::{LogOffset, Millis};

use super::members::{Link, Member, Members};
use crate::log_record::MemberId;
use crate::mutant::{self, Mutant};

/// Samples of a member that are looked at, in milliseconds.
pub(super) const WINDOW_MS: u64 = 2_000;
/// Samples kept of a member.
const SAMPLES_MAX: usize = 64;
/// A median beyond this for the window is slow, in milliseconds.
const MEDIAN_MS_MAX: u64 = 25;
/// A median beyond this multiple of the sibling's is slow...
const SIBLING_FACTOR: u64 = 4;
/// ...unless it is below this, where the difference is noise, in milliseconds.
const SIBLING_MS_MIN: u64 = 5;
/// A frame outstanding for this long is a stall, in milliseconds.
pub(super) const STALL_MS: u64 = 400;
/// Send times remembered: at one a millisecond ten stalls' worth.
const SENT_MAX: usize = 4_096;

/// When frames were appended: one entry a millisecond at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    times: VecDeque<(LogOffset, Millis)>,
}

impl Sent {
    pub(super) fn note(&mut self, offset: LogOffset, now: Millis) {
        if self.times.back().is_none_or(|(_, last)| *last < now) {
            if self.times.len() == SENT_MAX {
                self.times.pop_front();
            }
            self.times.push_back((offset, now));
        }
    }

    /// Entries below are of no more use.
    pub(super) fn forget(&mut self, below: LogOffset) {
        while self.times.len() > 1 && self.times[1].0 <= below {
            self.times.pop_front();
        }
    }

    /// When the first frame at or after the offset was appended, to the millisecond; none when there is none.
    fn since(&self, offset: LogOffset, next: LogOffset) -> Option<Millis> {
        if offset >= next {
            return None;
        }
        let at = self.times.partition_point(|(first, _)| *first <= offset);
        let (_, time) = self.times.get(at.saturating_sub(1))?;
        Some(*time)
    }

    /// Whether it is known when the frame was appended: what is stored is forgotten.
    fn remembers(&self, offset: LogOffset) -> bool {
        self.times.front().is_some_and(|(first, _)| *first <= offset)
    }

    /// For how long the member owes a frame without having fsynced any, in milliseconds.
    pub(super) fn outstanding_ms(&self, member: &Member, next: LogOffset, now: Millis) -> u64 {
        if !matches!(member.link, Link::Streaming { .. }) {
            return 0; // an adoption has a timeout of its own
        }
        let since = self.since(member.durable_below.max(LogOffset::new(1)), next);
        since.map_or(0, |since| now.since(since.max(member.progress_at).max(member.streaming_since)))
    }
}

/// Notes that a member has fsynced up to `below`.
pub(super) fn note_durable(member: &mut Member, below: LogOffset, sent: &Sent, next: LogOffset, now: Millis) {
    if below <= member.durable_below {
        return;
    }
    let owed = member.durable_below.max(LogOffset::new(1));
    // A member that was slower than the uploads has owed it since it last did anything, or for longer.
    let since =
        sent.since(owed, next).map(|since| if sent.remembers(owed) { since } else { member.progress_at });
    // What is sent again to a new member says nothing of its speed.
    if let Some(since) = since.filter(|since| *since >= member.streaming_since) {
        if member.samples.len() == SAMPLES_MAX {
            member.samples.pop_front();
        }
        member.samples.push_back((now, now.since(since)));
    }
    member.took_ms = since.map_or(0, |since| now.since(since.max(member.streaming_since)));
    member.durable_below = below;
    member.progress_at = now;
}

fn median(member: &mut Member, now: Millis) -> Option<u64> {
    while member.samples.front().is_some_and(|(taken, _)| now.since(*taken) > WINDOW_MS) {
        member.samples.pop_front();
    }
    let mut latencies: Vec<u64> = member.samples.iter().map(|(_, latency)| *latency).collect();
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).copied()
}

/// What is to be said of the members of an ensemble.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Those to give up: a sibling that is not slow shows that it is them.
    pub(super) slow: Vec<MemberId>,
    /// There are slow ones, and nobody shows that it is them: the worst of them.
    pub(super) worst_of_all: Option<MemberId>,
}

/// How one member does.
struct Standing {
    median: Option<u64>,
    outstanding_ms: u64,
    took_ms: u64,
    durable_below: LogOffset,
    is_behind: bool,
    is_slow: bool,
}

impl Standing {
    /// Whether this one does well where the other does not: what it shows lately, or in the very frame that the other owes. One
    /// that was late with its last frame itself shows nothing until the other is late by a multiple: of two that stall alike
    /// one is always the first to answer.
    fn shows_slowness_of(&self, other: &Self) -> bool {
        let has_what_is_owed = other.outstanding_ms >= STALL_MS && self.durable_below > other.durable_below;
        let does_well = !self.is_slow && !self.is_behind && self.outstanding_ms < STALL_MS / 2;
        let was_late = self.took_ms >= STALL_MS / 2;
        let is_far_ahead = !was_late || other.outstanding_ms > self.took_ms.saturating_mul(SIBLING_FACTOR);
        does_well && is_far_ahead && (self.median.is_some() || has_what_is_owed)
    }
}

/// Looks at the members that the ensemble consists of.
pub(super) fn judge(
    members: &mut Members,
    ensemble: &[MemberId],
    (sent, next): (&Sent, LogOffset),
    now: Millis,
) -> Health {
    let medians: Vec<Option<u64>> =
        ensemble.iter().map(|id| members.get_mut(id).and_then(|member| median(member, now))).collect();
    let mut standings: Vec<(&MemberId, Standing)> = Vec::new();
    for (at, id) in ensemble.iter().enumerate() {
        let Some(member) = members.get_mut(id) else { continue };
        let sibling = medians.iter().enumerate().filter(|(other, _)| *other != at).find_map(|(_, m)| *m);
        let is_behind = medians[at].is_some_and(|mine| {
            let is_behind_sibling = sibling.is_some_and(|sibling| {
                mine >= SIBLING_MS_MIN && mine > sibling.saturating_mul(SIBLING_FACTOR)
            });
            mine > MEDIAN_MS_MAX || is_behind_sibling
        });
        member.slow_since = if is_behind { member.slow_since.or(Some(now)) } else { None };
        let outstanding_ms = sent.outstanding_ms(member, next, now);
        let is_slow_for_long = member.slow_since.is_some_and(|since| now.since(since) >= WINDOW_MS);
        let is_slow = is_slow_for_long || outstanding_ms >= STALL_MS;
        let Member { durable_below, took_ms, .. } = *member;
        let median = medians[at];
        standings.push((id, Standing { median, outstanding_ms, took_ms, durable_below, is_behind, is_slow }));
    }
    let slow: Vec<_> = standings.iter().filter(|(_, standing)| standing.is_slow).collect();
    let is_shown = |slow: &Standing| {
        mutant::is(Mutant::BlameAllSlow) || standings.iter().any(|(_, other)| other.shows_slowness_of(slow))
    };
    let to_give_up: Vec<MemberId> =
        slow.iter().filter(|(_, standing)| is_shown(standing)).map(|(id, _)| (*id).clone()).collect();
    let worst =
        slow.iter().max_by_key(|(_, standing)| standing.outstanding_ms.max(standing.median.unwrap_or(0)));
    let worst_of_all = worst.filter(|_| to_give_up.is_empty()).map(|(id, _)| (*id).clone());
    Health { slow: to_give_up, worst_of_all }
}
