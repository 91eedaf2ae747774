//! Runs one conditional write to its settled outcome: sends, and reads back what was left open, as
//! `holdfast_core::commit` decides.

use std::time::Duration;

use bytes::Bytes;
use holdfast_core::commit::{CommitEffect, CommitEvent, CommitSettler, Seen, Settlement};
use tokio::time::Instant;

use crate::{Bucket, BucketError, Commit, ErrorKind, Guard, Object, Version};

/// How a conditional write ended.
#[derive(Clone, Debug)]
pub enum Settled {
    /// It is the record, or was, at this version.
    Applied(Version),
    /// Refused: `None` after a clean refusal. `Some` (or `None`, when the read found no object) where an open outcome made
    /// a read necessary, with the record read: it is another's, and this write will not become the record any more. It
    /// may have been, for a moment, if the other's write came on top.
    Rejected(Option<Object>),
    /// It may be the record, or may still become it: treat as neither.
    Unknown(BucketError),
}

/// Writes `body` under `guard` and settles the outcome within `deadline_ms`. `is_mine` tells from a record's bytes
/// whether they are this very write, by its unique `write_id`. A send gets at most two thirds of the time that is left,
/// so that a send without an answer leaves time to read back.
pub async fn settle_put_if(
    bucket: &dyn Bucket,
    key: &str,
    body: Bytes,
    guard: Guard,
    is_mine: impl Fn(&[u8]) -> bool,
    deadline_ms: u64,
) -> Settled {
    let mut run = Run {
        bucket,
        key,
        body,
        guard,
        deadline: Instant::now() + Duration::from_millis(deadline_ms),
        applied: None,
        read: None,
        error: None,
    };
    let (mut settler, mut effect) = CommitSettler::start();
    loop {
        let event = match effect {
            CommitEffect::Settle(settlement) => return run.settled(settlement),
            _ if run.left().is_zero() => CommitEvent::DeadlinePassed,
            CommitEffect::Send => run.send().await,
            CommitEffect::ReadBack { pause_ms } => run.read_back(pause_ms, &is_mine).await,
        };
        effect = settler.on(event);
    }
}

struct Run<'a> {
    bucket: &'a dyn Bucket,
    key: &'a str,
    body: Bytes,
    guard: Guard,
    deadline: Instant,
    applied: Option<Version>,
    read: Option<Object>,
    error: Option<BucketError>,
}

impl Run<'_> {
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    async fn send(&mut self) -> CommitEvent {
        let share_ms = u64::try_from(self.left().as_millis() * 2 / 3).unwrap_or(u64::MAX).max(1);
        let sent = self.bucket.put_if(self.key, self.body.clone(), self.guard.clone(), share_ms);
        match sent.await {
            Commit::Applied(version) => {
                self.applied = Some(version);
                CommitEvent::AnsweredApplied
            }
            Commit::Rejected => CommitEvent::AnsweredRejected,
            Commit::Unknown(error) => {
                self.error = Some(error);
                CommitEvent::AnsweredUnknown
            }
        }
    }

    async fn read_back(&mut self, pause_ms: u64, is_mine: &impl Fn(&[u8]) -> bool) -> CommitEvent {
        let read = async {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            self.bucket.get(self.key).await
        };
        match tokio::time::timeout_at(self.deadline, read).await {
            Ok(Ok(object)) => {
                let seen = self.judge(object.as_ref(), is_mine);
                self.read = object;
                CommitEvent::ReadBack(seen)
            }
            Ok(Err(error)) => {
                self.error = Some(error);
                CommitEvent::ReadBackFailed
            }
            Err(_) => CommitEvent::DeadlinePassed,
        }
    }

    fn judge(&self, object: Option<&Object>, is_mine: &impl Fn(&[u8]) -> bool) -> Seen {
        match (object, &self.guard) {
            (Some(object), _) if is_mine(&object.body) => Seen::Mine,
            (Some(object), Guard::Match(version)) if object.version == *version => Seen::Unchanged,
            (None, Guard::Absent) => Seen::Unchanged,
            (Some(_) | None, Guard::Absent | Guard::Match(_)) => Seen::Other,
        }
    }

    fn settled(self, settlement: Settlement) -> Settled {
        match settlement {
            Settlement::Applied => {
                Settled::Applied(self.applied.expect("the settler takes `Applied` only from an answer"))
            }
            Settlement::AppliedAsRead => {
                Settled::Applied(self.read.expect("the settler takes `Mine` only from an object").version)
            }
            Settlement::Rejected => Settled::Rejected(None),
            Settlement::RejectedAsRead => Settled::Rejected(self.read),
            Settlement::Unknown => Settled::Unknown(self.error.unwrap_or_else(|| {
                let detail = "the deadline passed before the write was settled";
                BucketError::new("put_if", self.key, ErrorKind::NoAnswer, detail)
            })),
        }
    }
}

#[cfg(test)]
mod tests;
