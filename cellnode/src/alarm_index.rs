//! Writes of the alarm index (`wake/…`) for resident cells. What to write and when is decided by the core's alarm; each
//! answer goes back to the cell's thread. A write that is repeated puts the same bytes under the same key.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError, Commit, Guard};
use holdfast_core::alarm::{AlarmEvent, EntryName, Mark};
use holdfast_records::{Key, Record, RecordError, WakeEntry, WakeRetired};
use holdfast_telemetry::metrics;
use holdfast_types::{AlarmId, AlarmTime, CellName};

use crate::backoff::Backoff;
use crate::cells::{AlarmInput, Job, Resident};
use crate::critical;
use crate::node::Node;
use crate::patience::in_time;
use crate::random;

/// Before later tries: 50 ms doubling to 1.6 s.
const PAUSES: Backoff = Backoff::new(50, 5);
/// How long the conditional write of a retired record may take, its retries included, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Rounds of reading and writing a retired record within one try. Only an owner before this one writes it besides.
const ROUNDS: u32 = 3;

/// Why a retired record was not written.
#[derive(Debug, thiserror::Error)]
enum RetireError {
    #[error(transparent)]
    Bucket(#[from] BucketError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("somebody else wrote it {ROUNDS} times")]
    Contended,
}

fn tell(resident: &Arc<Resident>, event: AlarmEvent) {
    resident.send(Job::Alarm(Arc::clone(resident), AlarmInput::Event(event)));
}

/// Does one write in a lane of the index, after its pause, unless the session is over.
fn spawn<F>(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    (what, attempt): (&'static str, u32),
    write: impl FnOnce(Arc<Node>, CellName) -> F + Send + 'static,
) where
    F: Future<Output = AlarmEvent> + Send,
{
    let (node, resident) = (Arc::clone(node), Arc::clone(resident));
    let runtime = node.runtime.clone();
    critical::spawn(&runtime, what, async move {
        PAUSES.pause_before(attempt).await;
        if resident.has_failed() || !node.authority.is_live() {
            return;
        }
        let event = {
            let _lane = node.index_writes.acquire().await.expect("the semaphore is never closed");
            write(Arc::clone(&node), resident.cell.clone()).await
        };
        let is_ok = !matches!(
            event,
            AlarmEvent::PublishFailed(_) | AlarmEvent::RetireFailed | AlarmEvent::DeleteFailed
        );
        metrics().alarm_index_write(what, is_ok);
        tell(&resident, event);
    });
}

/// Puts a wake entry.
pub(crate) fn put_entry(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    (id, deadline): (AlarmId, AlarmTime),
    attempt: u32,
) {
    spawn(node, resident, ("put", attempt), move |node, cell| async move {
        let entry = WakeEntry::new(cell, deadline, id);
        let key = entry.key().to_string();
        let body = Bytes::from(entry.encode());
        let put = node.buckets.bulk.put(&key, body.clone());
        match in_time(("put", &key), body.len() as u64, put).await {
            Ok(_) => AlarmEvent::Published(id),
            Err(error) => {
                tracing::warn!(cell = %entry.cell, %error, attempt, "a wake entry could not be put; it is tried again");
                AlarmEvent::PublishFailed(id)
            }
        }
    });
}

/// Moves a retired record forward.
pub(crate) fn write_retired(node: &Arc<Node>, resident: &Arc<Resident>, mark: Mark, attempt: u32) {
    spawn(node, resident, ("retire", attempt), move |node, cell| async move {
        match retire(&*node.buckets.bulk, &cell, mark).await {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%cell, %error, attempt, "a retired record could not be written; it is tried again");
                AlarmEvent::RetireFailed
            }
        }
    });
}

async fn retire(bucket: &dyn Bucket, cell: &CellName, mark: Mark) -> Result<AlarmEvent, RetireError> {
    let key = Key::WakeRetired(cell.clone()).to_string();
    for _ in 0..ROUNDS {
        let found = in_time(("get", &key), 0, bucket.get(&key)).await?;
        let guard = match found {
            None => Guard::Absent,
            Some(object) => {
                let there = WakeRetired::decode(&object.body)?;
                let (through, armed) = (AlarmId::from(there.mark), there.armed.map(AlarmId::from));
                if through.epoch > mark.through.epoch {
                    return Ok(AlarmEvent::RetiredByAnother);
                }
                if through > mark.through || (through == mark.through && armed == mark.armed) {
                    return Ok(AlarmEvent::RetiredWritten);
                }
                Guard::Match(object.version)
            }
        };
        let record = WakeRetired {
            version: WakeRetired::VERSION,
            write_id: random::write_id(),
            cell: cell.clone(),
            mark: mark.through.into(),
            armed: mark.armed.map(Into::into),
        };
        match bucket.put_if(&key, Bytes::from(record.encode()), guard, WRITE_DEADLINE_MS).await {
            Commit::Applied(_) => return Ok(AlarmEvent::RetiredWritten),
            Commit::Rejected => {}
            Commit::Unknown(error) => return Err(error.into()),
        }
    }
    Err(RetireError::Contended)
}

/// Deletes obsolete entries.
pub(crate) fn delete_entries(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    entries: Vec<EntryName>,
    attempt: u32,
) {
    spawn(node, resident, ("delete", attempt), move |node, cell| async move {
        let key = |entry: &EntryName| {
            Key::WakeEntry { minute: entry.minute, cell: cell.clone(), id: entry.id }.to_string()
        };
        let keys: Vec<String> = entries.iter().map(key).collect();
        match in_time(("delete_many", &keys[0]), 0, node.buckets.bulk.delete_many(&keys)).await {
            Ok(()) => AlarmEvent::Deleted,
            Err(error) => {
                tracing::debug!(%cell, %error, attempt, "obsolete wake entries could not be deleted; tried again");
                AlarmEvent::DeleteFailed
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_bucket::MemoryBucket;
    use holdfast_types::{AlarmSeq, Epoch};

    fn id(epoch: u64, seq: u64) -> AlarmId {
        AlarmId { epoch: Epoch::new(epoch), seq: AlarmSeq::new(seq) }
    }

    #[tokio::test]
    async fn a_retired_record_never_goes_back() {
        let bucket = MemoryBucket::new();
        let cell = CellName::parse("Room:a").unwrap();
        let retire = async |through, armed| retire(&bucket, &cell, Mark { through, armed }).await.unwrap();
        let there = async || {
            let object = bucket.get("wake/retired/Room:a.json").await.unwrap().unwrap();
            let record = WakeRetired::decode(&object.body).unwrap();
            (AlarmId::from(record.mark), record.armed.map(AlarmId::from))
        };
        assert_eq!(retire(id(2, 3), Some(id(2, 3))).await, AlarmEvent::RetiredWritten);
        assert_eq!(retire(id(2, 3), None).await, AlarmEvent::RetiredWritten, "the armed one is obsolete now");
        assert_eq!(there().await, (id(2, 3), None));
        assert_eq!(retire(id(2, 1), None).await, AlarmEvent::RetiredWritten, "it says more already");
        assert_eq!(there().await, (id(2, 3), None));
        assert_eq!(retire(id(3, 0), None).await, AlarmEvent::RetiredWritten);
        assert_eq!(retire(id(2, 9), None).await, AlarmEvent::RetiredByAnother);
        assert_eq!(there().await, (id(3, 0), None));
    }
}
