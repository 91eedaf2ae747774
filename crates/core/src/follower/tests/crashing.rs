//! Random sessions with crashes: what was answered is there afterwards.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::support::*;
use crate::follower::{CallId, FollowerEffect, FollowerEvent, StreamId};

#[derive(Clone, Debug)]
enum Step {
    Reconnect,
    NextEpoch,
    Append { back: u64, len: u64 },
    Release { back: u64 },
    Sync { keep: usize },
    Seal,
    Crash { extra: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Reconnect),
        2 => Just(Step::NextEpoch),
        8 => (0..4_u64, 1..4_u64).prop_map(|(back, len)| Step::Append { back, len }),
        2 => (0..6_u64).prop_map(|back| Step::Release { back }),
        4 => (0..3_usize).prop_map(|keep| Step::Sync { keep }),
        1 => Just(Step::Seal),
        1 => (0..4_usize).prop_map(|extra| Step::Crash { extra }),
    ]
}

/// The session, and what it was told.
#[derive(Default)]
struct Told {
    stream: u64,
    log_epoch: u64,
    next: u64,
    released: u64,
    acknowledged: u64,
    adopted: u64,
    sealed_end: Option<u64>,
}

impl Told {
    fn hear(&mut self, effects: Vec<FollowerEffect>) {
        for effect in effects {
            match effect {
                FollowerEffect::AnswerAdopted { log_epoch, next, .. } => {
                    self.adopted = self.adopted.max(log_epoch.get());
                    self.acknowledged = self.acknowledged.max(next.get() - 1);
                }
                FollowerEffect::AnswerDurable { offset, .. } => {
                    assert!(self.sealed_end.is_none_or(|end| offset.get() < end), "past the seal");
                    self.acknowledged = self.acknowledged.max(offset.get());
                }
                FollowerEffect::AnswerSealed { state, .. } => {
                    assert!(state.is_sealed);
                    assert!(self.sealed_end.is_none_or(|end| end == state.end.get()), "a seal moved");
                    self.sealed_end = Some(state.end.get());
                }
                _ => {}
            }
        }
    }

    fn check(&self, disk: &Disk) {
        let (log_epoch, start, end) = disk.window();
        assert!(log_epoch >= self.adopted, "an answered adoption is gone");
        assert!(end > self.acknowledged, "acknowledged up to {}, held up to {end}", self.acknowledged);
        assert!(start <= self.released.max(1), "released up to {}, held from {start}", self.released);
        assert!(disk.log.state().is_complete);
        assert!(self.sealed_end.is_none_or(|sealed| sealed == end && disk.log.state().is_sealed));
    }
}

fn take(step: &Step, disk: &mut Disk, told: &mut Told) {
    let stream = StreamId(told.stream);
    let heard = match *step {
        Step::Reconnect | Step::NextEpoch => {
            told.stream += 1;
            told.log_epoch += u64::from(matches!(step, Step::NextEpoch) || told.log_epoch == 0);
            let stream = StreamId(told.stream);
            let mut heard = disk.adopt(stream, told.log_epoch, told.released.max(1));
            heard.extend(disk.read(stream, record(told.log_epoch)));
            told.next = disk.log.accepted().next.get();
            heard
        }
        Step::Append { back, len } => {
            let first = told.next.saturating_sub(back).max(1);
            let last = first + len - 1;
            told.next = told.next.max(last + 1);
            disk.append(stream, told.log_epoch, first, last)
        }
        // Only what is acknowledged can be in the bucket without being on the way to it any more.
        Step::Release { back } => {
            let start = (told.acknowledged + 1).saturating_sub(back);
            told.released = told.released.max(start);
            disk.on(FollowerEvent::ReleaseAsked { stream, start: holdfast_types::LogOffset::new(start) })
        }
        Step::Sync { keep } => disk.sync_some(disk.written.len().saturating_sub(keep)),
        Step::Seal => disk.on(FollowerEvent::SealAsked { call: CallId(1) }),
        Step::Crash { extra } => {
            disk.crash(extra);
            Vec::new()
        }
    };
    told.hear(heard);
}

proptest! {
    #[test]
    fn what_was_answered_survives_every_crash(steps in prop::collection::vec(step(), 1..60)) {
        let (mut disk, mut told) = (Disk::new(), Told { next: 1, ..Told::default() });
        for step in &steps {
            take(step, &mut disk, &mut told);
            told.check(&disk);
        }
        disk.crash(0);
        told.check(&disk);
    }
}
