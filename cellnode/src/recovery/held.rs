//! What a cell's prefix holds already. An optimisation where a tail is whole, for uploads are idempotent; a condition
//! after a declared loss, for a chain with a gap restores nothing.

use std::sync::Arc;

use holdfast_bucket::{Bucket, BucketError};
use holdfast_ltx::PlannedFile;
use holdfast_records::{Key, Level, Opener, Record};
use holdfast_types::{CellName, Epoch, Position, Txid};

use crate::restore::{EpochListing, MarkReadError, list_level, list_level_zero, read_mark};

/// The transactions of one epoch that level 0 lists, from one of them on.
pub(super) async fn listed(
    bucket: &Arc<dyn Bucket>,
    (cell, epoch): (&CellName, Epoch),
    from: Txid,
) -> Result<Vec<PlannedFile>, BucketError> {
    list_level_zero(EpochListing { bucket, cell, epoch }, from).await
}

/// Whether a restore can reach the transaction right before `first` in this epoch.
pub(super) async fn reaches(
    bucket: &Arc<dyn Bucket>,
    (cell, epoch): (&CellName, Epoch),
    first: Txid,
) -> Result<bool, BucketError> {
    let Some(before) = first.previous().filter(|before| *before != Txid::ZERO) else { return Ok(true) };
    let listing = EpochListing { bucket, cell, epoch };
    let opener = Key::Opener(cell.clone(), epoch).to_string();
    let (zeros, ones, snapshots, opener, start) = tokio::try_join!(
        list_level_zero(listing, before),
        list_level(listing, Level::One, Txid::ZERO),
        list_level(listing, Level::Snapshot, Txid::ZERO),
        bucket.get(&opener),
        retired_upto(bucket, cell, epoch),
    )?;
    let base = opener.and_then(|object| Opener::decode(&object.body).ok()?.base).map(Position::from);
    let mut files = zeros.iter().chain(&ones).chain(&snapshots);
    // What ends before the snapshot that restores begin with may be gone, and the snapshot missing from an old listing.
    Ok(start.is_some_and(|start| start >= before)
        || base.is_some_and(|base| base.txid == before)
        || files.any(|file| file.min <= before && before <= file.max))
}

/// Up to where a snapshot has taken the place of an epoch's files.
async fn retired_upto(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    epoch: Epoch,
) -> Result<Option<Txid>, BucketError> {
    let mark = match read_mark(bucket, cell).await {
        Ok(mark) => mark,
        Err(MarkReadError::Bucket(error)) => return Err(error),
        Err(error @ MarkReadError::Record { .. }) => {
            tracing::warn!(%cell, %error, "what is retired of a cell's history is not known");
            None
        }
    };
    let start = mark.and_then(|(mark, _)| mark.kept.start).filter(|start| start.epoch == epoch);
    Ok(start.map(|start| start.txid))
}
