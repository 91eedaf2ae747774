//! Every step with every answer.

use super::{
    ATTEMPTS_MAX, ProbeAnswer, ProbeEffect, ProbeStep, ProbeVerdict, Prober, StepOutcome, StoreFault,
};

fn good(step: ProbeStep) -> ProbeAnswer {
    match step {
        ProbeStep::Create | ProbeStep::Update | ProbeStep::Prepare => ProbeAnswer::Applied,
        ProbeStep::RejectCreate | ProbeStep::RejectStale | ProbeStep::RejectMissing => ProbeAnswer::Rejected,
        ProbeStep::Read | ProbeStep::Range | ProbeStep::Suffix => ProbeAnswer::Exact,
    }
}

/// Probes a store that answers `answer` at `at` and well elsewhere; the verdict, and how many attempts it took.
fn probe(at: ProbeStep, answer: impl Fn(u32) -> ProbeAnswer) -> (ProbeVerdict, u32) {
    let (mut prober, mut effect) = Prober::start();
    let mut attempts = 0;
    loop {
        match effect {
            ProbeEffect::Take { attempt, step } => {
                attempts = attempt;
                let given = if step == at { answer(attempt) } else { good(step) };
                effect = prober.on(given).1;
            }
            ProbeEffect::Conclude(verdict) => return (verdict, attempts),
        }
    }
}

#[test]
fn a_good_store_is_fit_in_one_attempt() {
    for step in ProbeStep::ALL {
        assert_eq!(probe(step, |_| good(step)), (ProbeVerdict::Fit, 1));
    }
}

#[test]
fn a_store_that_ignores_conditions_is_unfit_at_once() {
    for step in [ProbeStep::RejectCreate, ProbeStep::RejectStale, ProbeStep::RejectMissing] {
        let unfit = ProbeVerdict::Unfit { step, fault: StoreFault::ConditionIgnored };
        assert_eq!(probe(step, |_| ProbeAnswer::Applied), (unfit, 1));
    }
}

#[test]
fn wrong_ranges_and_wrong_bytes_are_unfit_at_once() {
    for step in [ProbeStep::Range, ProbeStep::Suffix] {
        let unfit = |fault| (ProbeVerdict::Unfit { step, fault }, 1);
        assert_eq!(probe(step, |_| ProbeAnswer::Whole), unfit(StoreFault::RangeIgnored));
        assert_eq!(probe(step, |_| ProbeAnswer::WrongBytes), unfit(StoreFault::WrongBytes));
        assert_eq!(probe(step, |_| ProbeAnswer::Missing), unfit(StoreFault::NotFoundAfterWrite));
    }
}

#[test]
fn what_is_unsupported_or_refused_is_unfit_at_any_step() {
    for step in ProbeStep::ALL {
        let unfit = |fault| (ProbeVerdict::Unfit { step, fault }, 1);
        assert_eq!(probe(step, |_| ProbeAnswer::Unsupported), unfit(StoreFault::Unsupported));
        assert_eq!(probe(step, |_| ProbeAnswer::Refused), unfit(StoreFault::Refused));
    }
}

#[test]
fn an_unclear_cause_is_tried_three_times_and_then_only_warned_of() {
    for step in ProbeStep::ALL {
        let unclear = ProbeVerdict::Unclear { step };
        assert_eq!(probe(step, |_| ProbeAnswer::Failed), (unclear, ATTEMPTS_MAX));
        let second = |attempt| if attempt == 1 { ProbeAnswer::Failed } else { good(step) };
        assert_eq!(probe(step, second), (ProbeVerdict::Fit, 2));
    }
}

#[test]
fn a_condition_that_never_holds_is_unfit_after_three_attempts() {
    let unfit = ProbeVerdict::Unfit { step: ProbeStep::Update, fault: StoreFault::ConditionNeverHolds };
    assert_eq!(probe(ProbeStep::Update, |_| ProbeAnswer::Rejected), (unfit, ATTEMPTS_MAX));
}

#[test]
fn a_step_with_a_fault_says_so() {
    let (mut prober, _) = Prober::start();
    assert_eq!(prober.on(ProbeAnswer::Applied).0, StepOutcome::Passed);
    let (outcome, _) = prober.on(ProbeAnswer::Applied);
    assert_eq!(outcome, StepOutcome::Failed(StoreFault::ConditionIgnored));
}
