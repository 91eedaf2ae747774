//! What becomes of leases of cellnodes that are long dead: a fleet whose nodes have new names with every start would keep, list and
//! read the lease of each for ever. A lease that is over gets a *tombstone*, by compare-and-swap, so that a node that comes back
//! meanwhile wins; one whose tombstone is old is deleted. Neither hurts: an absent lease is as dead as one that is over
//! (`ownership::is_session_dead`), and logs and owner records of its sessions stay.
//!
//! Wall clocks alone bury nobody: a lease is touched only when this waker itself, by its monotonic clock, has seen the same write
//! for [`UNCHANGED_MS_MIN`]. A node that lives writes its lease every few seconds.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use holdfast_types::{Millis, NodeName, SessionId, WriteId};

use crate::lease::Now;

/// How long a lease must have been the same write, seen by one waker: far more than any lease lasts or pause of a machine takes.
pub const UNCHANGED_MS_MIN: u64 = 600_000;
/// Leases marked or deleted in one round at most: work for a minute of a fleet's life, not for its start.
pub const BURIALS_MAX: usize = 64;

/// A lease, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSeen {
    /// Whose.
    pub node: NodeName,
    /// Which write.
    pub write_id: WriteId,
    /// The session that holds it, or held it last.
    pub session: SessionId,
    /// When it ends, wall clock; 0: given up in order.
    pub expires_ms: Millis,
    /// When it got its tombstone, wall clock.
    pub tombstone_ms: Option<Millis>,
}

/// What is to be done with a lease, if it is still this write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Burial {
    /// Write a tombstone over it.
    Mark(NodeName, WriteId),
    /// Delete it.
    Remove(NodeName, WriteId),
}

/// What one waker has seen of leases that do not change.
#[derive(Clone, Debug)]
pub struct Burials {
    /// From a tombstone to the deletion.
    keep_ms: u64,
    /// By node: the write, and when it was first seen, by the monotonic clock. Of the leases that were read last and no others.
    seen: BTreeMap<NodeName, (WriteId, Millis)>,
}

impl Burials {
    /// Deletes tombstones of this age, in milliseconds.
    #[must_use]
    pub fn new(keep_ms: u64) -> Self {
        Self { keep_ms, seen: BTreeMap::new() }
    }

    /// What to do, now that all leases were read. Where `is_unrecovered` says that a session's log is not sealed its lease stays: it
    /// names the machine that operators look for.
    pub fn observe(
        &mut self,
        leases: &[LeaseSeen],
        is_unrecovered: impl Fn(&NodeName, SessionId) -> bool,
        now: Now,
        clock_skew_max_ms: u64,
    ) -> Vec<Burial> {
        let mut seen = BTreeMap::new();
        let mut burials = Vec::new();
        for lease in leases {
            let before = self.seen.get(&lease.node).filter(|(write_id, _)| *write_id == lease.write_id);
            let since = before.map_or(now.monotonic, |(_, since)| *since);
            seen.insert(lease.node.clone(), (lease.write_id, since));
            let is_over = lease.expires_ms.plus(clock_skew_max_ms) <= now.wall;
            let is_unchanged = now.monotonic.since(since) >= UNCHANGED_MS_MIN;
            if burials.len() == BURIALS_MAX
                || !is_over
                || !is_unchanged
                || is_unrecovered(&lease.node, lease.session)
            {
                continue;
            }
            match lease.tombstone_ms {
                None => burials.push(Burial::Mark(lease.node.clone(), lease.write_id)),
                Some(marked) if marked.plus(self.keep_ms) <= now.wall => {
                    burials.push(Burial::Remove(lease.node.clone(), lease.write_id));
                }
                Some(_) => {}
            }
        }
        self.seen = seen;
        burials
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;
    const WALL_MS: u64 = 1_700_000_000_000;

    fn lease(write_id: u128, expires_ms: u64, tombstone_ms: Option<u64>) -> LeaseSeen {
        LeaseSeen {
            node: NodeName::parse("n1").unwrap(),
            write_id: WriteId::from_bits(write_id),
            session: SessionId::from_bits(7),
            expires_ms: Millis::new(expires_ms),
            tombstone_ms: tombstone_ms.map(Millis::new),
        }
    }

    /// So many milliseconds after the first look, by both clocks.
    fn after(ms: u64) -> Now {
        Now { wall: Millis::new(WALL_MS + ms), monotonic: Millis::new(5_000 + ms) }
    }

    fn look(burials: &mut Burials, lease: &LeaseSeen, now: Now) -> Vec<Burial> {
        burials.observe(core::slice::from_ref(lease), |_, _| false, now, 500)
    }

    #[test]
    fn a_lease_that_is_over_and_unchanged_is_marked_and_a_day_later_removed() {
        let mut burials = Burials::new(DAY_MS);
        let name = NodeName::parse("n1").unwrap();
        for over in [lease(1, 0, None), lease(1, WALL_MS - 1_000, None)] {
            let mut burials = burials.clone();
            assert_eq!(look(&mut burials, &over, after(0)), []);
            assert_eq!(look(&mut burials, &over, after(UNCHANGED_MS_MIN - 1)), []);
            let mark = Burial::Mark(name.clone(), WriteId::from_bits(1));
            assert_eq!(look(&mut burials, &over, after(UNCHANGED_MS_MIN)), [mark]);
        }
        let marked = lease(2, 0, Some(WALL_MS));
        assert_eq!(look(&mut burials, &marked, after(0)), []);
        assert_eq!(look(&mut burials, &marked, after(DAY_MS - 1)), []);
        let remove = Burial::Remove(name, WriteId::from_bits(2));
        assert_eq!(look(&mut burials, &marked, after(DAY_MS)), [remove]);
    }

    #[test]
    fn a_node_that_lives_is_left_alone_whatever_the_wall_clock_says() {
        let mut burials = Burials::new(DAY_MS);
        // A waker whose wall clock is a year ahead: every lease is over for it, and each look finds another write.
        for round in 0..100 {
            let renewed = lease(100 + u128::from(round), WALL_MS, None);
            assert_eq!(look(&mut burials, &renewed, after(365 * DAY_MS + round * 30_000)), []);
        }
        // A lease that is not over is not touched, however long it stays the same.
        let far = lease(1, WALL_MS + 10 * DAY_MS, None);
        assert_eq!(look(&mut burials, &far, after(0)), []);
        assert_eq!(look(&mut burials, &far, after(DAY_MS)), []);
    }

    #[test]
    fn a_lease_stays_until_the_log_of_its_session_is_sealed_and_rounds_are_bounded() {
        let mut burials = Burials::new(DAY_MS);
        let over = [lease(1, 0, None)];
        burials.observe(&over, |_, _| true, after(0), 500);
        let is_open = |_: &NodeName, session| session == SessionId::from_bits(7);
        assert_eq!(burials.observe(&over, is_open, after(UNCHANGED_MS_MIN), 500), []);
        assert_eq!(burials.observe(&over, |_, _| false, after(UNCHANGED_MS_MIN), 500).len(), 1);

        let many: Vec<LeaseSeen> = (0..200)
            .map(|number| LeaseSeen {
                node: NodeName::parse(&alloc::format!("n{number}")).unwrap(),
                ..lease(1, 0, None)
            })
            .collect();
        burials.observe(&many, |_, _| false, after(0), 500);
        let due = burials.observe(&many, |_, _| false, after(UNCHANGED_MS_MIN), 500);
        assert_eq!(due.len(), BURIALS_MAX);
    }
}
