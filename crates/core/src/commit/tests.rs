//! The table of design 3.2, and a model of a store that loses requests and answers and lands them late.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::{CommitEffect, CommitEvent, CommitSettler, Seen, Settlement};

fn run(events: &[CommitEvent]) -> Vec<CommitEffect> {
    let (mut settler, first) = CommitSettler::start();
    let mut effects = alloc::vec![first];
    effects.extend(events.iter().map(|event| settler.on(*event)));
    effects
}

fn last(events: &[CommitEvent]) -> CommitEffect {
    run(events).pop().unwrap()
}

#[test]
fn a_clean_answer_settles_without_a_read() {
    use CommitEvent as E;
    assert_eq!(last(&[E::AnsweredApplied]), CommitEffect::Settle(Settlement::Applied));
    assert_eq!(last(&[E::AnsweredRejected]), CommitEffect::Settle(Settlement::Rejected));
}

#[test]
fn an_unknown_answer_is_read_back() {
    use CommitEvent as E;
    let settled = |seen| last(&[E::AnsweredUnknown, E::ReadBack(seen)]);
    assert_eq!(last(&[E::AnsweredUnknown]), CommitEffect::ReadBack { pause_ms: 0 });
    assert_eq!(settled(Seen::Mine), CommitEffect::Settle(Settlement::AppliedAsRead));
    assert_eq!(settled(Seen::Other), CommitEffect::Settle(Settlement::RejectedAsRead));
    assert_eq!(settled(Seen::Unchanged), CommitEffect::Send);
}

#[test]
fn a_refusal_after_an_unknown_answer_is_read_back() {
    use CommitEvent as E;
    let resent = [E::AnsweredUnknown, E::ReadBack(Seen::Unchanged), E::AnsweredRejected];
    assert_eq!(last(&resent), CommitEffect::ReadBack { pause_ms: 0 });
    let mine = [&resent[..], &[E::ReadBack(Seen::Mine)]].concat();
    assert_eq!(last(&mine), CommitEffect::Settle(Settlement::AppliedAsRead));
}

#[test]
fn what_cannot_be_read_stays_unknown() {
    use CommitEvent as E;
    let effects = run(&[E::AnsweredUnknown, E::ReadBackFailed, E::ReadBackFailed, E::ReadBackFailed]);
    assert_eq!(
        effects[2..],
        [
            CommitEffect::ReadBack { pause_ms: 50 },
            CommitEffect::ReadBack { pause_ms: 100 },
            CommitEffect::Settle(Settlement::Unknown)
        ]
    );
    assert_eq!(last(&[E::DeadlinePassed]), CommitEffect::Settle(Settlement::Unknown));
}

/// The store of the model: one record, and writes under way that may land at any later step.
struct Model {
    /// 0 before anything; 1 ours; 2 a rival's.
    record: u8,
    in_flight: u32,
    was_ours: bool,
}

impl Model {
    fn land(&mut self) -> bool {
        let applies = self.record == 0;
        if applies {
            self.record = 1;
            self.was_ours = true;
        }
        applies
    }
}

proptest! {
    /// Choices: 0 clean, 1 answer lost, 2 request lost, 3 request late; reads: 4 fails. Bit 3: a rival writes first;
    /// bit 4: a late request lands first.
    #[test]
    fn no_settlement_contradicts_the_store(choices in proptest::collection::vec(0_u8..32, 32)) {
        let mut model = Model { record: 0, in_flight: 0, was_ours: false };
        let (mut settler, mut effect) = CommitSettler::start();
        let mut settled = None;
        for choice in choices {
            if choice & 16 != 0 && model.in_flight > 0 {
                model.in_flight -= 1;
                model.land();
            }
            if choice & 8 != 0 {
                model.record = 2;
            }
            let event = match effect {
                CommitEffect::Send => match choice % 4 {
                    0 if model.land() => CommitEvent::AnsweredApplied,
                    0 => CommitEvent::AnsweredRejected,
                    1 => { model.land(); CommitEvent::AnsweredUnknown }
                    2 => CommitEvent::AnsweredUnknown,
                    _ => { model.in_flight += 1; CommitEvent::AnsweredUnknown }
                },
                CommitEffect::ReadBack { .. } if choice & 4 != 0 => CommitEvent::ReadBackFailed,
                CommitEffect::ReadBack { .. } => CommitEvent::ReadBack(match model.record {
                    0 => Seen::Unchanged,
                    1 => Seen::Mine,
                    _ => Seen::Other,
                }),
                CommitEffect::Settle(settlement) => { settled = Some(settlement); break; }
            };
            effect = settler.on(event);
        }
        match settled.expect("every run of 32 steps ends") {
            Settlement::Applied | Settlement::AppliedAsRead => prop_assert!(model.was_ours),
            // Late requests cannot bring it back: their condition can never hold again.
            Settlement::Rejected => prop_assert!(!model.was_ours && model.record != 0),
            Settlement::RejectedAsRead => prop_assert_eq!(model.record, 2),
            Settlement::Unknown => {}
        }
    }
}
