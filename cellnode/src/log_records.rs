//! Node-log records, between the bucket's spelling and the core's. What the fields mean is the core's.

use holdfast_core::log_record::{Ensemble, LogRecord, LogState, MemberId, RecoveryMark};
use holdfast_records::{EnsembleRecord, MemberRecord, NodeLogRecord, NodeLogState, Record, RecoveryRecord};

/// What the core sees of a record.
#[must_use]
pub fn view(record: NodeLogRecord) -> LogRecord {
    let NodeLogRecord {
        version: _,
        write_id,
        node,
        session,
        state,
        ensemble,
        active,
        prior,
        recovery,
        loss_declared,
        bundles_from,
    } = record;
    LogRecord {
        write_id,
        node,
        session,
        state: match state {
            NodeLogState::Open => LogState::Open,
            NodeLogState::Recovering => LogState::Recovering,
            NodeLogState::Sealed => LogState::Sealed,
        },
        ensemble: ensemble_view(ensemble),
        active,
        prior: prior.map(ensemble_view),
        recovery: recovery.map(mark_view),
        loss_declared,
        bundles_from,
    }
}

fn mark_view(recovery: RecoveryRecord) -> RecoveryMark {
    let RecoveryRecord { claimant, claimant_node, heartbeat_ms, done_below, blocked } = recovery;
    RecoveryMark { claimant, claimant_node, heartbeat_ms, done_below, is_blocked: !blocked.is_empty() }
}

fn ensemble_view(ensemble: EnsembleRecord) -> Ensemble {
    let EnsembleRecord { log_epoch, members } = ensemble;
    let members = members
        .into_iter()
        .map(|MemberRecord { follower, incarnation }| MemberId { follower, incarnation })
        .collect();
    Ensemble { log_epoch, members }
}

/// What the bucket gets. `blocked` is for people: why a recovery cannot go on.
#[must_use]
pub fn record(view: &LogRecord, blocked: &str) -> NodeLogRecord {
    let LogRecord {
        write_id,
        node,
        session,
        state,
        ensemble,
        active,
        prior,
        recovery,
        loss_declared,
        bundles_from,
    } = view.clone();
    NodeLogRecord {
        version: NodeLogRecord::VERSION,
        write_id,
        node,
        session,
        state: match state {
            LogState::Open => NodeLogState::Open,
            LogState::Recovering => NodeLogState::Recovering,
            LogState::Sealed => NodeLogState::Sealed,
        },
        ensemble: ensemble_record(ensemble),
        active,
        prior: prior.map(ensemble_record),
        recovery: recovery.map(|mark| mark_record(mark, blocked)),
        loss_declared,
        bundles_from,
    }
}

fn mark_record(mark: RecoveryMark, blocked: &str) -> RecoveryRecord {
    let RecoveryMark { claimant, claimant_node, heartbeat_ms, done_below, is_blocked } = mark;
    let blocked = if is_blocked { blocked.to_owned() } else { String::new() };
    RecoveryRecord { claimant, claimant_node, heartbeat_ms, done_below, blocked }
}

fn ensemble_record(ensemble: Ensemble) -> EnsembleRecord {
    let Ensemble { log_epoch, members } = ensemble;
    let members = members
        .into_iter()
        .map(|MemberId { follower, incarnation }| MemberRecord { follower, incarnation })
        .collect();
    EnsembleRecord { log_epoch, members }
}
