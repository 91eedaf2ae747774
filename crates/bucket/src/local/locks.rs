//! Exclusion of writers of one key, between the threads of this process and between processes of this machine: a fixed
//! number of lock files, chosen by the key's hash. Readers take no lock.
//!
//! The kernel drops a dead process's locks, so a kill at any point leaves none behind. A lock is held for a check and a
//! rename, never for a write of data or an fsync.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fault::Call;
use crate::{BucketError, ErrorKind};

/// Lock files of a bucket: part of its format, since all processes must agree on the file of a key.
pub(super) const LOCK_FILES: usize = 64;

/// Pauses between tries for a lock that another process holds.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// The lock files of one bucket.
#[derive(Debug)]
pub(super) struct Locks {
    folder: PathBuf,
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    state: Mutex<SlotState>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct SlotState {
    is_taken: bool,
    file: Option<Arc<File>>,
}

/// A held lock.
#[derive(Debug)]
pub(super) struct Held<'a> {
    slot: &'a Slot,
    file: Arc<File>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Closing would release it too; an error here can only mean that the descriptor is gone.
        let _ = self.file.unlock();
        self.slot.state().is_taken = false;
        self.slot.freed.notify_one();
    }
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the threads of this process.
    fn take(&self, deadline: Instant) -> Option<MutexGuard<'_, SlotState>> {
        let mut state = self.state();
        while state.is_taken {
            let left = deadline.checked_duration_since(Instant::now())?;
            (state, _) = self.freed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_taken = true;
        Some(state)
    }

    fn give_back(&self) {
        self.state().is_taken = false;
        self.freed.notify_one();
    }
}

impl Locks {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, slots: (0..LOCK_FILES).map(|_| Slot::default()).collect() }
    }

    /// Takes the lock of `call.key`.
    ///
    /// # Errors
    /// `Unavailable` when it is not free by `deadline`; else what opening the lock file said.
    pub(super) fn take(&self, call: Call<'_>, deadline: Instant) -> Result<Held<'_>, BucketError> {
        let number = lock_number(call.key);
        let slot = &self.slots[number];
        let late = || call.fail(ErrorKind::Unavailable, "another writer held the key's lock for too long");
        let mut state = slot.take(deadline).ok_or_else(late)?;
        let opened = match &state.file {
            Some(file) => Ok(Arc::clone(file)),
            None => self.open(call, number).map(|file| Arc::clone(state.file.insert(Arc::new(file)))),
        };
        drop(state);
        let locked = opened.and_then(|file| {
            wait_for(|| file.try_lock(), deadline).map_err(|error| match error {
                None => late(),
                Some(error) => call.io("lock", &self.path(number), &error),
            })?;
            Ok(file)
        });
        match locked {
            Ok(file) => Ok(Held { slot, file }),
            Err(error) => {
                slot.give_back();
                Err(error)
            }
        }
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{number:02}"))
    }

    fn open(&self, call: Call<'_>, number: usize) -> Result<File, BucketError> {
        let path = self.path(number);
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| call.io("open the lock file", &path, &error))
    }
}

/// Waits for other processes; `None` is that they were not done by `deadline`. Tries instead of blocking, so that a
/// stopped process cannot hold a thread for ever.
pub(super) fn wait_for(
    try_lock: impl Fn() -> Result<(), TryLockError>,
    deadline: Instant,
) -> Result<(), Option<std::io::Error>> {
    let mut pause = PAUSE_MIN;
    loop {
        match try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Some(error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Err(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// FNV-1a of the key: fixed for ever, since every process must choose the same file.
fn lock_number(key: &str) -> usize {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    ((hash ^ (hash >> 32)) % LOCK_FILES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call<'_> = Call { operation: "put", key: "k" };

    #[test]
    fn a_held_lock_excludes_threads_and_other_openers_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mine = Locks::new(folder.path().to_owned());
        let theirs = Locks::new(folder.path().to_owned());
        let soon = || Instant::now() + Duration::from_millis(20);
        let held = mine.take(CALL, soon()).unwrap();
        for other in [&mine, &theirs] {
            assert_eq!(other.take(CALL, soon()).unwrap_err().kind, ErrorKind::Unavailable);
        }
        drop(held);
        for other in [&mine, &theirs] {
            other.take(CALL, soon()).unwrap();
        }
    }

    #[test]
    fn the_file_of_a_key_never_changes() {
        assert_eq!(lock_number(""), 1);
        assert_eq!(lock_number("nodes/a.json"), 51);
    }
}
