//! A follower's log of one session over a disk that holds entries until they are fsynced.

use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::{FollowerName, Incarnation, LogEpoch, LogOffset, NodeName, SessionId, WriteId};

use crate::follower::{
    CallId, FollowerEffect, FollowerEvent, FramesCheck, HeldLog, LogEntry, LogReplay, Refusal, SessionLog,
    StreamId, Ticket,
};
use crate::log_record::{Ensemble, LogRecord, LogState, MemberId};

pub(super) const ONE: StreamId = StreamId(1);
pub(super) const TWO: StreamId = StreamId(2);
pub(super) const CALL: CallId = CallId(1);

pub(super) fn me() -> MemberId {
    member("f", 1)
}

pub(super) fn member(name: &str, disk: u128) -> MemberId {
    MemberId { follower: FollowerName::parse(name).unwrap(), incarnation: Incarnation::from_bits(disk) }
}

pub(super) fn ensemble(log_epoch: u64, members: Vec<MemberId>) -> Ensemble {
    Ensemble { log_epoch: LogEpoch::new(log_epoch), members }
}

/// An open record whose ensemble is this follower and another.
pub(super) fn record(log_epoch: u64) -> LogRecord {
    LogRecord {
        write_id: WriteId::from_bits(9),
        node: NodeName::parse("n").unwrap(),
        session: SessionId::from_bits(7),
        state: LogState::Open,
        ensemble: ensemble(log_epoch, vec![me(), member("g", 2)]),
        active: false,
        prior: None,
        recovery: None,
        loss_declared: false,
        bundles_from: None,
    }
}

pub(super) struct Disk {
    pub(super) log: SessionLog,
    pub(super) written: Vec<(Ticket, LogEntry)>,
    pub(super) synced: usize,
}

impl Disk {
    pub(super) fn new() -> Self {
        Self { log: SessionLog::new(me()), written: Vec::new(), synced: 0 }
    }

    /// Adopted at `log_epoch` on stream one, fsynced and answered.
    pub(super) fn adopted(log_epoch: u64) -> Self {
        let mut disk = Self::new();
        disk.adopt(ONE, log_epoch, 1);
        disk.read(ONE, record(log_epoch));
        assert_eq!(disk.sync(), vec![adopted(ONE, log_epoch, 1)]);
        disk
    }

    /// Executes what is for the disk and gives the rest.
    pub(super) fn on(&mut self, event: FollowerEvent) -> Vec<FollowerEffect> {
        let effects = self.log.on(event);
        self.execute(effects)
    }

    fn execute(&mut self, effects: Vec<FollowerEffect>) -> Vec<FollowerEffect> {
        let mut rest = Vec::new();
        for effect in effects {
            match effect {
                FollowerEffect::Persist { ticket, entry, is_awaited: _ } => {
                    self.written.push((ticket, entry))
                }
                FollowerEffect::DropBelow { .. } => {}
                other => rest.push(other),
            }
        }
        rest
    }

    pub(super) fn adopt(&mut self, stream: StreamId, log_epoch: u64, start: u64) -> Vec<FollowerEffect> {
        self.on(FollowerEvent::AdoptAsked {
            stream,
            log_epoch: LogEpoch::new(log_epoch),
            start: LogOffset::new(start),
            is_draining: false,
        })
    }

    pub(super) fn read(&mut self, stream: StreamId, record: LogRecord) -> Vec<FollowerEffect> {
        self.on(FollowerEvent::RecordRead { stream, record: Some(record) })
    }

    pub(super) fn append(
        &mut self,
        stream: StreamId,
        log_epoch: u64,
        first: u64,
        last: u64,
    ) -> Vec<FollowerEffect> {
        self.append_checked(stream, log_epoch, (first, last), FramesCheck::Sound, true)
    }

    pub(super) fn append_checked(
        &mut self,
        stream: StreamId,
        log_epoch: u64,
        (first, last): (u64, u64),
        check: FramesCheck,
        has_room: bool,
    ) -> Vec<FollowerEffect> {
        self.on(FollowerEvent::FramesArrived {
            stream,
            log_epoch: LogEpoch::new(log_epoch),
            first: LogOffset::new(first),
            last: LogOffset::new(last),
            check,
            has_room,
        })
    }

    pub(super) fn release(&mut self, start: u64) {
        let stream = ONE;
        let rest = self.on(FollowerEvent::ReleaseAsked { stream, start: LogOffset::new(start) });
        assert_eq!(rest, vec![], "a release is not answered");
    }

    /// Fsyncs everything written so far.
    pub(super) fn sync(&mut self) -> Vec<FollowerEffect> {
        self.sync_some(self.written.len())
    }

    /// Fsyncs the first entries up to `len`.
    pub(super) fn sync_some(&mut self, len: usize) -> Vec<FollowerEffect> {
        self.synced = self.synced.max(len);
        let upto = self.written[..self.synced].last().map_or(Ticket::default(), |(ticket, _)| *ticket);
        self.on(FollowerEvent::Persisted { upto })
    }

    /// The power fails: what is fsynced survives, and `extra` more entries by chance.
    pub(super) fn crash(&mut self, extra: usize) {
        self.written.truncate(self.synced + extra);
        self.synced = self.written.len();
        let mut replay = LogReplay::default();
        for (ticket, entry) in &self.written {
            if replay.is_forgotten() {
                replay = LogReplay::default();
            }
            replay.apply(*ticket, entry);
        }
        if replay.is_forgotten() {
            replay = LogReplay::default();
        }
        let (log, effects) = SessionLog::reopen(me(), &replay);
        assert_eq!(effects, vec![], "nothing is damaged by a crash");
        self.log = log;
    }

    /// What is held, as `(log_epoch, start, end)`.
    pub(super) fn window(&self) -> (u64, u64, u64) {
        window(&self.log.state())
    }
}

pub(super) fn window(state: &HeldLog) -> (u64, u64, u64) {
    (state.log_epoch.get(), state.start.get(), state.end.get())
}

pub(super) fn adopted(stream: StreamId, log_epoch: u64, next: u64) -> FollowerEffect {
    let (log_epoch, next) = (LogEpoch::new(log_epoch), LogOffset::new(next));
    FollowerEffect::AnswerAdopted { stream, log_epoch, next }
}

pub(super) fn durable(stream: StreamId, log_epoch: u64, offset: u64) -> FollowerEffect {
    let (log_epoch, offset) = (LogEpoch::new(log_epoch), LogOffset::new(offset));
    FollowerEffect::AnswerDurable { stream, log_epoch, offset }
}

pub(super) fn refused(stream: StreamId, refusal: Refusal) -> Vec<FollowerEffect> {
    vec![FollowerEffect::Refuse { stream, refusal }]
}
