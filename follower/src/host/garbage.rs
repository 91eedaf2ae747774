//! Forgets logs that nobody needs: those whose record says `sealed`, which is final. Every acknowledged frame is in the
//! bucket then (INV-REC-2). Not even the seal is needed any more, because an adoption reads the record. A log whose
//! record is absent is kept: a listing that lies or a bucket that was emptied is no reason to drop frames.

use std::time::Duration;

use holdfast_core::follower::FollowerEvent;
use holdfast_core::log_record::LogState;

use super::Inner;
use crate::log_record;

/// How often the records are read.
const PERIOD: Duration = Duration::from_secs(30);

pub(super) async fn run(inner: &Inner) {
    loop {
        tokio::time::sleep(PERIOD).await;
        collect(inner).await;
    }
}

/// One round. Sessions that append are alive, so their records are not read.
pub(super) async fn collect(inner: &Inner) {
    for session in inner.all() {
        if session.has_stream() {
            continue;
        }
        match log_record::read(&*inner.records, &session.name).await {
            Ok(Some(record)) if record.state == LogState::Sealed => {
                session.on(inner, FollowerEvent::RecordSealed);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "this log is looked at again in {PERIOD:?}");
            }
        }
    }
}
