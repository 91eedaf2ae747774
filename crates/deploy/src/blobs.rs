//! `deploy-blobs/sha256/…`: bytes under their own hash. Created if absent, never overwritten, verified when read.

use bytes::Bytes;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdfast_bucket::{Commit, Guard};
use holdfast_records::{BlobEntry, Blobs, Key, Package, sha256};
use holdfast_types::ContentHash;

use crate::{DeployError, Deployments, LANES, WRITE_DEADLINE_MS};

impl Deployments {
    /// Uploads what the bucket lacks; the answer is how many blobs and bytes those were.
    pub(crate) async fn upload(&self, package: &Package) -> Result<(u64, u64), DeployError> {
        let blobs: Vec<_> = package.blobs().iter().map(|(hash, bytes)| (hash, bytes.clone())).collect();
        let uploads = blobs.into_iter().map(|(hash, bytes)| self.upload_one(hash, bytes));
        let sent: Vec<u64> = stream::iter(uploads).buffer_unordered(LANES).try_collect().await?;
        let new = sent.iter().filter(|bytes| **bytes > 0).count() as u64;
        Ok((new, sent.iter().sum()))
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
