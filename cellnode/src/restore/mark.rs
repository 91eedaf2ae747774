//! The mark of what is retired of a cell's history, as a record and as the core sees it.

use std::sync::Arc;

use holdfast_bucket::{Bucket, BucketError, Version};
use holdfast_core::retire::{Kept, KeptEpoch, Mark, SnapshotAt};
use holdfast_records::{KeptRecord, Key, Record, RecordError, Retired, SnapshotRecord};
use holdfast_types::CellName;

/// Why the mark is not known.
#[derive(Debug, thiserror::Error)]
pub enum MarkReadError {
    /// The store failed. Disposition: retry.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The record is not one. Disposition: corrupt, or reject (too new).
    #[error("`{key}`: {source}")]
    Record {
        /// The object.
        key: String,
        /// What is wrong with it.
        source: RecordError,
    },
}

/// Reads the mark of a cell and its version; none where there is none.
///
/// # Errors
/// [`MarkReadError`].
pub(crate) async fn read_mark(
    bucket: &Arc<dyn Bucket>,
    cell: &CellName,
) -> Result<Option<(Mark, Version)>, MarkReadError> {
    let key = Key::Retired(cell.clone()).to_string();
    let Some(object) = bucket.get(&key).await? else { return Ok(None) };
    let record = Retired::decode(&object.body).map_err(|source| MarkReadError::Record { key, source })?;
    Ok(Some((mark_of(record), object.version)))
}

fn mark_of(record: Retired) -> Mark {
    let Retired { version: _, write_id, by, start, epochs, marked_ms, swept } = record;
    let start = start.map(|SnapshotRecord { epoch, txid, len }| SnapshotAt { epoch, txid, len });
    let epochs = epochs.into_iter().map(|KeptRecord { epoch, upto }| KeptEpoch { epoch, upto });
    Mark { write_id, by, kept: Kept { start, epochs: epochs.collect() }, marked_ms, is_swept: swept }
}

/// The record of a mark.
pub(crate) fn record_of(mark: &Mark) -> Retired {
    let Mark { write_id, by, kept: Kept { start, epochs }, marked_ms, is_swept } = mark;
    let start = start.map(|SnapshotAt { epoch, txid, len }| SnapshotRecord { epoch, txid, len });
    let epochs = epochs.iter().map(|KeptEpoch { epoch, upto }| KeptRecord { epoch: *epoch, upto: *upto });
    Retired {
        version: Retired::VERSION,
        write_id: *write_id,
        by: *by,
        start,
        epochs: epochs.collect(),
        marked_ms: *marked_ms,
        swept: *is_swept,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_types::{Epoch, Millis, Txid, WriteId};

    use super::*;

    #[test]
    fn a_mark_and_its_record_say_the_same() {
        let mark = Mark {
            write_id: WriteId::from_bits(7),
            by: Epoch::new(9),
            kept: Kept {
                start: Some(SnapshotAt { epoch: Epoch::new(4), txid: Txid::new(50), len: 99 }),
                epochs: vec![KeptEpoch { epoch: Epoch::new(4), upto: Txid::new(60) }],
            },
            marked_ms: Millis::new(5),
            is_swept: true,
        };
        assert_eq!(mark_of(record_of(&mark)), mark);
    }
}
