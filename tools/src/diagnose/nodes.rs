//! The nodes: what their leases say, and whether each session answers.

use anyhow::Result;
use holdfast_records::{FleetIdentity, NodeLease};
use holdfast_rpc::{CellClient, NodeDescription, PROTOCOL, Peer, ProcessIdentity, Role};

use super::{Check, Status};
use crate::node::lease_end;
use crate::output::span;
use crate::peers::{self, CLOCK_SKEW_MAX_MS, FoundLease, LeaseState};

/// Looks at every node at once.
pub(super) async fn nodes(fleet: Option<FleetIdentity>, leases: &[FoundLease]) -> Result<Vec<Check>> {
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
    let states: Vec<LeaseState> = leases
        .iter()
        .filter_map(|found| found.lease.as_ref().ok())
        .map(|lease| LeaseState::of(lease, now))
        .collect();
    checks.extend(liveness(&states));
    Ok(checks)
}

/// A fleet without a live node serves nothing. Where a node is missing that did not leave in order, that is a fault.
fn liveness(states: &[LeaseState]) -> Option<Check> {
    if states.iter().any(|state| state.is_live()) {
        return None;
    }
    let has_died = states.contains(&LeaseState::Expired);
    let (status, detail) = match (has_died, states.is_empty()) {
        (true, _) => {
            (Status::Fault, "none is live, and not all have stopped in order: no cell can be reached")
        }
        (false, true) => (Status::Note, "there has never been one: no cell can be reached"),
        (false, false) => (Status::Note, "all have stopped in order: no cell can be reached"),
    };
    Some(Check::new(status, "nodes", detail))
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
    let answer = client.describe(&Peer::of(lease)).await;
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

    #[test]
    fn a_fleet_without_a_live_node_is_not_well() {
        use LeaseState::{Draining, Expired, Live, Stopped};
        let status = |states: &[LeaseState]| liveness(states).map(|check| check.status);
        assert_eq!(status(&[Live, Expired]), None);
        assert_eq!(status(&[Draining]), None);
        assert_eq!(status(&[Stopped, Expired]), Some(Status::Fault));
        assert_eq!(status(&[Stopped]), Some(Status::Note));
        assert_eq!(status(&[]), Some(Status::Note));
    }
}
