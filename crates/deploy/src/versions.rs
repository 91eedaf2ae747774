//! `deploy/versions/…`: found by their first digits, listed, and verified when read.

use std::fmt;
use std::str::FromStr;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdfast_records::{Key, VERSIONS_PREFIX, VersionRecord};
use holdfast_types::{Millis, VersionId};

use crate::current::read;
use crate::{DeployError, Deployments, LANES, PAGE};

/// A version's id, or its first digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionName(String);

impl FromStr for VersionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_hex && (4..=32).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a version is named by its first 4 to 32 hex digits".into())
        }
    }
}

impl fmt::Display for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A version among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInfo {
    /// Its name.
    pub id: VersionId,
    /// When it was first published, wall clock.
    pub created: Millis,
    /// What its publisher said.
    pub message: String,
    /// How many modules it has.
    pub modules: usize,
    /// Bytes of its modules.
    pub bytes: u64,
}

impl Deployments {
    /// Every version, newest first.
    ///
    /// # Errors
    /// The bucket, or a version that is damaged.
    pub async fn versions(&self) -> Result<Vec<VersionInfo>, DeployError> {
        let reads = self.version_ids().await?.into_iter().map(|id| async move {
            // One that a prune took meanwhile is none.
            match self.version(id).await {
                Ok(record) => Ok(Some((id, record))),
                Err(DeployError::NoVersion(_)) => Ok(None),
                Err(error) => Err(error),
            }
        });
        let found: Vec<Option<_>> = stream::iter(reads).buffer_unordered(LANES).try_collect().await?;
        let info = |(id, record): (VersionId, VersionRecord)| VersionInfo {
            id,
            created: record.created_ms,
            message: record.message,
            modules: record.manifest.modules.len(),
            bytes: record.manifest.modules.iter().map(|module| module.content.bytes).sum(),
        };
        let mut versions: Vec<VersionInfo> = found.into_iter().flatten().map(info).collect();
        versions.sort_by_key(|version| (std::cmp::Reverse(version.created), version.id));
        Ok(versions)
    }

    /// One version's record. Its manifest is what its id says.
    ///
    /// # Errors
    /// [`DeployError::NoVersion`], and a record that is damaged.
    pub async fn version(&self, id: VersionId) -> Result<VersionRecord, DeployError> {
        let found = read::<VersionRecord>(&*self.records, &Key::Version(id)).await?;
        let (record, _) = found.ok_or_else(|| DeployError::NoVersion(id.to_string()))?;
        let found = record.manifest.id();
        if found == id { Ok(record) } else { Err(DeployError::WrongManifest { key: id, found }) }
    }

    /// The one version that begins with these digits.
    ///
    /// # Errors
    /// [`DeployError::NoVersion`], [`DeployError::Ambiguous`].
    pub async fn find(&self, name: &VersionName) -> Result<VersionId, DeployError> {
        let ids = self.version_ids().await?;
        let mut found = ids.into_iter().filter(|id| id.to_string().starts_with(&name.0));
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (None, _) => Err(DeployError::NoVersion(name.0.clone())),
            (Some(_), Some(_)) => Err(DeployError::Ambiguous(name.0.clone())),
        }
    }

    pub(crate) async fn version_ids(&self) -> Result<Vec<VersionId>, DeployError> {
        let keys = self.keys(VERSIONS_PREFIX, false).await?;
        let id = |key: Key| match key {
            Key::Version(id) => Some(id),
            _ => None,
        };
        Ok(keys.into_iter().filter_map(id).collect())
    }

    /// Our keys below a prefix.
    pub(crate) async fn keys(&self, prefix: &str, is_bulk: bool) -> Result<Vec<Key>, DeployError> {
        let bucket = if is_bulk { &self.bulk } else { &self.records };
        let mut keys = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = bucket.list(prefix, after.as_deref(), PAGE).await?;
            keys.extend(page.objects.iter().filter_map(|object| Key::parse(&object.key).ok()));
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(keys),
            }
        }
    }
}
