//! Opens the journal: reads it back, cuts a torn end, and begins a new segment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_rpc::follower::LogFrame;
use holdfast_types::{Incarnation, SessionId};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::disk::{Disk, DiskFile};
use super::format::{Entry, frames_span};
use super::manifest::{MANIFEST, Manifest, SPARE, SegmentRow, segment_name, segment_number};
use super::queue::{Ends, Queue};
use super::scan::{RecoveredLog, Scan};
use super::segments::Segments;
use super::writer::{Current, Report, Writer};

/// What is told of each batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchStats {
    /// Entries in it.
    pub entries: usize,
    /// Bytes written.
    pub bytes: usize,
    /// How long its fsync took.
    pub fsync: Duration,
}

/// How the journal is kept.
pub struct JournalOptions {
    /// Length of a segment, in bytes.
    pub segment_len: u64,
    /// Bytes of frames, with all that they take on the disk, that may wait for it. No more than half of a segment counts.
    pub queue_len: usize,
    /// Told of each batch.
    pub on_batch: Box<dyn Fn(BatchStats) + Send>,
}

/// The journal cannot be opened. Disposition: reject; what is on the disk stays as it is.
#[derive(Debug, thiserror::Error)]
#[error("journal: {action}: {source}")]
pub struct JournalError {
    action: String,
    source: io::Error,
}

fn failed(action: impl Into<String>) -> impl FnOnce(io::Error) -> JournalError {
    let action = action.into();
    move |source| JournalError { action, source }
}

/// A journal that is read back and not written yet.
pub struct Opened {
    /// The logs in it.
    pub logs: Vec<(SessionId, RecoveredLog)>,
    /// Whether anything that was fsynced is gone.
    pub is_damaged: bool,
    writer: Writer,
}

/// A running journal. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    queue: Arc<Queue>,
    segments: Arc<Segments>,
    has_room: Arc<AtomicBool>,
    disk: Arc<dyn Disk>,
    segment_len: u64,
}

impl Opened {
    /// Reads the journal on `disk`, whose identity is `incarnation`.
    ///
    /// # Errors
    /// [`JournalError`] for what the disk refuses. Damage is no error: it is told by the logs.
    pub fn read(
        disk: Arc<dyn Disk>,
        incarnation: Incarnation,
        options: JournalOptions,
    ) -> Result<Self, JournalError> {
        let mut scan = Scan::new(incarnation);
        let manifest = read_manifest(&*disk, &mut scan)?;
        remove_leftovers(&*disk, &manifest, options.segment_len)?;
        let segments = Arc::new(Segments::default());
        let is_damaged_before = std::mem::take(&mut scan.is_damaged);
        let next_number = manifest.segments.last().map_or(1, |row| row.number + 1);
        let mut present = Vec::new();
        let mut newest = Current::none();
        for mut row in manifest.segments.iter().copied() {
            if let Some(file) = read_segment(&*disk, &mut row, &mut scan, &segments)? {
                newest = Current::resumed(&row, file).map_err(failed("reading a segment"))?;
                present.push(row);
            }
        }
        if is_damaged_before {
            scan.hole();
        }
        scan.end();
        let logs: Vec<_> = scan.logs.into_iter().collect();
        for (_, log) in &logs {
            segments.retain(log.index.places());
        }
        let written = logs.iter().map(|(session, log)| (*session, (log.node.clone(), log.replay))).collect();
        let spare = open_spare(&*disk)?;
        let mut writer = Writer {
            queue: Arc::new(Queue::new(queue_len(&options))),
            segments,
            has_room: Arc::new(AtomicBool::new(true)),
            options,
            incarnation,
            manifest,
            next_number,
            written,
            current: Current::none(),
            spare,
            is_marked: true,
            last_try: Instant::now(),
            dead: Vec::new(),
            runtime: None,
            disk,
        };
        writer.prepare_spare().map_err(failed("making a segment"))?;
        if writer.spare.is_none() && newest.number + 1 == next_number {
            // A full disk must not keep seals and tails from being served: what is left of the newest segment is for them.
            writer.resume(newest);
        } else {
            // What was missing is written down as damage by the segment that the next manifest names.
            writer.manifest = Manifest::new(present);
            writer.roll(0).map_err(failed("beginning a segment"))?;
        }
        Ok(Self { logs, is_damaged: scan.is_damaged, writer })
    }

    /// The segments, to read from.
    #[must_use]
    pub fn segments(&self) -> Arc<Segments> {
        Arc::clone(&self.writer.segments)
    }

    /// Starts writing. Inside of a runtime, answers of its connections are written by the thread that writes.
    #[must_use]
    pub fn start(self, report: Report) -> Journal {
        let mut writer = self.writer;
        writer.runtime = Handle::try_current().ok();
        let journal = Journal {
            queue: Arc::clone(&writer.queue),
            segments: Arc::clone(&writer.segments),
            has_room: Arc::clone(&writer.has_room),
            disk: Arc::clone(&writer.disk),
            segment_len: writer.options.segment_len,
        };
        let thread = thread::Builder::new().name("journal".into());
        let last_word = LastWord(Arc::clone(&writer.queue));
        let run = move || {
            let _last_word = last_word;
            writer.run(&report);
        };
        thread.spawn(run).expect("the system has a thread");
        journal
    }
}

/// When the last spare segment was taken, what is queued must fit into it and leave enough: half is for frames, and half for
/// what the segment begins with and for the seals and releases of a full disk.
fn queue_len(options: &JournalOptions) -> usize {
    options.queue_len.min(usize::try_from(options.segment_len / 2).unwrap_or(usize::MAX))
}

/// A thread that ended by a bug must not leave everybody waiting.
struct LastWord(Arc<Queue>);

impl Drop for LastWord {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.ends.send_replace(Ends::Poisoned("the journal's thread panicked".into()));
        }
    }
}

impl Journal {
    /// Waits until these frames may be queued. Whether the disk has room for them is to be asked afterwards, and the permit
    /// goes with them: that is what keeps everything that is admitted within one segment.
    pub async fn room(&self, frames: &[LogFrame]) -> OwnedSemaphorePermit {
        self.queue.room(frames_span(frames)).await
    }

    /// Queues an entry. Entries of one session must come in the order of their tickets.
    pub fn push(&self, entry: Entry, is_awaited: bool, room: Option<OwnedSemaphorePermit>) {
        self.queue.push(entry, is_awaited, room);
    }

    /// Whether the disk has room for frames.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.has_room.load(Ordering::Acquire)
    }

    /// Whether the disk has room for these frames. What does not fit beside the rest of a segment gets a file of its own.
    #[must_use]
    pub fn has_room_for(&self, frames: &[LogFrame]) -> bool {
        let span = frames_span(frames) as u64;
        let has_place = || self.free_bytes().is_ok_and(|free| free >= span + 2 * self.segment_len);
        self.has_room() && (span <= self.segment_len / 4 * 3 || has_place())
    }

    /// Bytes that could still be taken.
    ///
    /// # Errors
    /// The disk's.
    pub fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    /// The segments, to read from.
    #[must_use]
    pub fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }

    /// Tells how it ends.
    #[must_use]
    pub fn ends(&self) -> watch::Receiver<Ends> {
        self.queue.ends.subscribe()
    }

    /// Has it end when everything that is queued is fsynced.
    pub fn close(&self) {
        self.queue.close();
    }
}

/// Without a manifest that can be read, whatever segments are there are read, and every session counts as damaged.
fn read_manifest(disk: &dyn Disk, scan: &mut Scan) -> Result<Manifest, JournalError> {
    let bytes = disk.read(MANIFEST).map_err(failed(format!("reading `{MANIFEST}`")))?;
    if let Some(manifest) = bytes.as_deref().and_then(Manifest::decode) {
        return Ok(manifest);
    }
    let names = disk.list().map_err(failed("listing the segments"))?;
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    if bytes.is_some() || !numbers.is_empty() {
        tracing::error!(
            "`{MANIFEST}` is missing or damaged: nothing that the journal holds counts as complete"
        );
        scan.is_damaged = true;
    }
    Ok(Manifest::new(numbers.into_iter().map(|number| SegmentRow { number, end: None }).collect()))
}

fn remove_leftovers(disk: &dyn Disk, manifest: &Manifest, segment_len: u64) -> Result<(), JournalError> {
    for name in disk.list().map_err(failed("listing the segments"))? {
        let is_unknown = segment_number(&name)
            .is_some_and(|number| manifest.segments.iter().all(|row| row.number != number));
        let is_short_spare = name == SPARE
            && disk.open(SPARE).and_then(|file| file.size()).map_err(failed("reading the spare segment"))?
                != segment_len;
        if is_unknown || is_short_spare {
            disk.remove(&name).map_err(failed(format!("removing `{name}`")))?;
        }
    }
    Ok(())
}

fn open_spare(disk: &dyn Disk) -> Result<Option<Arc<dyn DiskFile>>, JournalError> {
    let names = disk.list().map_err(failed("listing the segments"))?;
    let has_spare = names.iter().any(|name| name == SPARE);
    has_spare.then(|| disk.open(SPARE)).transpose().map_err(failed("opening the spare segment"))
}

/// Reads a segment, unless it is missing.
fn read_segment(
    disk: &dyn Disk,
    row: &mut SegmentRow,
    scan: &mut Scan,
    segments: &Segments,
) -> Result<Option<Arc<dyn DiskFile>>, JournalError> {
    let name = segment_name(row.number);
    let file = match disk.open(&name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            tracing::error!(
                segment = row.number,
                "a segment is missing: `{name}` was removed by somebody else"
            );
            scan.hole();
            return Ok(None);
        }
        Err(error) => return Err(failed(format!("opening `{name}`"))(error)),
    };
    // What a killed process wrote and did not fsync is read now, so it must be on the disk before it is told to anybody.
    let data = file.sync().and_then(|()| file.forget_cached()).and_then(|()| read_all(&*file));
    let data = data.map_err(failed(format!("reading `{name}`")))?;
    let end = scan.segment(row.number, &data, row.end);
    row.end = Some(row.end.unwrap_or(end));
    segments.add(row.number, Arc::clone(&file), true);
    Ok(Some(file))
}

fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut data =
        vec![0; usize::try_from(file.size()?).expect("segments are smaller than the address space")];
    file.read_at(0, &mut data)?;
    Ok(data)
}
