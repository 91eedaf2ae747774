//! Folders of the bucket's tree: made when a first object needs them, removed when their last object goes, and made
//! durable before a write is answered.
//!
//! Makers and removers exclude each other by one lock of the whole tree, also between processes: makers share it until
//! their object is in place, a remover has it alone. So a folder that was made stays until it is used. Writers into a
//! folder that is there take no lock.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::fault::Call;
use super::locks::wait_for;
use crate::{BucketError, ErrorKind};

/// Folders whose durability is remembered; beyond, the memory starts anew, which costs only fsyncs.
const DURABLE_MAX: usize = 16 * 1024;

/// How long a remover waits for makers: an empty folder that stays costs nothing.
const REMOVER_PATIENCE: Duration = Duration::from_secs(1);

/// The folders below one root.
#[derive(Debug)]
pub(super) struct Folders {
    root: PathBuf,
    /// The file whose lock is the tree's.
    lock: PathBuf,
    /// Folders whose own entry in their parent is known to be on disk.
    durable: Mutex<HashMap<PathBuf, Identity>>,
}

/// Keeps removers away while it lives. The kernel drops a dead process's.
#[derive(Debug)]
pub(super) struct Kept {
    _lock: File,
}

/// Tells a folder from a later one of the same path, which another process may have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    inode: u64,
    born: SystemTime,
}

impl Identity {
    /// `None` where the folder is gone, or the file system does not know when it was made.
    fn of(folder: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(folder).ok()?;
        Some(Self { inode: metadata.ino(), born: metadata.created().ok()? })
    }
}

impl Folders {
    /// Folders below `root`, which exists and is durable. `lock` names the file of the tree's lock.
    pub(super) fn new(root: PathBuf, lock: PathBuf) -> Self {
        Self { root, lock, durable: Mutex::new(HashMap::new()) }
    }

    /// The folder of all objects.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn durable(&self) -> MutexGuard<'_, HashMap<PathBuf, Identity>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opened anew each time, so that the threads of this process exclude each other too.
    fn open_lock(&self) -> io::Result<File> {
        OpenOptions::new().create(true).truncate(false).write(true).open(&self.lock)
    }

    /// Makes `folder` and those above it. They stay as long as the answer lives.
    ///
    /// # Errors
    /// `Unavailable` when removers are not done by `deadline`; else what the file system said.
    pub(super) fn make(&self, call: Call<'_>, folder: &Path, deadline: Instant) -> Result<Kept, BucketError> {
        let lock = self.open_lock().map_err(|error| call.io("open the lock file", &self.lock, &error))?;
        wait_for(|| lock.try_lock_shared(), deadline).map_err(|error| match error {
            Some(error) => call.io("lock", &self.lock, &error),
            None => call.fail(ErrorKind::Unavailable, "a remover held the lock of all folders for too long"),
        })?;
        std::fs::create_dir_all(folder).map_err(|error| call.io("create", folder, &error))?;
        Ok(Kept { _lock: lock })
    }

    /// Makes the entries of `folder` durable, and its own entry and those above where that is not known.
    pub(super) fn sync(&self, folder: &Path) -> io::Result<()> {
        sync_folder(folder)?;
        let mut synced = Vec::new();
        for above in self.up_to_root(folder) {
            let identity = Identity::of(above);
            if identity.is_some() && self.durable().get(above) == identity.as_ref() {
                // The same folder as then, so those above it are the same too.
                break;
            }
            sync_folder(above.parent().expect("a folder below the root has a parent"))?;
            synced.extend(identity.map(|identity| (above.to_owned(), identity)));
        }
        if !synced.is_empty() {
            let mut durable = self.durable();
            if durable.len() + synced.len() > DURABLE_MAX {
                durable.clear();
            }
            durable.extend(synced);
        }
        Ok(())
    }

    /// Removes `folder` and those above it as far as they are empty; answers the first that stays.
    pub(super) fn remove_empty<'a>(&'a self, folder: &'a Path, deadline: Instant) -> &'a Path {
        if !is_empty(folder) {
            return folder;
        }
        let patience = deadline.min(Instant::now() + REMOVER_PATIENCE);
        let Ok(lock) = self.open_lock() else { return folder };
        if wait_for(|| lock.try_lock(), patience).is_err() {
            return folder;
        }
        for above in self.up_to_root(folder) {
            // Not empty: somebody uses it.
            if std::fs::remove_dir(above).is_err() {
                return above;
            }
            self.durable().remove(above);
        }
        &self.root
    }

    /// `folder` and those above it, without the root.
    fn up_to_root<'a>(&self, folder: &'a Path) -> impl Iterator<Item = &'a Path> + use<'a, '_> {
        folder.ancestors().take_while(|above| *above != self.root)
    }
}

/// Whether a folder holds nothing. Whoever removes the last entry sees it so.
fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Makes a folder's entries durable. A folder that is gone has none.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
