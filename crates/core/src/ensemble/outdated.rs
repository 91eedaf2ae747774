//! The step after a member refused to adopt because its record had moved on: the session's newest write was faster than its
//! question, or landed without an answer. The member does nothing wrong and keeps what it has fsynced, so it is not left
//! alone for a while as one that failed is: it is asked anew, with the epoch of the record, as soon as the session knows that
//! record. Each refusal names an epoch beyond the one that was asked for, so this ends.

use alloc::vec::Vec;

use holdfast_types::{LogEpoch, Millis};

use super::machine::{Effects, NodeLog};
use super::members::Link;
use super::record::Step;
use super::{MemberFailure, NodeLogEffect};
use crate::log_record::MemberId;

impl<V: Clone + core::fmt::Debug> NodeLog<V> {
    /// The refusal ended the link, nothing else.
    pub(super) fn on_outdated(
        &mut self,
        id: &MemberId,
        found: LogEpoch,
        now: Millis,
        effects: &mut Effects<V>,
    ) {
        if let Some(member) = self.members.get_mut(id) {
            member.link = Link::Outdated { found, since: now };
            effects.push(NodeLogEffect::Close { member: id.clone() });
        }
    }

    /// Asks those whose epoch is known by now, and finds out what the record says where it is not.
    pub(super) fn ask_outdated(&mut self, now: Millis, effects: &mut Effects<V>) {
        let outdated = |link| match link {
            Link::Outdated { found, .. } => Some(found),
            Link::Adopting { .. } | Link::Streaming { .. } => None,
        };
        if self.members.values().all(|member| outdated(member.link).is_none()) {
            return;
        }
        let waiting =
            self.members.iter().filter_map(|(id, member)| Some((id.clone(), outdated(member.link)?)));
        let waiting: Vec<(MemberId, LogEpoch)> = waiting.collect();
        for (id, found) in waiting {
            let ensemble = self.record.current().map(|record| &record.ensemble);
            match ensemble.filter(|ensemble| ensemble.log_epoch >= found) {
                Some(ensemble) if ensemble.members.contains(&id) => {
                    let log_epoch = ensemble.log_epoch;
                    self.adopt(id, log_epoch, now, effects);
                }
                // The record has moved on once more, to others.
                Some(_) => self.on_failed(&id, MemberFailure::Refused, now, effects),
                // A write of this session landed that it does not know of.
                None if self.record.step == Step::Idle => self.read_record(effects),
                None => {}
            }
        }
    }
}
