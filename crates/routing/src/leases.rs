//! Nodes' leases: one by one for owners, all together for placement.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
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
    pub(crate) async fn read(&self, node: &NodeName) -> LeaseView<Arc<Peer>> {
        let fetch = async {
            match self.fetch(node).await {
                Ok(Some(view)) => LeaseView::Found(view),
                Ok(None) => LeaseView::Absent,
                Err(Unread) => LeaseView::Unreadable,
            }
        };
        self.reads.get(node, fetch).await
    }

    /// All nodes, as of at most a second ago; `None` when the bucket did not answer.
    pub(crate) async fn list(&self) -> Option<Vec<PeerView>> {
        self.listing.get(self.fetch_all()).await
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
        let nodes = match self.names().await {
            Ok(nodes) => nodes,
            Err(error) => {
                tracing::warn!(%error, "cannot list the nodes");
                return None;
            }
        };
        // A node whose lease cannot be read is left out: it would have to be reached through that lease.
        let views = stream::iter(nodes.iter().map(|node| self.fetch(node))).buffer_unordered(READS_MAX);
        let views: Vec<Result<Option<PeerView>, Unread>> = views.collect().await;
        let unread = views.iter().filter(|view| view.is_err()).count();
        if unread > 0 && unread == views.len() {
            return None;
        }
        Some(views.into_iter().flatten().flatten().collect())
    }

    async fn names(&self) -> Result<Vec<NodeName>, BucketError> {
        let page = |after: Option<Option<String>>| async move {
            let Some(after) = after else { return Ok(None) };
            let listing = self.bucket.list("nodes/", after.as_deref(), PAGE_LEN).await?;
            Ok(Some((listing.objects, listing.next.map(Some))))
        };
        let pages: Vec<_> = stream::try_unfold(Some(None), page).try_collect().await?;
        let names = pages.into_iter().flatten().filter_map(|object| match Key::parse(&object.key) {
            Ok(Key::NodeLease(node)) => Some(node),
            Ok(_) | Err(_) => None,
        });
        Ok(names.collect())
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
    } = lease;
    let address = Arc::new(Peer { node: node.clone(), session, address });
    let protocol_ok = protocol.min <= ours.max && ours.min <= protocol.max;
    NodeView { node, session, address, expires_ms, draining, protocol_ok, weight, cells }
}
