//! Finds the files that lead to a state of the past: drives the core's walk. What it finds is applied as any chain is.

use std::sync::Arc;

use holdfast_bucket::{Bucket, ByteRange};
use holdfast_core::compaction::ChainSize;
use holdfast_core::lineage::{FileSpan, Past, PastEffect, PastEvent};
use holdfast_core::retire::LastMark;
use holdfast_ltx::{HEADER_LEN, Header, PlannedFile};
use holdfast_records::Level;
use holdfast_types::{CellName, Epoch, Millis, Txid};

use super::chain::{plan_segment, read_openers};
use super::listing::{EpochListing, list_level};
use super::{DamageError, PlannedChain, RestoreError, key_of};

/// Finds the files that restore the state of the past which the walk looks for.
///
/// # Errors
/// [`RestoreError`]; that there is no such state, or not any more, is [`RestoreError::Past`].
pub async fn find_past(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    (mut past, mut effect): (Past, PastEffect),
) -> Result<PlannedChain, RestoreError> {
    let mut newest_first: Vec<(Epoch, PlannedFile)> = Vec::new();
    let mut listed = (Epoch::ZERO, Vec::new());
    loop {
        let event = match effect {
            PastEffect::ReadOpeners(epochs) => {
                PastEvent::OpenersRead(read_openers(bucket, cell, &epochs).await?)
            }
            PastEffect::ListFiles(epoch) => {
                listed = (epoch, list_epoch(EpochListing { bucket, cell, epoch }).await?);
                PastEvent::FilesListed(listed.1.iter().map(span).collect())
            }
            PastEffect::ReadTime(end) => match read_time(bucket, cell, &listed, end).await? {
                Some(time) => PastEvent::TimeRead(time),
                None => PastEvent::Missing,
            },
            PastEffect::PlanEpoch(segment) => match plan_segment(bucket, cell, segment).await {
                Ok(plan) => {
                    newest_first.extend(plan.files.into_iter().rev().map(|file| (segment.epoch, file)));
                    PastEvent::EpochPlanned(plan.start)
                }
                Err(RestoreError::Gap { .. }) => PastEvent::Missing,
                Err(error) => return Err(error),
            },
            PastEffect::Finish(end) => {
                newest_first.reverse();
                let size = ChainSize {
                    files: u64::try_from(newest_first.len()).unwrap_or(u64::MAX),
                    bytes: newest_first.iter().map(|(_, file)| file.len).sum(),
                };
                return Ok(PlannedChain {
                    files: newest_first,
                    end: Some(end),
                    starts_from_local: false,
                    kept: None,
                    mark: LastMark::default(),
                    size,
                });
            }
            PastEffect::Fail(source) => return Err(RestoreError::Past { cell: cell.clone(), source }),
        };
        effect = past.on(event);
    }
}

fn span(file: &PlannedFile) -> FileSpan {
    let is_snapshot = file.level == Level::Snapshot.number();
    FileSpan { first: (!is_snapshot).then_some(file.min), last: file.max }
}

async fn list_epoch(listing: EpochListing<'_>) -> Result<Vec<PlannedFile>, RestoreError> {
    // The last one is the least exact: a snapshot tells when it was made.
    let levels = [Level::Zero, Level::One, Level::Snapshot];
    let lists = levels.map(|level| list_level(listing, level, Txid::ZERO));
    Ok(futures::future::try_join_all(lists).await?.concat())
}

/// When the transaction was committed with which a listed file ends; none where the file has gone.
async fn read_time(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
    (epoch, files): &(Epoch, Vec<PlannedFile>),
    end: Txid,
) -> Result<Option<Millis>, RestoreError> {
    let file = files.iter().find(|file| file.max == end).expect("an end is a file's");
    let key = key_of(cell, *epoch, file);
    let range = ByteRange::Span { offset: 0, len: HEADER_LEN as u64 };
    let Some(object) = bucket.get_range(&key, range).await? else { return Ok(None) };
    let header = match <[u8; HEADER_LEN]>::try_from(&object.body[..]) {
        Ok(bytes) => Header::from_bytes(&bytes).map_err(|error| DamageError::Decode(error.into())),
        Err(_) => Err(DamageError::Io(std::io::ErrorKind::UnexpectedEof.into())),
    };
    match header {
        Ok(header) => Ok(Some(header.timestamp)),
        Err(source) => Err(RestoreError::Damaged { key, source }),
    }
}
