//! A cell in memory: its database (the list of operations applied), what of it is captured, and its outputs.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use holdfast_core::compaction::{ChainSize, Compaction, CompactionTriggers};
use holdfast_core::gate::{Gate, GateOwner, OutputId};
use holdfast_core::ownership::OwnerView;
use holdfast_core::retire::Kept;
use holdfast_types::{AlarmId, Position, Txid};

use super::alarm::CellAlarm;
use super::retiring::Retiring;
use super::{Closing, LocalFile};
use crate::bucket::{Body, Cell, Key, Level, OpId};
use crate::event::Request;

/// Small bounds, so that every run compacts and snapshots.
const TRIGGERS: CompactionTriggers = CompactionTriggers {
    files_max: 4,
    bytes_max: 1 << 20,
    chain_factor: 1_000,
    chain_bytes_min: 1 << 20,
    chain_files_max: 7,
    retry_ms_min: 500,
    retry_ms_max: 4_000,
};

/// An output that waits for its proof.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// A response to a request, and how many operations it reveals.
    Response(Request, usize),
    /// The end of the stay.
    Closing,
    /// What became of an alarm's run: so many operations.
    Settlement(usize),
    /// That a run is counted before it begins: so many operations.
    Count(usize, AlarmId),
    /// Nothing: the alarm wants a proof.
    Prove,
}

/// A resident cell.
#[derive(Debug)]
pub(crate) struct Residency {
    pub(crate) owner: OwnerView,
    pub(crate) version: u64,
    pub(crate) base: Option<Position>,
    pub(crate) gate: Gate,
    pub(crate) compaction: Compaction,
    pub(crate) state: Vec<OpId>,
    pub(crate) captured: Txid,
    pub(crate) captured_len: usize,
    /// A commit that left no page behind awaits its capture.
    pub(crate) is_touched: bool,
    /// How many operations captures must end with, one after the other.
    cuts: VecDeque<usize>,
    /// What the gate was told to cut at, until the bucket has it and it is proved.
    bookmarks: VecDeque<Txid>,
    /// How many operations each transaction of the epoch ends with.
    lens: BTreeMap<Txid, usize>,
    pub(crate) outputs: BTreeMap<OutputId, Output>,
    outputs_given: u64,
    pub(crate) closing: Option<Closing>,
    pub(crate) alarm: Option<CellAlarm>,
    /// What restores read of the history, where it is known.
    pub(crate) kept: Option<Kept>,
    /// The epoch's newest snapshot.
    pub(crate) snapshot: Option<Txid>,
    /// A round of the retirement of history.
    pub(crate) retiring: Option<Box<Retiring>>,
}

impl Residency {
    pub(crate) fn new(
        owner: OwnerView,
        version: u64,
        base: Option<Position>,
        (state, chain): (Vec<OpId>, ChainSize),
        pace_ms: u64,
    ) -> Self {
        let restored = base.map_or(Txid::ZERO, |base| base.txid);
        let gate_owner = GateOwner { node: owner.node.clone(), session: owner.session, epoch: owner.epoch };
        let gate = Gate::new(gate_owner, restored, pace_ms);
        Self {
            gate,
            compaction: Compaction::new(TRIGGERS, restored, chain),
            base,
            owner,
            version,
            captured: restored,
            captured_len: state.len(),
            is_touched: false,
            cuts: VecDeque::new(),
            bookmarks: VecDeque::new(),
            lens: BTreeMap::from([(restored, state.len())]),
            state,
            outputs: BTreeMap::new(),
            outputs_given: 0,
            closing: None,
            alarm: None,
            kept: None,
            snapshot: None,
            retiring: None,
        }
    }

    /// The highest transaction that an output may reveal now.
    pub(crate) fn ticket(&self) -> Txid {
        let is_beyond = self.is_touched || self.state.len() > self.cut_len();
        self.cut_txid(u64::from(is_beyond))
    }

    fn cut_len(&self) -> usize {
        self.cuts.back().copied().unwrap_or(self.captured_len)
    }

    fn cut_txid(&self, more: u64) -> Txid {
        Txid::new(self.captured.get() + self.cuts.len() as u64 + more)
    }

    /// Has a transaction end with what is committed, for a bookmark. Answers which.
    pub(crate) fn cut(&mut self) -> Txid {
        if self.state.len() > self.cut_len() {
            self.cuts.push_back(self.state.len());
        }
        let at = self.cut_txid(0);
        self.bookmarks.push_back(at);
        at
    }

    /// A bookmark whose state the bucket has and that is proved: it is given out.
    pub(crate) fn take_bookmark(&mut self) -> Option<Txid> {
        let proved = self.gate.uploaded().min(self.gate.covered());
        self.bookmarks.pop_front_if(|at| *at <= proved)
    }

    pub(crate) fn new_output(&mut self, output: Output) -> OutputId {
        self.outputs_given += 1;
        let id = OutputId(self.outputs_given);
        self.outputs.insert(id, output);
        id
    }

    /// Captures everything committed, up to the first cut, as one transaction; none when there is nothing.
    pub(crate) fn capture(&mut self) -> Option<Txid> {
        let cut = self.cuts.pop_front();
        self.is_touched &= cut.is_some();
        let len = cut.unwrap_or(self.state.len());
        if len == self.captured_len {
            return None;
        }
        self.captured = self.captured.next();
        self.captured_len = len;
        self.lens.insert(self.captured, self.captured_len);
        Some(self.captured)
    }

    /// The first transaction of the epoch, and the one that first holds so many operations.
    pub(crate) fn transactions_of(&self, len: usize) -> (Txid, Txid) {
        let (restored, _) = self.lens.first_key_value().expect("the restored position is there");
        let holding = self.lens.iter().find(|(_, held)| **held >= len).map(|(txid, _)| *txid);
        (restored.next(), holding.unwrap_or_else(|| self.captured.next()))
    }

    /// How many operations the last proved transaction ends with.
    pub(crate) fn covered_len(&self) -> usize {
        self.lens.get(&self.gate.covered()).copied().unwrap_or_default()
    }

    pub(crate) fn ops_of(&self, txid: Txid) -> Vec<OpId> {
        let before = txid.previous().expect("transactions count from 1");
        self.state[self.lens[&before]..self.lens[&txid]].to_vec()
    }

    /// The object of a range of the epoch's transactions.
    pub(crate) fn file(&self, cell: Cell, level: Level, (min, max): (Txid, Txid)) -> (Key, Body) {
        let key = |min| Key::File(cell, self.owner.epoch, level, min, max);
        if level == Level::Snapshot {
            return (key(Txid::new(1)), Body::Snapshot(self.state[..self.lens[&max]].into()));
        }
        let txids = std::iter::successors(Some(min), |txid| (*txid < max).then(|| txid.next()));
        let transactions: Vec<_> = txids.map(|txid| (txid, self.ops_of(txid))).collect();
        (key(min), Body::Transactions(Rc::from(transactions)))
    }

    /// The position of the database; none when it is not exactly at one.
    fn position(&self) -> Option<Position> {
        let is_exact = !self.is_touched && self.state.len() == self.captured_len;
        let wrote = self.lens.len() > 1;
        let position =
            if wrote { Some(Position { epoch: self.owner.epoch, txid: self.captured }) } else { self.base };
        position.filter(|_| is_exact)
    }

    /// What stays in the directory when the process ends; nothing when the database is not at a position.
    pub(crate) fn into_local_file(self) -> Option<LocalFile> {
        Some(LocalFile { position: self.position()?, state: self.state })
    }
}
