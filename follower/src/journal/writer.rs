//! The thread that writes. One batch is on its way at a time: the next is begun after the fsync of the one before, which
//! is what makes a valid batch a proof that everything before it was fsynced.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_core::follower::{LogReplay, Ticket};
use holdfast_rpc::deliver;
use holdfast_types::{Incarnation, NodeName, SessionId};
use tokio::runtime::Handle;

use super::batch::{BatchBuilder, places};
use super::disk::{Disk, DiskFile};
use super::format::{Entry, EntryBody};
use super::manifest::{MANIFEST, Manifest, SPARE, SegmentRow, segment_name};
use super::open::{BatchStats, JournalOptions};
use super::queue::{Completed, Ends, Queue, Queued, Taken};
use super::segments::Segments;

/// How long something that nobody waits for may wait for a batch to ride on.
const LAZY_MAX: Duration = Duration::from_secs(1);
/// Silence after which the last batch gets a mark behind it that says that it was fsynced. Until then, bit rot in it
/// could not be told from a torn write.
const IDLE_MAX: Duration = Duration::from_millis(200);
/// The part of a segment that marks leave alone on a full disk.
const MARKS_KEEP: u64 = 8;
/// Pause between attempts to get a segment from a full disk.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// Tells what is fsynced. Called from the writing thread; it must not block.
pub type Report = Box<dyn Fn(Completed) + Send>;

pub(super) struct Writer {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) queue: Arc<Queue>,
    pub(super) segments: Arc<Segments>,
    pub(super) has_room: Arc<AtomicBool>,
    pub(super) options: JournalOptions,
    pub(super) incarnation: Incarnation,
    pub(super) manifest: Manifest,
    pub(super) next_number: u32,
    /// What has been written of each session, for the first batch of the next segment.
    pub(super) written: HashMap<SessionId, (NodeName, LogReplay)>,
    pub(super) current: Current,
    /// An allocated segment: while there is one, frames are taken; without one, what is left is for seals.
    pub(super) spare: Option<Arc<dyn DiskFile>>,
    /// Whether the last batch is followed by a mark.
    pub(super) is_marked: bool,
    /// When a spare was last asked for.
    pub(super) last_try: Instant,
    /// Segments that nobody needs and whose files are still there.
    pub(super) dead: Vec<u32>,
    /// The runtime that the answers belong to; none where nobody is answered.
    pub(super) runtime: Option<Handle>,
}

/// The segment that is being written.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) number: u32,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) position: u64,
    pub(super) len: u64,
    pub(super) sequence: u64,
}

/// Before the first segment.
struct NoFile;

impl DiskFile for NoFile {
    fn size(&self) -> io::Result<u64> {
        Ok(0)
    }
    fn write_at(&self, _: u64, _: &[io::IoSlice<'_>]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Current {
    /// No segment: the first batch begins one.
    pub(super) fn none() -> Self {
        Self { number: 0, file: Arc::new(NoFile), position: 0, len: 0, sequence: 0 }
    }

    /// A segment that was read back, from its end on.
    pub(super) fn resumed(row: &SegmentRow, file: Arc<dyn DiskFile>) -> io::Result<Self> {
        let position = row.end.expect("a segment that was read has an end");
        // Any number but that of a first batch.
        Ok(Self { number: row.number, len: file.size()?, file, position, sequence: 1 })
    }
}

impl Writer {
    /// Writes until the queue is closed and empty, or until the first error.
    pub(super) fn run(mut self, report: &Report) {
        let runtime = self.runtime.clone();
        let _context = runtime.as_ref().map(Handle::enter);
        let end = match self.serve(report) {
            Ok(()) => Ends::Closed,
            Err(error) => Ends::Poisoned(error.to_string()),
        };
        self.has_room.store(false, Ordering::Release);
        self.queue.ends.send_replace(end);
    }

    fn serve(&mut self, report: &Report) -> io::Result<()> {
        loop {
            match self.queue.take(IDLE_MAX, LAZY_MAX) {
                Taken::Items(items) => self.batch(items, report)?,
                Taken::Idle => self.mark()?,
                Taken::Closed => return self.mark(),
            }
            self.sweep()?;
        }
    }

    fn batch(&mut self, items: Vec<Queued>, report: &Report) -> io::Result<()> {
        let mut builder = BatchBuilder::new();
        let relative: Vec<_> = items.iter().map(|item| builder.push(&item.entry)).collect();
        if self.current.position + builder.span() as u64 > self.current.len {
            self.roll(builder.span() as u64)?;
        }
        let (segment, begin) = (self.current.number, self.current.position);
        let span = builder.span();
        let fsync = self.write(builder)?;
        (self.options.on_batch)(BatchStats { entries: items.len(), bytes: span, fsync });
        let mut completed = BTreeMap::<SessionId, Completed>::new();
        for (item, relative) in items.iter().zip(&relative) {
            let Entry { session, ticket, body } = &item.entry;
            let done = completed.entry(*session).or_insert_with(|| Completed {
                session: *session,
                upto: Ticket::default(),
                frames: Vec::new(),
            });
            done.upto = *ticket;
            if let EntryBody::Frames(frames) = body {
                let places = places(segment, begin, relative);
                self.segments.retain(places.iter().copied());
                done.frames.push((frames.first().expect("an entry has frames").offset, places));
            }
            self.note(&item.entry);
        }
        let completed = completed.into_values();
        // Their room is there for others while answers are written.
        drop(items);
        if self.runtime.is_none() || self.queue.is_awaited() {
            completed.for_each(report);
        } else {
            // With nothing else to do, this thread writes the answers itself.
            deliver(|| completed.for_each(report));
        }
        Ok(())
    }

    /// Keeps the summary that the next segment begins with.
    fn note(&mut self, entry: &Entry) {
        let log_entry = entry.log_entry();
        let written = match &entry.body {
            EntryBody::Note { node, .. } => {
                self.written.entry(entry.session).or_insert_with(|| (node.clone(), LogReplay::default()))
            }
            EntryBody::Frames(_) => {
                self.written.get_mut(&entry.session).expect("frames come after an adoption")
            }
        };
        written.1.apply(entry.ticket, &log_entry);
        if written.1.is_forgotten() {
            self.written.remove(&entry.session);
        }
    }

    /// Writes a batch that fits and fsyncs it; gives the time of the fsync.
    fn write(&mut self, builder: BatchBuilder) -> io::Result<Duration> {
        let Current { number, file, position, sequence, .. } = &mut self.current;
        let (span, is_mark) = (builder.span() as u64, builder.is_mark());
        builder.write(&**file, (*number, *position), *sequence, self.incarnation)?;
        let begin = Instant::now();
        file.sync()?;
        *position += span;
        *sequence += 1;
        self.is_marked = is_mark;
        Ok(begin.elapsed())
    }

    fn mark(&mut self) -> io::Result<()> {
        let mark = BatchBuilder::new();
        // On a full disk what is left of the segment is for seals and releases.
        let kept = if self.spare.is_none() { self.options.segment_len / MARKS_KEEP } else { 0 };
        if self.is_marked || self.current.position + mark.span() as u64 + kept > self.current.len {
            return Ok(());
        }
        self.write(mark).map(|_| ())
    }

    /// Goes on in a new segment, which has room for a batch of `span` bytes and begins with all that is known. The manifest
    /// names it when that is fsynced: a crash before leaves things as they were.
    pub(super) fn roll(&mut self, span: u64) -> io::Result<()> {
        let mut first = BatchBuilder::new();
        for (session, (node, replay)) in &self.written {
            let (ticket, entry) = replay.carried();
            let body = EntryBody::Note { node: node.clone(), entry };
            first.push(&Entry { session: *session, ticket, body });
        }
        let number = self.next_number;
        self.next_number += 1;
        let (file, len) = self.allocate(number, first.span() as u64 + span)?;
        let next = Current { number, file: Arc::clone(&file), position: 0, len, sequence: 0 };
        let before = std::mem::replace(&mut self.current, next);
        self.write(first)?;
        if let Some(row) = self.manifest.segments.last_mut().filter(|row| row.end.is_none()) {
            row.end = Some(before.position);
        }
        self.manifest.segments.push(SegmentRow { number, end: None });
        while let Err(error) = self.disk.replace(MANIFEST, &self.manifest.encode()) {
            self.wait_for_space(error, "the list of segments")?;
        }
        self.segments.add(number, file, false);
        self.segments.close(before.number);
        self.prepare_spare()
    }

    /// Goes on where a segment ended. The manifest stays as it is: it names this segment as the one that is written.
    pub(super) fn resume(&mut self, newest: Current) {
        self.segments.reopen(newest.number);
        if let Some(row) = self.manifest.segments.last_mut() {
            row.end = None;
        }
        self.current = newest;
    }

    /// A file of at least `len` bytes for a new segment. On a full disk it waits.
    fn allocate(&mut self, number: u32, len: u64) -> io::Result<(Arc<dyn DiskFile>, u64)> {
        let name = segment_name(number);
        loop {
            if len <= self.options.segment_len
                && let Some(spare) = self.spare.take()
            {
                self.disk.rename(SPARE, &name)?;
                self.disk.sync_names()?;
                return Ok((spare, self.options.segment_len));
            }
            let len = len.max(self.options.segment_len);
            match self.disk.create(&name, len) {
                Ok(file) => {
                    self.disk.sync_names()?;
                    return Ok((file, len));
                }
                Err(error) => self.wait_for_space(error, "a segment")?,
            }
        }
    }

    /// Any other error than that of a full disk is the end.
    fn wait_for_space(&mut self, error: io::Error, what: &str) -> io::Result<()> {
        if !is_full(&error) {
            return Err(error);
        }
        self.has_room.store(false, Ordering::Release);
        tracing::error!(%error, "the disk has no room for {what}; nothing is written until there is");
        thread::sleep(FULL_PAUSE);
        self.sweep()
    }

    /// Allocates the next segment beforehand. Without one frames are refused, so that seals have the rest of this one.
    pub(super) fn prepare_spare(&mut self) -> io::Result<()> {
        if self.spare.is_none() {
            match self.disk.create(SPARE, self.options.segment_len) {
                Ok(file) => {
                    self.disk.sync_names()?;
                    self.spare = Some(file);
                }
                Err(error) if is_full(&error) => {
                    if self.has_room.load(Ordering::Acquire) {
                        tracing::error!(%error, "the disk is full; frames are refused, seals and reads go on");
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let had_room = self.has_room.swap(self.spare.is_some(), Ordering::AcqRel);
        if !had_room && self.spare.is_some() {
            tracing::info!("the disk has room for frames");
        }
        Ok(())
    }

    /// Gives up the segments that hold nothing retained: every later one begins with all else that they say.
    fn sweep(&mut self) -> io::Result<()> {
        let dead = self.segments.take_dead();
        let has_more = !dead.is_empty();
        self.dead.extend(dead);
        let is_due = self.last_try.elapsed() >= FULL_PAUSE;
        if has_more || (is_due && !self.dead.is_empty()) {
            self.last_try = Instant::now();
            self.bury()?;
        }
        if self.spare.is_none() && is_due {
            self.last_try = Instant::now();
            self.prepare_spare()?;
        }
        Ok(())
    }

    /// A full disk may have no room for the manifest without them: then they stay for another time.
    fn bury(&mut self) -> io::Result<()> {
        self.manifest.segments.retain(|row| !self.dead.contains(&row.number));
        match self.disk.replace(MANIFEST, &self.manifest.encode()) {
            Err(error) if is_full(&error) => {
                tracing::error!(%error, "the disk has no room for the list of segments; none is given up until it has");
                return Ok(());
            }
            replaced => replaced?,
        }
        for number in std::mem::take(&mut self.dead) {
            self.give_up(&segment_name(number))?;
        }
        self.disk.sync_names()
    }

    /// Its space is the next segment's, if there is none yet.
    fn give_up(&mut self, name: &str) -> io::Result<()> {
        if self.spare.is_none() {
            let file = self.disk.open(name)?;
            if file.size()? == self.options.segment_len {
                self.disk.rename(name, SPARE)?;
                self.spare = Some(file);
                self.has_room.store(true, Ordering::Release);
                return Ok(());
            }
        }
        self.disk.remove(name)
    }
}

/// Whether more space would have helped: the file system's, or what a quota leaves of it.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
