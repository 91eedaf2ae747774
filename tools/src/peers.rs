//! How the tool meets the fleet: its identity, the nodes' leases, and calls to nodes by mutual TLS.

use anyhow::{Context as _, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdfast_bucket::{Bucket, Buckets};
use holdfast_records::{Key, NodeLease, Record, RecordError};
use holdfast_rpc::{CellClient, ProcessIdentity, Role, identity};
use holdfast_types::{Millis, NodeName, SessionId};

/// Records read at once.
const READS: usize = 16;
/// Rows of one page of a listing.
const PAGE: usize = 1000;
/// How far two machines' clocks may differ, in milliseconds: the programs' default.
pub const CLOCK_SKEW_MAX_MS: u64 = 500;

/// A node's lease as it stands in the bucket.
#[derive(Debug)]
pub struct FoundLease {
    /// The node, from the key.
    pub node: NodeName,
    /// The record.
    pub lease: Result<NodeLease, RecordError>,
}

/// What a lease says now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// Its holder may act.
    Live,
    /// Its holder may act, and takes no new ownership.
    Draining,
    /// Given up in order.
    Stopped,
    /// It ran out.
    Expired,
}

impl LeaseState {
    /// At a time.
    #[must_use]
    pub fn of(lease: &NodeLease, now: Millis) -> Self {
        if lease.expires_ms == Millis::ZERO {
            Self::Stopped
        } else if lease.expires_ms.plus(CLOCK_SKEW_MAX_MS) <= now {
            Self::Expired
        } else if lease.draining {
            Self::Draining
        } else {
            Self::Live
        }
    }

    /// Whether its holder may act.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::Draining)
    }

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Expired => "expired",
        }
    }
}

/// The wall clock.
#[must_use]
pub fn now() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Millis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A session of this tool's own.
pub fn fresh_session() -> Result<SessionId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("the machine has no randomness")?;
    Ok(SessionId::from_bits(u128::from_be_bytes(bytes)))
}

/// A client that shows a certificate of the fleet.
///
/// # Errors
/// The bucket holds no fleet, or cannot be read.
pub async fn client(buckets: &Buckets) -> Result<CellClient> {
    Ok(CellClient::new(identity(buckets).await?))
}

/// A certificate of the fleet for this tool.
///
/// # Errors
/// As [`client`].
pub async fn identity(buckets: &Buckets) -> Result<ProcessIdentity> {
    let fleet = identity::load(&*buckets.records).await?;
    Ok(ProcessIdentity::new(fleet, Role::Tools, "holdfast", fresh_session()?)?)
}

/// Every node's lease, by name.
///
/// # Errors
/// The bucket does not answer. A record that does not decode is no error here.
pub async fn leases(buckets: &Buckets) -> Result<Vec<FoundLease>> {
    let bucket = &*buckets.leases;
    let mut names = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = bucket.list("nodes/", after.as_deref(), PAGE).await?;
        names.extend(page.objects.iter().filter_map(|object| match Key::parse(&object.key) {
            Ok(Key::NodeLease(node)) => Some(node),
            _ => None,
        }));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let reads = stream::iter(names).map(|node| lease(bucket, node)).buffered(READS);
    let found: Vec<Option<FoundLease>> = reads.try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// One node's lease, if it has one.
///
/// # Errors
/// The bucket does not answer.
pub async fn lease(bucket: &dyn Bucket, node: NodeName) -> Result<Option<FoundLease>> {
    let object = bucket.get(&Key::NodeLease(node.clone()).to_string()).await?;
    Ok(object.map(|object| FoundLease { node, lease: NodeLease::decode(&object.body) }))
}
