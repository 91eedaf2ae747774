//! Brings the frames of a sealed log into their cells' prefixes: windows of the tail, each grouped by cell and epoch,
//! merged into level-0 pieces and uploaded before its end is reported. Memory is a few windows, whatever the tail's length.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use holdfast_bucket::{Bucket, BucketError, ErrorKind};
use holdfast_core::log_record::MemberId;
use holdfast_core::pieces::pieces;
use holdfast_core::recovery::GatherFault;
use holdfast_ltx::REQUEST_COST_BYTES;
use holdfast_records::{BUNDLE_BYTES_MAX, Bundle, BundleRow, Key, Level};
use holdfast_rpc::follower::{LogFrame, LogName};
use holdfast_telemetry::metrics;
use holdfast_types::{CellName, Epoch, LogOffset, Txid};
use tokio::sync::{mpsc, watch};

use super::held;
use super::witness::LogWitness;
use crate::backoff::Backoff;
use crate::blocking::blocking;
use crate::patience::in_time;

/// Bytes of one window. Three are in memory at once: one arrives, one waits, one is uploaded.
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// Frames of one window: what each costs besides its body stays far below the bodies' bound.
const WINDOW_FRAMES_MAX: usize = 64 << 10;
/// Uploads at once.
const LANES: usize = 32;
/// Runs of a cell's frames from this length on are worth a look at what is there already.
const LISTED_BYTES_MIN: usize = 1 << 20;
/// Tries to go on with a tail that broke, each without a single further frame.
const TAIL_ATTEMPTS: u32 = 3;
/// Tries of one upload, or of one read of a bundle.
const ATTEMPTS_MAX: u32 = 6;
/// Between tries: 100 ms doubling to 3.2 s.
const PAUSES: Backoff = Backoff::new(100, 5);

/// What to gather.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    pub(super) log: LogName,
    pub(super) member: MemberId,
    pub(super) start: LogOffset,
    pub(super) end: LogOffset,
    pub(super) is_whole: bool,
}

/// Frames with consecutive offsets.
struct Window {
    frames: Vec<LogFrame>,
    end: LogOffset,
}

/// Consecutive transactions of one cell in one epoch.
struct Run {
    cell: CellName,
    epoch: Epoch,
    frames: Vec<LogFrame>,
}

/// Gathers everything. `done_below` follows what is in the bucket.
pub(super) async fn gather(
    witness: Arc<dyn LogWitness>,
    bucket: Arc<dyn Bucket>,
    gather: Gather,
    done_below: watch::Sender<LogOffset>,
) -> Result<(), GatherFault> {
    let (sender, mut windows) = mpsc::channel::<Window>(1);
    let reading = read_tail(&*witness, &gather, sender);
    let mut uploads = Uploads { bucket, is_whole: gather.is_whole, reached: HashMap::new() };
    let uploading = async {
        while let Some(Window { frames, end }) = windows.recv().await {
            uploads.upload(frames).await.map_err(|error| GatherFault::Here(error.to_string()))?;
            done_below.send_replace(end);
        }
        Ok(())
    };
    tokio::try_join!(reading, uploading).map(|((), ())| ())
}

/// Brings the frames of a session's bundles into their cells' prefixes: from `from` on, until one is not there.
pub(super) async fn gather_bundles(
    bucket: Arc<dyn Bucket>,
    log: LogName,
    (from, is_whole): (LogOffset, bool),
) -> Result<(), GatherFault> {
    let mut uploads = Uploads { bucket: Arc::clone(&bucket), is_whole, reached: HashMap::new() };
    let (mut next, mut frames, mut bytes) = (from, Vec::new(), 0);
    loop {
        let bundle = read_bundle(&bucket, &log, next).await;
        let bundle = match bundle {
            Err(GatherFault::Bundle(reason)) if !is_whole => {
                tracing::error!(%log, reason, "what this bundle held, and later ones, is lost");
                None
            }
            bundle => bundle?,
        };
        let is_end = bundle.is_none();
        if let Some(Bundle { session, first: _, below, rows }) = bundle {
            next = below;
            for BundleRow { offset, cell, epoch, txid, body } in rows {
                bytes += body.len();
                frames.push(LogFrame::new(session, offset, cell, epoch, txid, body));
            }
        }
        if is_end || bytes >= WINDOW_BYTES_MAX {
            let window = std::mem::take(&mut frames);
            bytes = 0;
            uploads.upload(window).await.map_err(|error| GatherFault::Here(error.to_string()))?;
        }
        if is_end {
            return Ok(());
        }
    }
}

/// The bundle that begins at an offset; none where there is none.
async fn read_bundle(
    bucket: &Arc<dyn Bucket>,
    log: &LogName,
    first: LogOffset,
) -> Result<Option<Bundle>, GatherFault> {
    let key = Key::Bundle(log.node.clone(), log.session, first).to_string();
    let Some(object) = get(bucket, &key).await.map_err(|error| GatherFault::Here(error.to_string()))? else {
        return Ok(None);
    };
    let damaged = |reason: String| GatherFault::Bundle(format!("`{key}` is damaged: {reason}"));
    let bundle = Bundle::decode(&object).map_err(|error| damaged(error.to_string()))?;
    if bundle.session != log.session || bundle.first != first || bundle.below <= first {
        return Err(damaged("it is another bundle".to_owned()));
    }
    Ok(Some(bundle))
}

async fn get(bucket: &Arc<dyn Bucket>, key: &str) -> Result<Option<Bytes>, BucketError> {
    let len = u64::try_from(BUNDLE_BYTES_MAX).expect("a bundle is short");
    let object = patiently(("get", key), len, || bucket.get(key)).await?;
    Ok(object.map(|object| object.body))
}

/// The answer of a call that may be repeated, after some tries where the store does not answer.
async fn patiently<T, F: Future<Output = Result<T, BucketError>>>(
    (operation, key): (&'static str, &str),
    len: u64,
    call: impl Fn() -> F,
) -> Result<T, BucketError> {
    let mut attempt = 0;
    loop {
        let error = match in_time((operation, key), len, call()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        attempt += 1;
        if attempt >= ATTEMPTS_MAX || !error.kind.is_transient() {
            return Err(error);
        }
        tracing::debug!(operation, key, attempt, %error, "a call of a recovery failed; it is tried again");
        PAUSES.pause(attempt - 1).await;
    }
}

/// Reads the tail to its end, resumed where it breaks.
async fn read_tail(
    witness: &dyn LogWitness,
    gather: &Gather,
    windows: mpsc::Sender<Window>,
) -> Result<(), GatherFault> {
    let Gather { log, member, start, end, is_whole: _ } = gather;
    let last = end.previous().expect("only a tail with frames is gathered");
    let (mut next, mut filling, mut failures) = (*start, Filling::default(), 0);
    while next < *end {
        let before = next;
        let reason = match witness.tail(member, log, next, last).await {
            Ok(mut tail) => loop {
                match tail.next().await {
                    Some(Ok(frames)) => {
                        for frame in frames {
                            check(&frame, log, next, *end).map_err(GatherFault::Member)?;
                            next = frame.offset.next();
                            if let Some(window) = filling.add(frame)
                                && windows.send(window).await.is_err()
                            {
                                // The other half failed and says why.
                                return Ok(());
                            }
                        }
                    }
                    Some(Err(reason)) => break reason,
                    None => break format!("it ended before offset {next}"),
                }
            },
            Err(reason) => reason,
        };
        failures = if next > before { 0 } else { failures + 1 };
        if next < *end {
            if failures >= TAIL_ATTEMPTS {
                return Err(GatherFault::Member(reason));
            }
            tracing::debug!(%log, follower = %member.follower, %next, reason, "a tail broke; it is resumed");
            PAUSES.pause(failures).await;
        }
    }
    if let Some(window) = filling.take() {
        let _ = windows.send(window).await;
    }
    Ok(())
}

fn check(frame: &LogFrame, log: &LogName, next: LogOffset, end: LogOffset) -> Result<(), String> {
    if frame.offset != next || frame.offset >= end {
        return Err(format!("frame {} came where {next} must", frame.offset));
    }
    if !frame.is_intact(log.session) {
        return Err(format!("frame {} does not match its crc", frame.offset));
    }
    Ok(())
}

#[derive(Default)]
struct Filling {
    frames: Vec<LogFrame>,
    bytes: usize,
}

impl Filling {
    /// Adds a frame; gives the window back once it is full.
    fn add(&mut self, frame: LogFrame) -> Option<Window> {
        self.bytes += frame.body.len();
        self.frames.push(frame);
        let is_full = self.bytes >= WINDOW_BYTES_MAX || self.frames.len() >= WINDOW_FRAMES_MAX;
        if is_full { self.take() } else { None }
    }

    fn take(&mut self) -> Option<Window> {
        let Self { frames, bytes: _ } = std::mem::take(self);
        let end = frames.last()?.offset.next();
        Some(Window { frames, end })
    }
}

/// Uploads windows.
struct Uploads {
    bucket: Arc<dyn Bucket>,
    is_whole: bool,
    /// After a declared loss: up to where the chain of a cell's epoch is known to reach.
    reached: HashMap<(CellName, Epoch), Txid>,
}

impl Uploads {
    async fn upload(&mut self, frames: Vec<LogFrame>) -> Result<(), BucketError> {
        let mut runs = runs(frames);
        if !self.is_whole {
            runs = self.connected(runs).await?;
        }
        let bucket = &self.bucket;
        let jobs: Vec<Vec<Job>> = futures::stream::iter(runs)
            .map(|run| async move { Ok::<_, BucketError>(jobs(missing(bucket, run).await?)) })
            .buffer_unordered(LANES)
            .try_collect()
            .await?;
        futures::stream::iter(jobs.into_iter().flatten().map(Ok))
            .try_for_each_concurrent(LANES, |job| job.run(bucket))
            .await
    }

    /// The runs that continue what their cells' prefixes hold.
    async fn connected(&mut self, runs: Vec<Run>) -> Result<Vec<Run>, BucketError> {
        let mut connected = Vec::with_capacity(runs.len());
        for run in runs {
            let of = (run.cell.clone(), run.epoch);
            let (first, last) = (run.frames[0].txid, run.frames[run.frames.len() - 1].txid);
            let follows = self.reached.get(&of).is_some_and(|reached| reached.next() >= first)
                || held::reaches(&self.bucket, (&run.cell, run.epoch), first).await?;
            if follows {
                self.reached.insert(of, last);
                connected.push(run);
            } else {
                tracing::warn!(
                    cell = %run.cell, epoch = %run.epoch, %first, %last,
                    "transactions are left out: what is before them is lost"
                );
            }
        }
        Ok(connected)
    }
}

/// Frames by cell and epoch, cut where a transaction is missing: those went to the bucket by themselves.
fn runs(frames: Vec<LogFrame>) -> Vec<Run> {
    let mut cells: BTreeMap<(CellName, Epoch), Vec<LogFrame>> = BTreeMap::new();
    for frame in frames {
        cells.entry((frame.cell.clone(), frame.epoch)).or_default().push(frame);
    }
    let mut runs = Vec::with_capacity(cells.len());
    for ((cell, epoch), mut frames) in cells {
        frames.sort_by_key(|frame| frame.txid);
        frames.dedup_by_key(|frame| frame.txid);
        for run in frames.chunk_by(|left, right| left.txid.next() == right.txid) {
            runs.push(Run { cell: cell.clone(), epoch, frames: run.to_vec() });
        }
    }
    runs
}

/// What level 0 does not list, in runs again. Short runs are not looked up: uploading them again costs less.
async fn missing(bucket: &Arc<dyn Bucket>, run: Run) -> Result<Vec<Run>, BucketError> {
    let len: usize = run.frames.iter().map(|frame| frame.body.len()).sum();
    if len < LISTED_BYTES_MIN {
        return Ok(vec![run]);
    }
    let listed = held::listed(bucket, (&run.cell, run.epoch), run.frames[0].txid).await?;
    let is_listed = |txid: Txid| listed.iter().any(|file| file.min <= txid && txid <= file.max);
    Ok(runs(run.frames.into_iter().filter(|frame| !is_listed(frame.txid)).collect()))
}

/// One object to upload.
struct Job {
    key: String,
    frames: Vec<LogFrame>,
}

fn jobs(runs: Vec<Run>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for Run { cell, epoch, mut frames } in runs {
        let (first, last) = (frames[0].txid, frames[frames.len() - 1].txid);
        for (min, max) in pieces(first, last) {
            let len = usize::try_from(max.get() - min.get() + 1).expect("a piece is short");
            let rest = frames.split_off(len);
            add_jobs(&mut jobs, (&cell, epoch), std::mem::replace(&mut frames, rest));
        }
    }
    jobs
}

/// One object for a block of frames, or for each half of it where the block is long: a half is a block, too, and nobody
/// gains by merging files whose bytes cost more than their requests.
fn add_jobs(jobs: &mut Vec<Job>, (cell, epoch): (&CellName, Epoch), mut frames: Vec<LogFrame>) {
    let bytes: usize = frames.iter().map(|frame| frame.body.len()).sum();
    if frames.len() > 1 && u64::try_from(bytes).is_ok_and(|bytes| bytes > REQUEST_COST_BYTES) {
        let later = frames.split_off(frames.len() / 2);
        add_jobs(jobs, (cell, epoch), frames);
        add_jobs(jobs, (cell, epoch), later);
        return;
    }
    let (min, max) = (frames[0].txid, frames[frames.len() - 1].txid);
    let key = Key::Ltx { cell: cell.clone(), epoch, level: Level::Zero, min, max }.to_string();
    jobs.push(Job { key, frames });
}

impl Job {
    async fn run(self, bucket: &Arc<dyn Bucket>) -> Result<(), BucketError> {
        let Self { key, frames } = self;
        let body = match &frames[..] {
            [frame] => frame.body.clone(),
            _ => {
                let bodies: Vec<Bytes> = frames.iter().map(|frame| frame.body.clone()).collect();
                drop(frames);
                let merged = blocking(move || holdfast_ltx::merge(&bodies)).await;
                let damaged = |error: holdfast_ltx::CompactError| {
                    BucketError::new("put", &key, ErrorKind::Local, error.to_string())
                };
                Bytes::from(merged.map_err(damaged)?)
            }
        };
        put(bucket, &key, &body).await?;
        metrics().recovery_bytes(body.len().try_into().unwrap_or(u64::MAX));
        Ok(())
    }
}

async fn put(bucket: &Arc<dyn Bucket>, key: &str, body: &Bytes) -> Result<(), BucketError> {
    let len = u64::try_from(body.len()).unwrap_or(u64::MAX);
    patiently(("put", key), len, || bucket.put(key, body.clone())).await?;
    Ok(())
}
