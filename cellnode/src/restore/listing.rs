//! What the bucket lists of one epoch. Objects with other names are not ours to judge and are passed over.

use std::sync::Arc;

use holdfast_bucket::{Bucket, BucketError};
use holdfast_core::pieces::{PIECE_TXIDS_MAX, pieces_holding};
use holdfast_ltx::PlannedFile;
use holdfast_records::{Key, Level, level_prefix};
use holdfast_types::{CellName, Epoch, Txid};

/// Rows asked for at once.
const PAGE: usize = 1_000;

/// Whose files.
#[derive(Clone, Copy)]
pub(crate) struct EpochListing<'a> {
    pub(crate) bucket: &'a Arc<dyn Bucket>,
    pub(crate) cell: &'a CellName,
    pub(crate) epoch: Epoch,
}

/// The files of a level whose first transaction is `from` or later, to the end of the listing.
pub(crate) async fn list_level(
    listing: EpochListing<'_>,
    level: Level,
    from: Txid,
) -> Result<Vec<PlannedFile>, BucketError> {
    Ok(list_pages(listing, level, from, usize::MAX).await?.0)
}

/// The first page of [`list_level`]; none where there are more.
pub(crate) async fn list_short_level(
    listing: EpochListing<'_>,
    level: Level,
    from: Txid,
) -> Result<Option<Vec<PlannedFile>>, BucketError> {
    let (files, is_complete) = list_pages(listing, level, from, 1).await?;
    Ok(is_complete.then_some(files))
}

async fn list_pages(
    EpochListing { bucket, cell, epoch }: EpochListing<'_>,
    level: Level,
    from: Txid,
    pages_max: usize,
) -> Result<(Vec<PlannedFile>, bool), BucketError> {
    let prefix = level_prefix(cell, epoch, level);
    // Sorts right before every key that begins with this number.
    let mut after = format!("{prefix}{}", from.to_hex());
    let mut files = Vec::new();
    for _ in 0..pages_max {
        let page = bucket.list(&prefix, Some(&after), PAGE).await?;
        files.extend(page.objects.iter().filter_map(|object| match Key::parse(&object.key) {
            Ok(Key::Ltx { level, min, max, .. }) => {
                Some(PlannedFile { level: level.number(), min, max, len: object.len })
            }
            _ => None,
        }));
        match page.next {
            Some(next) => after = next,
            None => return Ok((files, true)),
        }
    }
    Ok((files, false))
}

/// The level-0 files that hold transactions from `from` on.
pub(crate) async fn list_level_zero(
    listing: EpochListing<'_>,
    from: Txid,
) -> Result<Vec<PlannedFile>, BucketError> {
    // A file that begins before `from` may reach beyond it.
    let first = Txid::new(from.get().saturating_sub(PIECE_TXIDS_MAX - 1).max(1));
    let mut files = list_level(listing, Level::Zero, first).await?;
    files.retain(|file| file.max >= from);
    Ok(files)
}

/// The longest level-0 object that holds a transaction and ends at `clip` or before, asked for directly. Whoever cut it, it
/// has one of a few keys.
pub(crate) async fn head_level_zero(
    EpochListing { bucket, cell, epoch }: EpochListing<'_>,
    txid: Txid,
    clip: Option<Txid>,
) -> Result<Option<PlannedFile>, BucketError> {
    let usable = pieces_holding(txid).into_iter().filter(|(_, max)| clip.is_none_or(|clip| *max <= clip));
    let heads = usable.map(|(min, max)| async move {
        let key = Key::Ltx { cell: cell.clone(), epoch, level: Level::Zero, min, max };
        let head = bucket.head(&key.to_string()).await?;
        Ok::<_, BucketError>(head.map(|head| PlannedFile { level: 0, min, max, len: head.len }))
    });
    Ok(futures::future::try_join_all(heads).await?.into_iter().flatten().next())
}
