//! Writes the tombstones of leases that are long over, and deletes old ones, as `holdfast_core::waker::Burials` says. Whatever has
//! changed since it was judged is left alone.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError, Guard, Object};
use holdfast_core::lease::Now;
use holdfast_core::waker::{Burial, Burials, LeaseSeen};
use holdfast_records::{Key, NodeLease, Record};
use holdfast_rpc::follower::LogName;
use holdfast_telemetry::metrics;
use holdfast_types::{NodeName, WriteId};

use crate::{clock, random};

/// How long a tombstone's write may take, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// A deletion has no condition: one that is not under way so long after the look that allowed it, in milliseconds, waits for the
/// next round.
const DELETE_WITHIN_MS: u64 = 1_000;

/// One round: all leases, and the logs that are not sealed. How many leases were marked and removed.
///
/// # Errors
/// [`BucketError`]; the next round goes on.
pub(crate) async fn bury(
    bucket: &dyn Bucket,
    burials: &mut Burials,
    (leases, unsealed): (&[NodeLease], &HashSet<LogName>),
    now: Now,
    clock_skew_max_ms: u64,
) -> Result<(usize, usize), BucketError> {
    let seen: Vec<LeaseSeen> = leases.iter().map(seen).collect();
    let is_unrecovered =
        |node: &NodeName, session| unsealed.contains(&LogName { node: node.clone(), session });
    let (mut marked, mut removed) = (0, 0);
    for burial in burials.observe(&seen, is_unrecovered, now, clock_skew_max_ms) {
        match burial {
            Burial::Mark(node, write_id) if mark(bucket, &node, write_id).await? => {
                tracing::info!(%node, "the lease of a node that is long gone has its tombstone");
                marked += 1;
            }
            Burial::Remove(node, write_id) if remove(bucket, &node, write_id).await? => {
                tracing::info!(%node, "the lease of a node that is long gone is deleted");
                removed += 1;
            }
            Burial::Mark(node, _) | Burial::Remove(node, _) => {
                tracing::debug!(%node, "a lease has changed since it was read, and stays");
            }
        }
    }
    metrics().waker_buried(removed);
    Ok((marked, removed))
}

pub(crate) fn seen(lease: &NodeLease) -> LeaseSeen {
    LeaseSeen {
        node: lease.node.clone(),
        write_id: lease.write_id,
        session: lease.session,
        expires_ms: lease.expires_ms,
        tombstone_ms: lease.tombstone_ms,
    }
}

/// The lease, where it is this write still.
async fn unchanged(
    bucket: &dyn Bucket,
    node: &NodeName,
    write_id: WriteId,
) -> Result<Option<(NodeLease, Object)>, BucketError> {
    let Some(object) = bucket.get(&Key::NodeLease(node.clone()).to_string()).await? else { return Ok(None) };
    let lease = NodeLease::decode(&object.body).ok().filter(|lease| lease.write_id == write_id);
    Ok(lease.map(|lease| (lease, object)))
}

async fn mark(bucket: &dyn Bucket, node: &NodeName, write_id: WriteId) -> Result<bool, BucketError> {
    let Some((lease, object)) = unchanged(bucket, node, write_id).await? else { return Ok(false) };
    let tombstone = NodeLease {
        version: NodeLease::VERSION,
        write_id: random::write_id(),
        tombstone_ms: Some(clock::wall()),
        ..lease
    };
    let (key, body) = (Key::NodeLease(node.clone()).to_string(), Bytes::from(tombstone.encode()));
    let commit = bucket.put_if(&key, body, Guard::Match(object.version), WRITE_DEADLINE_MS).await;
    Ok(commit.is_applied())
}

async fn remove(bucket: &dyn Bucket, node: &NodeName, write_id: WriteId) -> Result<bool, BucketError> {
    let looked = clock::monotonic();
    if unchanged(bucket, node, write_id).await?.is_none()
        || clock::monotonic().since(looked) >= DELETE_WITHIN_MS
    {
        return Ok(false);
    }
    // Not tried again without another look: a node of that name may have come back meanwhile.
    let key = Key::NodeLease(node.clone()).to_string();
    let left =
        Duration::from_millis(DELETE_WITHIN_MS - clock::monotonic().since(looked).min(DELETE_WITHIN_MS));
    match tokio::time::timeout(left, bucket.delete(&key)).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) => {
            tracing::warn!(%node, %error, "the lease of a node that is long gone cannot be deleted; it is tried again");
            Ok(false)
        }
        Err(_) => Ok(false),
    }
}
