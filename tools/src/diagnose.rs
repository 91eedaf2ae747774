//! `holdfast diagnose`: goes through what a fleet stands on, says of each thing whether it is well, and names faults. It
//! writes nothing but the probe's own objects.

use std::fmt;

use anyhow::{Result, bail};
use holdfast_bucket::probe::{ProbeReport, ProbeStep, ProbeVerdict, StepOutcome, probe, probe_read_only};
use holdfast_bucket::{Bucket, BucketArgs, Buckets};
use holdfast_records::{FleetIdentity, NodeLease};
use holdfast_rpc::identity::{self, IdentityError};
use holdfast_rpc::{CellClient, NodeDescription, PROTOCOL, ProcessIdentity, Role};
use serde::Serialize;
use serde_json::json;

use crate::args::open_existing;
use crate::node::{lease_end, lease_json};
use crate::output::{Output, span};
use crate::peers::{self, CLOCK_SKEW_MAX_MS, FoundLease, LeaseState};

/// Options of `diagnose`.
#[derive(Debug, clap::Args)]
pub struct Diagnose {
    /// Write nothing: conditional writes are then not checked.
    #[arg(long)]
    read_only: bool,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Well.
    Ok,
    /// Worth knowing; nothing is broken.
    Note,
    /// Not looked at.
    Skip,
    /// Wrong.
    Fault,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// How it is.
    pub status: Status,
    /// What.
    pub check: String,
    /// What was seen.
    pub detail: String,
}

impl Check {
    fn new(status: Status, check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { status, check: check.into(), detail: detail.into() }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Note => "note",
            Status::Skip => "skip",
            Status::Fault => "FAULT",
        };
        let detail = crate::output::printable(&self.detail);
        let gap = if detail.is_empty() { "" } else { ": " };
        write!(f, "{status:<5}  {}{gap}{detail}", self.check)
    }
}

impl Diagnose {
    /// Looks at everything, prints it, and fails when something is wrong.
    pub async fn run(self, output: Output) -> Result<()> {
        let buckets = open_existing(&self.bucket).await?;
        let mut checks = self.stores(&buckets).await;
        let fleet = fleet(&buckets, &mut checks).await;
        let leases = match peers::leases(&buckets).await {
            Ok(leases) => leases,
            Err(error) => {
                checks.push(Check::new(Status::Fault, "node leases", format!("{error:#}")));
                Vec::new()
            }
        };
        checks.extend(nodes(fleet, &leases).await?);
        let faults: Vec<String> = checks
            .iter()
            .filter(|check| check.status == Status::Fault)
            .map(|check| format!("{}: {}", check.check, check.detail))
            .collect();
        let nodes: Vec<_> =
            leases.iter().filter_map(|found| found.lease.as_ref().ok()).map(lease_json).collect();
        output.print(&json!({ "ok": faults.is_empty(), "checks": checks, "nodes": nodes }), || {
            let lines: String = checks.iter().map(|check| format!("{check}\n")).collect();
            if faults.is_empty() { lines + "\nnothing is wrong" } else { lines }
        })?;
        if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("; ")) }
    }

    async fn stores(&self, buckets: &Buckets) -> Vec<Check> {
        let mut stores: Vec<(&str, &dyn Bucket)> = vec![("bucket", &*buckets.records)];
        if self.bucket.lease_bucket.is_some() {
            stores.push(("lease bucket", &*buckets.leases));
        }
        let mut checks = Vec::new();
        for (name, store) in stores {
            if self.read_only {
                checks.extend(read_only_checks(name, store).await);
            } else {
                checks.extend(store_checks(name, &probe(store).await));
            }
        }
        checks
    }
}

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

async fn read_only_checks(name: &str, store: &dyn Bucket) -> Vec<Check> {
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

async fn fleet(buckets: &Buckets, checks: &mut Vec<Check>) -> Option<FleetIdentity> {
    let (status, detail, fleet) = match identity::load(&*buckets.records).await {
        Ok(fleet) => {
            let (cas, keys) = (fleet.cas.len(), fleet.token_keys.len());
            let detail = format!("`{}`, certificate authorities: {cas}, token keys: {keys}", fleet.fleet);
            (Status::Ok, detail, Some(fleet))
        }
        Err(IdentityError::NoFleet) => {
            (Status::Note, "none yet: the first ingress or cellnode makes it".to_owned(), None)
        }
        Err(error) => (Status::Fault, error.to_string(), None),
    };
    checks.push(Check::new(status, "fleet identity", detail));
    fleet
}

async fn nodes(fleet: Option<FleetIdentity>, leases: &[FoundLease]) -> Result<Vec<Check>> {
    let client = match fleet {
        Some(fleet) => {
            let session = peers::fresh_session()?;
            Some(CellClient::new(ProcessIdentity::new(fleet, Role::Tools, "holdfast", session)?))
        }
        None => None,
    };
    let looks = leases.iter().map(|found| node(client.as_ref(), found));
    let mut checks: Vec<Check> = futures::future::join_all(looks).await.into_iter().flatten().collect();
    let now = peers::now();
    let is_live =
        |found: &FoundLease| found.lease.as_ref().is_ok_and(|lease| LeaseState::of(lease, now).is_live());
    if !leases.iter().any(is_live) {
        checks.push(Check::new(Status::Note, "nodes", "none is live, so no cell can be reached"));
    }
    Ok(checks)
}

/// One node: its lease, the clocks, and a call that only its session can answer.
async fn node(client: Option<&CellClient>, found: &FoundLease) -> Vec<Check> {
    let name = format!("node `{}`", found.node);
    let lease = match &found.lease {
        Ok(lease) => lease,
        Err(error) => return vec![Check::new(Status::Fault, format!("{name} lease"), error.to_string())],
    };
    let now = peers::now();
    let state = LeaseState::of(lease, now);
    let status = if state.is_live() { Status::Ok } else { Status::Note };
    let mut checks = vec![Check::new(status, format!("{name} lease"), lease_text(lease, state))];
    if state == LeaseState::Stopped {
        return checks;
    }
    let ahead = lease.started_ms.since(now);
    if ahead > CLOCK_SKEW_MAX_MS {
        let detail =
            format!("its clock is at least {} ahead of this machine's: set both by NTP", span(ahead));
        checks.push(Check::new(Status::Fault, format!("{name} clock"), detail));
    }
    let Some(client) = client else {
        checks.push(Check::new(Status::Skip, format!("{name} call"), "no fleet identity to call with"));
        return checks;
    };
    let answer = client.describe(&peers::peer(lease)).await;
    match (answer, state.is_live()) {
        (Ok(description), true) => checks.extend(described(&name, lease, &description)),
        (Ok(_), false) => {
            let detail = "it answers, although its lease has ended: either its clock or this machine's is wrong, \
                          or it cannot write to the bucket and is about to stop";
            checks.push(Check::new(Status::Fault, format!("{name} clock"), detail));
        }
        (Err(error), true) => {
            checks.push(Check::new(Status::Fault, format!("{name} call"), error.to_string()))
        }
        (Err(_), false) => {}
    }
    checks
}

fn lease_text(lease: &NodeLease, state: LeaseState) -> String {
    format!(
        "{}, {}, at {}, cells: {}, requests: {}, protocol {}-{}, session {}",
        state.name(),
        lease_end(lease),
        lease.address,
        lease.load.cells,
        lease.load.requests,
        lease.protocol.min,
        lease.protocol.max,
        lease.session
    )
}

fn described(name: &str, lease: &NodeLease, description: &NodeDescription) -> Vec<Check> {
    let NodeDescription { node, session, protocol, cells, draining, version } = description;
    let call = format!("{name} call");
    if *node != lease.node || *session != lease.session {
        let detail = format!("`{node}`, session {session}, answers at {}", lease.address);
        return vec![Check::new(Status::Fault, call, detail)];
    }
    let draining = if *draining { ", draining" } else { "" };
    let detail =
        format!("answers over mutual TLS as its session, version {version}, cells: {cells}{draining}");
    let mut checks = vec![Check::new(Status::Ok, call, detail)];
    if protocol.min > PROTOCOL.max || PROTOCOL.min > protocol.max {
        let detail = format!(
            "it speaks {}-{}, this program {}-{}: upgrade the older one",
            protocol.min, protocol.max, PROTOCOL.min, PROTOCOL.max
        );
        checks.push(Check::new(Status::Fault, format!("{name} protocol"), detail));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_bucket::MemoryBucket;
    use holdfast_bucket::probe::{StepResult, StoreFault};

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
