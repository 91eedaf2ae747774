//! A waker whose shell is the test.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, CellName, Epoch, Millis, SessionId, WakeMinute};

use crate::lease::Now;
use crate::waker::{DueEntry, HintOutcome, Retirement, Waker, WakerEffect, WakerEvent};

/// Some wall clock time, at the begin of a minute.
pub(super) const START: u64 = 28_000_000 * 60_000;

pub(super) fn now(ms: u64) -> Now {
    Now { monotonic: Millis::new(1_000 + ms), wall: Millis::new(START + ms) }
}

pub(super) fn cell(number: usize) -> CellName {
    CellName::new("Room", &format!("r{number}")).unwrap()
}

pub(super) fn id(epoch: u64, seq: u64) -> AlarmId {
    AlarmId { epoch: Epoch::new(epoch), seq: AlarmSeq::new(seq) }
}

pub(super) fn session(number: u128) -> SessionId {
    SessionId::from_bits(number)
}

/// An entry of the minute at which the tests begin.
pub(super) fn entry(number: usize, id: AlarmId) -> DueEntry {
    entry_at(0, number, id)
}

pub(super) fn entry_at(minute: u64, number: usize, id: AlarmId) -> DueEntry {
    DueEntry { minute: WakeMinute::new(28_000_000 + minute), cell: cell(number), id }
}

/// One that looks after everything.
pub(super) fn waker(hints_max: u32) -> Waker {
    let mut waker = Waker::new(4, hints_max);
    assert!(waker.on(WakerEvent::ShardsHeld(BTreeSet::from([0, 1, 2, 3])), now(0)).is_empty());
    waker
}

/// Runs a pass over an index of one page; what comes of it.
pub(super) fn pass(waker: &mut Waker, entries: &[DueEntry], ms: u64) -> Vec<WakerEffect> {
    let begun = waker.on(WakerEvent::Tick, now(ms));
    let is_list = |effect: &WakerEffect| matches!(effect, WakerEffect::List { after: None, .. });
    assert!(begun.iter().any(is_list), "{begun:?}");
    let mut effects: Vec<WakerEffect> = begun.into_iter().filter(|effect| !is_list(effect)).collect();
    effects.extend(waker.on(WakerEvent::Listed { entries: entries.to_vec(), next: None }, now(ms)));
    effects
}

/// The cells whose retirement is to be read.
pub(super) fn reads(effects: &[WakerEffect]) -> Vec<CellName> {
    let read = |effect: &WakerEffect| match effect {
        WakerEffect::ReadRetirement { cell, .. } => Some(cell.clone()),
        _ => None,
    };
    effects.iter().filter_map(read).collect()
}

pub(super) fn not_retired(waker: &mut Waker, cell: CellName, ms: u64) -> Vec<WakerEffect> {
    waker.on(WakerEvent::RetirementRead { cell, retirement: Some(Retirement::default()) }, now(ms))
}

pub(super) fn hinted(waker: &mut Waker, cell: CellName, outcome: HintOutcome, ms: u64) -> Vec<WakerEffect> {
    waker.on(WakerEvent::Hinted { cell, outcome }, now(ms))
}

pub(super) fn looked(session_number: u128, armed: Option<(AlarmId, u64)>) -> HintOutcome {
    let armed = armed.map(|(id, ms)| (id, AlarmTime::new(i64::try_from(START + ms).unwrap())));
    HintOutcome::Looked { session: session(session_number), epoch: Epoch::new(1), armed }
}

pub(super) fn live(waker: &mut Waker, sessions: &[u128], ms: u64) -> Vec<WakerEffect> {
    let sessions = sessions.iter().map(|number| session(*number)).collect();
    waker.on(WakerEvent::SessionsRead(sessions), now(ms))
}
