//! The walk to a state of the past (design 4.4): the newest one that is not after a position or a time. It reads only, and goes
//! by the openers alone, from the newest epoch down its bases, so that a transaction which no later epoch continued is never
//! found (INV-CHAIN-2). The mark of what is retired plays no part: what it has given up is there until it is swept, which is
//! `--history-retention` later, and what is missing is told as such (INV-CHAIN-1): a sweep deletes in any order and may end
//! half-way, so a state counts only where the files also show what came right after it.

use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::{Epoch, Millis, Position, Txid};

use super::{LineageError, OpenerView, Segment, SegmentStart};
use crate::mutant::{self, Mutant};

/// Openers asked for at once while looking for the newest: 1, then 4, then 16 a round.
const BATCH_MAX: usize = 16;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastTarget {
    /// The newest state that a file ends with, at or before this transaction.
    Position(Position),
    /// The newest state that a file ends with and that was committed at this time or before, by its owner's clock.
    Time(Millis),
}

/// A listed file of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSpan {
    /// Its first transaction; none for a snapshot, which has everything up to its last and shows no state before it.
    pub first: Option<Txid>,
    /// Its last transaction.
    pub last: Txid,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PastEvent {
    /// The openers asked for were read, in the order asked.
    OpenersRead(Vec<(Epoch, Option<OpenerView>)>),
    /// The files of an epoch, in any order.
    FilesListed(Vec<FileSpan>),
    /// When the last transaction of a file was committed.
    TimeRead(Millis),
    /// The epoch asked for was planned.
    EpochPlanned(SegmentStart),
    /// What was asked for is not there.
    Missing,
}

/// What the shell must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PastEffect {
    /// Read these epochs' openers.
    ReadOpeners(Vec<Epoch>),
    /// List one epoch's files.
    ListFiles(Epoch),
    /// Read when the transaction with which a file of the epoch listed last ends was committed.
    ReadTime(Txid),
    /// List one epoch's files and plan which to read.
    PlanEpoch(Segment),
    /// The state is at this position; the files planned lead to it.
    Finish(Position),
    /// There is no such state.
    Fail(PastError),
}

/// Why a state of the past is not to be had. Disposition: reject, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PastError {
    /// The cell was empty.
    #[error("the cell had no transaction yet")]
    Empty,
    /// No state of the cell was ever built on it, or it never was.
    #[error("transaction {0} is not part of the cell's history")]
    NotInHistory(Position),
    /// No file ends with the transaction: it shares one with later ones, or what ended with it is deleted.
    #[error(
        "the state after transaction {asked} is not kept by itself; the nearest before it is the one after {nearest}"
    )]
    Inexact {
        /// The transaction.
        asked: Position,
        /// The newest state before it that can be had.
        nearest: Position,
    },
    /// Objects that lead there are deleted.
    #[error(
        "history from before epoch {before} is not kept any more, or only in part: `--history-retention` says for how long it is"
    )]
    NotKept {
        /// The epoch in which the walk found that something is missing, or whose base is.
        before: Epoch,
    },
    /// Disposition: corrupt.
    #[error(transparent)]
    Broken(LineageError),
}

/// An epoch whose opener is known.
#[derive(Clone, Copy, Debug)]
struct Opened {
    epoch: Epoch,
    base: Option<Position>,
    /// Its last transaction that counts; none for the newest epoch.
    clip: Option<Txid>,
}

impl Opened {
    fn after(&self) -> Txid {
        self.base.map_or(Txid::ZERO, |base| base.txid)
    }

    /// Whether a transaction of the epoch counts.
    fn has(&self, txid: Txid) -> bool {
        txid > self.after() && self.clip.is_none_or(|clip| txid <= clip)
    }

    /// What it continues, where a position names that by an epoch that had written nothing: as a cell that was woken and
    /// only read tells where it stands.
    fn continued(&self, position: Position) -> Option<Position> {
        let names = |base: &Position| base.txid == position.txid && base.epoch < position.epoch;
        self.base.filter(names).filter(|_| position.epoch <= self.epoch)
    }

    /// Whether nothing is missing between a state and the end of the file after it. The last state of all has none after it.
    fn is_followed(&self, state: Txid, files: &[FileSpan]) -> bool {
        if self.clip.is_some_and(|clip| clip == state) {
            return true;
        }
        let mut after = files.iter().filter(|file| file.last > state).peekable();
        let is_last = self.clip.is_none() && after.peek().is_none();
        is_last || after.any(|file| file.first.is_some_and(|first| first <= state.next()))
    }
}

/// A walk.
#[derive(Clone, Debug)]
pub struct Past {
    floor: Epoch,
    target: PastTarget,
    /// The only position that will do, where there is one.
    only: Option<Position>,
    found: Option<Position>,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    /// Looking for the newest opened epoch below `below`.
    Seeking {
        below: Epoch,
        batch: usize,
    },
    /// Reading the opener of a base.
    Opening {
        successor: Epoch,
        base: Position,
    },
    /// Looking where the epoch's files end.
    Listing(Opened),
    /// Looking for the last of these that is old enough: those before `from` are, those from `upto` on are not.
    Timing {
        opened: Opened,
        files: Vec<FileSpan>,
        ends: Vec<Txid>,
        from: usize,
        upto: usize,
    },
    /// Planning the epoch's part of the way to what was found.
    Planning(Opened),
    Finished,
}

impl Past {
    /// Begins. `below` is the first epoch that is not looked at, `floor` what the owner record says.
    #[must_use]
    pub fn start(below: Epoch, floor: Epoch, target: PastTarget) -> (Self, PastEffect) {
        Self::begin(below, (floor, target), None)
    }

    /// As [`Past::start`], but only the state after this very transaction will do: [`PastError::Inexact`] otherwise.
    #[must_use]
    pub fn start_exactly(below: Epoch, floor: Epoch, position: Position) -> (Self, PastEffect) {
        Self::begin(below, (floor, PastTarget::Position(position)), Some(position))
    }

    fn begin(
        below: Epoch,
        (floor, target): (Epoch, PastTarget),
        only: Option<Position>,
    ) -> (Self, PastEffect) {
        let mut walk = Self { floor, target, only, found: None, step: Step::Finished };
        let effect = walk.seek(below, 1);
        (walk, effect)
    }

    /// Takes the answer to the last effect and says what is next.
    ///
    /// # Panics
    /// When the event does not answer the outstanding effect: a bug of the shell.
    pub fn on(&mut self, event: PastEvent) -> PastEffect {
        let step = core::mem::replace(&mut self.step, Step::Finished);
        match (step, event) {
            (Step::Seeking { below, batch }, PastEvent::OpenersRead(openers)) => {
                match openers.iter().find_map(|(epoch, opener)| opener.map(|opener| (*epoch, opener))) {
                    Some((epoch, opener)) => self.opened(epoch, opener, None),
                    None => self.seek(below, batch),
                }
            }
            (Step::Opening { successor, base }, PastEvent::OpenersRead(openers)) => match openers[..] {
                [(epoch, Some(opener))] if epoch == base.epoch => self.opened(epoch, opener, Some(base.txid)),
                _ => PastEffect::Fail(PastError::NotKept { before: successor }),
            },
            (Step::Listing(opened), PastEvent::FilesListed(files)) => self.listed(opened, files),
            (Step::Timing { opened, files, ends, from, upto }, PastEvent::TimeRead(time)) => {
                let PastTarget::Time(target) = self.target else { unreachable!("a position has no time") };
                let at = middle(from, upto);
                let (from, upto) = if time <= target { (at + 1, upto) } else { (from, at) };
                self.time(opened, (files, ends), from, upto)
            }
            (Step::Planning(opened), PastEvent::EpochPlanned(start)) => match (start, opened.base) {
                (SegmentStart::Base, Some(base)) => self.descend(opened.epoch, base),
                _ => self.finish(self.found.expect("what is planned was found")),
            },
            (Step::Timing { opened, .. } | Step::Planning(opened), PastEvent::Missing) => {
                PastEffect::Fail(PastError::NotKept { before: opened.epoch.next() })
            }
            (step, event) => unreachable!("event {event:?} does not answer step {step:?}"),
        }
    }

    fn seek(&mut self, below: Epoch, batch: usize) -> PastEffect {
        let lowest = self.floor.max(Epoch::new(1));
        let epochs: Vec<Epoch> = core::iter::successors(below.previous(), |epoch| epoch.previous())
            .take_while(|epoch| *epoch >= lowest)
            .take(batch)
            .collect();
        let Some(last) = epochs.last().copied() else { return PastEffect::Fail(self.nothing()) };
        self.step = Step::Seeking { below: last, batch: (batch * 4).min(BATCH_MAX) };
        PastEffect::ReadOpeners(epochs)
    }

    /// The walk has come to the first transaction of all.
    fn nothing(&self) -> PastError {
        match self.target {
            PastTarget::Position(position) => PastError::NotInHistory(position),
            PastTarget::Time(_) => PastError::Empty,
        }
    }

    fn descend(&mut self, successor: Epoch, base: Position) -> PastEffect {
        self.step = Step::Opening { successor, base };
        PastEffect::ReadOpeners(vec![base.epoch])
    }

    fn opened(&mut self, epoch: Epoch, opener: OpenerView, clip: Option<Txid>) -> PastEffect {
        let opened = Opened { epoch, base: opener.base, clip };
        if let Some(base) = opener.base
            && base.epoch >= epoch
        {
            return PastEffect::Fail(PastError::Broken(LineageError::BaseNotEarlier {
                epoch,
                base: base.epoch,
            }));
        }
        if self.found.is_some() {
            let clip = clip.expect("what leads to what was found is a base");
            return self.plan(opened, clip);
        }
        let position = match self.target {
            PastTarget::Time(_) => return self.list(opened),
            PastTarget::Position(position) => position,
        };
        if position.epoch == epoch && (opened.has(position.txid) || mutant::is(Mutant::PastWithoutBases)) {
            return self.list(opened);
        }
        if let Some(base) = opened.continued(position) {
            self.target = PastTarget::Position(base);
            self.only = self.only.map(|_| base);
            return self.descend(epoch, base);
        }
        match opener.base.filter(|_| position.epoch < epoch) {
            Some(base) => self.descend(epoch, base),
            None => PastEffect::Fail(PastError::NotInHistory(position)),
        }
    }

    fn list(&mut self, opened: Opened) -> PastEffect {
        self.step = Step::Listing(opened);
        PastEffect::ListFiles(opened.epoch)
    }

    fn listed(&mut self, opened: Opened, files: Vec<FileSpan>) -> PastEffect {
        let mut ends: Vec<Txid> = files.iter().map(|file| file.last).collect();
        ends.retain(|end| opened.has(*end) || mutant::is(Mutant::PastWithoutBases));
        ends.sort_unstable();
        ends.dedup();
        let position = match self.target {
            PastTarget::Time(_) => {
                let upto = ends.len();
                return self.time(opened, (files, ends), 0, upto);
            }
            PastTarget::Position(position) => position,
        };
        if opened.clip.is_none() && ends.last().is_none_or(|last| *last < position.txid) {
            return PastEffect::Fail(PastError::NotInHistory(position));
        }
        ends.truncate(ends.partition_point(|end| *end <= position.txid));
        let end = ends.last().copied();
        if end == Some(position.txid) {
            return self.found(opened, position.txid);
        }
        self.settle(opened, &files, end)
    }

    fn time(
        &mut self,
        opened: Opened,
        (files, ends): (Vec<FileSpan>, Vec<Txid>),
        from: usize,
        upto: usize,
    ) -> PastEffect {
        if from == upto {
            let end = from.checked_sub(1).map(|last| ends[last]);
            return self.settle(opened, &files, end);
        }
        let end = ends[middle(from, upto)];
        self.step = Step::Timing { opened, files, ends, from, upto };
        PastEffect::ReadTime(end)
    }

    /// The state is at this end of a file of the epoch, or else in what the epoch continues.
    fn settle(&mut self, opened: Opened, files: &[FileSpan], end: Option<Txid>) -> PastEffect {
        let state = end.unwrap_or_else(|| opened.after());
        // Who wants no other state than one hears of the nearest as such.
        if self.only.is_none() && !opened.is_followed(state, files) {
            return PastEffect::Fail(PastError::NotKept { before: opened.epoch.next() });
        }
        match (end, opened.base) {
            (Some(end), _) => self.found(opened, end),
            (None, Some(base)) => {
                // A position lies in the first file of its epoch: the one before it is what the epoch continues.
                if matches!(self.target, PastTarget::Position(_)) {
                    self.target = PastTarget::Position(base);
                }
                self.descend(opened.epoch, base)
            }
            (None, None) => PastEffect::Fail(self.nothing()),
        }
    }

    fn found(&mut self, opened: Opened, end: Txid) -> PastEffect {
        self.found = Some(Position { epoch: opened.epoch, txid: end });
        self.plan(opened, end)
    }

    fn finish(&self, found: Position) -> PastEffect {
        match self.only.filter(|only| *only != found) {
            Some(asked) => PastEffect::Fail(PastError::Inexact { asked, nearest: found }),
            None => PastEffect::Finish(found),
        }
    }

    fn plan(&mut self, opened: Opened, clip: Txid) -> PastEffect {
        self.step = Step::Planning(opened);
        PastEffect::PlanEpoch(Segment {
            epoch: opened.epoch,
            after: opened.after(),
            clip: Some(clip),
            confirm_tail: false,
            local: None,
            snapshot: None,
        })
    }
}

const fn middle(from: usize, upto: usize) -> usize {
    from + (upto - from) / 2
}

#[cfg(test)]
mod tests;
