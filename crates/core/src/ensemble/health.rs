//! Which members are too slow (design 5.2), from the time each frame took. When all stall at once the owner suspects
//! itself and gives up nobody.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use holdfast_types::{LogOffset, Millis};

use super::members::{Link, Member, Members};
use crate::log_record::MemberId;

/// Samples of a member that are looked at, in milliseconds.
const WINDOW_MS: u64 = 2_000;
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
    let since = sent.since(member.durable_below.max(LogOffset::new(1)), next);
    // What is sent again to a new member says nothing of its speed.
    if let Some(since) = since.filter(|since| *since >= member.streaming_since) {
        if member.samples.len() == SAMPLES_MAX {
            member.samples.pop_front();
        }
        member.samples.push_back((now, now.since(since)));
    }
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

/// The members to give up for slowness, among those that the ensemble consists of.
pub(super) fn slow_members(
    members: &mut Members,
    ensemble: &[MemberId],
    (sent, next): (&Sent, LogOffset),
    now: Millis,
) -> Vec<MemberId> {
    let medians: Vec<Option<u64>> =
        ensemble.iter().map(|id| members.get_mut(id).and_then(|member| median(member, now))).collect();
    let mut slow = Vec::new();
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
        let is_slow = member.slow_since.is_some_and(|since| now.since(since) >= WINDOW_MS);
        if is_slow || sent.outstanding_ms(member, next, now) >= STALL_MS {
            slow.push(id.clone());
        }
    }
    if slow.len() == ensemble.len() { Vec::new() } else { slow }
}
