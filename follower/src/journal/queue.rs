//! What waits for the disk, bounded in bytes: whoever appends waits for room first.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_core::follower::Ticket;
use holdfast_types::{LogOffset, SessionId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::format::Entry;
use super::index::FramePlace;

/// Bytes of one batch, beyond which the rest waits for the next; one entry may be larger.
const BATCH_LEN_MAX: usize = 8 << 20;

/// Entries of one session are fsynced.
#[derive(Debug)]
pub struct Completed {
    /// The session.
    pub session: SessionId,
    /// The last of them.
    pub upto: Ticket,
    /// Where their frames stand.
    pub frames: Vec<(LogOffset, Vec<FramePlace>)>,
}

/// How the journal has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It has not.
    Running,
    /// In order: everything that was queued is fsynced.
    Closed,
    /// A write or an fsync failed; nothing after it is known to be on the disk.
    Poisoned(String),
}

pub(super) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
    room: Arc<Semaphore>,
    room_max: usize,
    pub(super) ends: watch::Sender<Ends>,
}

#[derive(Default)]
struct Inner {
    items: VecDeque<Queued>,
    awaited: usize,
    /// When the first item that nobody waits for came.
    lazy_since: Option<Instant>,
    /// The writer sleeps: nobody has woken it since.
    is_asleep: bool,
    is_closed: bool,
}

pub(super) struct Queued {
    pub(super) entry: Entry,
    is_awaited: bool,
    /// Given back when the entry is fsynced.
    _room: Option<OwnedSemaphorePermit>,
}

pub(super) enum Taken {
    /// Write these.
    Items(Vec<Queued>),
    /// Nothing came for a while.
    Idle,
    /// Nothing will come any more.
    Closed,
}

impl Queue {
    pub(super) fn new(room_max: usize) -> Self {
        Self {
            inner: Mutex::default(),
            wake: Condvar::new(),
            room: Arc::new(Semaphore::new(room_max)),
            room_max,
            ends: watch::Sender::new(Ends::Running),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for `len` bytes.
    pub(super) async fn room(&self, len: usize) -> OwnedSemaphorePermit {
        let permits = u32::try_from(len.min(self.room_max)).expect("the queue is smaller than 4 GiB");
        let room = Arc::clone(&self.room).acquire_many_owned(permits).await;
        room.expect("the semaphore is never closed")
    }

    /// Puts an entry behind all others. After the end it goes nowhere, and is never reported as persisted.
    pub(super) fn push(&self, entry: Entry, is_awaited: bool, room: Option<OwnedSemaphorePermit>) {
        let mut inner = self.lock();
        inner.items.push_back(Queued { entry, is_awaited, _room: room });
        if !is_awaited {
            inner.lazy_since.get_or_insert_with(Instant::now);
            return;
        }
        inner.awaited += 1;
        // A writer that writes looks by itself; one that is woken under the lock would meet it at once.
        let wakes = std::mem::take(&mut inner.is_asleep);
        drop(inner);
        if wakes {
            self.wake.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_all();
    }

    /// Whether something that somebody waits for is there already.
    pub(super) fn is_awaited(&self) -> bool {
        self.lock().awaited > 0
    }

    /// Takes what is there as soon as somebody waits for some of it, or it has waited for `lazy_max`.
    pub(super) fn take(&self, idle_max: Duration, lazy_max: Duration) -> Taken {
        let mut inner = self.lock();
        let idle_at = Instant::now() + idle_max;
        loop {
            let now = Instant::now();
            let lazy_at = inner.lazy_since.map(|since| since + lazy_max);
            let is_due = inner.awaited > 0 || inner.is_closed || lazy_at.is_some_and(|at| at <= now);
            if is_due && !inner.items.is_empty() {
                return Taken::Items(inner.drain());
            }
            if inner.is_closed {
                return Taken::Closed;
            }
            if now >= idle_at {
                return Taken::Idle;
            }
            let until = lazy_at.map_or(idle_at, |at| at.min(idle_at));
            inner.is_asleep = true;
            let waited = self.wake.wait_timeout(inner, until - now);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
            inner.is_asleep = false;
        }
    }
}

impl Inner {
    fn drain(&mut self) -> Vec<Queued> {
        let mut len = 0;
        let mut batch = Vec::new();
        while let Some(item) = self.items.front() {
            len += item.entry.len();
            if !batch.is_empty() && len > BATCH_LEN_MAX {
                break;
            }
            let item = self.items.pop_front().expect("just seen");
            self.awaited -= usize::from(item.is_awaited);
            batch.push(item);
        }
        if self.items.is_empty() {
            self.lazy_since = None;
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use holdfast_core::follower::LogEntry;
    use holdfast_types::NodeName;

    use super::*;
    use crate::journal::EntryBody;

    fn entry(ticket: u64) -> Entry {
        let body = EntryBody::Note { node: NodeName::parse("n").unwrap(), entry: LogEntry::Seal };
        Entry { session: SessionId::from_bits(1), ticket: Ticket(ticket), body }
    }

    fn take(queue: &Queue, lazy_max: Duration) -> Option<Vec<u64>> {
        match queue.take(Duration::ZERO, lazy_max) {
            Taken::Items(items) => Some(items.iter().map(|item| item.entry.ticket.0).collect()),
            Taken::Idle => Some(Vec::new()),
            Taken::Closed => None,
        }
    }

    #[tokio::test]
    async fn whoever_appends_waits_for_room() {
        let queue = Queue::new(10);
        let first = queue.room(8).await;
        let mut second = std::pin::pin!(queue.room(5));
        assert!(futures::poll!(second.as_mut()).is_pending());
        queue.push(entry(1), true, Some(first));
        assert!(futures::poll!(second.as_mut()).is_pending(), "queued is not written");
        assert_eq!(take(&queue, Duration::MAX), Some(vec![1]));
        drop(second.await);
        // More than there is room for at all comes alone.
        drop(queue.room(1_000).await);
    }

    #[test]
    fn what_nobody_waits_for_rides_along() {
        let queue = Queue::new(10);
        let later = Duration::from_secs(3_600);
        queue.push(entry(1), false, None);
        assert_eq!(take(&queue, later), Some(vec![]));
        queue.push(entry(2), true, None);
        queue.push(entry(3), false, None);
        assert_eq!(take(&queue, later), Some(vec![1, 2, 3]), "in their order");
        queue.push(entry(4), false, None);
        assert_eq!(take(&queue, Duration::ZERO), Some(vec![4]), "it has waited long enough");
    }

    #[test]
    fn a_writer_that_sleeps_is_woken_and_one_that_does_not_finds_what_came() {
        const ITEMS: u64 = 2_000;
        let queue = Arc::new(Queue::new(10));
        let long = Duration::from_secs(3_600);
        let writer = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let mut taken = 0;
                while taken < ITEMS {
                    let Taken::Items(items) = queue.take(long, long) else { panic!("nobody closes it") };
                    taken += items.len() as u64;
                }
            }
        });
        for ticket in 1..=ITEMS {
            queue.push(entry(ticket), true, None);
            if ticket % 100 == 0 {
                std::thread::yield_now();
            }
        }
        writer.join().unwrap();
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let queue = Queue::new(10);
        queue.push(entry(1), false, None);
        queue.close();
        assert_eq!(take(&queue, Duration::from_secs(3_600)), Some(vec![1]));
        assert_eq!(take(&queue, Duration::from_secs(3_600)), None);
    }
}
