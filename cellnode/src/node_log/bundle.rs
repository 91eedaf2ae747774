//! Bundles of this session: makes them as the core's machine asks, puts them, and keeps the newest in memory for as long as
//! there is room, so that cells find their frames there when their own turn comes. What a bundle proves is the machine's.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError, ByteRange, ErrorKind};
use holdfast_core::ensemble::NodeLogEvent;
use holdfast_records::bundle::body_crc;
use holdfast_records::{Bundle, BundleRow, EncodedBundle, Key};
use holdfast_rpc::follower::LogFrame;
use holdfast_telemetry::{Outcome, metrics};
use holdfast_types::LogOffset;

use super::NodeLog;
use crate::backoff::Backoff;
use crate::blocking::blocking;
use crate::cells::Resident;
use crate::critical;
use crate::node::Node;
use crate::patience::in_time;

/// Memory for bundles that are in the bucket and not drained, in bytes. What cells need of older ones is read back, a
/// range for each cell and bundle.
const KEPT_BYTES_MAX: u64 = 64 << 20;
/// Tries to delete what nobody reads any more. What is left then goes with the session's log, by a sweep.
const DELETE_ATTEMPTS: u32 = 3;
/// Before later tries: 50 ms doubling to 1.6 s.
const PAUSES: Backoff = Backoff::new(50, 5);

/// A bundle in the bucket.
#[derive(Debug)]
pub(crate) struct StoredBundle {
    key: String,
    bytes: Mutex<Option<Bytes>>,
}

impl StoredBundle {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Option<Bytes>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A range of it, from memory or from the bucket.
    pub(crate) async fn read(&self, bucket: &dyn Bucket, range: Range<usize>) -> Result<Bytes, BucketError> {
        if let Some(bytes) = &*self.bytes() {
            return Ok(bytes.slice(range));
        }
        let wide = |number: usize| u64::try_from(number).expect("a bundle is short");
        let span = ByteRange::Span { offset: wide(range.start), len: wide(range.len()) };
        let read = bucket.get_range(&self.key, span);
        let object = in_time(("get_range", &self.key), wide(range.len()), read).await?;
        let body = object.map(|object| object.body).filter(|body| body.len() == range.len());
        let text = "the bundle is gone or shorter than it was";
        body.ok_or_else(|| BucketError::new("get_range", &self.key, ErrorKind::Local, text))
    }
}

/// A transaction whose bytes are in a bundle.
#[derive(Clone, Debug)]
pub(crate) struct BundledBody {
    pub(crate) bundle: Arc<StoredBundle>,
    pub(crate) range: Range<usize>,
    crc: u32,
}

impl BundledBody {
    /// The bytes, out of a range of the bundle that begins at `start`.
    pub(crate) fn take(&self, read: &Bytes, start: usize) -> Result<Bytes, BucketError> {
        let body = read.slice(self.range.start - start..self.range.end - start);
        if body_crc(&body) == self.crc {
            return Ok(body);
        }
        let text = "a frame of the bundle does not match its crc";
        Err(BucketError::new("get_range", &self.bundle.key, ErrorKind::Local, text))
    }
}

/// The bundles in memory, oldest first, and their bytes.
#[derive(Debug, Default)]
pub(super) struct KeptBundles {
    kept: Mutex<(VecDeque<Arc<StoredBundle>>, u64)>,
}

impl KeptBundles {
    fn add(&self, key: String, bytes: Bytes) -> Arc<StoredBundle> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let bundle = Arc::new(StoredBundle { key, bytes: Mutex::new(Some(bytes)) });
        let (kept, sum) = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Arc::clone(&bundle));
        *sum += len;
        while *sum > KEPT_BYTES_MAX
            && let Some(oldest) = kept.pop_front()
        {
            *sum -= drop_bytes(&oldest);
        }
        bundle
    }

    fn remove(&self, keys: &[String]) {
        let (kept, sum) = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|bundle| {
            let is_gone = keys.contains(&bundle.key);
            if is_gone {
                *sum -= drop_bytes(bundle);
            }
            !is_gone
        });
    }
}

fn drop_bytes(bundle: &StoredBundle) -> u64 {
    bundle.bytes().take().map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX))
}

/// The frames for a bundle, and its bounds.
#[derive(Debug)]
pub(super) struct Making {
    pub(super) first: LogOffset,
    pub(super) below: LogOffset,
    pub(super) frames: Vec<(Arc<Resident>, LogFrame)>,
}

/// Puts a bundle, until it is stored or the session is over, and tells the cells and the machine.
pub(super) fn store(log: &Arc<NodeLog>, making: Making) {
    let Some(node) = log.node() else { return };
    let log = Arc::clone(log);
    critical::spawn(&node.runtime.clone(), "bundle", async move {
        let Making { first, below, mut frames } = making;
        let place = |frame: &LogFrame| (frame.cell.clone(), frame.epoch, frame.offset);
        frames.sort_by_cached_key(|(_, frame)| place(frame));
        let rows = frames.iter().map(|(_, frame)| row(frame)).collect();
        let bundle = Bundle { session: node.session, first, below, rows };
        let EncodedBundle { bytes, bodies } = blocking(move || bundle.encode()).await;
        let key = Key::Bundle(node.name.clone(), node.session, first).to_string();
        if !put(&node, &key, &bytes).await {
            return;
        }
        tracing::debug!(%first, %below, frames = frames.len(), bytes = bytes.len(), "a bundle is stored");
        let stored = log.kept_bundles.add(key, bytes);
        for ((resident, frame), range) in frames.into_iter().zip(bodies) {
            let crc = body_crc(&frame.body);
            let body = BundledBody { bundle: Arc::clone(&stored), range, crc };
            resident.pending().bundled(frame.txid, body);
        }
        log.on(NodeLogEvent::Bundled { below });
    });
}

fn row(frame: &LogFrame) -> BundleRow {
    let LogFrame { offset, cell, epoch, txid, body, crc: _ } = frame.clone();
    BundleRow { offset, cell, epoch, txid, body }
}

/// False: the session is over, and writes nothing any more.
async fn put(node: &Node, key: &str, bytes: &Bytes) -> bool {
    let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut attempt = 0;
    loop {
        PAUSES.pause_before(attempt).await;
        if !node.authority.is_live() {
            return false;
        }
        let started = Instant::now();
        let put = node.buckets.bulk.put(key, bytes.clone());
        let Err(error) = in_time(("put", key), len, put).await else {
            metrics().bundle(Outcome::Ok, len, started.elapsed());
            return true;
        };
        metrics().bundle(Outcome::Failed, 0, started.elapsed());
        tracing::warn!(key, attempt, %error, "a bundle could not be stored; it is tried again");
        attempt = attempt.saturating_add(1);
    }
}

/// Deletes bundles that nobody reads any more.
pub(super) fn delete(log: &Arc<NodeLog>, firsts: Vec<LogOffset>) {
    let Some(node) = log.node() else { return };
    let key = |first| Key::Bundle(node.name.clone(), node.session, first).to_string();
    let keys: Vec<String> = firsts.into_iter().map(key).collect();
    log.kept_bundles.remove(&keys);
    node.runtime.clone().spawn(async move {
        for attempt in 0..DELETE_ATTEMPTS {
            PAUSES.pause_before(attempt).await;
            match node.buckets.bulk.delete_many(&keys).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(attempt, %error, "drained bundles could not be deleted"),
            }
        }
    });
}

#[cfg(test)]
impl StoredBundle {
    /// A bundle whose bytes had to make room for newer ones.
    pub(crate) fn evicted(key: &str) -> Arc<Self> {
        Arc::new(Self { key: key.to_owned(), bytes: Mutex::new(None) })
    }
}

#[cfg(test)]
impl BundledBody {
    /// A transaction of a bundle.
    pub(crate) fn new(bundle: &Arc<StoredBundle>, range: Range<usize>, body: &[u8]) -> Self {
        Self { bundle: Arc::clone(bundle), range, crc: body_crc(body) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_bucket::MemoryBucket;

    #[tokio::test]
    async fn the_oldest_bundles_make_room_and_are_read_back_by_range() {
        let bucket = MemoryBucket::new();
        let bodies: Vec<Bytes> = (0..9_u8).map(|at| vec![at; 8 << 20].into()).collect();
        let kept = KeptBundles::default();
        let mut bundles = Vec::new();
        for (at, body) in bodies.iter().enumerate() {
            let key = format!("log/n/s/bundle/{at}");
            bucket.put(&key, body.clone()).await.unwrap();
            bundles.push(kept.add(key, body.clone()));
        }
        let in_memory: Vec<bool> = bundles.iter().map(|bundle| bundle.bytes().is_some()).collect();
        assert_eq!(in_memory, [vec![false], vec![true; 8]].concat(), "64 MiB are kept");
        for (bundle, body) in bundles.iter().zip(&bodies) {
            assert_eq!(bundle.read(&bucket, 10..20).await.unwrap(), body.slice(10..20));
        }
        let keys: Vec<String> = bundles.iter().map(|bundle| bundle.key.clone()).collect();
        kept.remove(&keys[..2]);
        bucket.delete_many(&keys[..2]).await.unwrap();
        for gone in &bundles[..2] {
            let error = gone.read(&bucket, 10..20).await.unwrap_err();
            assert!(error.to_string().contains("gone"), "{error}");
        }
        let again = kept.add("log/n/s/bundle/9".into(), bodies[0].clone());
        assert!(again.bytes().is_some() && bundles[2].bytes().is_some(), "what is removed makes room");
    }
}
