//! Fills the file in the background: reads each object that holds a page from its beginning to its end, so that its sum is
//! verified. A few files of a node at a time, at a bounded rate, and not while a statement of any cell waits for a page. It
//! ends with the engine, with the file whole, or with the cell discarded because an object is gone or damaged.

use std::io::{self, BufReader, Read};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use holdfast_bucket::{BucketError, ByteRange, ErrorKind};
use holdfast_core::gate::GateEvent;
use holdfast_ltx::{DecodeError, Decoder, PageMap};
use holdfast_telemetry::{PageUse, metrics};
use tokio::sync::mpsc;

use super::database::{PagedDatabase, Stored};
use super::fetch::{FILL_PAUSES, LostError, ReadError, STALL};
use crate::cells::Resident;
use crate::node::Node;

/// Pieces of a body that may wait for the thread that takes the pages out.
const PIECES: usize = 4;
/// Times that a body may break without getting any further.
const BREAKS: u32 = 3;

/// Fills a resident cell's file.
pub(crate) fn spawn(node: &Arc<Node>, resident: &Arc<Resident>, database: Arc<PagedDatabase>) {
    let resident = Arc::downgrade(resident);
    node.runtime.spawn(async move {
        let mut closing = database.closing();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closed| *closed) => {}
            () = fill(&database, &resident) => {}
        }
    });
}

async fn fill(database: &Arc<PagedDatabase>, resident: &Weak<Resident>) {
    let begun = Instant::now();
    let mut failures = 0;
    let _lane = database.paging.fills.acquire().await.expect("the semaphore is never closed");
    while let Some((object, map)) = database.next_object() {
        match fill_object(database, object, map).await {
            Ok(()) => {
                failures = 0;
                database.verified(object);
            }
            Err(ReadError::Lost(error)) => {
                let key = &database.objects[object].key;
                database.lose(&format!(
                    "cell `{}` was opened from `{key}`: {error}; the cell is restored anew; try again",
                    database.cell
                ));
                if let Some(resident) = resident.upgrade() {
                    resident.on(GateEvent::DatabaseFailed);
                }
                return;
            }
            Err(error) => {
                tracing::warn!(cell = %database.cell, %error, failures, "filling a large cell's file failed; it is tried again");
                FILL_PAUSES.pause(failures).await;
                failures += 1;
            }
        }
    }
    tracing::debug!(cell = %database.cell, is_whole = database.is_whole(), took = ?begun.elapsed(), "a large cell's file is filled");
}

async fn fill_object(
    database: &Arc<PagedDatabase>,
    object: usize,
    map: Arc<PageMap>,
) -> Result<(), ReadError> {
    let (pieces, reader) = mpsc::channel(PIECES);
    let target = Arc::clone(database);
    let applying = tokio::task::spawn_blocking(move || {
        apply(&target, object, &map, PieceReader { pieces: reader, piece: Bytes::new() })
    });
    let downloaded = download(database, object, pieces).await;
    let applied = match applying.await {
        Ok(applied) => applied,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    };
    match (downloaded, applied) {
        (Ok(()), applied) => applied,
        // The file was cut by the failure.
        (Err(error), Err(ReadError::Lost(LostError::Damaged(DecodeError::Truncated { .. }))) | Ok(())) => {
            Err(error)
        }
        (Err(_), Err(applied)) => Err(applied),
    }
}

/// Sends the object's bytes, resumed where the body breaks.
async fn download(
    database: &Arc<PagedDatabase>,
    object: usize,
    pieces: mpsc::Sender<Bytes>,
) -> Result<(), ReadError> {
    let object = &database.objects[object];
    let (mut received, mut breaks) = (0, 0);
    let mut pace = Pace { next: Instant::now(), rate: database.paging.fill_rate };
    let mut waiting = database.paging.waiting.subscribe();
    while received < object.len {
        let range = Some(ByteRange::From { offset: received });
        let found = database.bucket.get_stream(&object.key, range).await?.ok_or(LostError::Gone)?;
        if found.version != object.version || found.object_len != object.len {
            return Err(LostError::Overwritten.into());
        }
        let mut stream = found.stream;
        let broken = loop {
            let _ = waiting.wait_for(|waiting| *waiting == 0).await;
            let piece = match tokio::time::timeout(STALL, stream.next()).await {
                Ok(Some(Ok(piece))) => piece,
                Ok(Some(Err(error))) => break error,
                Ok(None) => break broken(&object.key, "the body ended early"),
                Err(_) => break broken(&object.key, "the body stalled"),
            };
            received += piece.len() as u64;
            breaks = 0;
            metrics().paged_bytes(PageUse::Fill, piece.len() as u64);
            pace.keep(piece.len() as u64).await;
            // Whoever takes the pages out has met something that ends it.
            if pieces.send(piece).await.is_err() || received >= object.len {
                return Ok(());
            }
        };
        breaks += 1;
        if breaks >= BREAKS || !broken.kind.is_transient() {
            return Err(broken.into());
        }
    }
    Ok(())
}

fn broken(key: &str, detail: &str) -> BucketError {
    BucketError::new("get_stream", key, ErrorKind::BadBody, detail)
}

/// Keeps to a rate, also after a pause: what was not read then is not read faster now.
struct Pace {
    /// When the next piece is due.
    next: Instant,
    /// Bytes a second.
    rate: u64,
}

impl Pace {
    async fn keep(&mut self, bytes: u64) {
        let now = Instant::now();
        self.next = self.next.max(now) + Duration::from_secs_f64(bytes as f64 / self.rate as f64);
        let ahead = self.next - now;
        // A timer is a millisecond: shorter pauses add up to the next.
        if ahead > Duration::from_millis(2) {
            tokio::time::sleep(ahead).await;
        }
    }
}

/// Takes the pages of one object out that the map has there, and verifies all of it. Blocks.
fn apply(
    database: &PagedDatabase,
    object: usize,
    map: &PageMap,
    reader: PieceReader,
) -> Result<(), ReadError> {
    let damaged = |error| match error {
        DecodeError::Io(error) => ReadError::Local(error),
        error => LostError::Damaged(error).into(),
    };
    let mut decoder = Decoder::new(BufReader::with_capacity(128 << 10, reader)).map_err(damaged)?;
    if *decoder.header() != map.files()[object] {
        return Err(LostError::Overwritten.into());
    }
    let mut page = vec![0; map.page_size().bytes()];
    let mut compare = page.clone();
    let (mut new, mut held) = (0, 0);
    while let Some(pgno) = decoder.next_page(&mut page).map_err(damaged)? {
        let is_here =
            map.place(pgno).is_some_and(|place| place.file == object && place.offset == decoder.frame_at());
        if !is_here {
            continue;
        }
        held += 1;
        match database.store(pgno, &page, &mut compare)? {
            Stored::New => new += 1,
            Stored::Known => {}
            Stored::Differs => return Err(LostError::Differs(pgno).into()),
        }
    }
    decoder.finish().map_err(damaged)?;
    if held != database.held[object] {
        return Err(LostError::Index.into());
    }
    metrics().paged_pages(PageUse::Fill, new);
    Ok(())
}

/// What a download sends, as a reader. Ends where the sender goes away.
struct PieceReader {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let len = buffer.len().min(self.piece.len());
        buffer[..len].copy_from_slice(&self.piece.split_to(len));
        Ok(len)
    }
}
