//! Who looks after which part of the index. Leases are advisory: two wakers on one shard do the same work twice. One waker
//! alone takes every shard; another that comes wishes for its share, and those that have more give it up.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use holdfast_types::{CellName, Millis, SessionId};

use crate::placement::mix;

/// A shard's lease, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLease {
    /// Who holds it; it may be over.
    pub holder: ShardHolder,
    /// Who else asks for it; may be over.
    pub wish: Option<ShardHolder>,
}

/// A session and until when it counts, by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardHolder {
    /// The session.
    pub session: SessionId,
    /// The end.
    pub expires_ms: Millis,
}

impl ShardHolder {
    fn is_live(&self, wall: Millis) -> bool {
        wall < self.expires_ms
    }
}

/// What to write into a shard's lease, on the condition that it is still as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardAction {
    /// Take or renew it. A live wish of another stays in it.
    Hold(u16),
    /// Give it up, to whoever wishes for it.
    GiveUp(u16),
    /// Ask its holder for it.
    Wish(u16),
}

/// The shard of a cell.
#[must_use]
pub fn shard_of(cell: &CellName, shards: u16) -> u16 {
    let fnv = cell.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    u16::try_from(mix(fnv) % u64::from(shards.max(1))).expect("below a 16-bit number")
}

/// What the waker of session `me` does about the leases, which it has read in the order of their shards; `None` where there is none.
#[must_use]
pub fn plan_shards(leases: &[Option<ShardLease>], me: SessionId, wall: Millis) -> Vec<ShardAction> {
    let holder = |lease: &Option<ShardLease>| {
        lease.map(|lease| lease.holder).filter(|holder| holder.is_live(wall)).map(|holder| holder.session)
    };
    let wisher = |lease: &Option<ShardLease>| {
        lease.and_then(|lease| lease.wish).filter(|wish| wish.is_live(wall)).map(|wish| wish.session)
    };
    let mut wakers: BTreeSet<SessionId> = leases.iter().filter_map(holder).collect();
    wakers.extend(leases.iter().filter_map(wisher));
    wakers.insert(me);
    let share = leases.len() / wakers.len();

    let mut held = leases.iter().filter(|lease| holder(lease) == Some(me)).count();
    let mut actions = Vec::new();
    for (shard, lease) in (0_u16..).zip(leases) {
        let wished_by = wisher(lease);
        match holder(lease) {
            Some(session) if session == me => {
                if wished_by.is_some_and(|wisher| wisher != me) && held > share {
                    held -= 1;
                    actions.push(ShardAction::GiveUp(shard));
                } else {
                    actions.push(ShardAction::Hold(shard));
                }
            }
            Some(_) => {}
            // Free, but kept for whoever was given it.
            None if wished_by.is_some_and(|wisher| wisher != me) => {}
            None => {
                held += 1;
                actions.push(ShardAction::Hold(shard));
            }
        }
    }
    // Not more than what is missing, wishes that stand included.
    let mut missing = share.saturating_sub(held);
    for (shard, lease) in (0_u16..).zip(leases) {
        let has_too_many = holder(lease).filter(|session| *session != me).is_some_and(|session| {
            leases.iter().filter(|lease| holder(lease) == Some(session)).count() > share
        });
        if missing > 0 && has_too_many && wisher(lease).is_none_or(|wisher| wisher == me) {
            missing -= 1;
            actions.push(ShardAction::Wish(shard));
        }
    }
    actions
}
