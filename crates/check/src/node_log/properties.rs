//! What must always hold, and what must happen somewhere lest the rest says nothing.

use holdfast_core::log_record::{LogState, MemberId};
use holdfast_types::LogOffset;
use stateright::Property;

use super::bounds::place;
use super::follower::{Follower, bits};
use super::recoverer::Ended;
use super::{NodeLogModel, World};

pub(super) fn all() -> Vec<Property<NodeLogModel>> {
    vec![
        Property::always(
            "INV-ACK-1: what was proved is in the bucket when a cell is claimed",
            |_, world: &World| !world.is_recovered() || world.is_lost() || world.lacks() == 0,
        ),
        Property::always("INV-REC-2: sealed means covered", |_, world: &World| {
            world.state() != Some(LogState::Sealed) || world.is_lost() || world.lacks() == 0
        }),
        Property::always("INV-REC-2: sealed is final", |_, world: &World| !world.changed_the_final),
        Property::always("INV-LOG-1: who may be asked has fsynced what was proved", |_, world: &World| {
            world.witnesses_hold_what_the_bucket_lacks()
        }),
        Property::always("INV-LOG-2: nothing is appended past a seal", |_, world: &World| {
            !world.followers.iter().any(|follower| follower.appended_past_seal)
        }),
        Property::always("INV-REC-2: a log that ended in order is covered", |_, world: &World| {
            !world.owner.is_closed || bits(LogOffset::new(1), world.owner.log.next()) & !world.covered == 0
        }),
        Property::always("INV-LOG-3: what a follower dropped is stored", |_, world: &World| {
            let stored = world.stored();
            let dropped = |follower: &Follower| bits(LogOffset::new(1), follower.log.state().start);
            world.followers.iter().all(|follower| dropped(follower) & !stored == 0)
        }),
        Property::always("INV-LOG-3: a bundle is deleted when its frames are covered", |_, world: &World| {
            !world.bundles.deleted_uncovered
        }),
        Property::always("INV-REC-1: no claim before the record is sealed", |_, world: &World| {
            !world.is_recovered() || world.state() == Some(LogState::Sealed)
        }),
        Property::always("INV-REC-3: nobody but a person declares loss", |_, world: &World| {
            !world.is_lost() || world.is_loss_declared
        }),
        Property::always("no live recoverer is taken over", |_, world: &World| !world.relieved_the_living),
        Property::always("a member with its disk is a witness", |_, world: &World| {
            !world.is_blocked_despite_answer()
        }),
        Property::sometimes("a frame is proved that the bucket lacks", |_, world: &World| world.lacks() != 0),
        Property::sometimes("a proved frame comes from a follower into the bucket", |_, world: &World| {
            world.rescues.is_empty()
                || (world.is_recovered() && world.owner.uploaded == 0 && world.proved() != 0)
        }),
        Property::sometimes("a recovery finds in a bundle what nobody else has", |model, world: &World| {
            model.0.rounds.is_empty() || world.rescues.is_empty() || world.found_in_a_bundle()
        }),
        Property::sometimes("a bundle is drained and deleted", |model, world: &World| {
            let from = world.record.record().and_then(|record| record.bundles_from);
            let is_drained =
                from.is_some_and(|from| from > LogOffset::new(1)) && world.state() == Some(LogState::Open);
            model.0.rounds.is_empty() || (is_drained && world.bundles.is_first_gone())
        }),
        Property::sometimes("a log with frames ends in order", |model, world: &World| {
            !model.0.closes || (world.owner.is_closed && world.proved() != 0)
        }),
    ]
}

impl World {
    pub(super) fn state(&self) -> Option<LogState> {
        self.record.record().map(|record| record.state)
    }

    /// Frames that an ensemble proved.
    pub(super) fn proved(&self) -> u32 {
        bits(LogOffset::new(1), self.owner.proved_below)
    }

    /// Of those, the ones that their cells' prefixes lack.
    pub(super) fn lacks(&self) -> u32 {
        self.proved() & !self.covered
    }

    /// Frames that a recovery finds in the bucket.
    fn stored(&self) -> u32 {
        let from = self.record.record().and_then(|record| record.bundles_from);
        self.covered | self.bundles.readable(from)
    }

    fn found_in_a_bundle(&self) -> bool {
        self.rescues.iter().flatten().any(|rescue| rescue.brought_from_bundle)
    }

    fn is_recovered(&self) -> bool {
        self.rescues.iter().flatten().any(|rescue| rescue.ended == Some(Ended::Recovered))
    }

    /// The record says that a person declared frames lost.
    pub(super) fn is_lost(&self) -> bool {
        self.record.record().is_some_and(|record| record.loss_declared)
    }

    pub(super) fn was_blocked(&self) -> bool {
        let is_blocked = |ended: &Ended| matches!(ended, Ended::Blocked { .. });
        self.rescues.iter().flatten().any(|rescue| rescue.ended.as_ref().is_some_and(is_blocked))
    }

    /// With a lost disk its member is none; every other must do.
    fn is_blocked_despite_answer(&self) -> bool {
        let blocked = Some(Ended::Blocked { despite_answer: true });
        self.rescues.iter().flatten().any(|rescue| rescue.ended == blocked)
    }

    fn witnesses_hold_what_the_bucket_lacks(&self) -> bool {
        let lacks = self.proved() & !self.stored();
        if lacks == 0 || self.is_lost() {
            return true;
        }
        let witnesses = self.record.record().and_then(|record| record.witnesses());
        witnesses.is_some_and(|ensemble| {
            let hold = |member: &MemberId| {
                let (at, disk) = place(member);
                self.followers[usize::from(at)].frames_of(disk) & lacks == lacks
            };
            ensemble.members.iter().all(hold)
        })
    }
}
