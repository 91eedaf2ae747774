//! Which followers a session wants (design 5.2): those it has and that do well, then others spread over zones, then the
//! least loaded, then the ones with most room. Never one on the session's own machine, never merely the first of a list.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use holdfast_types::Millis;

use super::{FollowerView, NodeLogConfig};
use crate::log_record::MemberId;
use crate::mutant::{self, Mutant};
use crate::placement::mix;

/// Members of an ensemble. Two survive any one loss besides the owner's, and a third would slow every write.
pub(super) const ENSEMBLE_LEN: usize = 2;
/// A follower with less room than this takes no new session: it must hold what an owner may retain.
const FREE_BYTES_MIN: u64 = 512 << 20;
/// First pause of a follower that failed; doubles with each failure in a row.
const QUARANTINE_MS_MIN: u64 = 2_000;
/// Pause of a slow follower, and the longest of any.
pub(super) const QUARANTINE_MS_MAX: u64 = 300_000;

/// Followers that failed, and until when they are left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Quarantine {
    members: BTreeMap<MemberId, Pause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pause {
    until: Millis,
    failures: u32,
    /// A slow disk is slow in its next process too.
    is_for_slowness: bool,
}

impl Quarantine {
    pub(super) fn add(&mut self, member: &MemberId, now: Millis) {
        let failures = self.members.get(member).map_or(0, |pause| pause.failures);
        let pause = (QUARANTINE_MS_MIN << failures.min(8)).min(QUARANTINE_MS_MAX);
        let pause = Pause { until: now.plus(pause), failures: failures + 1, is_for_slowness: false };
        self.members.insert(member.clone(), pause);
    }

    pub(super) fn add_slow(&mut self, member: &MemberId, now: Millis) {
        if mutant::is(Mutant::ForgetSlowness) {
            return;
        }
        let pause = Pause { until: now.plus(QUARANTINE_MS_MAX), failures: 1, is_for_slowness: true };
        self.members.insert(member.clone(), pause);
    }

    /// It did well: its next failure is its first.
    pub(super) fn forgive(&mut self, member: &MemberId) {
        self.members.remove(member);
    }

    /// It was away and has come back: worth a try at once.
    pub(super) fn came_back(&mut self, member: &MemberId) {
        self.members.retain(|id, pause| id != member || pause.is_for_slowness);
    }

    pub(super) fn holds(&self, member: &MemberId, now: Millis) -> bool {
        self.members.get(member).is_some_and(|pause| now < pause.until)
    }
}

/// Chooses an ensemble: `kept` first, then the best of the others.
pub(super) fn choose(
    config: &NodeLogConfig,
    followers: &[FollowerView],
    kept: Vec<MemberId>,
    is_barred: impl Fn(&MemberId) -> bool,
) -> Vec<MemberId> {
    let mut chosen = kept;
    while chosen.len() < ENSEMBLE_LEN {
        let zones: Vec<_> = chosen
            .iter()
            .filter_map(|member| followers.iter().find(|follower| &follower.member == member))
            .map(|follower| &follower.zone)
            .collect();
        let candidates = followers.iter().filter(|follower| {
            let is_own_host = follower.host == config.host && !config.own_host_allowed;
            // Two disks of one name are one process at most.
            let is_chosen = chosen.iter().any(|member| member.follower == follower.member.follower);
            !follower.draining
                && !is_own_host
                && !is_chosen
                && follower.free_bytes >= FREE_BYTES_MIN
                && !is_barred(&follower.member)
        });
        let best = candidates.min_by_key(|follower| {
            let is_zone_taken = zones.contains(&&follower.zone);
            let is_own_zone = follower.zone == config.zone;
            (
                is_zone_taken,
                is_own_zone,
                follower.sessions,
                Reverse(follower.free_bytes >> 30),
                draw(config, follower),
            )
        });
        match best {
            Some(best) => chosen.push(best.member.clone()),
            None => break,
        }
    }
    chosen
}

/// Spreads the sessions of a fleet over followers that are equal otherwise.
fn draw(config: &NodeLogConfig, follower: &FollowerView) -> u64 {
    let bits = config.session.bits() ^ follower.member.incarnation.bits();
    let (high, low) = ((bits >> 64) as u64, bits as u64);
    mix(high ^ mix(low))
}
