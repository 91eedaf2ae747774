//! Reads that many ask for at once and one makes. An asker never gets a read that began before it asked (less an age
//! that it accepts), so that what made it ask cannot be missing from the answer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The last read of one thing.
struct Last<V> {
    began: Instant,
    value: V,
}

type Slot<V> = Arc<tokio::sync::Mutex<Option<Last<V>>>>;

/// One read of one thing at a time, per key. A key is remembered only while somebody asks for it.
pub(crate) struct SharedReads<K: Eq + Hash, V> {
    slots: Mutex<HashMap<K, Slot<V>>>,
}

impl<K: Eq + Hash + Clone, V: Clone> SharedReads<K, V> {
    pub(crate) fn new() -> Self {
        Self { slots: Mutex::new(HashMap::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Slot<V>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, by `read` unless another's read that began since now is there.
    pub(crate) async fn get(&self, key: &K, read: impl Future<Output = V>) -> V {
        let asked = Instant::now();
        let slot = self.lock().entry(key.clone()).or_default().clone();
        let mut asker = Asker { reads: self, key, slot: Some(slot) };
        let slot = asker.slot.as_mut().expect("set above");
        fetch(slot, asked, Duration::ZERO, read).await
    }
}

async fn fetch<V: Clone>(
    slot: &Slot<V>,
    asked: Instant,
    age_max: Duration,
    read: impl Future<Output = V>,
) -> V {
    let mut last = slot.lock().await;
    if let Some(Last { began, value }) = &*last
        && *began + age_max >= asked
    {
        return value.clone();
    }
    let began = Instant::now();
    let value = read.await;
    *last = Some(Last { began, value: value.clone() });
    value
}

/// Removes its key when it is the last to ask, also when it is cancelled.
struct Asker<'a, K: Eq + Hash + Clone, V: Clone> {
    reads: &'a SharedReads<K, V>,
    key: &'a K,
    slot: Option<Slot<V>>,
}

impl<K: Eq + Hash + Clone, V: Clone> Drop for Asker<'_, K, V> {
    fn drop(&mut self) {
        let mut slots = self.reads.lock();
        self.slot = None;
        if slots.get(self.key).is_some_and(|slot| Arc::strong_count(slot) == 1) {
            slots.remove(self.key);
        }
    }
}

/// One thing that is read at most once per age.
pub(crate) struct SharedRead<V> {
    slot: Slot<V>,
    age_max: Duration,
}

impl<V: Clone> SharedRead<V> {
    pub(crate) fn new(age_max: Duration) -> Self {
        Self { slot: Slot::default(), age_max }
    }

    /// The value, by `read` unless one that is young enough is there.
    pub(crate) async fn get(&self, read: impl Future<Output = V>) -> V {
        fetch(&self.slot, Instant::now(), self.age_max, read).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts reads; each takes a second of the test's clock.
    async fn read(count: &AtomicUsize) -> usize {
        let value = count.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        value
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_makes_two_reads_at_most() {
        let (reads, count) = (SharedReads::new(), AtomicUsize::new(0));
        let ask = |delay_ms: u64| {
            let (reads, count) = (&reads, &count);
            async move {
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                reads.get(&"k", read(count)).await
            }
        };
        let values = futures::future::join_all((0..50).map(|index| ask(index * 10))).await;
        // The first began before the others asked; one of them made the second, for all.
        assert_eq!(values[0], 0);
        assert!(values[1..].iter().all(|value| *value == 1), "{values:?}");
        assert!(reads.lock().is_empty(), "nobody asks any more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_reader_leaves_the_read_to_the_next() {
        let (reads, count) = (SharedReads::new(), AtomicUsize::new(0));
        let first = tokio::time::timeout(Duration::from_millis(500), reads.get(&1, read(&count)));
        let second = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            reads.get(&1, read(&count)).await
        };
        let (first, second) = tokio::join!(first, second);
        assert!(first.is_err());
        assert_eq!(second, 1);
        assert!(reads.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_aged_read_is_made_again() {
        let (shared, count) = (SharedRead::new(Duration::from_secs(3)), AtomicUsize::new(0));
        assert_eq!(shared.get(read(&count)).await, 0);
        tokio::time::sleep(Duration::from_millis(1_900)).await;
        assert_eq!(shared.get(read(&count)).await, 0);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(shared.get(read(&count)).await, 1);
    }
}
