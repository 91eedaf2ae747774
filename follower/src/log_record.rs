//! Reads a session's log record, for the core to judge.

use std::time::Duration;

use holdfast_bucket::Bucket;
use holdfast_core::log_record::{Ensemble, LogRecord, LogState, MemberId};
use holdfast_records::{EnsembleRecord, Key, MemberRecord, NodeLogRecord, NodeLogState, Record};
use holdfast_rpc::follower::LogName;

/// How long one read may take: an adoption waits for it, and its session goes on without this follower meanwhile.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The record could not be read. Disposition: retry.
#[derive(Debug, thiserror::Error)]
#[error("the log record of {log} cannot be read: {detail}")]
pub(crate) struct Unreadable {
    log: LogName,
    detail: String,
}

/// Reads the record; none where there is none.
pub(crate) async fn read(bucket: &dyn Bucket, log: &LogName) -> Result<Option<LogRecord>, Unreadable> {
    let unreadable = |detail: String| Unreadable { log: log.clone(), detail };
    let key = Key::NodeLog(log.node.clone(), log.session).to_string();
    let object = match tokio::time::timeout(READ_TIMEOUT, bucket.get(&key)).await {
        Ok(object) => object.map_err(|error| unreadable(error.to_string()))?,
        Err(_) => return Err(unreadable(format!("no answer within {READ_TIMEOUT:?}"))),
    };
    let Some(object) = object else { return Ok(None) };
    let record = NodeLogRecord::decode(&object.body).map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(view(record)))
}

/// What a follower judges by. A recovery is nothing to it.
fn view(record: NodeLogRecord) -> LogRecord {
    let NodeLogRecord {
        version: _,
        write_id,
        node,
        session,
        state,
        ensemble,
        active,
        prior,
        recovery: _,
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
        recovery: None,
        loss_declared,
        bundles_from,
    }
}

fn ensemble_view(ensemble: EnsembleRecord) -> Ensemble {
    let EnsembleRecord { log_epoch, members } = ensemble;
    let member = |MemberRecord { follower, incarnation }| MemberId { follower, incarnation };
    Ensemble { log_epoch, members: members.into_iter().map(member).collect() }
}
