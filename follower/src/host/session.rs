//! The log of one session: the core's machine, and what its effects need. It is locked for one event at a time, and entries
//! are queued under the lock, so that they reach the journal in the order of their tickets.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_core::follower::{
    CallId, FollowerEffect, FollowerEvent, HeldLog as State, LogEntry, Refusal, SessionLog, StreamId, Ticket,
};
use holdfast_core::log_record::MemberId;
use holdfast_rpc::follower::{AppendAnswer, AppendRefusal, HeldLog, LogFrame, LogName};
use holdfast_telemetry::metrics;
use holdfast_types::{LogEpoch, LogOffset};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Inner;
use super::answers::Answers;
use crate::journal::{Completed, Entry, EntryBody, FrameIndex, FramePlace, ReadError};

pub(super) struct Session {
    pub(super) name: LogName,
    state: Mutex<Locked>,
}

struct Locked {
    log: SessionLog,
    index: FrameIndex,
    /// Bytes of frames on their way to the disk.
    queued_bytes: u64,
    queued: VecDeque<(Ticket, u64)>,
    /// Entries on their way to the disk that let frames go. Until they are there, a restart would miss the frames.
    drops: VecDeque<(Ticket, LogOffset)>,
    stream: Option<(StreamId, Arc<Answers>)>,
    calls: HashMap<CallId, oneshot::Sender<HeldLog>>,
    is_forgotten: bool,
}

/// What came with an append.
pub(super) struct Delivery {
    pub(super) frames: Vec<LogFrame>,
    pub(super) room: Option<OwnedSemaphorePermit>,
}

impl Session {
    pub(super) fn new(name: LogName, log: SessionLog, index: FrameIndex) -> Self {
        let state = Locked {
            log,
            index,
            queued_bytes: 0,
            queued: VecDeque::new(),
            drops: VecDeque::new(),
            stream: None,
            calls: HashMap::new(),
            is_forgotten: false,
        };
        Self { name, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, Locked> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event; true when the log record is to be read for the stream.
    pub(super) fn on(&self, inner: &Inner, event: FollowerEvent) -> bool {
        let mut state = self.lock();
        let effects = state.log.on(event);
        self.execute(inner, &mut state, effects, None)
    }

    /// A stream asks to adopt. It takes the place of an older one.
    pub(super) fn adopt(
        &self,
        inner: &Inner,
        (stream, answers): (StreamId, &Arc<Answers>),
        log_epoch: LogEpoch,
        start: LogOffset,
    ) -> bool {
        let mut state = self.lock();
        if let Some((known, old)) = &state.stream
            && *known < stream
        {
            old.end();
        }
        if state.stream.as_ref().is_some_and(|(known, _)| *known > stream) {
            answers.end();
        } else {
            state.stream = Some((stream, Arc::clone(answers)));
        }
        let is_draining = inner.is_draining();
        let effects = state.log.on(FollowerEvent::AdoptAsked { stream, log_epoch, start, is_draining });
        self.execute(inner, &mut state, effects, None)
    }

    /// Frames arrived; `event` is told whether there is room for them.
    pub(super) fn append(
        &self,
        inner: &Inner,
        delivery: Delivery,
        event: impl FnOnce(bool) -> FollowerEvent,
    ) {
        let mut state = self.lock();
        let bytes: u64 = delivery.frames.iter().map(|frame| frame.body.len() as u64).sum();
        let has_share = state.index.bytes() + state.queued_bytes + bytes <= inner.session_bytes_max;
        let effects = state.log.on(event(has_share && inner.journal().has_room_for(&delivery.frames)));
        self.execute(inner, &mut state, effects, Some(delivery));
    }

    pub(super) fn end_stream(&self, inner: &Inner, stream: StreamId) {
        let mut state = self.lock();
        let effects = state.log.on(FollowerEvent::StreamEnded { stream });
        self.execute(inner, &mut state, effects, None);
        if state.stream.as_ref().is_some_and(|(known, _)| *known == stream) {
            state.stream = None;
        }
    }

    pub(super) fn seal(&self, inner: &Inner, call: CallId, answer: oneshot::Sender<HeldLog>) {
        let mut state = self.lock();
        state.calls.retain(|_, answer| !answer.is_closed());
        state.calls.insert(call, answer);
        let effects = state.log.on(FollowerEvent::SealAsked { call });
        self.execute(inner, &mut state, effects, None);
    }

    /// The journal has fsynced entries.
    pub(super) fn persisted(&self, inner: &Inner, completed: Completed) {
        let Completed { session: _, upto, frames } = completed;
        let mut state = self.lock();
        let before = state.index.bytes();
        for (first, places) in frames {
            state.index.push(first, places);
        }
        while state.queued.front().is_some_and(|(ticket, _)| *ticket <= upto) {
            let (_, bytes) = state.queued.pop_front().expect("just seen");
            state.queued_bytes -= bytes;
        }
        while state.drops.front().is_some_and(|(ticket, _)| *ticket <= upto) {
            let (_, start) = state.drops.pop_front().expect("just seen");
            let dropped = state.index.drop_below(start);
            inner.journal().segments().release(&dropped);
        }
        let delta = state.index.bytes().cast_signed() - before.cast_signed();
        inner.retained_changed(delta);
        let effects = state.log.on(FollowerEvent::Persisted { upto });
        self.execute(inner, &mut state, effects, None);
    }

    /// What a log that was just read back has to say first.
    pub(super) fn execute_first(&self, inner: &Inner, effects: Vec<FollowerEffect>) {
        self.execute(inner, &mut self.lock(), effects, None);
    }

    fn execute(
        &self,
        inner: &Inner,
        state: &mut Locked,
        effects: Vec<FollowerEffect>,
        mut delivery: Option<Delivery>,
    ) -> bool {
        let mut reads_record = false;
        let mut drop_below = None;
        for effect in effects {
            match effect {
                FollowerEffect::ReadRecord { .. } => reads_record = true,
                FollowerEffect::DropBelow { start } => drop_below = Some(start),
                FollowerEffect::Persist { ticket, entry, is_awaited } => {
                    state.drops.extend(drop_below.take().map(|start| (ticket, start)));
                    self.persist(inner, state, (ticket, entry), is_awaited, delivery.take());
                }
                FollowerEffect::AnswerAdopted { stream, log_epoch, next } => {
                    state.answer(stream, AppendAnswer::Adopted { log_epoch, next });
                }
                FollowerEffect::AnswerDurable { stream, log_epoch, offset } => {
                    state.answer(stream, AppendAnswer::Durable { log_epoch, offset });
                }
                FollowerEffect::Refuse { stream, refusal } => self.refuse(state, stream, refusal),
                FollowerEffect::AnswerSealed { call, state: held } => {
                    metrics().follower_seal();
                    let held = told(&held, state.index.bytes(), &inner.me);
                    if let Some(answer) = state.calls.remove(&call) {
                        // Whoever asked may be gone.
                        let _ = answer.send(held);
                    }
                }
                FollowerEffect::Forgotten => {
                    state.is_forgotten = true;
                    inner.forget(self.name.session);
                    tracing::info!(node = %self.name.node, session = %self.name.session, "forgot a log that nobody needs");
                }
            }
        }
        reads_record
    }

    fn persist(
        &self,
        inner: &Inner,
        state: &mut Locked,
        (ticket, entry): (Ticket, LogEntry),
        is_awaited: bool,
        delivery: Option<Delivery>,
    ) {
        let (body, room) = match (entry, delivery) {
            (LogEntry::Frames { first, last: _ }, Some(Delivery { mut frames, room })) => {
                frames.retain(|frame| frame.offset >= first);
                let bytes = frames.iter().map(|frame| frame.body.len() as u64).sum();
                state.queued.push_back((ticket, bytes));
                state.queued_bytes += bytes;
                (EntryBody::Frames(frames), room)
            }
            (entry, _) => (EntryBody::Note { node: self.name.node.clone(), entry }, None),
        };
        inner.journal().push(Entry { session: self.name.session, ticket, body }, is_awaited, room);
    }

    fn refuse(&self, state: &Locked, stream: StreamId, refusal: Refusal) {
        metrics().follower_refusal(refusal.name());
        tracing::info!(
            node = %self.name.node, session = %self.name.session, reason = refusal.name(),
            "refused an append stream"
        );
        let detail = refusal.to_string();
        state.answer(stream, AppendAnswer::Refused { reason: reason(refusal), detail });
    }

    /// What is held.
    pub(super) fn held(&self, me: &MemberId) -> HeldLog {
        let state = self.lock();
        told(&state.log.state(), state.index.bytes(), me)
    }

    /// Whether nothing was ever written down. False when that cannot be told without waiting.
    pub(super) fn is_unused(&self) -> bool {
        self.state.try_lock().is_ok_and(|state| state.log.issued() == Ticket::default())
    }

    pub(super) fn has_stream(&self) -> bool {
        self.lock().log.has_stream()
    }

    /// The frames from `start` on, as far as they are fsynced, a piece of them.
    pub(super) fn piece(
        &self,
        start: LogOffset,
        end: LogOffset,
        bytes_max: u64,
    ) -> Vec<(LogOffset, FramePlace)> {
        self.lock().index.piece(start, end, bytes_max)
    }

    /// After the last fsynced frame.
    pub(super) fn end(&self) -> LogOffset {
        self.lock().log.state().end
    }

    /// A frame could not be read. Unless it was released meanwhile, what is held is damaged from now on.
    pub(super) fn unreadable(&self, inner: &Inner, offset: LogOffset, error: &ReadError) -> bool {
        let mut state = self.lock();
        if offset < state.log.state().start || state.is_forgotten {
            return false;
        }
        tracing::error!(node = %self.name.node, session = %self.name.session, %error, "a log is damaged");
        let effects = state.log.on(FollowerEvent::DamageFound);
        self.execute(inner, &mut state, effects, None);
        true
    }
}

impl Locked {
    fn answer(&self, stream: StreamId, answer: AppendAnswer) {
        if let Some((known, answers)) = &self.stream
            && *known == stream
        {
            answers.put(answer);
        }
    }
}

fn told(state: &State, bytes: u64, me: &MemberId) -> HeldLog {
    let State { log_epoch, start, end, is_complete, is_sealed } = *state;
    let (incarnation, complete, sealed) = (me.incarnation, is_complete, is_sealed);
    HeldLog { incarnation, log_epoch, start, end, complete, sealed, bytes }
}

fn reason(refusal: Refusal) -> AppendRefusal {
    match refusal {
        Refusal::Sealed => AppendRefusal::Sealed,
        Refusal::NotAMember => AppendRefusal::NotAMember,
        Refusal::StaleEpoch { found } => AppendRefusal::StaleEpoch { found },
        Refusal::RecordUnreadable => AppendRefusal::RecordUnreadable,
        Refusal::Gap => AppendRefusal::Gap,
        Refusal::Corrupt => AppendRefusal::Corrupt,
        Refusal::Full => AppendRefusal::Full,
        Refusal::Draining => AppendRefusal::Draining,
        Refusal::Damaged => AppendRefusal::Damaged,
    }
}
