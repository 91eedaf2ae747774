//! What the checkers see of the store: each write that took place.

use holdfast_core::log_record::{LogRecord, LogState, MemberId};
use holdfast_core::ownership::{OwnerState, OwnerView};

use holdfast_types::{NodeName, SessionId, Txid};

use crate::bucket::{Body, Cell, Change, Key, Level};
use crate::checkers::recovery::must_be_final;
use crate::checkers::slowness::Pace;
use crate::frame::FrameId;
use crate::journal::JournalEntry;
use crate::scenario::Scenario;
use crate::violation::{Violation, require};
use crate::world::World;

impl World {
    /// Shows a change to the checkers.
    pub(crate) fn observe(&mut self, change: &Change) -> Result<(), Violation> {
        match (&change.key, &change.before, &change.after) {
            (Key::Owner(cell), before, Body::Owner(after)) => {
                let before = match before {
                    Some(Body::Owner(before)) => Some(before),
                    _ => None,
                };
                self.observe_owner(*cell, before, after, change.serial)
            }
            (Key::File(cell, epoch, level, min, max), before, after) => {
                if *level == Level::Zero {
                    for txid in txids(*min, *max) {
                        self.checkers.durability.on_landed(*cell, *epoch, txid, change.serial);
                    }
                }
                for txid in txids(*min, *max) {
                    self.checkers.facts.on_stored(*cell, *epoch, txid);
                }
                never_other_bytes(change, before.as_ref(), after)
            }
            (Key::Bundle(session, first), before, after @ Body::Bundle(frames, below)) => {
                never_other_bytes(change, before.as_ref(), after)?;
                let frames = frames.iter().map(|frame| frame.id).collect();
                self.checkers.facts.bundles.on_stored(*session, *first, (*below, frames));
                self.tally.bundled += 1;
                Ok(())
            }
            (Key::Log(_, session), before, Body::Log(record)) => {
                let before = match before {
                    Some(Body::Log(before)) => Some(before),
                    _ => None,
                };
                must_be_final(before, record)?;
                self.observe_relief(before, record)?;
                self.checkers.facts.bundles.on_record(record);
                self.checkers.release.on_record(&mut self.checkers.facts, record)?;
                let is_declared = self.bucket.peek(&Key::Loss(*session)).is_some();
                self.checkers.loss.on_record(record, is_declared)?;
                self.checkers.coverage.on_record(&mut self.checkers.facts, record)?;
                if record.state == LogState::Sealed && record.loss_declared {
                    self.observe_loss(*session);
                }
                self.checkers.proof.on_record(&mut self.checkers.facts, record)
            }
            (Key::Loss(session), ..) => self.checkers.loss.on_written(*session),
            (Key::Opener(..), before, after) => never_other_bytes(change, before.as_ref(), after),
            _ => Ok(()),
        }
    }

    /// What the bucket lacks of a session whose loss was declared when its log was sealed is owed to nobody any more.
    fn observe_loss(&mut self, session: SessionId) {
        self.tally.declared += 1;
        self.checkers.facts.on_lost(session);
        let has_landed =
            |(cell, epoch, txid): &FrameId| self.checkers.durability.has_landed(*cell, *epoch, *txid);
        for ((cell, epoch), first) in self.checkers.facts.first_not_landed(session, has_landed) {
            let before = self.checkers.chain.before(cell, epoch, first);
            let kept = self.checkers.durability.on_lost(cell, epoch, first, before);
            let lost = self.checkers.chain.written_from((cell, epoch, first), kept);
            self.checkers.clients.on_lost(lost);
        }
    }

    fn observe_relief(&mut self, before: Option<&LogRecord>, after: &LogRecord) -> Result<(), Violation> {
        let claimant = before.and_then(|before| before.recovery.as_ref()).map(|mark| mark.claimant);
        let may_live = self.plan.clocks_in_bounds && claimant.is_some_and(|of| self.has_authority(of));
        self.checkers.relief.on_record(before, after, |_| may_live)?;
        self.tally.relieved = self.checkers.relief.relieved();
        Ok(())
    }

    /// A session gives a member up for slowness. Only where nothing but disks is slow can anybody say whether it is right.
    pub(crate) fn observe_slowness(&mut self, index: usize, member: &MemberId) -> Result<(), Violation> {
        if self.plan.scenario != Scenario::SlowMembers {
            return Ok(());
        }
        let session = self.nodes[index].session().expect("a log acts");
        let record = self.log_of(index).and_then(|log| log.machine.record());
        let members = record.map_or_else(Vec::new, |record| record.ensemble.members.clone());
        let pace = |member: &MemberId| {
            let follower = self.followers.iter().find(|follower| follower.name == member.follower);
            follower.expect("followers keep their names").pace
        };
        let siblings: Vec<Pace> = members.iter().filter(|other| *other != member).map(pace).collect();
        let mine = (member, pace(member));
        self.checkers.slowness.on_given_up(session, mine, &siblings, self.now)?;
        (self.tally.slow, self.tally.replaced) = self.checkers.slowness.given_up();
        Ok(())
    }

    /// Shows the checkers what is gone.
    pub(crate) fn observe_deleted(&mut self, keys: &[Key]) -> Result<(), Violation> {
        for key in keys {
            if let Key::WakeEntry(cell, entry) = key {
                self.checkers.alarms.on_deleted(*cell, entry.id)?;
            }
            if let Key::Bundle(session, first) = key {
                self.checkers.facts.bundles.on_deleted(*session, *first);
                let record = self.nodes_log_record(*session);
                if let Some(record) = record {
                    self.checkers.release.on_record(&mut self.checkers.facts, &record)?;
                }
            }
        }
        Ok(())
    }

    fn nodes_log_record(&self, session: SessionId) -> Option<LogRecord> {
        self.bucket.objects().find_map(|(_, body)| match body {
            Body::Log(record) if record.session == session => Some(record.clone()),
            _ => None,
        })
    }

    /// Shows the checkers what a follower's disk has for certain now.
    pub(crate) fn observe_fsynced(
        &mut self,
        member: &MemberId,
        entries: &[JournalEntry],
    ) -> Result<(), Violation> {
        for JournalEntry { session, entry, frames, .. } in entries {
            self.checkers.seal.on_fsynced(member, *session, entry)?;
            for frame in frames {
                self.checkers.facts.on_fsynced(member, *session, frame.offset);
            }
        }
        Ok(())
    }

    /// A session's log record as the bucket has it; for checkers, never for nodes.
    pub(crate) fn log_record(&self, node: &NodeName, session: SessionId) -> Option<LogRecord> {
        match self.bucket.peek(&Key::Log(node.clone(), session)) {
            Some(Body::Log(record)) => Some(record.clone()),
            _ => None,
        }
    }

    fn observe_owner(
        &mut self,
        cell: Cell,
        before: Option<&OwnerView>,
        after: &OwnerView,
        serial: u64,
    ) -> Result<(), Violation> {
        self.claimed_first.entry(cell).or_insert(self.now);
        self.checkers.ownership.on_written(cell, before, after)?;
        let log = before.and_then(|before| self.log_record(&before.node, before.session));
        self.checkers.claim.on_written(before, after, log.as_ref())?;
        if after.state == OwnerState::Released {
            self.checkers.durability.on_released(cell, after.epoch)?;
        }
        let is_claim = before.is_none_or(|before| before.epoch != after.epoch);
        if is_claim {
            self.checkers.durability.on_claim_applied(cell, after.epoch, after.floor, serial);
        }
        if after.state == OwnerState::Purged {
            self.checkers.purge.on_purged(cell, after.epoch);
            self.checkers.clients.on_purged(cell, after.epoch);
        }
        let is_live =
            self.plan.clocks_in_bounds && before.is_some_and(|before| self.has_authority(before.session));
        self.checkers.takeover.on_written(cell, before, after, is_live)
    }
}

/// A range of transactions, both ends included.
pub(crate) fn txids(min: Txid, max: Txid) -> impl Iterator<Item = Txid> {
    (min.get()..=max.get()).map(Txid::new)
}

/// Design 3.2: a key is never reused with other bytes, or a late landing would do harm.
fn never_other_bytes(change: &Change, before: Option<&Body>, after: &Body) -> Result<(), Violation> {
    let same = before.is_none_or(|before| before == after);
    require(same, "KEY-REUSE", format_args!("{:?}: {before:?} became {after:?}", change.key))
}
