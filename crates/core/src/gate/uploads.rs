//! When captured transactions go to the bucket, and how many share an object. What an ensemble holds may wait for its pace;
//! everything else goes at once. An object of level 0 holds an aligned block of transactions ([`crate::pieces`]), and none
//! goes on beyond a cut (INV-PAST-3).

use alloc::collections::VecDeque;

use holdfast_types::{Millis, Txid};

use crate::mutant::{self, Mutant};
use crate::pieces::next_piece;

/// One object on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) first: Txid,
    pub(super) last: Txid,
    pub(super) attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Uploads {
    /// Time between the uploads of a cell whose transactions an ensemble holds, in milliseconds.
    pace_ms: u64,
    pub(super) uploaded: Txid,
    pub(super) running: Option<Piece>,
    /// When what is logged is due; none while nothing is.
    due: Option<Millis>,
    /// What was captured when the round of uploads that goes on began, and the longest object of it, in transactions. A
    /// round ends when less than that is left of what it began with: the rest joins the next round, which costs no object
    /// more, and what came meanwhile waits for its pace.
    round: Option<(Txid, u64)>,
    /// Transactions beyond `uploaded` that objects must end with, oldest first. Each has somebody who waits for it.
    cuts: VecDeque<Txid>,
}

impl Uploads {
    pub(super) const fn new(restored: Txid, pace_ms: u64) -> Self {
        Self { pace_ms, uploaded: restored, running: None, due: None, round: None, cuts: VecDeque::new() }
    }

    /// The next piece, where one is due. What is new waits for so many `rounds`.
    pub(super) fn start(
        &mut self,
        captured: Txid,
        is_urgent: bool,
        (now, rounds): (Millis, u32),
    ) -> Option<Piece> {
        if self.running.is_some() {
            return None;
        }
        let behind = |upto: Txid| upto.get().saturating_sub(self.uploaded.get());
        self.round = self.round.filter(|(upto, longest)| behind(*upto) >= *longest);
        if behind(captured) == 0 {
            return None;
        }
        if !is_urgent
            && self.round.is_none()
            && now < *self.due.get_or_insert(now.plus(self.pace_ms.saturating_mul(rounds.into())))
        {
            return None;
        }
        let cut = self.cuts.front().filter(|_| !mutant::is(Mutant::UploadAcrossCut));
        let (first, last) = next_piece(self.uploaded, cut.map_or(captured, |cut| captured.min(*cut)))?;
        let piece = Piece { first, last, attempt: 0 };
        self.running = Some(piece);
        let len = last.get() - self.uploaded.get();
        self.round = Some(self.round.map_or((captured, len), |(upto, longest)| (upto, longest.max(len))));
        self.due = None;
        Some(piece)
    }

    /// The object that holds this transaction is to end with it. None that is on its way goes beyond it.
    pub(super) fn cut(&mut self, at: Txid) {
        if at > self.uploaded && self.cuts.back().is_none_or(|last| *last < at) {
            self.cuts.push_back(at);
        }
    }

    /// When the next upload is due; none while nothing waits for its pace.
    pub(super) const fn due(&self) -> Option<Millis> {
        self.due
    }

    /// The object that ends at `last` is in the bucket. False for the late answer of an earlier try.
    pub(super) fn is_done(&mut self, last: Txid) -> bool {
        let is_running = self.running.is_some_and(|piece| piece.last == last);
        if is_running {
            self.running = None;
            self.uploaded = last;
            while self.cuts.pop_front_if(|cut| *cut <= last).is_some() {}
        }
        is_running
    }

    /// The same piece once more; none where the answer is not of the running one.
    pub(super) fn again(&mut self, last: Txid) -> Option<Piece> {
        let piece = self.running.as_mut().filter(|piece| piece.last == last)?;
        piece.attempt = piece.attempt.saturating_add(1);
        Some(*piece)
    }
}
