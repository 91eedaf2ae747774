//! Removes old versions, and bytes that no version needs. A mark in `deploy/current.json` keeps publishers out while it
//! does, because a new version may share bytes with an old one; it ends by itself when the one who prunes dies.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_records::{BLOBS_PREFIX, CurrentRecord, Key, PruneMark, Record};
use holdfast_types::{ContentHash, VersionId};
use tokio::time::Instant;

use crate::{DeployError, Deployments, fresh_write_id, now};

/// How long a prune may delete.
const TIME: Duration = Duration::from_secs(120);
/// Objects deleted by one call.
const BATCH: usize = 500;

/// What a prune removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Versions.
    pub versions: Vec<VersionId>,
    /// How many blobs.
    pub blobs: u64,
    /// Time ran out: prune again for the rest.
    pub is_partial: bool,
}

impl Deployments {
    /// Keeps the newest `keep` versions, the one that runs and the one before it, and removes the others.
    ///
    /// # Errors
    /// The bucket; [`DeployError::Changed`] when somebody deployed at the same moment. A version that cannot be read
    /// stops it before anything is removed: what that version needs is unknown.
    pub async fn prune(&self, keep: usize) -> Result<Pruned, DeployError> {
        let read = self.read_unpruned().await?;
        let deadline = Instant::now() + TIME;
        let by = fresh_write_id()?;
        let before = read.record.clone();
        let base = before.clone().unwrap_or(CurrentRecord {
            version: CurrentRecord::VERSION,
            write_id: by,
            current: None,
            previous: None,
            since_ms: now(),
            prune: None,
        });
        let ends_ms = now().plus(u64::try_from(TIME.as_millis()).unwrap_or(u64::MAX));
        let mark = CurrentRecord { write_id: by, prune: Some(PruneMark { by, ends_ms }), ..base.clone() };
        self.swap(read, &mark).await?;
        let pruned = self.remove(&base, keep, deadline).await;
        // Also after a failure; a failure here ends with the mark's own time.
        let after = self.read_current().await?;
        if after.record.as_ref().and_then(|record| record.prune.as_ref()).is_some_and(|mark| mark.by == by) {
            self.swap(after, &CurrentRecord { write_id: fresh_write_id()?, prune: None, ..base }).await?;
        }
        pruned
    }

    async fn remove(
        &self,
        base: &CurrentRecord,
        keep: usize,
        deadline: Instant,
    ) -> Result<Pruned, DeployError> {
        let needed: BTreeSet<VersionId> = base.current.into_iter().chain(base.previous).collect();
        let versions = self.versions().await?;
        let old = versions.iter().skip(keep).map(|version| version.id);
        let doomed: Vec<VersionId> = old.filter(|id| !needed.contains(id)).collect();
        let mut live: BTreeSet<ContentHash> = BTreeSet::new();
        for version in versions.iter().filter(|version| !doomed.contains(&version.id)) {
            let record = self.version(version.id).await?;
            live.extend(record.manifest.blobs().map(|blob| blob.sha256));
        }
        let mut pruned = Pruned { versions: doomed.clone(), ..Pruned::default() };
        // Records first: no version is ever without its bytes.
        let keys: Vec<String> = doomed.iter().map(|id| Key::Version(*id).to_string()).collect();
        for batch in keys.chunks(BATCH) {
            self.records.delete_many(batch).await?;
        }
        let unused = self.keys(BLOBS_PREFIX, true).await?.into_iter().filter_map(|key| match key {
            Key::Blob(hash) if !live.contains(&hash) => Some(key.to_string()),
            _ => None,
        });
        for batch in unused.collect::<Vec<String>>().chunks(BATCH) {
            if Instant::now() >= deadline {
                pruned.is_partial = true;
                break;
            }
            self.bulk.delete_many(batch).await?;
            pruned.blobs += batch.len() as u64;
        }
        Ok(pruned)
    }
}
