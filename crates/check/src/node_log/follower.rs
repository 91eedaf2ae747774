//! A follower: the real log of the session at it, a journal that is fsynced now and then, and the connections to it.

use std::collections::VecDeque;

use holdfast_core::follower::{
    CallId, FollowerEffect, FollowerEvent, FramesCheck, HeldLog, LogEntry, LogReplay, Refusal, SessionLog,
    StreamId, Ticket,
};
use holdfast_core::log_record::LogRecord;
use holdfast_types::{LogEpoch, LogOffset};

use super::bounds::{At, member};
use crate::register::Read;

/// From the session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Adopt an epoch.
    Adopt {
        /// The epoch.
        log_epoch: LogEpoch,
        /// The first retained offset.
        start: LogOffset,
    },
    /// Frames, both ends included.
    Frames {
        /// The epoch that they are meant for.
        log_epoch: LogEpoch,
        /// The first.
        first: LogOffset,
        /// The last.
        last: LogOffset,
    },
    /// What is below is in the bucket.
    Release(LogOffset),
}

/// To the session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Adopted.
    Adopted(LogEpoch, LogOffset),
    /// Fsynced.
    Durable(LogOffset),
    /// Refused.
    Refused(Refusal),
    /// The connection broke.
    Broken,
}

/// Messages of a stream on their way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wire {
    pub(super) stream: StreamId,
    pub(super) messages: VecDeque<Message>,
}

/// A follower.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follower {
    at: At,
    /// How many disks it had before this one.
    pub(super) disk: u8,
    pub(super) log: SessionLog,
    /// What the fsynced entries say.
    replay: LogReplay,
    /// Entries that are not fsynced.
    pub(super) unsynced: VecDeque<(Ticket, LogEntry)>,
    /// Frames that are fsynced and not dropped, a bit each.
    pub(super) frames: u32,
    /// What earlier disks held when they were lost.
    lost: Vec<u32>,
    pub(super) record_read: Option<(StreamId, Read<LogRecord>)>,
    /// The newest connection, and the one before it where something of it is still on its way.
    pub(super) wires: VecDeque<Wire>,
    pub(super) replies: VecDeque<(StreamId, Reply)>,
    /// A seal was journalled on this disk...
    is_sealed: bool,
    /// ...and a frame behind it.
    pub(super) appended_past_seal: bool,
}

/// What others have to do for a follower.
pub(super) type Sealed = (CallId, HeldLog);

pub(super) const fn bit(offset: LogOffset) -> u32 {
    1 << offset.get()
}

/// Bits of frames from the first up to, but not with, the second.
pub(super) fn bits(start: LogOffset, end: LogOffset) -> u32 {
    (start.get()..end.get()).map(|offset| 1 << offset).sum()
}

impl Follower {
    pub(super) fn new(at: At, disk: u8) -> Self {
        Self {
            at,
            disk,
            log: SessionLog::new(member(at, disk)),
            replay: LogReplay::default(),
            unsynced: VecDeque::new(),
            frames: 0,
            lost: Vec::new(),
            record_read: None,
            wires: VecDeque::new(),
            replies: VecDeque::new(),
            is_sealed: false,
            appended_past_seal: false,
        }
    }

    /// A new connection; of those before it only the last may still bring something.
    pub(super) fn connect(&mut self, stream: StreamId) {
        self.wires.retain(|wire| !wire.messages.is_empty());
        while self.wires.len() > 1 {
            self.wires.pop_front();
        }
        self.wires.push_back(Wire { stream, messages: VecDeque::new() });
    }

    pub(super) fn send(&mut self, stream: StreamId, message: Message) {
        // Where the follower has closed the connection the session will hear of it.
        let Some(wire) = self.wires.iter_mut().find(|wire| wire.stream == stream) else { return };
        if let (
            Message::Frames { log_epoch, first, last },
            Some(Message::Frames { log_epoch: before, last: end, .. }),
        ) = (&message, wire.messages.back_mut())
            && log_epoch == before
            && *first == end.next()
        {
            *end = *last;
            return;
        }
        wire.messages.push_back(message);
    }

    /// The next message of a connection arrives.
    pub(super) fn deliver(&mut self, wire: usize) -> Vec<Sealed> {
        let Wire { stream, messages } = &mut self.wires[wire];
        let stream = *stream;
        let event = match messages.pop_front().expect("a message is on its way") {
            Message::Adopt { log_epoch, start } => {
                FollowerEvent::AdoptAsked { stream, log_epoch, start, is_draining: false }
            }
            Message::Frames { log_epoch, first, last } => FollowerEvent::FramesArrived {
                stream,
                log_epoch,
                first,
                last,
                check: FramesCheck::Sound,
                has_room: true,
            },
            Message::Release(start) => FollowerEvent::ReleaseAsked { stream, start },
        };
        self.on(event)
    }

    pub(super) fn on(&mut self, event: FollowerEvent) -> Vec<Sealed> {
        let effects = self.log.on(event);
        self.execute(effects)
    }

    fn execute(&mut self, effects: Vec<FollowerEffect>) -> Vec<Sealed> {
        let mut sealed = Vec::new();
        for effect in effects {
            match effect {
                FollowerEffect::ReadRecord { stream } => self.record_read = Some((stream, Read::Asked)),
                FollowerEffect::Persist { ticket, entry, is_awaited: _ } => {
                    self.unsynced.push_back((ticket, entry))
                }
                FollowerEffect::AnswerAdopted { stream, log_epoch, next } => {
                    self.replies.push_back((stream, Reply::Adopted(log_epoch, next)));
                }
                FollowerEffect::AnswerDurable { stream, log_epoch: _, offset } => {
                    self.replies.push_back((stream, Reply::Durable(offset)));
                }
                FollowerEffect::Refuse { stream, refusal } => {
                    self.wires.retain(|wire| wire.stream != stream);
                    self.replies.push_back((stream, Reply::Refused(refusal)));
                }
                FollowerEffect::AnswerSealed { call, state } => sealed.push((call, state)),
                FollowerEffect::DropBelow { .. } | FollowerEffect::Forgotten => {}
            }
        }
        sealed
    }

    /// Entries reach the disk, in their order.
    fn journal(&mut self, count: usize) {
        for (ticket, entry) in self.unsynced.drain(..count) {
            match entry {
                LogEntry::Frames { first, last } => {
                    self.appended_past_seal |= self.is_sealed;
                    self.frames |= bits(first, last.next());
                }
                LogEntry::Seal => self.is_sealed = true,
                _ => {}
            }
            self.replay.apply(ticket, &entry);
        }
        self.frames &= !bits(LogOffset::new(1), self.replay.holdings().start);
    }

    /// Everything handed to the journal is fsynced.
    pub(super) fn fsync(&mut self) -> Vec<Sealed> {
        let (upto, _) = *self.unsynced.back().expect("something is not fsynced");
        self.journal(self.unsynced.len());
        self.on(FollowerEvent::Persisted { upto })
    }

    /// The power fails and comes back; of what was not fsynced the first entries are there.
    pub(super) fn crash(&mut self, kept: usize) -> Vec<Sealed> {
        self.journal(kept);
        self.unsynced.clear();
        self.record_read = None;
        for Wire { stream, .. } in self.wires.drain(..) {
            self.replies.push_back((stream, Reply::Broken));
        }
        let (log, effects) = SessionLog::reopen(member(self.at, self.disk), &self.replay);
        self.log = log;
        self.execute(effects)
    }

    /// The disk is lost; the follower comes back with another.
    pub(super) fn lose_disk(&mut self) {
        let mut replies = core::mem::take(&mut self.replies);
        replies.extend(self.wires.drain(..).map(|wire| (wire.stream, Reply::Broken)));
        let mut lost = core::mem::take(&mut self.lost);
        lost.push(self.frames);
        let appended_past_seal = self.appended_past_seal;
        *self = Self { replies, lost, appended_past_seal, ..Self::new(self.at, self.disk + 1) };
    }

    /// Frames that a disk holds, or held until it was lost.
    pub(super) fn frames_of(&self, disk: u8) -> u32 {
        self.lost.get(usize::from(disk)).copied().unwrap_or(self.frames)
    }
}
