//! `deploy-blobs/sha256/…`: bytes under their own hash. Created if absent, never overwritten, verified when read.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdfast_bucket::{Commit, Guard};
use holdfast_records::{BLOBS_PREFIX, BlobEntry, Blobs, Key, Manifest, Package, sha256};
use holdfast_types::ContentHash;

use crate::{DeployError, Deployments, LANES, WRITE_DEADLINE_MS};

/// Static files read and uploaded together: each may have 25 MiB.
const FILE_LANES: usize = 4;

impl Deployments {
    /// Uploads what the bucket lacks; the answer is how many blobs and bytes those were.
    pub(crate) async fn upload(&self, package: &Package) -> Result<(u64, u64), DeployError> {
        let blobs: Vec<_> = package.blobs().iter().map(|(hash, bytes)| (hash, bytes.clone())).collect();
        let uploads = blobs.into_iter().map(|(hash, bytes)| self.upload_one(hash, bytes));
        let mut sent: Vec<u64> = stream::iter(uploads).buffer_unordered(LANES).try_collect().await?;
        let files: Vec<_> = package.files().iter().map(|(hash, path)| (*hash, path.clone())).collect();
        let uploads = files.into_iter().map(|(hash, path)| self.upload_file(hash, path));
        sent.extend(stream::iter(uploads).buffer_unordered(FILE_LANES).try_collect::<Vec<u64>>().await?);
        let new = sent.iter().filter(|bytes| **bytes > 0).count() as u64;
        Ok((new, sent.iter().sum()))
    }

    /// Uploads a static file, which is read only where the bucket lacks it.
    async fn upload_file(&self, hash: ContentHash, path: PathBuf) -> Result<u64, DeployError> {
        let shown = path.display().to_string();
        let unreadable = |source| DeployError::File { path: shown.clone(), source };
        let len = tokio::fs::metadata(&path).await.map_err(unreadable)?.len();
        let head = self.bulk.head(&Key::Blob(hash).to_string()).await?;
        if head.is_some_and(|head| head.len == len) {
            return Ok(0);
        }
        let bytes = tokio::fs::read(&path).await.map_err(unreadable)?;
        if sha256(&bytes) != hash {
            return Err(DeployError::FileChanged(shown));
        }
        self.upload_one(hash, bytes.into()).await
    }

    /// Whether the bucket has a version's static files: their names, not their bytes.
    pub(crate) async fn check_files(&self, manifest: &Manifest) -> Result<(), DeployError> {
        let Some(assets) = &manifest.assets else { return Ok(()) };
        let keys = self.keys(BLOBS_PREFIX, true).await?;
        let there: BTreeSet<ContentHash> = keys
            .into_iter()
            .filter_map(|key| match key {
                Key::Blob(hash) => Some(hash),
                _ => None,
            })
            .collect();
        match assets.files.iter().find(|file| !there.contains(&file.content.sha256)) {
            Some(file) => Err(DeployError::MissingBlob(file.content.sha256)),
            None => Ok(()),
        }
    }

    async fn upload_one(&self, hash: ContentHash, bytes: Bytes) -> Result<u64, DeployError> {
        let key = Key::Blob(hash).to_string();
        let len = bytes.len() as u64;
        if let Some(head) = self.bulk.head(&key).await? {
            return if head.len == len { Ok(0) } else { Err(DeployError::DamagedBlob(hash)) };
        }
        match self.bulk.put_if(&key, bytes, Guard::Absent, WRITE_DEADLINE_MS).await {
            Commit::Applied(_) => Ok(len),
            // Whoever came first wrote the same bytes.
            Commit::Rejected => Ok(0),
            Commit::Unknown(error) => match self.bulk.head(&key).await? {
                Some(head) if head.len == len => Ok(len),
                _ => Err(error.into()),
            },
        }
    }

    /// Reads blobs, each once, and verifies them.
    pub(crate) async fn download(
        &self,
        wanted: impl Iterator<Item = BlobEntry>,
    ) -> Result<Blobs, DeployError> {
        let mut entries: Vec<BlobEntry> = wanted.collect();
        entries.sort_by_key(|entry| entry.sha256);
        entries.dedup();
        let reads = entries.into_iter().map(|entry| self.download_one(entry));
        let read: Vec<Bytes> = stream::iter(reads).buffer_unordered(LANES).try_collect().await?;
        let mut blobs = Blobs::default();
        read.into_iter().for_each(|bytes| {
            blobs.add(bytes);
        });
        Ok(blobs)
    }

    async fn download_one(&self, entry: BlobEntry) -> Result<Bytes, DeployError> {
        let hash = entry.sha256;
        let key = Key::Blob(hash).to_string();
        // The manifest is verified: it bounds what is read into memory, whatever the store holds.
        match self.bulk.head(&key).await? {
            None => return Err(DeployError::MissingBlob(hash)),
            Some(head) if head.len != entry.bytes => return Err(DeployError::DamagedBlob(hash)),
            Some(_) => {}
        }
        let object = self.bulk.get(&key).await?.ok_or(DeployError::MissingBlob(hash))?;
        if sha256(&object.body) == hash { Ok(object.body) } else { Err(DeployError::DamagedBlob(hash)) }
    }
}
