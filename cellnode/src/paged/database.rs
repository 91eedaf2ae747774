//! The file of one large cell: which of its pages are there, and who may write them. One lock orders what comes from the
//! bucket and what SQLite writes: nothing from the bucket ever replaces what SQLite has written.

use std::fs::File;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_bucket::{Bucket, Version};
use holdfast_core::paged::{Filling, ReadAhead, Standing};
use holdfast_ltx::{PageMap, PageRun};
use holdfast_sql::{PageFailure, PageSource};
use holdfast_telemetry::{Outcome, metrics};
use holdfast_types::CellName;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::Paging;
use super::bits::Bits;
use super::fetch::fetch;

/// Pages that one fetch may bring, by their size in the database: what compresses well must not become a burst of writes.
const RUN_BYTES_MAX: u64 = 4 << 20;

/// An object of the chain.
#[derive(Debug)]
pub(super) struct MappedObject {
    pub(super) key: String,
    pub(super) len: u64,
    /// The version whose index the map is made of. Another one is another object.
    pub(super) version: Version,
}

/// What a file is made of.
pub(super) struct Parts {
    pub(super) cell: CellName,
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) runtime: Handle,
    pub(super) paging: Arc<Paging>,
    pub(super) file: File,
    pub(super) objects: Vec<MappedObject>,
    pub(super) map: PageMap,
    pub(super) memory: OwnedSemaphorePermit,
}

/// What is known of the pages while some are missing.
pub(super) struct Pages {
    pub(super) map: Arc<PageMap>,
    /// In the file, or gone from it.
    present: Bits,
    /// Of those: written by SQLite, or gone.
    written: Bits,
    _memory: OwnedSemaphorePermit,
}

impl Pages {
    /// Whether the page is to come from the bucket.
    fn is_missing(&self, pgno: u32) -> bool {
        !self.present.get(pgno) && self.map.place(pgno).is_some()
    }
}

struct State {
    /// None once the file is whole or of no use.
    pages: Option<Pages>,
    ahead: ReadAhead,
    filling: Filling,
    lost: Option<String>,
}

/// The file of a large cell.
pub(crate) struct PagedDatabase {
    pub(super) cell: CellName,
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) objects: Vec<MappedObject>,
    /// How many pages of the database each object holds.
    pub(super) held: Vec<u32>,
    pub(super) paging: Arc<Paging>,
    runtime: Handle,
    file: File,
    page_len: u64,
    state: Mutex<State>,
    /// So that a file that is whole costs no lock.
    is_whole: AtomicBool,
    closed: watch::Sender<bool>,
}

impl std::fmt::Debug for PagedDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagedDatabase")
            .field("cell", &self.cell)
            .field("is_whole", &self.is_whole)
            .finish_non_exhaustive()
    }
}

/// What became of a page from the bucket.
pub(super) enum Stored {
    /// It came into the file.
    New,
    /// It, or a newer one, was there.
    Known,
    /// Another page was there from the same object.
    Differs,
}

impl PagedDatabase {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let Parts { cell, bucket, runtime, paging, file, objects, map, memory } = parts;
        let held = map.pages_by_file();
        let filling = Filling::new((0..held.len()).filter(|object| held[*object] > 0));
        let (pages, page_len) = (map.pages(), u64::from(map.page_size().get()));
        let bits = || Bits::new(pages);
        let pages = Pages { map: Arc::new(map), present: bits(), written: bits(), _memory: memory };
        let state = State { pages: Some(pages), ahead: ReadAhead::default(), filling, lost: None };
        metrics().paged_unfinished_changed(1);
        let database = Self {
            cell,
            bucket,
            objects,
            held,
            paging,
            runtime,
            file,
            page_len,
            state: Mutex::new(state),
            is_whole: AtomicBool::new(false),
            closed: watch::Sender::new(false),
        };
        database.settle();
        Arc::new(database)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every step leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file is what a restore of everything would have made, and what was written since.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
    }

    /// Whether objects of the chain that the cell was opened from may still be read: none of them may be deleted.
    pub(crate) fn reads_chain(&self) -> bool {
        self.lock().pages.is_some() && !*self.closed.borrow()
    }

    /// Tells when the engine has closed the file.
    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }

    /// The object that is to be read next, with the map; none once there is nothing to do.
    pub(super) fn next_object(&self) -> Option<(usize, Arc<PageMap>)> {
        let state = self.lock();
        Some((state.filling.next()?, Arc::clone(&state.pages.as_ref()?.map)))
    }

    /// An object was read to its end and its sum holds.
    pub(super) fn verified(&self, object: usize) {
        self.lock().filling.verified(object);
        self.settle();
    }

    /// An object is gone or damaged: nothing of the file may be used any more.
    pub(super) fn lose(&self, reason: &str) {
        {
            let mut state = self.lock();
            state.filling.lost();
            if state.lost.replace(reason.to_owned()).is_some() {
                return;
            }
        }
        tracing::warn!(cell = %self.cell, reason, "a large cell cannot go on from its chain");
        self.paging.distrust(&self.cell);
    }

    /// Frees what only a file with holes needs.
    fn settle(&self) {
        let mut state = self.lock();
        let is_open = state.pages.is_some();
        let is_whole = state.filling.standing() == Standing::Whole;
        if !is_open || !(is_whole || *self.closed.borrow()) {
            return;
        }
        if is_whole {
            let pages = state.pages.as_ref().expect("looked at above");
            let missing = (1..=pages.map.pages()).find(|pgno| pages.is_missing(*pgno));
            // INV-CHAIN-1: every object that has a page was read to its end.
            assert_eq!(missing, None, "a file is whole only when no page is missing");
            self.is_whole.store(true, Ordering::Release);
        }
        state.pages = None;
        metrics().paged_unfinished_changed(-1);
    }

    /// The first of these pages that is missing, with those after it that are read with it.
    fn next_run(&self, wanted: RangeInclusive<u32>) -> Result<Option<(PageRun, Arc<PageMap>)>, PageFailure> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(reason) = &state.lost {
            return Err(PageFailure { message: reason.clone(), is_lost: true });
        }
        let Some(pages) = &state.pages else { return Ok(None) };
        let Some(first) = wanted.into_iter().find(|pgno| pages.is_missing(*pgno)) else { return Ok(None) };
        let len_max = state.ahead.missed(first);
        let pages_max = u32::try_from(RUN_BYTES_MAX / self.page_len).expect("a few thousand");
        let is_wanted = |pgno: u32| pgno - first < pages_max && pages.is_missing(pgno);
        let run = pages.map.run(first, len_max, is_wanted).expect("a missing page has a place");
        state.ahead.read_to(run.last);
        Ok(Some((run, Arc::clone(&pages.map))))
    }

    /// Puts a page from the bucket into the file, unless it is there.
    pub(super) fn store(&self, pgno: u32, page: &[u8], compare: &mut Vec<u8>) -> std::io::Result<Stored> {
        let mut state = self.lock();
        let Some(pages) = state.pages.as_mut() else { return Ok(Stored::Known) };
        let offset = u64::from(pgno - 1) * self.page_len;
        if pages.is_missing(pgno) {
            self.file.write_all_at(page, offset)?;
            pages.present.set(pgno);
            return Ok(Stored::New);
        }
        if pages.written.get(pgno) || compare.is_empty() {
            return Ok(Stored::Known);
        }
        self.file.read_exact_at(compare, offset)?;
        Ok(if compare == page { Stored::Known } else { Stored::Differs })
    }

    /// Brings these pages into the file, with those that are read with them.
    ///
    /// # Errors
    /// [`PageFailure`].
    pub(super) async fn bring(self: &Arc<Self>, wanted: RangeInclusive<u32>) -> Result<(), PageFailure> {
        while let Some((run, map)) = self.next_run(wanted.clone())? {
            fetch(self, run, map).await?;
        }
        Ok(())
    }

    /// Has the I/O runtime bring the pages, and waits for that on this thread.
    fn bring_within(
        self: &Arc<Self>,
        wanted: RangeInclusive<u32>,
        patience: Duration,
    ) -> Result<(), PageFailure> {
        let (first, waiting, begun) = (*wanted.start(), self.paging.wait(), Instant::now());
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let database = Arc::clone(self);
        // Goes on when nobody waits any more: the next try then finds the pages.
        self.runtime.spawn(async move { answer.send(database.bring(wanted).await) });
        let brought = answered.recv_timeout(patience).unwrap_or_else(|_| {
            let message = format!(
                "page {first} of cell `{}` could not be fetched: no answer within {} ms; try again",
                self.cell,
                patience.as_millis()
            );
            Err(PageFailure { message, is_lost: false })
        });
        drop(waiting);
        let outcome = if brought.is_ok() { Outcome::Ok } else { Outcome::Failed };
        metrics().paged_fetch(outcome, begun.elapsed());
        brought
    }

    /// The pages that hold these bytes, whole or in part.
    fn pages_of(&self, offset: u64, len: u64) -> RangeInclusive<u32> {
        let page = |byte: u64| u32::try_from(byte / self.page_len + 1).unwrap_or(u32::MAX);
        page(offset)..=page((offset + len).saturating_sub(1))
    }
}

impl Drop for PagedDatabase {
    fn drop(&mut self) {
        // It was never opened.
        if self.lock().pages.take().is_some() {
            metrics().paged_unfinished_changed(-1);
        }
    }
}

/// The source of an engine's missing pages.
#[derive(Clone, Debug)]
pub(crate) struct Source(pub(crate) Arc<PagedDatabase>);

impl PageSource for Source {
    fn need(&self, offset: u64, len: u64, patience: Duration) -> Result<(), PageFailure> {
        let Self(database) = self;
        if database.is_whole() {
            return Ok(());
        }
        let wanted = database.pages_of(offset, len);
        {
            let state = database.lock();
            if state.lost.is_none() {
                let Some(pages) = &state.pages else { return Ok(()) };
                if !wanted.clone().any(|pgno| pages.is_missing(pgno)) {
                    return Ok(());
                }
            }
        }
        database.bring_within(wanted, patience)
    }

    fn write(&self, offset: u64, len: u64, write: &mut dyn FnMut() -> bool) -> Result<(), PageFailure> {
        let Self(database) = self;
        if database.is_whole() {
            write();
            return Ok(());
        }
        let mut state = database.lock();
        let Some(pages) = state.pages.as_mut() else {
            write();
            return Ok(());
        };
        let wanted = database.pages_of(offset, len);
        let is_of_pages = offset.is_multiple_of(database.page_len) && len.is_multiple_of(database.page_len);
        if !is_of_pages && let Some(pgno) = wanted.clone().find(|pgno| pages.is_missing(*pgno)) {
            let message = format!("page {pgno} of cell `{}` is missing and written in part", database.cell);
            return Err(PageFailure { message, is_lost: true });
        }
        if write() {
            for pgno in wanted {
                pages.present.set(pgno);
                pages.written.set(pgno);
            }
        }
        Ok(())
    }

    fn truncate(&self, len: u64, truncate: &mut dyn FnMut() -> bool) {
        let Self(database) = self;
        let mut state = database.lock();
        if truncate()
            && let Some(pages) = state.pages.as_mut()
        {
            let kept = u32::try_from(len.div_ceil(database.page_len)).unwrap_or(u32::MAX);
            for pgno in kept.saturating_add(1)..=pages.map.pages() {
                pages.present.set(pgno);
                pages.written.set(pgno);
            }
        }
    }

    fn closed(&self) {
        self.0.closed.send_replace(true);
        self.0.settle();
    }
}
