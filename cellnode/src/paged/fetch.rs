//! Reads one range of one object of the chain and takes its pages out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_bucket::{BucketError, ByteRange, ErrorKind};
use holdfast_ltx::{DecodeError, PageMap, PageRun, decode_frame};
use holdfast_sql::PageFailure;
use holdfast_telemetry::{PageUse, metrics};

use super::database::{MappedObject, PagedDatabase, Stored};
use crate::backoff::Backoff;
use crate::blocking::blocking;
use crate::patience::in_time;

/// Tries of one range. Few: a thread waits, and whoever asked may ask again.
const ATTEMPTS: u32 = 3;
/// Between them: 100 ms, 200 ms.
const PAUSES: Backoff = Backoff::new(100, 1);

/// Why an object of the chain is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum LostError {
    /// It was deleted.
    #[error("the object is gone")]
    Gone,
    /// It was written anew.
    #[error("the object is another one than when the cell was opened")]
    Overwritten,
    /// It does not have what its index says.
    #[error(transparent)]
    Damaged(#[from] DecodeError),
    /// The index that was read is not the one that its sum vouches for.
    #[error("the object's page index is not that of its pages")]
    Index,
    /// A page is another one than when it was read before.
    #[error("page {0} is another one than when it was read before")]
    Differs(u32),
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The store failed. Disposition: retry.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The local disk. Disposition: retry once there is space.
    #[error("the local file cannot be written: {0}")]
    Local(#[from] std::io::Error),
    /// Disposition: discard, and make another plan.
    #[error(transparent)]
    Lost(#[from] LostError),
}

/// Brings the pages of a run into the file.
///
/// # Errors
/// [`PageFailure`]. Where the object is of no use, the whole file is lost.
pub(super) async fn fetch(
    database: &Arc<PagedDatabase>,
    run: PageRun,
    map: Arc<PageMap>,
) -> Result<(), PageFailure> {
    let object = &database.objects[run.file];
    let mut attempt = 1;
    let error = loop {
        match read(database, object, run, &map).await {
            Ok(()) => return Ok(()),
            // A damaged range may be the transport's: it is read again before the object is given up.
            Err(error) if attempt < ATTEMPTS && may_help(&error) => {
                tracing::debug!(cell = %database.cell, key = object.key, attempt, %error, "a fetch is tried again");
                PAUSES.pause(attempt - 1).await;
                attempt += 1;
            }
            Err(error) => break error,
        }
    };
    let is_lost = matches!(error, ReadError::Lost(_));
    let advice = if is_lost { "the cell is restored anew; try again" } else { "try again" };
    let message = format!(
        "page {} of cell `{}` could not be fetched from `{}`: {error}; {advice}",
        run.first, database.cell, object.key
    );
    if is_lost {
        database.lose(&message);
    }
    Err(PageFailure { message, is_lost })
}

fn may_help(error: &ReadError) -> bool {
    match error {
        ReadError::Bucket(error) => error.kind.is_transient(),
        ReadError::Local(_) => false,
        ReadError::Lost(error) => matches!(error, LostError::Damaged(_)),
    }
}

async fn read(
    database: &Arc<PagedDatabase>,
    object: &MappedObject,
    run: PageRun,
    map: &Arc<PageMap>,
) -> Result<(), ReadError> {
    let range = ByteRange::Span { offset: run.offset, len: run.len };
    let get = database.bucket.get_range(&object.key, range);
    let found = in_time(("get_range", &object.key), run.len, get).await?.ok_or(LostError::Gone)?;
    if found.version != object.version {
        return Err(LostError::Overwritten.into());
    }
    if found.body.len() as u64 != run.len {
        let detail = format!("{} bytes came where {} were asked for", found.body.len(), run.len);
        return Err(BucketError::new("get_range", &object.key, ErrorKind::BadBody, detail).into());
    }
    metrics().paged_bytes(PageUse::Demand, run.len);
    let (database, map) = (Arc::clone(database), Arc::clone(map));
    blocking(move || take_out(&database, run, &map, &found.body)).await
}

fn take_out(database: &PagedDatabase, run: PageRun, map: &PageMap, body: &Bytes) -> Result<(), ReadError> {
    let mut page = vec![0; map.page_size().bytes()];
    let (mut at, mut new) = (0, 0);
    for pgno in run.first..=run.last {
        let len = map.place(pgno).map_or(0, |place| place.len as usize);
        let frame = &body[at..at + len];
        at += len;
        decode_frame(map.page_size(), pgno, frame, &mut page).map_err(LostError::from)?;
        new += u64::from(matches!(database.store(pgno, &page, &mut Vec::new())?, Stored::New));
    }
    metrics().paged_pages(PageUse::Demand, new);
    Ok(())
}

/// How long to wait before the background tries again.
pub(super) const FILL_PAUSES: Backoff = Backoff::new(1_000, 5);
/// Longest silence of a body that the background reads.
pub(super) const STALL: Duration = Duration::from_secs(15);
