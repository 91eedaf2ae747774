//! What recoverers ask of a follower, and what it answers.

use std::rc::Rc;

use holdfast_core::follower::{CallId as SealId, FollowerEvent, HeldLog};
use holdfast_core::log_record::LogState;
use holdfast_core::recovery::Holdings;
use holdfast_types::{LogOffset, NodeName, SessionId};

use super::{FollowerInput, FollowerPurpose};
use crate::bucket::{Body, Key, Operation, Reply};
use crate::event::{Event, NodeEvent};
use crate::frame::Frame;
use crate::node::Purpose;
use crate::violation::Violation;
use crate::world::World;

/// Frames of one answer.
const WINDOW_LEN_MAX: usize = 5;
const PATIENCE_MS: u64 = 1_500;

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The asking node and its process.
    pub(crate) asker: (usize, SessionId),
    pub(crate) rpc: u64,
    /// The session that it is about.
    pub(crate) about: (NodeName, SessionId),
    pub(crate) ask: Ask,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    Seal,
    Tail {
        from: LogOffset,
    },
    /// The record says sealed.
    Forget,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Sealed(Holdings),
    Tail(Vec<Rc<Frame>>),
    Unreachable,
}

impl World {
    /// Asks whatever process has the follower's name.
    pub(crate) fn ask_follower(&mut self, follower: usize, asked: Asked) {
        if !self.rng.chance(self.weather.message_lost) {
            let delay = self.rng.within(1, 6);
            self.after(delay, Event::Follower(follower, None, FollowerInput::Asked(asked)));
        }
    }

    pub(super) fn on_asked(&mut self, index: usize, asked: Asked) -> Result<(), Violation> {
        let session = asked.about.1;
        match asked.ask {
            Ask::Seal => {
                let call = SealId(self.name());
                self.follower_process(index).seals.insert(call, asked);
                let effects = self.session_log(index, session).on(FollowerEvent::SealAsked { call });
                self.run_follower_effects(index, session, effects, &[])
            }
            Ask::Tail { from } => {
                let frames = self.followers[index].disk.tail(session, from, WINDOW_LEN_MAX);
                self.tell(&asked, Told::Tail(frames));
                Ok(())
            }
            Ask::Forget => {
                let read = Operation::Get(Key::Log(asked.about.0.clone(), session));
                let purpose = Purpose::Follower(FollowerPurpose::Forgetting(session));
                self.follower_call(index, purpose, read, (0, PATIENCE_MS));
                Ok(())
            }
        }
    }

    pub(super) fn on_forgetting_record(
        &mut self,
        index: usize,
        session: SessionId,
        reply: &Reply,
    ) -> Result<(), Violation> {
        let Reply::Object(Some((Body::Log(record), _))) = reply else { return Ok(()) };
        let is_held = self.follower_process(index).logs.contains_key(&session);
        if record.state != LogState::Sealed || !is_held {
            return Ok(());
        }
        let effects = self.session_log(index, session).on(FollowerEvent::RecordSealed);
        self.run_follower_effects(index, session, effects, &[])
    }

    pub(super) fn holdings(&self, index: usize, held: HeldLog) -> Holdings {
        let HeldLog { log_epoch, start, end, is_complete, is_sealed } = held;
        let incarnation = self.followers[index].disk.incarnation;
        Holdings { incarnation, log_epoch, start, end, is_complete, is_sealed }
    }

    pub(super) fn tell(&mut self, asked: &Asked, told: Told) {
        let (index, session) = asked.asker;
        if !self.rng.chance(self.weather.message_lost) {
            let delay = self.rng.within(1, 6);
            self.after(delay, Event::Node(index, Some(session), NodeEvent::Told(asked.rpc, told)));
        }
    }
}
