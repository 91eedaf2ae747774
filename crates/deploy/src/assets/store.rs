//! Static files out of the bucket, verified. All of their bytes that this process holds, those that slow clients have not
//! taken yet among them, share one bound.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError};
use holdfast_records::{BlobEntry, Key, sha256};
use holdfast_types::ContentHash;
use lru::LruCache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Longest wait for room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);
/// While there is no room: how often to look for files that nobody takes any more.
const ROOM_CHECK: Duration = Duration::from_millis(50);
/// What an empty file takes.
const KIB_MIN: u32 = 1;

/// Why a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The bucket did not answer. Disposition: retry.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// Other files take all the room, and their clients do not take them. Disposition: retry.
    #[error("the memory for static files is full: their clients are slow")]
    Full,
    /// It is not there, or has other bytes than its name says. Disposition: corrupt; deploy again.
    #[error("blob {0} is missing or damaged: deploy the version again")]
    Damaged(ContentHash),
}

/// Reads static files.
pub struct Store {
    bucket: Arc<dyn Bucket>,
    /// In KiB.
    room: Arc<Semaphore>,
    room_max: u32,
    cache: Mutex<LruCache<ContentHash, Bytes>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("room_kib", &self.room.available_permits()).finish_non_exhaustive()
    }
}

/// Bytes, and the room that they take until the last who has them lets go.
struct Roomed {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Roomed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Store {
    /// Over a bucket, with so many bytes of memory. A file that is larger than all of it takes all of it.
    #[must_use]
    pub fn new(bucket: Arc<dyn Bucket>, memory: u64) -> Self {
        let room_max = u32::try_from(memory.div_ceil(1024)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4);
        let room = Arc::new(Semaphore::new(usize::try_from(room_max).expect("32 bits fit")));
        Self { bucket, room, room_max, cache: Mutex::new(LruCache::unbounded()) }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read(&self, blob: BlobEntry) -> Result<Bytes, StoreError> {
        if let Some(bytes) = self.cache().get(&blob.sha256) {
            return Ok(bytes.clone());
        }
        let room = self.make_room(blob.bytes).await?;
        // Somebody else may have read it meanwhile.
        if let Some(bytes) = self.cache().get(&blob.sha256) {
            return Ok(bytes.clone());
        }
        let damaged = StoreError::Damaged(blob.sha256);
        let key = Key::Blob(blob.sha256).to_string();
        // The length first: the manifest bounds what is read into memory, whatever the store holds.
        if self.bucket.head(&key).await?.is_none_or(|head| head.len != blob.bytes) {
            return Err(damaged);
        }
        let Some(object) = self.bucket.get(&key).await? else { return Err(damaged) };
        if sha256(&object.body) != blob.sha256 {
            return Err(damaged);
        }
        let bytes = Bytes::from_owner(Roomed { bytes: object.body, _room: room });
        self.cache().put(blob.sha256, bytes.clone());
        Ok(bytes)
    }

    fn cache(&self) -> MutexGuard<'_, LruCache<ContentHash, Bytes>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what was not wanted for longest until there is room.
    async fn make_room(&self, bytes: u64) -> Result<OwnedSemaphorePermit, StoreError> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).clamp(KIB_MIN, self.room_max);
        loop {
            if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(kib) {
                return Ok(room);
            }
            if self.cache().pop_lru().is_none() {
                break;
            }
        }
        let deadline = Instant::now() + ROOM_TIMEOUT;
        while Instant::now() < deadline {
            let wait = Arc::clone(&self.room).acquire_many_owned(kib);
            if let Ok(room) = tokio::time::timeout(ROOM_CHECK, wait).await {
                return Ok(room.expect("it is never closed"));
            }
            // What has been read meanwhile is kept for others, too.
            self.cache().pop_lru();
        }
        Err(StoreError::Full)
    }
}

#[cfg(test)]
mod tests {
    use holdfast_bucket::MemoryBucket;
    use holdfast_records::Blobs;

    use super::*;

    async fn store(kib: u64, files: &[&[u8]]) -> (Store, Arc<dyn Bucket>, Vec<BlobEntry>) {
        let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
        let mut entries = Vec::new();
        for file in files {
            let entry = Blobs::default().add(file.to_vec());
            bucket.put(&Key::Blob(entry.sha256).to_string(), Bytes::copy_from_slice(file)).await.unwrap();
            entries.push(entry);
        }
        (Store::new(Arc::clone(&bucket), kib << 10), bucket, entries)
    }

    #[tokio::test]
    async fn a_file_is_kept_until_others_need_the_room() {
        let (first, second) = (vec![1; 3 << 10], vec![2; 3 << 10]);
        let (store, bucket, entries) = store(4, &[&first, &second]).await;
        assert_eq!(store.read(entries[0]).await.unwrap(), first);
        bucket.delete(&Key::Blob(entries[0].sha256).to_string()).await.unwrap();
        assert_eq!(store.read(entries[0]).await.unwrap(), first, "from memory");
        assert_eq!(store.read(entries[1]).await.unwrap(), second);
        let again = store.read(entries[0]).await;
        assert!(matches!(again, Err(StoreError::Damaged(_))), "it had to go: {again:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_clients_have_not_taken_counts() {
        let (first, second) = (vec![1; 3 << 10], vec![2; 3 << 10]);
        let (store, _, entries) = store(4, &[&first, &second]).await;
        let taken_slowly = store.read(entries[0]).await.unwrap();
        assert!(matches!(store.read(entries[1]).await, Err(StoreError::Full)));
        drop(taken_slowly);
        assert_eq!(store.read(entries[1]).await.unwrap(), second);
    }

    #[tokio::test]
    async fn other_bytes_are_never_given() {
        let (store, bucket, entries) = store(4, &[b"right"]).await;
        for wrong in ["wrong", "longer"] {
            let key = Key::Blob(entries[0].sha256).to_string();
            bucket.put(&key, Bytes::from_static(wrong.as_bytes())).await.unwrap();
            assert!(matches!(store.read(entries[0]).await, Err(StoreError::Damaged(_))), "{wrong}");
        }
    }
}
