//! A store, step by step.

use holdfast_bucket::Bucket;
use holdfast_bucket::probe::{ProbeReport, ProbeStep, ProbeVerdict, StepOutcome, probe_read_only};

use super::{Check, Status};

/// What a step of the probe checks, for people.
fn step_name(step: ProbeStep) -> String {
    let kind = match step {
        ProbeStep::Create
        | ProbeStep::RejectCreate
        | ProbeStep::Update
        | ProbeStep::RejectStale
        | ProbeStep::RejectMissing => "conditional write",
        ProbeStep::Read => "read after write",
        ProbeStep::Prepare => "plain write",
        ProbeStep::Range | ProbeStep::Suffix => "ranged read",
    };
    format!("{kind}: {}", step.name())
}

/// A probe, step by step: those of its last attempt, and what it says of the store.
#[must_use]
pub fn store_checks(name: &str, report: &ProbeReport) -> Vec<Check> {
    let last = report.steps.last().map_or(0, |step| step.attempt);
    let mut checks = Vec::new();
    if last > 1 {
        let detail = format!("{last} attempts, since the store did not answer clearly before");
        checks.push(Check::new(Status::Note, format!("{name} probe"), detail));
    }
    for step in ProbeStep::ALL {
        let check = format!("{name} {}", step_name(step));
        let taken = report.steps.iter().find(|taken| taken.attempt == last && taken.step == step);
        checks.push(match taken.map(|taken| (taken.outcome, taken.detail.as_str())) {
            Some((StepOutcome::Passed, detail)) => Check::new(Status::Ok, check, detail),
            Some((StepOutcome::Unclear, detail)) => Check::new(Status::Fault, check, detail),
            Some((StepOutcome::Failed(fault), detail)) => {
                Check::new(Status::Fault, check, format!("{}: {detail}", fault.describe()))
            }
            None => Check::new(Status::Skip, check, ""),
        });
    }
    if let Some(error) = &report.debris {
        let detail = format!("objects below `probe/` stay, and harm nothing: {error}");
        checks.push(Check::new(Status::Note, format!("{name} probe"), detail));
    }
    if report.verdict == ProbeVerdict::Fit {
        checks.push(Check::new(Status::Ok, name, format!("`{}` does what safety needs", report.url)));
    }
    checks
}

/// What can be said of a store without writing.
pub(super) async fn read_only_checks(name: &str, store: &dyn Bucket) -> Vec<Check> {
    let report = probe_read_only(store).await;
    let check = |what: &str, result: Result<String, String>| match result {
        Ok(detail) => Check::new(Status::Ok, format!("{name} {what}"), detail),
        Err(detail) => Check::new(Status::Fault, format!("{name} {what}"), detail),
    };
    vec![
        check(
            "list",
            report.list.map(|keys| format!("{keys} keys on the first page")).map_err(|e| e.to_string()),
        ),
        check("read of an absent key", report.absent.map(|()| "absent".into()).map_err(|e| e.to_string())),
        Check::new(
            Status::Skip,
            format!("{name} conditional writes and ranges"),
            "not checked with --read-only",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_bucket::MemoryBucket;
    use holdfast_bucket::probe::{StepResult, StoreFault, probe};

    #[tokio::test]
    async fn a_good_store_is_ok_step_by_step() {
        let checks = store_checks("bucket", &probe(&MemoryBucket::default()).await);
        assert!(checks.iter().all(|check| check.status == Status::Ok), "{checks:?}");
        let names: Vec<&str> = checks.iter().map(|check| check.check.as_str()).collect();
        for step in ["create", "reject-create", "update", "reject-stale"] {
            assert!(names.contains(&format!("bucket conditional write: {step}").as_str()), "{names:?}");
        }
        assert!(names.contains(&"bucket ranged read: range"), "{names:?}");
        assert!(
            checks[0].to_string().starts_with("ok     bucket conditional write: create: applied"),
            "{}",
            checks[0]
        );
    }

    #[test]
    fn a_fault_is_named_and_what_follows_is_skipped() {
        let taken = |step, outcome| StepResult { attempt: 1, step, outcome, detail: "said so".into() };
        let fault = StoreFault::ConditionIgnored;
        let report = ProbeReport {
            url: "s3://b".into(),
            steps: vec![
                taken(ProbeStep::Create, StepOutcome::Passed),
                taken(ProbeStep::RejectCreate, StepOutcome::Failed(fault)),
            ],
            verdict: ProbeVerdict::Unfit { step: ProbeStep::RejectCreate, fault },
            debris: None,
        };
        let checks = store_checks("bucket", &report);
        assert_eq!(checks.len(), ProbeStep::ALL.len());
        assert_eq!(checks[1].status, Status::Fault);
        assert!(checks[1].detail.contains("ignores the condition"), "{}", checks[1]);
        assert!(checks[2..].iter().all(|check| check.status == Status::Skip));
    }
}
