//! The gathering of a recovery: a window of a member's tail, or a bundle, cut into pieces of level 0, each put into its
//! cell's prefix; then the next one.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdfast_core::log_record::MemberId;
use holdfast_core::pieces::pieces;
use holdfast_core::recovery::{GatherFault, RecoveryEvent};
use holdfast_types::{Epoch, LogOffset, Millis, SessionId, Txid};

use super::Purpose;
use super::recovering::RecoveryStep;
use crate::bucket::{Body, Cell, Key, Level, OpId, Operation, Reply};
use crate::follower::Ask;
use crate::frame::Frame;
use crate::violation::Violation;
use crate::world::World;

const PUT_PATIENCE_MS: u64 = 2_500;
const RETRY_PAUSE_MS: u64 = 150;
const FAILURES_MAX: u32 = 6;

/// How far the chain of each cell's epoch reaches.
type Reached = BTreeMap<(Cell, Epoch), Txid>;

/// A gathering under way.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// None: bundles.
    member: Option<MemberId>,
    /// After a declared loss: how far each chain is known to reach. What does not continue one is left out.
    reached: Option<Reached>,
    next: LogOffset,
    /// Of bundles: after the last known one.
    end: LogOffset,
    began_at: Millis,
    /// Pieces of the window that are on their way.
    pieces: BTreeMap<u64, (Key, Body)>,
    window_end: LogOffset,
    failures: u32,
}

impl World {
    pub(super) fn start_gathering(
        &mut self,
        index: usize,
        session: SessionId,
        member: MemberId,
        (start, end, is_whole): (LogOffset, LogOffset, bool),
    ) -> Result<(), Violation> {
        let began_at = self.nodes[index].clock.read(self.now).wall;
        let gathering = Gathering {
            member: Some(member),
            reached: (!is_whole).then(Reached::default),
            next: start.max(LogOffset::new(1)),
            end,
            began_at,
            pieces: BTreeMap::new(),
            window_end: start,
            failures: 0,
        };
        self.recovering(index, session).expect("a recovery gathers").gathering = Some(gathering);
        self.go_on_gathering(index, session)
    }

    fn gathering(&mut self, index: usize, session: SessionId) -> Option<&mut Gathering> {
        self.recovering(index, session)?.gathering.as_mut()
    }

    fn go_on_gathering(&mut self, index: usize, session: SessionId) -> Result<(), Violation> {
        let wall = self.nodes[index].clock.read(self.now).wall;
        let Some(gathering) = self.gathering(index, session) else { return Ok(()) };
        let began_at = std::mem::replace(&mut gathering.began_at, wall);
        let (next, end) = (gathering.next, gathering.end);
        let Some(member) = gathering.member.clone() else {
            return self.read_bundle(index, session, began_at, 0);
        };
        if next >= end {
            self.recovering(index, session).expect("checked").gathering = None;
            return self.recovery_event(index, session, RecoveryEvent::Gathered, began_at);
        }
        self.recovery_event(index, session, RecoveryEvent::Progress { done_below: next }, began_at)?;
        if self.gathering(index, session).is_some() {
            self.ask_member(index, session, member, Ask::Tail { from: next });
        }
        Ok(())
    }

    /// A window of the tail; none where the member did not answer.
    pub(super) fn on_tail(
        &mut self,
        index: usize,
        session: SessionId,
        frames: Option<Vec<Rc<Frame>>>,
    ) -> Result<(), Violation> {
        let Some(gathering) = self.gathering(index, session) else { return Ok(()) };
        let end = gathering.end;
        let frames = frames.unwrap_or_default();
        let frames: Vec<Rc<Frame>> = frames.into_iter().filter(|frame| frame.offset < end).collect();
        let Some(last) = frames.last().map(|frame| frame.offset) else {
            gathering.failures += 1;
            if gathering.failures >= FAILURES_MAX / 2 {
                let fault = GatherFault::Member("the tail ends early".to_owned());
                return self.end_gathering(index, session, fault);
            }
            let from = gathering.next;
            let member = gathering.member.clone().expect("a member has a tail");
            self.ask_member(index, session, member, Ask::Tail { from });
            return Ok(());
        };
        gathering.window_end = last.next();
        self.put_pieces(index, session, &frames)
    }

    fn put_pieces(
        &mut self,
        index: usize,
        session: SessionId,
        frames: &[Rc<Frame>],
    ) -> Result<(), Violation> {
        let gathering = self.gathering(index, session).expect("checked");
        let frames = match gathering.reached.take() {
            None => frames.to_vec(),
            Some(mut reached) => {
                let connected = self.connected(frames, &mut reached);
                self.gathering(index, session).expect("checked").reached = Some(reached);
                connected
            }
        };
        let objects = cut(&frames);
        if objects.is_empty() {
            let gathering = self.gathering(index, session).expect("checked");
            gathering.next = gathering.window_end;
            return self.go_on_gathering(index, session);
        }
        for (key, body) in objects {
            let id = self.name();
            let gathering = self.gathering(index, session).expect("checked");
            gathering.pieces.insert(id, (key, body));
            self.put_piece(index, session, id, 0)?;
        }
        Ok(())
    }

    /// The frames that continue what their cells' prefixes hold, as listings and openers show it.
    fn connected(&self, frames: &[Rc<Frame>], reached: &mut Reached) -> Vec<Rc<Frame>> {
        let mut connected = frames.to_vec();
        connected.sort_by_key(|frame| frame.id);
        connected.retain(|frame| {
            let (cell, epoch, txid) = frame.id;
            let before = txid.previous().unwrap_or(Txid::ZERO);
            let is_base = || match self.bucket.peek(&Key::Opener(cell, epoch)) {
                Some(Body::Opener(opener)) => opener.base.map_or(Txid::ZERO, |base| base.txid) == before,
                _ => false,
            };
            let follows = reached.get(&(cell, epoch)).is_some_and(|reached| *reached >= before)
                || self.bucket.has_transaction(cell, epoch, before)
                || is_base();
            if follows {
                reached.insert((cell, epoch), txid);
            }
            follows
        });
        connected
    }

    pub(super) fn start_gathering_bundles(
        &mut self,
        index: usize,
        session: SessionId,
        from: LogOffset,
        is_whole: bool,
    ) -> Result<(), Violation> {
        let began_at = self.nodes[index].clock.read(self.now).wall;
        let gathering = Gathering {
            member: None,
            reached: (!is_whole).then(Reached::default),
            next: from,
            end: from,
            began_at,
            pieces: BTreeMap::new(),
            window_end: from,
            failures: 0,
        };
        let recovering = self.recovering(index, session).expect("a recovery gathers");
        recovering.gathering = Some(gathering);
        recovering.bundles.clear();
        self.go_on_gathering(index, session)
    }

    fn read_bundle(
        &mut self,
        index: usize,
        session: SessionId,
        began_at: Millis,
        pause: u64,
    ) -> Result<(), Violation> {
        let progress = RecoveryEvent::Progress { done_below: LogOffset::ZERO };
        self.recovery_event(index, session, progress, began_at)?;
        let Some(recovering) = self.recovering(index, session) else { return Ok(()) };
        let Some(gathering) = &recovering.gathering else { return Ok(()) };
        let key = Key::Bundle(session, gathering.next);
        let purpose = Purpose::Recovery(session, recovering.run, RecoveryStep::Bundle);
        self.call(index, purpose, Operation::Get(key), (pause, PUT_PATIENCE_MS))
    }

    pub(super) fn on_bundle_read(
        &mut self,
        index: usize,
        session: SessionId,
        reply: Reply,
    ) -> Result<(), Violation> {
        let recovering = self.recovering(index, session).expect("checked");
        let Some(gathering) = &mut recovering.gathering else { return Ok(()) };
        let began_at = gathering.began_at;
        match reply {
            Reply::Object(Some((Body::Bundle(frames, below), _))) => {
                recovering.bundles.push(gathering.next);
                gathering.window_end = below;
                self.put_pieces(index, session, &frames)
            }
            Reply::Object(_) => {
                recovering.gathering = None;
                self.recovery_event(index, session, RecoveryEvent::Gathered, began_at)
            }
            _ => {
                gathering.failures += 1;
                if gathering.failures >= FAILURES_MAX {
                    let fault = GatherFault::Here("a bundle could not be read".to_owned());
                    return self.end_gathering(index, session, fault);
                }
                self.read_bundle(index, session, began_at, RETRY_PAUSE_MS)
            }
        }
    }

    fn put_piece(&mut self, index: usize, session: SessionId, id: u64, pause: u64) -> Result<(), Violation> {
        let recovering = self.recovering(index, session).expect("checked");
        let run = recovering.run;
        let gathering = recovering.gathering.as_ref().expect("checked");
        let (key, body) = gathering.pieces[&id].clone();
        let purpose = Purpose::Recovery(session, run, RecoveryStep::Piece(id));
        self.call(index, purpose, Operation::Put(key, body), (pause, PUT_PATIENCE_MS))
    }

    pub(super) fn on_piece(
        &mut self,
        index: usize,
        session: SessionId,
        id: u64,
        reply: &Reply,
    ) -> Result<(), Violation> {
        let Some(gathering) = self.gathering(index, session) else { return Ok(()) };
        if !gathering.pieces.contains_key(&id) {
            return Ok(());
        }
        if !matches!(reply, Reply::Done) {
            gathering.failures += 1;
            if gathering.failures >= FAILURES_MAX {
                let fault = GatherFault::Here("a piece could not be written".to_owned());
                return self.end_gathering(index, session, fault);
            }
            return self.put_piece(index, session, id, RETRY_PAUSE_MS);
        }
        gathering.pieces.remove(&id);
        if gathering.pieces.is_empty() {
            gathering.next = gathering.window_end;
            return self.go_on_gathering(index, session);
        }
        Ok(())
    }

    fn end_gathering(
        &mut self,
        index: usize,
        session: SessionId,
        fault: GatherFault,
    ) -> Result<(), Violation> {
        let recovering = self.recovering(index, session).expect("checked");
        let gathering = recovering.gathering.take().expect("checked");
        let event = RecoveryEvent::GatherFailed(fault);
        self.recovery_event(index, session, event, gathering.began_at)
    }
}

/// The frames of a window as objects of level 0.
fn cut(frames: &[Rc<Frame>]) -> Vec<(Key, Body)> {
    let mut cells: BTreeMap<(Cell, Epoch), BTreeMap<Txid, Vec<OpId>>> = BTreeMap::new();
    for frame in frames {
        let (cell, epoch, txid) = frame.id;
        cells.entry((cell, epoch)).or_default().insert(txid, frame.ops.clone());
    }
    let mut objects = Vec::new();
    for ((cell, epoch), transactions) in cells {
        let txids: Vec<Txid> = transactions.keys().copied().collect();
        // What of a cell the log did not take lies between: each run by itself.
        for run in txids.chunk_by(|left, right| left.next() == *right) {
            for (min, max) in pieces(run[0], run[run.len() - 1]) {
                let held = transactions.range(min..=max).map(|(txid, ops)| (*txid, ops.clone()));
                let body = Body::Transactions(held.collect::<Vec<_>>().into());
                objects.push((Key::File(cell, epoch, Level::Zero, min, max), body));
            }
        }
    }
    objects
}
