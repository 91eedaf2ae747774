//! Static files out of the bucket, verified. All of their bytes that this process holds, those that slow clients have not
//! taken yet among them, share one bound.

use std::collections::HashMap;
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

/// Longest wait for a file, for its room and its turn too.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
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
    /// The bucket took too long. Disposition: retry.
    #[error("the bucket did not give the file within {READ_TIMEOUT:?}")]
    Late,
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
    cache: Mutex<LruCache<ContentHash, Arc<Roomed>>>,
    /// Files that are being read: whoever else wants one waits for it.
    reads: Mutex<HashMap<ContentHash, Arc<Turn>>>,
}

/// Whose turn it is to read a file.
type Turn = tokio::sync::Mutex<()>;

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

/// A part in them.
struct Share(Arc<Roomed>);

impl AsRef<[u8]> for Share {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

fn shared(roomed: &Arc<Roomed>) -> Bytes {
    Bytes::from_owner(Share(Arc::clone(roomed)))
}

impl Store {
    /// Over a bucket, with so many bytes of memory. A file that is larger than all of it takes all of it.
    #[must_use]
    pub fn new(bucket: Arc<dyn Bucket>, memory: u64) -> Self {
        let room_max = u32::try_from(memory.div_ceil(1024)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4);
        let room = Arc::new(Semaphore::new(usize::try_from(room_max).expect("32 bits fit")));
        let cache = Mutex::new(LruCache::unbounded());
        Self { bucket, room, room_max, cache, reads: Mutex::default() }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read(&self, blob: BlobEntry) -> Result<Bytes, StoreError> {
        if let Some(bytes) = self.cached(blob.sha256) {
            return Ok(bytes);
        }
        let turn = Arc::clone(locked(&self.reads).entry(blob.sha256).or_default());
        let read = async {
            let _turn = turn.lock().await;
            match self.cached(blob.sha256) {
                Some(bytes) => Ok(bytes),
                None => self.fetch(blob).await,
            }
        };
        let read = tokio::time::timeout(READ_TIMEOUT, read).await;
        drop(turn);
        // The map's own is the last one.
        locked(&self.reads).retain(|hash, turn| *hash != blob.sha256 || Arc::strong_count(turn) > 1);
        read.unwrap_or(Err(StoreError::Late))
    }

    async fn fetch(&self, blob: BlobEntry) -> Result<Bytes, StoreError> {
        let damaged = StoreError::Damaged(blob.sha256);
        let key = Key::Blob(blob.sha256).to_string();
        // First, because the manifest bounds what is read into memory, whatever the store holds; and because a store that
        // does not answer is no reason to let go of anything.
        if self.bucket.head(&key).await?.is_none_or(|head| head.len != blob.bytes) {
            return Err(damaged);
        }
        let room = self.make_room(blob.bytes).await?;
        let Some(object) = self.bucket.get(&key).await? else { return Err(damaged) };
        if sha256(&object.body) != blob.sha256 {
            return Err(damaged);
        }
        let roomed = Arc::new(Roomed { bytes: object.body, _room: room });
        let bytes = shared(&roomed);
        locked(&self.cache).put(blob.sha256, roomed);
        Ok(bytes)
    }

    fn cached(&self, hash: ContentHash) -> Option<Bytes> {
        locked(&self.cache).get(&hash).map(shared)
    }

    /// Lets go of the file that was not wanted for longest, of those that no client is being sent. False: there is none.
    fn evict(&self) -> bool {
        let mut cache = locked(&self.cache);
        let idle = cache.iter().rev().find(|(_, roomed)| Arc::strong_count(roomed) == 1);
        let Some(hash) = idle.map(|(hash, _)| *hash) else { return false };
        cache.pop(&hash).is_some()
    }

    async fn make_room(&self, bytes: u64) -> Result<OwnedSemaphorePermit, StoreError> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).clamp(KIB_MIN, self.room_max);
        let deadline = Instant::now() + ROOM_TIMEOUT;
        loop {
            if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(kib) {
                return Ok(room);
            }
            if self.evict() {
                continue;
            }
            if Instant::now() >= deadline {
                return Err(StoreError::Full);
            }
            tokio::time::sleep(ROOM_CHECK).await;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_being_sent_stays_and_is_given_to_others() {
        let (first, second) = (vec![1; 3 << 10], vec![2; 3 << 10]);
        let (store, bucket, entries) = store(4, &[&first, &second]).await;
        let sent = store.read(entries[0]).await.unwrap();
        assert!(matches!(store.read(entries[1]).await, Err(StoreError::Full)));
        bucket.delete(&Key::Blob(entries[0].sha256).to_string()).await.unwrap();
        assert_eq!(store.read(entries[0]).await.unwrap(), sent, "nothing was gained by letting go of it");
        assert!(locked(&store.reads).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_that_does_not_answer_costs_no_file_that_is_here() {
        let first = vec![1; 3 << 10];
        let (store, bucket, entries) = store(4, &[&first]).await;
        assert_eq!(store.read(entries[0]).await.unwrap(), first);
        let absent = BlobEntry { bytes: 4 << 10, ..Blobs::default().add("absent") };
        assert!(matches!(store.read(absent).await, Err(StoreError::Damaged(_))));
        bucket.delete(&Key::Blob(entries[0].sha256).to_string()).await.unwrap();
        assert_eq!(store.read(entries[0]).await.unwrap(), first);
    }

    #[tokio::test]
    async fn many_who_want_a_file_at_once_read_it_once() {
        let inner: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
        let blob = Blobs::default().add("wanted");
        inner.put(&Key::Blob(blob.sha256).to_string(), Bytes::from_static(b"wanted")).await.unwrap();
        let counted = Arc::new(holdfast_bucket::faults::FaultBucket::new(inner));
        let store = Store::new(counted.clone(), 1 << 20);
        let reads = futures::future::join_all((0..50).map(|_| store.read(blob))).await;
        assert!(reads.into_iter().all(|read| read.is_ok_and(|bytes| bytes == "wanted")));
        assert_eq!(counted.count(holdfast_bucket::faults::Operation::Get, ""), 1);
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
