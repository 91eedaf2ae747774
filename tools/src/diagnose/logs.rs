//! The node logs of dead sessions: what blocks their recovery, which disks would unblock it, and what was declared lost.

use anyhow::Result;
use holdfast_bucket::Buckets;
use holdfast_records::{NodeLogRecord, NodeLogState};

use super::{Check, Status};
use crate::log::{FoundLog, losses, read_logs};
use crate::output::span;
use crate::peers::{self, FoundLease, LeaseState};

/// Looks at every log, and at every declared loss.
pub(super) async fn logs(buckets: &Buckets, leases: &[FoundLease]) -> Result<Vec<Check>> {
    let now = peers::now();
    let mut checks = Vec::new();
    for FoundLog { log, record } in read_logs(buckets).await? {
        let name = format!("log of {log}");
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                checks.push(Check::new(Status::Fault, name, error.to_string()));
                continue;
            }
        };
        let is_alive = leases.iter().filter_map(|found| found.lease.as_ref().ok()).any(|lease| {
            lease.node == log.node && lease.session == log.session && LeaseState::of(lease, now).is_live()
        });
        checks.extend(log_check(&record, is_alive).map(|(status, detail)| Check::new(status, name, detail)));
    }
    for (log, loss) in losses(buckets).await? {
        let detail = match loss {
            Ok(loss) => format!("declared {} ago: {}", span(now.since(loss.declared_ms)), loss.reason),
            Err(error) => format!("declared; its record cannot be read: {error}"),
        };
        checks.push(Check::new(Status::Note, format!("LOSS in the log of {log}"), detail));
    }
    Ok(checks)
}

/// What there is to say of a log; nothing of one that is sealed, or whose session lives.
fn log_check(record: &NodeLogRecord, is_alive: bool) -> Option<(Status, String)> {
    if record.state == NodeLogState::Sealed || is_alive {
        return None;
    }
    let blocked = record.recovery.as_ref().map_or("", |recovery| recovery.blocked.as_str());
    if blocked.is_empty() {
        let detail = "its session is dead and it is not recovered yet: a waker has it done within a minute, and whoever asks for one of its cells at once";
        return Some((Status::Note, detail.into()));
    }
    let ensemble = if record.active { Some(&record.ensemble) } else { record.prior.as_ref() };
    let disks: Vec<String> = ensemble
        .iter()
        .flat_map(|ensemble| &ensemble.members)
        .map(|member| format!("`{}` with disk {}", member.follower, member.incarnation))
        .collect();
    let detail = format!(
        "its recovery is BLOCKED: {blocked}. Any one of these unblocks it: {}. When none of these disks is left, \
         `holdfast log declare-loss`",
        disks.join(", ")
    );
    Some((Status::Fault, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_records::{EnsembleRecord, MemberRecord, Record, RecoveryRecord};
    use holdfast_types::{
        FollowerName, Incarnation, LogEpoch, LogOffset, Millis, NodeName, SessionId, WriteId,
    };

    #[test]
    fn a_blocked_recovery_names_the_disks_that_unblock_it() {
        let member = |name: &str, disk| MemberRecord {
            follower: FollowerName::parse(name).unwrap(),
            incarnation: Incarnation::from_bits(disk),
        };
        let recovery = RecoveryRecord {
            claimant: SessionId::from_bits(3),
            claimant_node: None,
            heartbeat_ms: Millis::ZERO,
            done_below: LogOffset::ZERO,
            blocked: "nobody answers".into(),
        };
        let mut record = NodeLogRecord {
            version: NodeLogRecord::VERSION,
            write_id: WriteId::from_bits(1),
            node: NodeName::parse("n").unwrap(),
            session: SessionId::from_bits(2),
            state: NodeLogState::Recovering,
            ensemble: EnsembleRecord { log_epoch: LogEpoch::new(4), members: vec![member("new", 9)] },
            active: false,
            prior: Some(EnsembleRecord {
                log_epoch: LogEpoch::new(3),
                members: vec![member("f1", 7), member("f2", 8)],
            }),
            recovery: Some(recovery),
            loss_declared: false,
            bundles_from: None,
        };
        let (status, detail) = log_check(&record, false).unwrap();
        assert_eq!(status, Status::Fault);
        for part in ["nobody answers", "`f1` with disk", "`f2` with disk", "declare-loss"] {
            assert!(detail.contains(part), "{detail}");
        }
        assert!(!detail.contains("`new`"), "{detail}");
        record.state = NodeLogState::Sealed;
        assert_eq!(log_check(&record, false), None);
    }
}
