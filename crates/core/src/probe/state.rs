//! The machine that probes a store.

use super::{ProbeAnswer, ProbeEffect, ProbeStep, ProbeVerdict, StepOutcome, StoreFault};

/// Attempts, each with new objects, while the cause of a failure is unclear.
pub const ATTEMPTS_MAX: u32 = 3;

/// Probes a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prober {
    attempt: u32,
    next: usize,
    /// Attempts that ended with a refused update.
    updates_refused: u32,
}

impl Prober {
    /// Begins a probe.
    #[must_use]
    pub fn start() -> (Self, ProbeEffect) {
        let prober = Self { attempt: 1, next: 0, updates_refused: 0 };
        let first = prober.take();
        (prober, first)
    }

    fn take(&self) -> ProbeEffect {
        ProbeEffect::Take { attempt: self.attempt, step: ProbeStep::ALL[self.next] }
    }

    /// Takes the answer to the step that was asked for; says what it shows, and what comes next.
    pub fn on(&mut self, answer: ProbeAnswer) -> (StepOutcome, ProbeEffect) {
        let step = ProbeStep::ALL[self.next];
        let mut outcome = judge(step, answer);
        if step == ProbeStep::Update && answer == ProbeAnswer::Rejected {
            self.updates_refused += 1;
            if self.updates_refused == ATTEMPTS_MAX {
                outcome = StepOutcome::Failed(StoreFault::ConditionNeverHolds);
            }
        }
        let effect = match outcome {
            StepOutcome::Failed(fault) => ProbeEffect::Conclude(ProbeVerdict::Unfit { step, fault }),
            StepOutcome::Passed if self.next + 1 == ProbeStep::ALL.len() => {
                ProbeEffect::Conclude(ProbeVerdict::Fit)
            }
            StepOutcome::Passed => {
                self.next += 1;
                self.take()
            }
            StepOutcome::Unclear if self.attempt == ATTEMPTS_MAX => {
                ProbeEffect::Conclude(ProbeVerdict::Unclear { step })
            }
            StepOutcome::Unclear => {
                self.attempt += 1;
                self.next = 0;
                self.take()
            }
        };
        (outcome, effect)
    }
}

/// What one answer shows, whatever came before.
fn judge(step: ProbeStep, answer: ProbeAnswer) -> StepOutcome {
    use ProbeAnswer as A;
    use ProbeStep as S;
    match (step, answer) {
        (_, A::Unsupported) => StepOutcome::Failed(StoreFault::Unsupported),
        (_, A::Refused) => StepOutcome::Failed(StoreFault::Refused),
        (S::Create | S::Update | S::Prepare, A::Applied) => StepOutcome::Passed,
        (S::RejectCreate | S::RejectStale | S::RejectMissing, A::Rejected) => StepOutcome::Passed,
        (S::RejectCreate | S::RejectStale | S::RejectMissing, A::Applied) => {
            StepOutcome::Failed(StoreFault::ConditionIgnored)
        }
        (S::Read | S::Range | S::Suffix, A::Exact) => StepOutcome::Passed,
        (S::Range | S::Suffix, A::Whole) => StepOutcome::Failed(StoreFault::RangeIgnored),
        (S::Read | S::Range | S::Suffix, A::Whole | A::WrongBytes) => {
            StepOutcome::Failed(StoreFault::WrongBytes)
        }
        (S::Read | S::Range | S::Suffix, A::Missing) => StepOutcome::Failed(StoreFault::NotFoundAfterWrite),
        // A refused first write may be our own that landed with its answer lost; other pairs no shell reports.
        (_, A::Applied | A::Rejected | A::Exact | A::Whole | A::WrongBytes | A::Missing | A::Failed) => {
            StepOutcome::Unclear
        }
    }
}
