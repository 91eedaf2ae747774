//! Folders of the bucket's tree: made when a first object needs them, removed when their last object goes, and made
//! durable before a write is answered.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Folders whose durability is remembered; beyond, the memory starts anew, which costs only fsyncs.
const DURABLE_MAX: usize = 16 * 1024;

/// Times that a folder is made anew because one above it was removed meanwhile.
const MAKE_ATTEMPTS: usize = 1_000;

/// The folders below one root.
#[derive(Debug)]
pub(super) struct Folders {
    root: PathBuf,
    /// Folders whose own entry in their parent is known to be on disk.
    durable: Mutex<HashSet<PathBuf>>,
}

impl Folders {
    /// Folders below `root`, which exists and is durable.
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, durable: Mutex::new(HashSet::new()) }
    }

    /// The folder of all objects.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn durable(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `folder` and those above it.
    pub(super) fn make(&self, folder: &Path) -> io::Result<()> {
        let mut durable = self.durable();
        for above in self.up_to_root(folder) {
            durable.remove(above);
        }
        drop(durable);
        // Whoever deletes a last object removes the folders above it, perhaps between our making one and the next below
        // it. Each such loss is somebody else's progress, so the bound is only for a tree that is broken.
        for _ in 0..MAKE_ATTEMPTS {
            match std::fs::create_dir_all(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.root.exists() => {
                    std::thread::yield_now();
                }
                made => return made,
            }
        }
        std::fs::create_dir_all(folder)
    }

    /// Makes the entries of `folder` durable, and its own entry and those above where that is not known.
    pub(super) fn sync(&self, folder: &Path) -> io::Result<()> {
        sync_folder(folder)?;
        let mut synced = Vec::new();
        for above in self.up_to_root(folder) {
            if self.durable().contains(above) {
                break;
            }
            sync_folder(above.parent().expect("a folder below the root has a parent"))?;
            synced.push(above.to_owned());
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
    pub(super) fn remove_empty<'a>(&'a self, folder: &'a Path) -> &'a Path {
        for above in self.up_to_root(folder) {
            self.durable().remove(above);
            // Not empty, or another writer was faster: either way it is not ours to remove.
            if std::fs::remove_dir(above).is_err() {
                return above;
            }
        }
        &self.root
    }

    /// `folder` and those above it, without the root.
    fn up_to_root<'a>(&self, folder: &'a Path) -> impl Iterator<Item = &'a Path> + use<'a, '_> {
        folder.ancestors().take_while(|above| *above != self.root)
    }
}

/// Makes a folder's entries durable. A folder that is gone has none.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
