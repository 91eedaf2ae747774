//! A program follows the fleet's identity as it is rotated: no restart is needed.

use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::Bucket;
use holdfast_records::FleetIdentity;

use super::{ProcessIdentity, fleet};

/// How often each program reads the fleet's identity.
pub const FOLLOW_INTERVAL: Duration = Duration::from_secs(30);

/// Follows until it is dropped. `adopted` is told of each identity that is new.
pub async fn follow(
    bucket: Arc<dyn Bucket>,
    identity: ProcessIdentity,
    mut adopted: impl FnMut(&FleetIdentity) + Send,
) {
    loop {
        tokio::time::sleep(FOLLOW_INTERVAL).await;
        let found = match fleet::load(&*bucket).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the fleet's identity could not be read; what is known of it stands");
                continue;
            }
        };
        let known = identity.fleet();
        if found.write_id == known.write_id {
            continue;
        }
        if found.fleet != known.fleet {
            tracing::error!(
                known = %known.fleet, found = %found.fleet,
                "`fleet/identity.json` is of another fleet; this program stays with its own until it is restarted"
            );
            continue;
        }
        match identity.replace_fleet(found.clone()) {
            Ok(()) => {
                tracing::info!(
                    authorities = found.cas.len(),
                    token_keys = found.token_keys.len(),
                    "the fleet's identity was rotated: this program has a new certificate"
                );
                adopted(&found);
            }
            Err(error) => {
                tracing::error!(%error, "the rotated identity of the fleet cannot be used; the old one stays")
            }
        }
    }
}
