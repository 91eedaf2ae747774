//! Publishing a package, and going back. The order keeps every version whole: bytes first, then the version's record,
//! then the switch; a failure in between leaves what ran before, and objects that a prune removes.

use bytes::Bytes;
use holdfast_bucket::{Commit, Guard};
use holdfast_records::{Key, Package, Record, SecretsRecord, VersionRecord};
use holdfast_types::VersionId;

use crate::current::read;
use crate::{DeployError, Deployments, VersionName, WRITE_DEADLINE_MS, fresh_write_id, now};

/// What a publish or a rollback did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// What runs now.
    pub id: VersionId,
    /// What ran before it, and what a rollback goes back to.
    pub previous: Option<VersionId>,
    /// Whether another version ran until now. If not, nothing was written but what had been missing.
    pub changed: bool,
    /// Blobs that were uploaded.
    pub new_blobs: u64,
    /// Their bytes.
    pub new_bytes: u64,
}

impl Deployments {
    /// Uploads a package and makes it the version that runs.
    ///
    /// # Errors
    /// [`DeployError::Changed`] when somebody else was faster: nothing of this package runs.
    pub async fn publish(&self, package: &Package, message: &str) -> Result<Published, DeployError> {
        // First, so that whatever another publisher or a prune does from here on fails the switch.
        let read = self.read_unpruned().await?;
        self.check_names(package).await?;
        let (new_blobs, new_bytes) = self.upload(package).await?;
        let id = self.create_version(package, message).await?;
        let (previous, changed) = self.switch(read, id).await?;
        Ok(Published { id, previous, changed, new_blobs, new_bytes })
    }

    /// Makes an earlier version the one that runs: the one before, unless one is named. It is loaded first, so that one
    /// that is damaged does not run.
    ///
    /// # Errors
    /// As [`Deployments::publish`], and what [`Deployments::load`] finds.
    pub async fn roll_back(&self, to: Option<&VersionName>) -> Result<Published, DeployError> {
        let read = self.read_unpruned().await?;
        let record = read.record.as_ref().ok_or(DeployError::NothingDeployed)?;
        let id = match to {
            Some(name) => self.find(name).await?,
            None => record.previous.ok_or(DeployError::NoPrevious)?,
        };
        let loaded = self.load(id).await?;
        self.check_files(loaded.package.manifest()).await?;
        let (previous, changed) = self.switch(read, id).await?;
        Ok(Published { id, previous, changed, new_blobs: 0, new_bytes: 0 })
    }

    async fn check_names(&self, package: &Package) -> Result<(), DeployError> {
        let Some((secrets, _)) = read::<SecretsRecord>(&*self.records, &Key::Secrets).await? else {
            return Ok(());
        };
        let is_secret = |name: &str| secrets.secrets.iter().any(|secret| secret.name == name);
        match package.manifest().bindings.iter().find(|binding| is_secret(&binding.name)) {
            Some(taken) => Err(DeployError::NameTaken(taken.name.clone())),
            None => Ok(()),
        }
    }

    async fn create_version(&self, package: &Package, message: &str) -> Result<VersionId, DeployError> {
        let manifest = package.manifest().clone();
        let id = manifest.id();
        let record = VersionRecord {
            version: VersionRecord::VERSION,
            write_id: fresh_write_id()?,
            created_ms: now(),
            message: message.to_owned(),
            manifest,
        };
        let (key, body) = (Key::Version(id).to_string(), Bytes::from(record.encode()));
        match self.records.put_if(&key, body, Guard::Absent, WRITE_DEADLINE_MS).await {
            Commit::Applied(_) => {}
            // The same version was there, or is now: its record is verified either way.
            Commit::Rejected => {
                self.version(id).await?;
            }
            Commit::Unknown(error) => {
                self.version(id).await.map_err(|_| error)?;
            }
        }
        Ok(id)
    }
}
