//! The probe against stores with one fault each.

use std::sync::Arc;

use super::{ProbeReport, ProbeStep, ProbeVerdict, StepOutcome, StoreFault, probe, probe_read_only};
use crate::faults::{Fault, FaultBucket, Operation, Rule};
use crate::{ErrorKind, MemoryBucket};

async fn probe_with(rules: impl IntoIterator<Item = Rule>) -> (ProbeReport, FaultBucket) {
    let bucket = FaultBucket::new(Arc::new(MemoryBucket::new()));
    for rule in rules {
        bucket.add(rule);
    }
    let report = probe(&bucket).await;
    (report, bucket)
}

async fn assert_clean(bucket: &FaultBucket) {
    let left = bucket.inner().list("", None, 10).await.unwrap();
    assert_eq!(left.objects, [], "the probe left objects behind");
}

#[tokio::test]
async fn a_good_store_is_fit_and_left_clean() {
    let (report, bucket) = probe_with([]).await;
    assert_eq!(report.verdict, ProbeVerdict::Fit, "{}", report.describe());
    assert_eq!(report.steps.len(), ProbeStep::ALL.len());
    assert!(report.steps.iter().all(|step| step.outcome == StepOutcome::Passed));
    assert_clean(&bucket).await;
}

#[tokio::test]
async fn each_ignored_condition_is_named() {
    let cases = [(1, ProbeStep::RejectCreate), (3, ProbeStep::RejectStale), (4, ProbeStep::RejectMissing)];
    for (skip, step) in cases {
        let rule = Rule::new(Fault::IgnoreCondition).on(Operation::PutIf).after(skip);
        let (report, bucket) = probe_with([rule]).await;
        let unfit = ProbeVerdict::Unfit { step, fault: StoreFault::ConditionIgnored };
        assert_eq!(report.verdict, unfit, "{}", report.describe());
        assert!(report.describe().contains(step.name()), "{}", report.describe());
        assert!(report.steps.iter().all(|step| step.attempt == 1));
        assert_clean(&bucket).await;
    }
}

#[tokio::test]
async fn ignored_ranges_and_wrong_bytes_are_named() {
    let cases = [
        (Fault::IgnoreRange, 0, ProbeStep::Range, StoreFault::RangeIgnored),
        (Fault::IgnoreRange, 1, ProbeStep::Suffix, StoreFault::RangeIgnored),
        (Fault::WrongBytes, 0, ProbeStep::Range, StoreFault::WrongBytes),
    ];
    for (fault, skip, step, found) in cases {
        let (report, bucket) = probe_with([Rule::new(fault).on(Operation::GetRange).after(skip)]).await;
        assert_eq!(report.verdict, ProbeVerdict::Unfit { step, fault: found }, "{}", report.describe());
        assert_clean(&bucket).await;
    }
}

#[tokio::test]
async fn what_the_store_refuses_stops_at_once() {
    for (kind, fault) in [
        (ErrorKind::Unsupported, StoreFault::Unsupported),
        (ErrorKind::Denied, StoreFault::Refused),
        (ErrorKind::ClockSkew, StoreFault::Refused),
    ] {
        let (report, _) = probe_with([Rule::new(Fault::Fail(kind)).on(Operation::PutIf)]).await;
        assert_eq!(report.verdict, ProbeVerdict::Unfit { step: ProbeStep::Create, fault });
        assert_eq!(report.steps.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_costs_an_attempt_and_a_dead_store_only_warns() {
    let lost = Rule::new(Fault::LoseAnswer(ErrorKind::NoAnswer)).on(Operation::PutIf).times(1);
    let (report, bucket) = probe_with([lost]).await;
    assert_eq!(report.verdict, ProbeVerdict::Fit);
    assert_eq!(report.steps.last().unwrap().attempt, 2);
    assert_clean(&bucket).await;
    let (report, _) = probe_with([Rule::new(Fault::Fail(ErrorKind::NoAnswer))]).await;
    assert_eq!(report.verdict, ProbeVerdict::Unclear { step: ProbeStep::Create });
    assert_eq!(report.steps.len(), 3);
    assert!(report.debris.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_conditions_never_hold_is_unfit() {
    // Each attempt gets as far as its third conditional write, the update.
    let third_of_each = [2, 5, 8];
    let rules = third_of_each.map(|skip| Rule::new(Fault::Reject).on(Operation::PutIf).after(skip).times(1));
    let (report, bucket) = probe_with(rules).await;
    let unfit = ProbeVerdict::Unfit { step: ProbeStep::Update, fault: StoreFault::ConditionNeverHolds };
    assert_eq!(report.verdict, unfit);
    assert_eq!(report.steps.last().unwrap().attempt, 3);
    assert_clean(&bucket).await;
}

#[tokio::test]
async fn a_look_without_writes_writes_nothing() {
    let (_, bucket) = probe_with([]).await;
    bucket.reset_counts();
    assert!(probe_read_only(&bucket).await.is_good());
    for operation in [Operation::Put, Operation::PutIf, Operation::PutStream, Operation::Delete] {
        assert_eq!(bucket.count(operation, ""), 0);
    }
    bucket.add(Rule::new(Fault::Fail(ErrorKind::Denied)).on(Operation::List));
    let report = probe_read_only(&bucket).await;
    assert!(!report.is_good() && report.absent.is_ok());
}
