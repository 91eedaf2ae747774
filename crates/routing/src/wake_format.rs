//! The format of the alarm index: what every program that writes or reads it must know before it does.

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError, Guard, Settled, settle_put_if};
use holdfast_records::{Key, Record, RecordError, WakeFormat};
use holdfast_types::WriteId;

/// Shards of an index that nobody has divided otherwise.
pub const WAKE_SHARDS: u16 = 8;
/// How long its creation may take, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Reads and creations before a race or a fault is told.
const ROUNDS_MAX: u32 = 5;
/// Between them, times the round.
const PAUSE_MS: u64 = 100;

/// Why a program must not use the index.
#[derive(Debug, thiserror::Error)]
pub enum WakeFormatError {
    /// The bucket did not answer. Disposition: retry.
    #[error("cannot read or create `wake/format.json`: {0}")]
    Bucket(#[from] BucketError),
    /// Of a newer release, or damaged. Disposition: reject, or corrupt.
    #[error("`wake/format.json`: {0}")]
    Record(#[from] RecordError),
    /// It divides the cells into no shards. Disposition: corrupt.
    #[error("`wake/format.json` says that there are 0 shards; at least one is needed: restore the record")]
    NoShards,
    /// Somebody deletes it all the time. Disposition: retry.
    #[error("`wake/format.json` could neither be created nor read in {ROUNDS_MAX} rounds")]
    Unsettled,
}

/// The index's format; made with so many shards where there is none yet.
///
/// # Errors
/// [`WakeFormatError`]: the program must not start.
pub async fn wake_format(
    bucket: &dyn Bucket,
    shards: u16,
    write_id: WriteId,
) -> Result<WakeFormat, WakeFormatError> {
    let key = Key::WakeFormat.to_string();
    let mine = WakeFormat { version: WakeFormat::VERSION, write_id, shards: shards.max(1) };
    for round in 1..=ROUNDS_MAX {
        match bucket.get(&key).await {
            Ok(Some(object)) => {
                let found = WakeFormat::decode(&object.body)?;
                return if found.shards == 0 { Err(WakeFormatError::NoShards) } else { Ok(found) };
            }
            Ok(None) => {
                let body = Bytes::from(mine.encode());
                let is_mine = |body: &[u8]| WakeFormat::decode(body).is_ok_and(|found| found == mine);
                match settle_put_if(bucket, &key, body, Guard::Absent, is_mine, WRITE_DEADLINE_MS).await {
                    Settled::Applied(_) => return Ok(mine),
                    Settled::Unknown(error) if round == ROUNDS_MAX => return Err(error.into()),
                    Settled::Rejected(_) | Settled::Unknown(_) => {}
                }
            }
            Err(error) if round == ROUNDS_MAX || !error.kind.is_transient() => return Err(error.into()),
            Err(_) => {}
        }
        tokio::time::sleep(std::time::Duration::from_millis(PAUSE_MS * u64::from(round))).await;
    }
    Err(WakeFormatError::Unsettled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_bucket::MemoryBucket;

    #[tokio::test]
    async fn the_first_makes_it_and_all_others_read_it() {
        let bucket = MemoryBucket::new();
        let first = wake_format(&bucket, 16, WriteId::from_bits(1)).await.unwrap();
        assert_eq!(first.shards, 16);
        let second = wake_format(&bucket, 4, WriteId::from_bits(2)).await.unwrap();
        assert_eq!(second, first, "the shards of an index never change");
    }

    #[tokio::test]
    async fn an_unknown_format_is_refused_with_both_versions() {
        let bucket = MemoryBucket::new();
        let key = Key::WakeFormat.to_string();
        bucket.put(&key, Bytes::from_static(br#"{"version":"7.0"}"#)).await.unwrap();
        let error = wake_format(&bucket, 8, WriteId::from_bits(1)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "`wake/format.json`: alarm index format record has version 7.x, this program reads up to 1.x: upgrade \
             this program"
        );
        bucket
            .put(
                &key,
                Bytes::from_static(
                    br#"{"version":"1.0","write_id":"00000000000000000000000000000001","shards":0}"#,
                ),
            )
            .await
            .unwrap();
        let error = wake_format(&bucket, 8, WriteId::from_bits(1)).await.unwrap_err();
        assert!(matches!(error, WakeFormatError::NoShards), "{error}");
    }
}
