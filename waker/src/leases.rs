//! The leases of cellnodes, all of them.

use futures::StreamExt as _;
use futures::stream;
use holdfast_bucket::{Bucket, BucketError};
use holdfast_records::{Key, NodeLease, Record};
use holdfast_routing::node_names;
use holdfast_types::NodeName;

/// Leases read at a time.
const READS_MAX: usize = 16;

/// Every lease that can be read. One that cannot be decoded is told and left out.
///
/// # Errors
/// [`BucketError`]: what is missing would be taken for dead.
pub(crate) async fn read_leases(bucket: &dyn Bucket) -> Result<Vec<NodeLease>, BucketError> {
    let names = node_names(bucket).await?;
    let mut reads = Vec::with_capacity(names.len());
    for name in names {
        reads.push(read(bucket, name));
    }
    let mut reads = stream::iter(reads).buffer_unordered(READS_MAX);
    let mut leases = Vec::new();
    while let Some(lease) = reads.next().await {
        leases.extend(lease?);
    }
    Ok(leases)
}

async fn read(bucket: &dyn Bucket, node: NodeName) -> Result<Option<NodeLease>, BucketError> {
    let Some(object) = bucket.get(&Key::NodeLease(node.clone()).to_string()).await? else {
        return Ok(None);
    };
    let lease = NodeLease::decode(&object.body);
    if let Err(error) = &lease {
        tracing::error!(%node, %error, "cannot decode a node's lease");
    }
    Ok(lease.ok())
}
