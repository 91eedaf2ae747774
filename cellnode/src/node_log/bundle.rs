//! Bundles of this session: makes them as the core's machine asks, puts them, and keeps the newest in memory for as long as
//! there is room, so that cells find their frames there when their own turn comes. What a bundle proves is the machine's.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// Memory for bundles that are in the bucket and not drained, in bytes. What cells need of older ones is read back, a
/// range for each cell and bundle.
const KEPT_BYTES_MAX: u64 = 64 << 20;
/// Longest wait for the answer of one try, in milliseconds; a longer body gets more, at a megabyte a second.
const TRY_MS_MAX: u64 = 5_000;
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
        let fault = |kind, text: &str| BucketError::new("get_range", &self.key, kind, text);
        let read = bucket.get_range(&self.key, span);
        let read = tokio::time::timeout(Duration::from_millis(TRY_MS_MAX + wide(range.len()) / 1_000), read);
        let object = read.await.map_err(|_| fault(ErrorKind::NoAnswer, "no answer in time"))??;
        let body = object.map(|object| object.body).filter(|body| body.len() == range.len());
        body.ok_or_else(|| fault(ErrorKind::Local, "the bundle is gone or shorter than it was"))
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
    let patience = Duration::from_millis(TRY_MS_MAX + len / 1_000);
    let mut attempt = 0;
    loop {
        PAUSES.pause_before(attempt).await;
        if !node.authority.is_live() {
            return false;
        }
        let started = Instant::now();
        let error = match tokio::time::timeout(patience, node.buckets.bulk.put(key, bytes.clone())).await {
            Ok(Ok(_)) => {
                metrics().bundle(Outcome::Ok, len, started.elapsed());
                return true;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        metrics().bundle(Outcome::Failed, 0, started.elapsed());
        tracing::warn!(key, attempt, error, "a bundle could not be stored; it is tried again");
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
