//! Recoverers that race over one record, with answers that get lost and members that come and go: the record ends
//! `sealed` only with every acknowledged frame covered, and each recoverer ends within a bounded number of steps.

use proptest::prelude::*;

use alloc::vec;

use super::*;

/// Frames that the dead session had acknowledged: offsets 1 to 9.
const END: u64 = 10;

struct World {
    record: Option<(LogRecord, u64)>,
    covered_below: u64,
    loss_declared: bool,
}

impl World {
    fn write(&mut self, record: LogRecord, guard: &Guard<u64>) -> Answer<u64> {
        let version = self.record.as_ref().map(|(_, version)| *version);
        let holds = match guard {
            Guard::Absent => version.is_none(),
            Guard::Match(expected) => version == Some(*expected),
        };
        if !holds {
            return Answer::Rejected;
        }
        let next = version.unwrap_or(0) + 1;
        if record.state == LogState::Sealed {
            let is_covered = self.covered_below == END;
            assert!(is_covered || (record.loss_declared && self.loss_declared), "INV-REC-2");
        }
        self.record = Some((record, next));
        Answer::Applied(next)
    }
}

struct Racer {
    machine: Recovery<u64>,
    outstanding: Vec<RecoveryEffect<u64>>,
    asked: Vec<MemberId>,
    gathered_to: Option<(u64, u64)>,
    outcome: Option<RecoveryOutcome>,
}

impl Racer {
    fn new(claimant: u128) -> Self {
        let me = Recoverer {
            claimant: SessionId::from_bits(claimant),
            claimant_node: Some(NodeName::parse(&alloc::format!("m{claimant}")).unwrap()),
            node: NodeName::parse("n").unwrap(),
            session: DEAD,
            clock_skew_max_ms: SKEW_MS,
        };
        let (machine, effect) = Recovery::start(me, WriteId::from_bits(claimant << 64));
        Self { machine, outstanding: vec![effect], asked: vec![], gathered_to: None, outcome: None }
    }

    fn take(&mut self, event: RecoveryEvent<u64>, now: Millis) {
        match self.machine.on(event, now) {
            Some(RecoveryEffect::SealMembers { members }) => self.asked.extend(members),
            Some(RecoveryEffect::Gather { start, end, .. }) => {
                self.gathered_to = Some((start.get(), end.get()));
            }
            Some(RecoveryEffect::Finish(outcome)) => self.outcome = Some(outcome),
            Some(effect) => self.outstanding.push(effect),
            None => {}
        }
    }

    /// One step, as the choice says.
    fn step(&mut self, world: &mut World, choice: u8, now: Millis) {
        if let Some(effect) = self.outstanding.pop() {
            let event = match effect {
                RecoveryEffect::ReadRecord if choice == 0 => RecoveryEvent::ReadFailed,
                RecoveryEffect::ReadRecord => RecoveryEvent::RecordRead { record: world.record.clone() },
                RecoveryEffect::WriteRecord { .. } if choice == 0 => {
                    RecoveryEvent::RecordAnswered(Answer::Unknown)
                }
                RecoveryEffect::WriteRecord { record, guard, .. } => {
                    let answer = world.write(record, &guard);
                    let is_lost = choice == 1;
                    RecoveryEvent::RecordAnswered(if is_lost { Answer::Unknown } else { answer })
                }
                RecoveryEffect::LookForLoss => {
                    RecoveryEvent::LossLookedFor { is_declared: world.loss_declared }
                }
                RecoveryEffect::ReadClaimantLease { .. } if choice == 0 => RecoveryEvent::ReadFailed,
                // Whether the other lives is anybody's guess: no answer may do harm.
                RecoveryEffect::ReadClaimantLease { .. } if choice < 6 => {
                    RecoveryEvent::ClaimantLeaseRead { lease: None }
                }
                RecoveryEffect::ReadClaimantLease { node } => {
                    let session: u128 = node.as_str()[1..].parse().unwrap();
                    let lease = relieving::lease(SessionId::from_bits(session), now.plus(9));
                    RecoveryEvent::ClaimantLeaseRead { lease: Some(lease) }
                }
                other => unreachable!("{other:?}"),
            };
            return self.take(event, now);
        }
        if let Some(member) = self.asked.pop() {
            let whole = holdings(&member, 1, END);
            let event = match choice {
                0..=2 => RecoveryEvent::MemberUnreachable { member, reason: "away".to_string() },
                3 => {
                    RecoveryEvent::MemberSealed { member, holdings: Holdings { is_complete: false, ..whole } }
                }
                _ => RecoveryEvent::MemberSealed { member, holdings: whole },
            };
            return self.take(event, now);
        }
        let Some((at, end)) = self.gathered_to else { unreachable!("nothing is outstanding") };
        let event = if choice == 0 {
            self.gathered_to = None;
            RecoveryEvent::GatherFailed(GatherFault::Member("cut".to_string()))
        } else if at < end {
            // What is gathered begins where the one before ended: below lies what was covered before.
            assert!(at <= world.covered_below.max(1), "a gap");
            world.covered_below = world.covered_below.max(at + 1);
            self.gathered_to = Some((at + 1, end));
            RecoveryEvent::Progress { done_below: LogOffset::new(at + 1) }
        } else {
            self.gathered_to = None;
            RecoveryEvent::Gathered
        };
        self.take(event, now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_log_is_sealed_only_when_covered(
        choices in proptest::collection::vec((0_usize..3, 0_u8..12, 0_u64..8_000), 400),
        loss_declared in any::<bool>(),
    ) {
        let mut world = World { record: Some((open(), 1)), covered_below: 1, loss_declared };
        let mut racers = [Racer::new(60), Racer::new(61), Racer::new(62)];
        let mut now = NOW;
        for (who, choice, pause) in choices {
            now = now.plus(pause);
            let racer = &mut racers[who];
            if racer.outcome.is_some() {
                // The same process tries again.
                *racer = Racer::new(60 + u128::try_from(who).unwrap());
            }
            racer.step(&mut world, choice, now);
        }
        // Once nothing fails any more, one more attempt after everybody fell silent ends it.
        let mut last = Racer::new(70);
        now = now.plus(RECOVERY_SILENCE_MS);
        for _ in 0..60 {
            if last.outcome.is_none() {
                last.step(&mut world, 5, now);
            }
        }
        let is_recovered = matches!(last.outcome, Some(RecoveryOutcome::Recovered { .. }));
        prop_assert!(is_recovered, "{:?}", last.outcome);
    }
}
