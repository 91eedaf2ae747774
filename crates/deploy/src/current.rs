//! `deploy/current.json`: read, and changed by compare-and-swap. Every publish, rollback and prune goes through it, and
//! each names the record that it read first, so of two at a time one wins.

use bytes::Bytes;
use holdfast_bucket::{Bucket, Guard, Settled, Version, settle_put_if};
use holdfast_records::{CurrentRecord, Key, Record};
use holdfast_types::{Millis, VersionId, WriteId};

use crate::{DeployError, Deployments, WRITE_DEADLINE_MS, fresh_write_id, now};

/// How far clocks may differ where a prune's end is judged, in milliseconds.
const SKEW_MS: u64 = 30_000;

/// Which version runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// The version that runs.
    pub id: VersionId,
    /// The one before it.
    pub previous: Option<VersionId>,
    /// Since when, wall clock.
    pub since: Millis,
}

/// The record as it was read.
pub(crate) struct Read {
    pub(crate) record: Option<CurrentRecord>,
    guard: Guard,
}

/// Reads a record, if it is there.
pub(crate) async fn read<R: Record>(
    bucket: &dyn Bucket,
    key: &Key,
) -> Result<Option<(R, Version)>, DeployError> {
    let key = key.to_string();
    let Some(object) = bucket.get(&key).await? else { return Ok(None) };
    let record = R::decode(&object.body).map_err(|source| DeployError::Record { key, source })?;
    Ok(Some((record, object.version)))
}

/// Writes a record under a guard; the answer is whether it was applied.
pub(crate) async fn write<R: Record>(
    bucket: &dyn Bucket,
    key: &Key,
    record: &R,
    id: impl Fn(&R) -> WriteId,
    guard: Guard,
) -> Result<bool, DeployError> {
    let mine = id(record);
    let is_mine = |bytes: &[u8]| R::decode(bytes).is_ok_and(|found| id(&found) == mine);
    let body = Bytes::from(record.encode());
    match settle_put_if(bucket, &key.to_string(), body, guard, is_mine, WRITE_DEADLINE_MS).await {
        Settled::Applied(_) => Ok(true),
        Settled::Rejected(_) => Ok(false),
        Settled::Unknown(error) => Err(DeployError::Unknown(error)),
    }
}

impl Deployments {
    /// What runs, if anything was deployed.
    ///
    /// # Errors
    /// The bucket, or a record that is not one of ours.
    pub async fn current(&self) -> Result<Option<Current>, DeployError> {
        let record = self.read_current().await?.record;
        Ok(record.and_then(|record| {
            let CurrentRecord { version: _, write_id: _, current, previous, since_ms, prune: _ } = record;
            current.map(|id| Current { id, previous, since: since_ms })
        }))
    }

    pub(crate) async fn read_current(&self) -> Result<Read, DeployError> {
        let found = read::<CurrentRecord>(&*self.records, &Key::CurrentVersion).await?;
        Ok(match found {
            Some((record, version)) => Read { record: Some(record), guard: Guard::Match(version) },
            None => Read { record: None, guard: Guard::Absent },
        })
    }

    /// The record, where no prune is under way.
    pub(crate) async fn read_unpruned(&self) -> Result<Read, DeployError> {
        let read = self.read_current().await?;
        if let Some(mark) = read.record.as_ref().and_then(|record| record.prune.as_ref()) {
            let ends = mark.ends_ms.plus(SKEW_MS);
            let now = now();
            if now < ends {
                return Err(DeployError::Pruning { seconds: ends.since(now).div_ceil(1000) });
            }
        }
        Ok(read)
    }

    /// Makes a version the one that runs. What was read must still stand. The answer is the version before it, and whether
    /// another one ran. The same version again writes nothing: nodes would take it up anew, and what a rollback goes back
    /// to would be the same version. A prune meanwhile does no harm then, because it keeps what runs.
    pub(crate) async fn switch(
        &self,
        read: Read,
        to: VersionId,
    ) -> Result<(Option<VersionId>, bool), DeployError> {
        let before = read.record.as_ref();
        let previous = before.and_then(|record| record.current);
        if previous == Some(to) {
            return Ok((before.and_then(|record| record.previous), false));
        }
        let record = CurrentRecord {
            version: CurrentRecord::VERSION,
            write_id: fresh_write_id()?,
            current: Some(to),
            previous,
            since_ms: now(),
            prune: None,
        };
        self.swap(read, &record).await?;
        Ok((previous, true))
    }

    pub(crate) async fn swap(&self, read: Read, record: &CurrentRecord) -> Result<(), DeployError> {
        let key = Key::CurrentVersion;
        if write(&*self.records, &key, record, |record| record.write_id, read.guard).await? {
            return Ok(());
        }
        let current =
            self.read_current().await.ok().and_then(|read| read.record).and_then(|record| record.current);
        Err(DeployError::Changed { current })
    }
}
