//! The node log's calls to the bucket: its record, and the followers' leases.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError, Commit, Version};
use holdfast_core::ensemble::{FollowerView, NodeLogEffect, NodeLogEvent};
use holdfast_core::log_record::{LogRecord, MemberId};
use holdfast_core::store::{Answer, Guard};
use holdfast_records::{FollowerLease, Key, NodeLogRecord, Record};
use holdfast_rpc::FollowerPeer;

use super::NodeLog;
use crate::backoff::Backoff;
use crate::clock;
use crate::critical;
use crate::log_records;
use crate::node::Node;

/// How long one conditional write of the record may take, its retries included, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// How long one read may take.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Between tries in a row: 50 ms doubling to 1.6 s.
const PAUSES: Backoff = Backoff::new(50, 5);
/// Followers of a fleet that are looked at.
const FOLLOWERS_MAX: usize = 1_000;

/// Does a call and tells the machine its outcome.
pub(super) fn call(log: &Arc<NodeLog>, call: NodeLogEffect<Version>) {
    let Some(node) = log.node() else { return };
    let log = Arc::clone(log);
    critical::spawn(&node.runtime.clone(), "log record", async move {
        match call {
            NodeLogEffect::WriteRecord { record, guard, attempt } => {
                PAUSES.pause_before(attempt).await;
                log.on(NodeLogEvent::RecordAnswered { answer: write(&node, &record, guard).await });
            }
            NodeLogEffect::ReadRecord { attempt } => {
                PAUSES.pause_before(attempt).await;
                log.on(read(&node).await);
            }
            NodeLogEffect::ReadFollowers => read_followers(&log, &node).await,
            other => unreachable!("`{other:?}` is no call"),
        }
    });
}

async fn write(node: &Node, record: &LogRecord, guard: Guard<Version>) -> Answer<Version> {
    let key = Key::NodeLog(node.name.clone(), node.session).to_string();
    let body = Bytes::from(log_records::record(record, "").encode());
    match node.buckets.records.put_if(&key, body, guard.into(), WRITE_DEADLINE_MS).await {
        Commit::Applied(version) => Answer::Applied(version),
        Commit::Rejected => Answer::Rejected,
        Commit::Unknown(error) => {
            tracing::debug!(%error, "the outcome of a log record's write is unknown");
            Answer::Unknown
        }
    }
}

async fn read(node: &Node) -> NodeLogEvent<Version> {
    let key = Key::NodeLog(node.name.clone(), node.session).to_string();
    let object = match tokio::time::timeout(READ_TIMEOUT, node.buckets.records.get(&key)).await {
        Ok(Ok(object)) => object,
        Ok(Err(error)) => {
            tracing::debug!(%error, "the log record could not be read");
            return NodeLogEvent::RecordUnreadable;
        }
        Err(_) => return NodeLogEvent::RecordUnreadable,
    };
    let Some(object) = object else { return NodeLogEvent::RecordRead { record: None } };
    match NodeLogRecord::decode(&object.body) {
        Ok(record) => NodeLogEvent::RecordRead { record: Some((log_records::view(record), object.version)) },
        Err(error) => {
            // Not what this session wrote: somebody else did.
            tracing::error!(key, %error, "the log record cannot be used");
            NodeLogEvent::RecordRead { record: None }
        }
    }
}

async fn read_followers(log: &Arc<NodeLog>, node: &Node) {
    if log.is_reading_followers.swap(true, Ordering::AcqRel) {
        return;
    }
    // Taken before the reads: a slow answer must not make a renewed lease look dead.
    let wall_now = clock::wall();
    let read = tokio::time::timeout(READ_TIMEOUT, follower_leases(&*node.buckets.leases)).await;
    log.is_reading_followers.store(false, Ordering::Release);
    let leases = match read {
        Ok(Ok(leases)) => leases,
        Ok(Err(error)) => {
            tracing::debug!(%error, "the followers' leases could not be read");
            return;
        }
        Err(_) => {
            tracing::debug!("the followers' leases were not read in time");
            return;
        }
    };
    let followers = leases.iter().map(view).collect();
    let peers = leases.into_iter().map(|lease| {
        let member = MemberId { follower: lease.follower.clone(), incarnation: lease.incarnation };
        let FollowerLease { follower, session, address, .. } = lease;
        (member, FollowerPeer { follower, session, address })
    });
    log.lock().peers = peers.collect();
    log.on(NodeLogEvent::FollowersRead { followers, wall_now });
}

/// Every follower's lease, dead ones too. One that cannot be read as a lease is passed over.
pub(crate) async fn follower_leases(bucket: &dyn Bucket) -> Result<Vec<FollowerLease>, BucketError> {
    let mut leases = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = bucket.list("followers/", after.as_deref(), FOLLOWERS_MAX).await?;
        for object in &page.objects {
            let Some(object) = bucket.get(&object.key).await? else { continue };
            match FollowerLease::decode(&object.body) {
                Ok(lease) => leases.push(lease),
                Err(error) => tracing::warn!(%error, "a follower's lease cannot be used"),
            }
        }
        after = page.next;
        if after.is_none() || leases.len() >= FOLLOWERS_MAX {
            return Ok(leases);
        }
    }
}

fn view(lease: &FollowerLease) -> FollowerView {
    FollowerView {
        member: MemberId { follower: lease.follower.clone(), incarnation: lease.incarnation },
        host: lease.host.clone(),
        zone: lease.zone.clone(),
        free_bytes: lease.free_bytes,
        sessions: lease.sessions,
        draining: lease.draining,
        expires_ms: lease.expires_ms,
    }
}
