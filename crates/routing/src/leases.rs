//! Nodes' leases: one by one for owners, all together for placement.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use holdfast_bucket::{Bucket, BucketError};
use holdfast_core::routing::{LeaseView, NodeView};
use holdfast_records::{Key, NodeLease, NodeLoad, ProtocolRange, Record};
use holdfast_rpc::Peer;
use holdfast_types::NodeName;

use crate::shared::{SharedRead, SharedReads};

pub(crate) type PeerView = NodeView<Arc<Peer>>;

/// Age at which a listing is made again. Placement judges by loads that are up to a renewal old anyway.
const LISTING_AGE_MAX: Duration = Duration::from_secs(1);
/// Leases read at a time.
const READS_MAX: usize = 16;
/// Rows of one page.
const PAGE_LEN: usize = 1000;

pub(crate) struct Leases {
    bucket: Arc<dyn Bucket>,
    protocol: ProtocolRange,
    reads: SharedReads<NodeName, LeaseView<Arc<Peer>>>,
    listing: SharedRead<Option<Vec<PeerView>>>,
}

impl Leases {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, protocol: ProtocolRange) -> Self {
        Self { bucket, protocol, reads: SharedReads::new(), listing: SharedRead::new(LISTING_AGE_MAX) }
    }

    /// One node's lease, read since now.
    pub(crate) fn read<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, LeaseView<Arc<Peer>>> {
        let fetch = async move {
            match self.fetch(node).await {
                Ok(Some(view)) => LeaseView::Found(view),
                Ok(None) => LeaseView::Absent,
                Err(Unread) => LeaseView::Unreadable,
            }
        };
        Box::pin(self.reads.get(node, fetch))
    }

    /// All nodes, as of at most a second ago; `None` when the bucket did not answer.
    pub(crate) fn list(&self) -> BoxFuture<'_, Option<Vec<PeerView>>> {
        Box::pin(self.listing.get(self.fetch_all()))
    }

    async fn fetch(&self, node: &NodeName) -> Result<Option<PeerView>, Unread> {
        let object = match self.bucket.get(&Key::NodeLease(node.clone()).to_string()).await {
            Ok(Some(object)) => object,
            Ok(None) => {
                tracing::debug!(%node, outcome = "missing", "node_lease_read");
                return Ok(None);
            }
            Err(error) => {
                tracing::debug!(%node, outcome = "error", %error, "node_lease_read");
                return Err(Unread);
            }
        };
        match NodeLease::decode(&object.body) {
            Ok(lease) => {
                tracing::debug!(%node, outcome = "found", session = %lease.session, "node_lease_read");
                Ok(Some(view(lease, self.protocol)))
            }
            Err(error) => {
                tracing::error!(%node, %error, "cannot decode a node's lease");
                Err(Unread)
            }
        }
    }

    async fn fetch_all(&self) -> Option<Vec<PeerView>> {
        let nodes = match node_names(&*self.bucket).await {
            Ok(nodes) => nodes,
            Err(error) => {
                tracing::warn!(%error, "cannot list the nodes");
                return None;
            }
        };
        // A node whose lease cannot be read is left out: it would have to be reached through that lease.
        let mut reads = Vec::with_capacity(nodes.len());
        for node in &nodes {
            reads.push(self.fetch(node));
        }
        let views: Vec<Result<Option<PeerView>, Unread>> =
            stream::iter(reads).buffer_unordered(READS_MAX).collect().await;
        let unread = views.iter().filter(|view| view.is_err()).count();
        if unread > 0 && unread == views.len() {
            return None;
        }
        Some(views.into_iter().flatten().flatten().collect())
    }
}

/// The names of all nodes that have a lease, live or not.
///
/// # Errors
/// [`BucketError`] where the bucket did not list all of them.
pub async fn node_names(bucket: &dyn Bucket) -> Result<Vec<NodeName>, BucketError> {
    let mut names = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let listing = bucket.list("nodes/", after.as_deref(), PAGE_LEN).await?;
        names.extend(listing.objects.iter().filter_map(|object| match Key::parse(&object.key) {
            Ok(Key::NodeLease(node)) => Some(node),
            Ok(_) | Err(_) => None,
        }));
        after = listing.next;
        if after.is_none() {
            return Ok(names);
        }
    }
}

/// The bucket did not say.
struct Unread;

fn view(lease: NodeLease, ours: ProtocolRange) -> PeerView {
    let NodeLease {
        version: _,
        write_id: _,
        node,
        session,
        incarnation: _,
        expires_ms,
        started_ms: _,
        address,
        host: _,
        zone: _,
        protocol,
        load: NodeLoad { weight, cells, requests: _ },
        draining,
        // Whoever has one is over, as its end says.
        tombstone_ms: _,
    } = lease;
    let address = Arc::new(Peer { node: node.clone(), session, address });
    let protocol_ok = protocol.is_compatible_with(ours);
    NodeView { node, session, address, expires_ms, draining, protocol_ok, weight, cells }
}
