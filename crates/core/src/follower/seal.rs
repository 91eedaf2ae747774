//! The seal: from the moment it is asked for nothing is accepted, and it is answered when it is fsynced (INV-LOG-2).

use alloc::vec;
use alloc::vec::Vec;

use super::machine::{Milestone, Seal};
use super::{CallId, FollowerEffect, LogEntry, Refusal, SessionLog};

impl SessionLog {
    pub(super) fn on_seal(&mut self, call: CallId, effects: &mut Vec<FollowerEffect>) {
        match &mut self.seal {
            Seal::Open => {
                self.seal = Seal::Sealing { calls: vec![call] };
                self.persist(LogEntry::Seal, Milestone::Sealed, true, effects);
            }
            Seal::Sealing { calls } => calls.push(call),
            Seal::Sealed => effects.push(FollowerEffect::AnswerSealed { call, state: self.state() }),
        }
    }

    pub(super) fn answer_sealed(&mut self, effects: &mut Vec<FollowerEffect>) {
        let Seal::Sealing { calls } = core::mem::replace(&mut self.seal, Seal::Sealed) else { return };
        let state = self.state();
        effects.extend(calls.into_iter().map(|call| FollowerEffect::AnswerSealed { call, state }));
        if let (Some(stream), true) = (self.newest, self.has_stream()) {
            self.refuse(stream, Refusal::Sealed, effects);
        }
    }
}
