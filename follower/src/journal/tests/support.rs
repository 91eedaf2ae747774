//! Sessions that append to a journal by way of the real machine, and remember what they were told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use holdfast_core::follower::{
    CallId, FollowerEffect, FollowerEvent, FramesCheck, LogEntry, SessionLog, StreamId,
};
use holdfast_core::log_record::{Ensemble, LogRecord, LogState, MemberId};
use holdfast_rpc::follower::LogFrame;
use holdfast_types::{
    CellName, Epoch, FollowerName, Incarnation, LogEpoch, LogOffset, NodeName, SessionId, Txid, WriteId,
};

use futures::FutureExt as _;
use tokio::sync::OwnedSemaphorePermit;

use super::sim_disk::SimDisk;
use crate::journal::{
    Completed, Disk, Ends, Entry, EntryBody, FrameIndex, Journal, JournalOptions, Opened, RecoveredLog,
};

pub(super) const DISK: Incarnation = Incarnation::from_bits(0xd15c);
pub(super) const SEGMENT_LEN: u64 = 64 * 1024;

pub(super) fn session(number: u128) -> SessionId {
    SessionId::from_bits(number)
}

fn me() -> MemberId {
    MemberId { follower: FollowerName::parse("f").unwrap(), incarnation: DISK }
}

pub(super) fn frame(session: SessionId, offset: u64, len: usize) -> LogFrame {
    let cell = CellName::parse("db:a").unwrap();
    let body = Bytes::from(vec![u8::try_from(offset % 251).unwrap(); len]);
    LogFrame::new(session, LogOffset::new(offset), cell, Epoch::new(1), Txid::new(offset), body)
}

pub(super) fn options() -> JournalOptions {
    JournalOptions { segment_len: SEGMENT_LEN, queue_len: 1 << 20, on_batch: Box::new(|_| ()) }
}

pub(super) fn read(disk: &Arc<SimDisk>) -> Opened {
    let disk: Arc<dyn Disk> = disk.clone();
    Opened::read(disk, DISK, options()).unwrap()
}

struct Session {
    log: SessionLog,
    index: FrameIndex,
    /// Entries on their way that let frames go.
    drops: Vec<(u64, LogOffset)>,
    /// The highest offset that the session was told is fsynced.
    acknowledged: u64,
    sealed: bool,
}

#[derive(Default)]
struct Sessions(Mutex<BTreeMap<SessionId, Session>>);

pub(super) struct Follower {
    pub(super) journal: Journal,
    sessions: Arc<Sessions>,
}

/// What was told to a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) acknowledged: u64,
    pub(super) sealed: bool,
}

impl Follower {
    pub(super) fn start(opened: Opened) -> Self {
        let sessions = Arc::new(Sessions::default());
        for (session, log) in &opened.logs {
            let (machine, _) = SessionLog::reopen(me(), &log.replay);
            let acknowledged = machine.state().end.get() - 1;
            let sealed = machine.state().is_sealed;
            let index = log.index.clone();
            let entry = Session { log: machine, index, drops: vec![], acknowledged, sealed };
            sessions.0.lock().unwrap().insert(*session, entry);
        }
        let segments = opened.segments();
        let told = Arc::clone(&sessions);
        let journal = opened.start(Box::new(move |completed| {
            let Completed { session, upto, frames } = completed;
            let mut sessions = told.0.lock().unwrap();
            let entry = sessions.get_mut(&session).unwrap();
            for (first, places) in frames {
                entry.index.push(first, places);
            }
            let due =
                entry.drops.iter().filter(|(ticket, _)| *ticket <= upto.0).map(|(_, start)| *start).max();
            if let Some(start) = due {
                segments.release(&entry.index.drop_below(start));
            }
            entry.drops.retain(|(ticket, _)| *ticket > upto.0);
            let effects = entry.log.on(FollowerEvent::Persisted { upto });
            for effect in effects {
                match effect {
                    FollowerEffect::AnswerDurable { offset, .. } => entry.acknowledged = offset.get(),
                    FollowerEffect::AnswerSealed { .. } => entry.sealed = true,
                    _ => {}
                }
            }
        }));
        Self { journal, sessions }
    }

    fn on(&self, session: SessionId, events: impl IntoIterator<Item = FollowerEvent>, frames: &[LogFrame]) {
        self.on_with_room(session, events, frames, None);
    }

    fn on_with_room(
        &self,
        session: SessionId,
        events: impl IntoIterator<Item = FollowerEvent>,
        frames: &[LogFrame],
        mut room: Option<OwnedSemaphorePermit>,
    ) {
        let mut sessions = self.sessions.0.lock().unwrap();
        let entry = sessions.entry(session).or_insert_with(|| Session {
            log: SessionLog::new(me()),
            index: FrameIndex::default(),
            drops: vec![],
            acknowledged: 0,
            sealed: false,
        });
        for event in events {
            let mut drop = None;
            for effect in entry.log.on(event) {
                match effect {
                    FollowerEffect::DropBelow { start } => drop = Some(start),
                    FollowerEffect::Persist { ticket, entry: log_entry, is_awaited } => {
                        entry.drops.extend(drop.take().map(|start| (ticket.0, start)));
                        let body = match log_entry {
                            LogEntry::Frames { first, .. } => {
                                let new = frames.iter().filter(|frame| frame.offset >= first);
                                EntryBody::Frames(new.cloned().collect())
                            }
                            entry => EntryBody::Note { node: NodeName::parse("n").unwrap(), entry },
                        };
                        self.journal.push(Entry { session, ticket, body }, is_awaited, room.take());
                    }
                    _ => {}
                }
            }
        }
    }

    pub(super) fn adopt(&self, session: SessionId, log_epoch: u64, start: u64) {
        let stream = StreamId(log_epoch);
        let log_epoch = LogEpoch::new(log_epoch);
        let record = LogRecord {
            write_id: WriteId::from_bits(1),
            node: NodeName::parse("n").unwrap(),
            session,
            state: LogState::Open,
            ensemble: Ensemble { log_epoch, members: vec![me()] },
            active: false,
            prior: None,
            recovery: None,
            loss_declared: false,
            bundles_from: None,
        };
        let start = LogOffset::new(start);
        let asked = FollowerEvent::AdoptAsked { stream, log_epoch, start, is_draining: false };
        self.on(session, [asked, FollowerEvent::RecordRead { stream, record: Some(record) }], &[]);
    }

    pub(super) fn append(
        &self,
        session: SessionId,
        log_epoch: u64,
        offsets: std::ops::Range<u64>,
        len: usize,
    ) {
        let frames: Vec<_> = offsets.clone().map(|offset| frame(session, offset, len)).collect();
        self.arrive(session, log_epoch, &frames, None);
    }

    /// Appends one frame if the queue has room for it.
    pub(super) fn append_if_room(&self, session: SessionId, log_epoch: u64, offset: u64, len: usize) -> bool {
        let frames = [frame(session, offset, len)];
        let room = self.journal.room(&frames).now_or_never();
        let has_room = room.is_some();
        if has_room {
            self.arrive(session, log_epoch, &frames, room);
        }
        has_room
    }

    fn arrive(
        &self,
        session: SessionId,
        log_epoch: u64,
        frames: &[LogFrame],
        room: Option<OwnedSemaphorePermit>,
    ) {
        let event = FollowerEvent::FramesArrived {
            stream: StreamId(log_epoch),
            log_epoch: LogEpoch::new(log_epoch),
            first: frames.first().unwrap().offset,
            last: frames.last().unwrap().offset,
            check: FramesCheck::Sound,
            has_room: self.journal.has_room_for(frames),
        };
        self.on_with_room(session, [event], frames, room);
    }

    pub(super) fn release(&self, session: SessionId, log_epoch: u64, start: u64) {
        let stream = StreamId(log_epoch);
        self.on(session, [FollowerEvent::ReleaseAsked { stream, start: LogOffset::new(start) }], &[]);
    }

    pub(super) fn seal(&self, session: SessionId) {
        self.on(session, [FollowerEvent::SealAsked { call: CallId(1) }], &[]);
    }

    pub(super) fn told(&self, session: SessionId) -> Told {
        let sessions = self.sessions.0.lock().unwrap();
        let told = |session: &Session| Told { acknowledged: session.acknowledged, sealed: session.sealed };
        sessions.get(&session).map(told).unwrap_or_default()
    }

    /// Ends the journal when everything is fsynced, or at its first error.
    pub(super) fn end(&self) -> Ends {
        self.journal.close();
        self.wait(|ends| *ends != Ends::Running)
    }

    fn wait(&self, until: impl FnMut(&Ends) -> bool) -> Ends {
        let mut ends = self.journal.ends();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { ends.wait_for(until).await.unwrap().clone() })
    }

    /// Waits until the session was told something.
    pub(super) fn wait_told(&self, session: SessionId, until: impl Fn(Told) -> bool) {
        while !until(self.told(session)) {
            std::thread::yield_now();
        }
    }
}

/// A log as read back: `(log_epoch, start, end, complete, sealed)`.
pub(super) fn state(logs: &[(SessionId, RecoveredLog)], session: SessionId) -> (u64, u64, u64, bool, bool) {
    let Some((_, log)) = logs.iter().find(|(other, _)| *other == session) else {
        return (0, 1, 1, true, false);
    };
    let state = SessionLog::reopen(me(), &log.replay).0.state();
    (state.log_epoch.get(), state.start.get(), state.end.get(), state.is_complete, state.is_sealed)
}

/// The offsets that can be read back, each checked.
pub(super) fn readable(opened: &Opened, session: SessionId) -> Vec<u64> {
    let Some((_, log)) = opened.logs.iter().find(|(other, _)| *other == session) else { return vec![] };
    let piece = log.index.piece(LogOffset::new(1), LogOffset::new(u64::MAX), u64::MAX);
    let read = |(offset, place)| opened.segments().read(session, (offset, place)).unwrap().offset.get();
    piece.into_iter().map(read).collect()
}
