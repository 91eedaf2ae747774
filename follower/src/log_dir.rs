//! The log directory: which disk it is, and who uses it. Its identity is made with it; another directory is another
//! follower, whatever its name, because it holds none of the frames.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use holdfast_types::Incarnation;
use serde::{Deserialize, Serialize};

use crate::random;

/// Why the log directory cannot be used. Disposition: reject.
#[derive(Debug, thiserror::Error)]
pub enum LogDirError {
    /// Another process uses it.
    #[error("log directory `{0}` is in use by another process; give each follower a directory of its own")]
    InUse(PathBuf),
    /// A file of it cannot be used.
    #[error("log directory: `{path}` cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The identity file is damaged, or gone while there is a journal.
    #[error(
        "log directory: `{path}` is {detail}; without it nobody can tell which disk this is. Restore it, or start on an \
         empty directory: this follower is then a new member, and what it held is lost to recoveries"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
struct Identity {
    version: u32,
    incarnation: String,
}

/// An open log directory, locked until dropped.
#[derive(Debug)]
pub(crate) struct LogDir {
    root: PathBuf,
    incarnation: Incarnation,
    _lock: File,
}

impl LogDir {
    /// Opens or makes the directory and takes its lock.
    pub(crate) fn open(root: &Path) -> Result<Self, LogDirError> {
        fs::create_dir_all(root).map_err(io_error(root, "created"))?;
        let path = root.join("lock");
        let lock = File::create(&path).map_err(io_error(&path, "opened for writing"))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => LogDirError::InUse(root.to_path_buf()),
            fs::TryLockError::Error(source) => io_error(&path, "locked")(source),
        })?;
        let incarnation = read_or_make_identity(root)?;
        Ok(Self { root: root.to_path_buf(), incarnation, _lock: lock })
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }
}

fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> LogDirError {
    let path = path.to_path_buf();
    move |source| LogDirError::Io { path, action, source }
}

fn read_or_make_identity(root: &Path) -> Result<Incarnation, LogDirError> {
    let path = root.join("identity.json");
    let damaged = |detail| LogDirError::Damaged { path: path.clone(), detail };
    match fs::read(&path) {
        Ok(bytes) => {
            let identity: Option<Identity> = serde_json::from_slice(&bytes).ok();
            let identity = identity.filter(|identity| identity.version == 1);
            identity
                .and_then(|identity| Incarnation::parse(&identity.incarnation).ok())
                .ok_or_else(|| damaged("damaged"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if root.join("journal").exists() {
                return Err(damaged("missing"));
            }
            make_identity(root, &path)
        }
        Err(error) => Err(io_error(&path, "read")(error)),
    }
}

fn make_identity(root: &Path, path: &Path) -> Result<Incarnation, LogDirError> {
    let incarnation = random::incarnation();
    let identity = Identity { version: 1, incarnation: incarnation.to_string() };
    let body = serde_json::to_vec(&identity).expect("strings serialize");
    let new = root.join("identity.new");
    let written = File::create(&new)
        .and_then(|mut file| file.write_all(&body).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, path))
        .and_then(|()| File::open(root)?.sync_all());
    written.map_err(io_error(path, "written"))?;
    Ok(incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_identity_and_has_one_user() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("logs");
        let first = LogDir::open(&root).unwrap();
        let incarnation = first.incarnation();
        assert!(matches!(LogDir::open(&root), Err(LogDirError::InUse(_))));
        drop(first);
        assert_eq!(LogDir::open(&root).unwrap().incarnation(), incarnation);
        let other = LogDir::open(&folder.path().join("other")).unwrap();
        assert_ne!(other.incarnation(), incarnation, "another directory is another disk");
    }

    #[test]
    fn a_journal_without_its_identity_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LogDir::open(folder.path()).unwrap();
        fs::create_dir(dir.journal()).unwrap();
        drop(dir);
        fs::write(folder.path().join("identity.json"), "{").unwrap();
        assert!(matches!(LogDir::open(folder.path()), Err(LogDirError::Damaged { .. })));
        fs::remove_file(folder.path().join("identity.json")).unwrap();
        let error = LogDir::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("missing") && error.contains("Restore it"), "{error}");
    }
}
