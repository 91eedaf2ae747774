//! Writes of the alarm index (`wake/…`) for resident cells. What to write and when is decided by the core's alarm; each
//! answer goes back to the cell's thread. A write that is repeated puts the same bytes under the same key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketError, Commit, Guard};
use holdfast_core::alarm::{AlarmEvent, EntryName, Mark};
use holdfast_records::{Key, Record, RecordError, WakeEntry, WakeRetired};
use holdfast_telemetry::metrics;
use holdfast_types::{AlarmId, AlarmTime, CellName};
use tokio::sync::Semaphore;

use crate::backoff::Backoff;
use crate::cells::{AlarmInput, Job, Resident};
use crate::critical;
use crate::node::Node;
use crate::patience::in_time;
use crate::random;

/// Entries put at once: as many as uploads, for outputs wait for them too.
const PUTS_MAX: usize = 128;
/// Retired records written and obsolete entries deleted at once. Nobody waits for them: they take no room from others.
const UPKEEP_MAX: usize = 16;
/// Entries that may wait for their PUT. Beyond it no event begins that could set another alarm.
const WAITING_MAX: usize = 16_384;
/// Before later tries of what outputs wait for: 50 ms doubling to 1.6 s.
const PAUSES: Backoff = Backoff::new(50, 5);
/// Before later tries of what nobody waits for: 50 ms doubling to 51 s.
const UPKEEP_PAUSES: Backoff = Backoff::new(50, 10);
/// How long the conditional write of a retired record may take, its retries included, in milliseconds.
const WRITE_DEADLINE_MS: u64 = 5_000;
/// Rounds of reading and writing a retired record within one try. Only an owner before this one writes it besides.
const ROUNDS: u32 = 3;

/// Why a retired record was not written.
#[derive(Debug, thiserror::Error)]
enum RetireError {
    #[error(transparent)]
    Bucket(#[from] BucketError),
    #[error(
        "`{key}` is not readable: {source}; upgrade this node if a newer one wrote it, else delete the object: the next clean-up writes it anew"
    )]
    Record { key: String, source: RecordError },
    #[error("somebody else wrote it {ROUNDS} times")]
    Contended,
}

/// Writes of the alarm index that are under way on a node.
#[derive(Debug)]
pub(crate) struct IndexLanes {
    puts: Semaphore,
    upkeep: Semaphore,
    /// Entries that are not put yet.
    waiting: AtomicUsize,
}

impl Default for IndexLanes {
    fn default() -> Self {
        let (puts, upkeep) = (Semaphore::new(PUTS_MAX), Semaphore::new(UPKEEP_MAX));
        Self { puts, upkeep, waiting: AtomicUsize::new(0) }
    }
}

impl IndexLanes {
    /// How many entries wait, where that is too many for another event to begin.
    pub(crate) fn is_full(&self) -> Option<usize> {
        let waiting = self.waiting.load(Ordering::Relaxed);
        (waiting >= WAITING_MAX).then_some(waiting)
    }
}

/// What a write of the index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    /// Outputs wait for it.
    Put,
    Retire,
    Delete,
}

impl Write {
    fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Retire => "retire",
            Self::Delete => "delete",
        }
    }

    fn lane(self, lanes: &IndexLanes) -> &Semaphore {
        if self == Self::Put { &lanes.puts } else { &lanes.upkeep }
    }

    fn pauses(self) -> Backoff {
        if self == Self::Put { PAUSES } else { UPKEEP_PAUSES }
    }
}

/// An entry that waits for its PUT, until it is dropped.
struct Waiting(Arc<Node>);

impl Waiting {
    fn new(node: &Arc<Node>) -> Self {
        node.index.waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(node))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.index.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn tell(resident: &Arc<Resident>, event: AlarmEvent) {
    resident.send(Job::Alarm(Arc::clone(resident), AlarmInput::Event(event)));
}

/// Does one write in a lane of the index, after its pause, unless the session is over.
fn spawn<F>(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    (what, attempt): (Write, u32),
    write: impl FnOnce(Arc<Node>, CellName) -> F + Send + 'static,
) where
    F: Future<Output = AlarmEvent> + Send,
{
    let (node, resident) = (Arc::clone(node), Arc::clone(resident));
    let runtime = node.runtime.clone();
    let waiting = (what == Write::Put).then(|| Waiting::new(&node));
    critical::spawn(&runtime, what.name(), async move {
        // Until the cell knows how it went: a try that failed is followed by another.
        let _waiting = waiting;
        what.pauses().pause_before(attempt).await;
        if resident.has_failed() || !node.authority.is_live() {
            return;
        }
        let event = {
            let _lane = what.lane(&node.index).acquire().await.expect("the semaphore is never closed");
            write(Arc::clone(&node), resident.cell.clone()).await
        };
        let is_ok = !matches!(
            event,
            AlarmEvent::PublishFailed(_) | AlarmEvent::RetireFailed | AlarmEvent::DeleteFailed
        );
        metrics().alarm_index_write(what.name(), is_ok);
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
    spawn(node, resident, (Write::Put, attempt), move |node, cell| async move {
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
    spawn(node, resident, (Write::Retire, attempt), move |node, cell| async move {
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
                let there = WakeRetired::decode(&object.body)
                    .map_err(|source| RetireError::Record { key: key.clone(), source })?;
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
    spawn(node, resident, (Write::Delete, attempt), move |node, cell| async move {
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
