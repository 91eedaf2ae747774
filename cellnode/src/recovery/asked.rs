//! Recoveries that somebody asks for by name: a waker's sweep, so that what only followers hold reaches the bucket without
//! anybody asking for the cells.

use holdfast_core::ownership::is_session_dead;
use holdfast_core::recovery::RecoveryOutcome;
use holdfast_rpc::CallError;
use holdfast_rpc::follower::LogName;

use super::Recoveries;
use super::attempt::blocked_text;
use crate::clock;
use crate::owners::{Owners, lease_view};

/// One attempt at the log of a session, once its lease shows that it is dead: whoever asks may have an old view.
///
/// # Errors
/// [`CallError::Rejected`] with 409 when the session lives; [`CallError::Unavailable`] when it is not recovered yet.
pub(crate) async fn recover_dead(
    owners: &Owners,
    recoveries: &Recoveries,
    log: &LogName,
    clock_skew_max_ms: u64,
) -> Result<(), CallError> {
    let not_yet = |reason: String| CallError::Unavailable { reason };
    let wall_now = clock::wall();
    let lease = owners.read_lease(&log.node).await.map_err(|error| not_yet(error.to_string()))?;
    if !is_session_dead(lease.as_ref().map(lease_view).as_ref(), log.session, wall_now, clock_skew_max_ms) {
        let reason = format!("{log} is alive: its own log is no matter of others");
        return Err(CallError::Rejected { status: http::StatusCode::CONFLICT, reason });
    }
    match recoveries.attempt(log).await {
        RecoveryOutcome::Recovered { .. } => Ok(()),
        RecoveryOutcome::Busy { claimant } => Err(not_yet(format!("session {claimant} is at it"))),
        RecoveryOutcome::Superseded => Err(not_yet("another recoverer took over".to_owned())),
        RecoveryOutcome::Blocked { log_epoch, missing } => {
            Err(not_yet(format!("log epoch {log_epoch}: {}", blocked_text(&missing))))
        }
        RecoveryOutcome::Failed(failure) => Err(not_yet(failure.to_string())),
    }
}
