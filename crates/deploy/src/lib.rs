//! What a deployment is in the bucket: versions of the application, the one that runs, its secrets. Publishes, rolls back,
//! prunes, loads, watches and makes the application that isolates run. It must never run one, nor change what a version is.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod application;
mod assets;
mod blobs;
mod current;
mod error;
mod load;
mod prune;
mod publish;
mod secrets;
mod versions;
mod watch;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_bucket::Bucket;
use holdfast_types::{Millis, WriteId};

pub use application::Running;
pub use assets::{Store, StoreError};
pub use current::Current;
pub use error::{DeployError, Disposition};
pub use load::Loaded;
pub use prune::Pruned;
pub use publish::Published;
pub use secrets::{SECRET_BYTES_MAX, SECRETS_MAX, SecretInfo};
pub use versions::{VersionInfo, VersionName};
pub use watch::{Watch, WatchOptions};

/// Bound of one conditional write, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 10_000;
/// Objects read, written or looked at together.
const LANES: usize = 16;
/// Bytes of static files that a process holds: kept for the next request, or not taken by their clients yet.
const ASSETS_MEMORY: u64 = 128 << 20;
/// Rows of one page of a listing.
const PAGE: usize = 1000;

/// The deployments of one bucket. A cheap clone.
#[derive(Clone, Debug)]
pub struct Deployments {
    /// Small records.
    records: Arc<dyn Bucket>,
    /// Blobs.
    bulk: Arc<dyn Bucket>,
    /// Static files, of whichever version.
    assets: Arc<Store>,
}

impl Deployments {
    /// Over a bucket's handles.
    #[must_use]
    pub fn new(records: Arc<dyn Bucket>, bulk: Arc<dyn Bucket>) -> Self {
        let assets = Arc::new(Store::new(Arc::clone(&bulk), ASSETS_MEMORY));
        Self { records, bulk, assets }
    }
}

/// The wall clock: only shown to people, and compared with margins of minutes.
fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn fresh_write_id() -> Result<WriteId, DeployError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| DeployError::Randomness(error.to_string()))?;
    Ok(WriteId::from_bits(u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests;
