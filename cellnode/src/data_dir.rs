//! The data directory: which incarnation it is, who uses it, and where each cell's files are. Nothing in it is the only
//! copy of an acknowledged write; a file counts only when it was closed in order and the machine has not restarted since,
//! because the engine never syncs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use holdfast_types::{CellName, Epoch, Incarnation, Position, Txid};
use serde::{Deserialize, Serialize};

use crate::random;

/// Why the data directory cannot be used. Disposition: reject.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process uses it.
    #[error("data directory `{0}` is in use by another process; give each node a directory of its own")]
    InUse(PathBuf),
    /// A file of it cannot be used.
    #[error("data directory: `{path}` cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The identity file is damaged.
    #[error("data directory: `{path}` is damaged ({detail}); remove it to make this a new node directory")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Identity {
    version: u32,
    incarnation: String,
}

/// A cleanly closed local database, which a later activation may reuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Resume {
    cell: String,
    epoch: u64,
    txid: u64,
    boot_id: String,
}

/// An open data directory, locked until dropped.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    incarnation: Incarnation,
    boot_id: String,
    _lock: File,
}

impl DataDir {
    /// Opens or makes the directory, takes its lock, and removes what a killed process left behind.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn open(root: &Path) -> Result<Self, DataDirError> {
        let io = |path: &Path, action| {
            let path = path.to_path_buf();
            move |source| DataDirError::Io { path, action, source }
        };
        for folder in ["cells", "spool", "trash"] {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(io(&path, "created"))?;
        }
        let lock_path = root.join("lock");
        let lock = File::create(&lock_path).map_err(io(&lock_path, "opened for writing"))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => DataDirError::InUse(root.to_path_buf()),
            fs::TryLockError::Error(source) => io(&lock_path, "locked")(source),
        })?;
        let incarnation = read_or_make_identity(root)?;
        let boot_id =
            fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        let data_dir = Self { root: root.to_path_buf(), incarnation, boot_id, _lock: lock };
        data_dir.sweep().map_err(io(root, "swept"))?;
        Ok(data_dir)
    }

    /// The directory's random identity.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Bytes that may be written to its disk.
    ///
    /// # Errors
    /// The disk's.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.root)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Where engines stage large captures and SQLite its temporary files.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// Where folders are moved that are about to be removed.
    #[must_use]
    pub fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// The cells whose files may be reused, those first that were closed first.
    #[must_use]
    pub fn resumable(&self) -> Vec<CellName> {
        let Ok(entries) = fs::read_dir(self.root.join("cells")) else { return Vec::new() };
        let closed = entries.flatten().filter_map(|entry| {
            let note = entry.path().join(RESUME);
            let closed_at = fs::metadata(&note).and_then(|metadata| metadata.modified()).ok()?;
            let resume = serde_json::from_slice::<Resume>(&fs::read(note).ok()?).ok()?;
            Some((closed_at, CellName::parse(&resume.cell).ok()?))
        });
        let mut closed: Vec<_> = closed.collect();
        closed.sort_unstable();
        closed.into_iter().map(|(_, cell)| cell).collect()
    }

    /// The files of a cell. The folder is made on first use.
    #[must_use]
    pub fn cell(&self, cell: &CellName) -> CellFiles {
        let digest = ring::digest::digest(&ring::digest::SHA256, cell.as_str().as_bytes());
        let name: String = digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        CellFiles {
            dir: self.root.join("cells").join(name),
            cell: cell.clone(),
            boot_id: self.boot_id.clone(),
        }
    }

    /// Removes what a killed process or an earlier boot left: folders of cells that were not closed in order, and spools.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join("cells"))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && !self.is_resumable(&entry.path()) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        for entry in fs::read_dir(self.trash())? {
            fs::remove_dir_all(entry?.path())?;
        }
        for entry in fs::read_dir(self.spool())? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Whether a cell's folder was closed in order since the machine started: an older one is never trusted.
    fn is_resumable(&self, folder: &Path) -> bool {
        let note = fs::read(folder.join(RESUME)).ok();
        let resume = note.and_then(|bytes| serde_json::from_slice::<Resume>(&bytes).ok());
        resume.is_some_and(|resume| resume.boot_id == self.boot_id && !self.boot_id.is_empty())
    }
}

const RESUME: &str = "resume.json";

fn read_or_make_identity(root: &Path) -> Result<Incarnation, DataDirError> {
    let path = root.join("node.json");
    let io = |action| {
        let path = path.clone();
        move |source| DataDirError::Io { path, action, source }
    };
    match fs::read(&path) {
        Ok(bytes) => {
            let damaged = |detail: String| DataDirError::Damaged { path: path.clone(), detail };
            let identity: Identity = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
            identity.incarnation.parse().map_err(|e: holdfast_types::TokenError| damaged(e.to_string()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let incarnation = random::incarnation();
            let identity = Identity { version: 1, incarnation: incarnation.to_string() };
            let bytes = serde_json::to_vec(&identity).expect("an identity is plain JSON");
            write_synced(&path, &bytes).map_err(io("written"))?;
            Ok(incarnation)
        }
        Err(error) => Err(io("read")(error)),
    }
}

/// Writes a file so that it is whole or absent, whatever happens.
///
/// # Errors
/// The file system's.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Where one cell's local files are.
#[derive(Clone, Debug)]
pub struct CellFiles {
    dir: PathBuf,
    cell: CellName,
    boot_id: String,
}

impl CellFiles {
    /// Whose files these are.
    #[must_use]
    pub fn cell(&self) -> &CellName {
        &self.cell
    }

    /// The database of an epoch. Each epoch has its own file, so that a discarded one can never be taken for the next.
    #[must_use]
    pub fn database(&self, epoch: Epoch) -> PathBuf {
        self.dir.join(format!("e{}.sqlite", epoch.to_hex()))
    }

    /// The database of an epoch while it is not all there. It gets the name of [`CellFiles::database`] once it is whole and
    /// closed, and only under that name is it ever used again.
    #[must_use]
    pub fn paged_database(&self, epoch: Epoch) -> PathBuf {
        self.dir.join(format!("e{}.sqlite-paged", epoch.to_hex()))
    }

    /// Where large captures and downloads may be staged.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes the note of a clean close, if there is one that can be trusted: from this boot, with its database there.
    /// The note is gone afterwards; whoever takes it and dies leaves a folder to sweep.
    ///
    /// # Errors
    /// The file system's.
    pub fn take_resume(&self) -> io::Result<Option<Position>> {
        fs::create_dir_all(&self.dir)?;
        let path = self.dir.join(RESUME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        fs::remove_file(&path)?;
        let Ok(resume) = serde_json::from_slice::<Resume>(&bytes) else { return Ok(None) };
        let position = Position { epoch: Epoch::new(resume.epoch), txid: Txid::new(resume.txid) };
        let trusted = resume.cell == self.cell.as_str()
            && resume.boot_id == self.boot_id
            && !self.boot_id.is_empty()
            && self.database(position.epoch).exists();
        Ok(trusted.then_some(position))
    }

    /// Notes that the epoch's database was closed in order at this position, all of which the bucket holds.
    ///
    /// # Errors
    /// The file system's.
    pub fn note_resume(&self, position: Position) -> io::Result<()> {
        let resume = Resume {
            cell: self.cell.as_str().to_owned(),
            epoch: position.epoch.get(),
            txid: position.txid.get(),
            boot_id: self.boot_id.clone(),
        };
        let bytes = serde_json::to_vec(&resume).expect("a note is plain JSON");
        let temporary = self.dir.join("resume.tmp");
        fs::write(&temporary, bytes)?;
        fs::rename(temporary, self.dir.join(RESUME))
    }

    /// Removes an epoch's database and what SQLite keeps beside it.
    pub fn remove_database(&self, epoch: Epoch) {
        let names = [self.database(epoch), self.paged_database(epoch)];
        let of = |database: &PathBuf| {
            let database = database.clone().into_os_string();
            ["", "-wal", "-shm", "-journal"].map(|suffix| {
                let mut path = database.clone();
                path.push(suffix);
                path
            })
        };
        for path in names.iter().flat_map(of) {
            if let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(cell = %self.cell, %epoch, %error, "a local database could not be removed");
            }
        }
    }

    /// Removes every database but the epoch's own.
    pub fn remove_others(&self, keep: Epoch) {
        let keep = format!("e{}.sqlite", keep.to_hex());
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with(&keep) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str) -> CellName {
        CellName::parse(name).unwrap()
    }

    #[test]
    fn a_directory_keeps_its_incarnation_and_has_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataDir::open(dir.path()).unwrap();
        let incarnation = first.incarnation();
        let error = DataDir::open(dir.path()).unwrap_err();
        assert!(matches!(error, DataDirError::InUse(_)), "{error}");
        drop(first);
        assert_eq!(DataDir::open(dir.path()).unwrap().incarnation(), incarnation);
    }

    #[test]
    fn a_damaged_identity_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("node.json"), b"{").unwrap();
        let error = DataDir::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("node.json") && error.contains("remove it"), "{error}");
    }

    #[test]
    fn a_database_is_reused_only_after_a_clean_close_of_this_boot() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(dir.path()).unwrap();
        let files = data_dir.cell(&cell("db:a"));
        assert_eq!(files.take_resume().unwrap(), None);
        let position = Position { epoch: Epoch::new(3), txid: Txid::new(9) };
        fs::write(files.database(position.epoch), b"x").unwrap();
        files.note_resume(position).unwrap();
        assert_eq!(files.take_resume().unwrap(), Some(position));
        assert_eq!(files.take_resume().unwrap(), None, "a note is taken once");
        files.note_resume(position).unwrap();
        let other_boot = CellFiles { boot_id: "another".into(), ..files.clone() };
        assert_eq!(other_boot.take_resume().unwrap(), None);
    }

    #[test]
    fn a_database_that_is_not_all_there_is_never_reused() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(dir.path()).unwrap();
        let files = data_dir.cell(&cell("db:a"));
        let position = Position { epoch: Epoch::new(3), txid: Txid::new(9) };
        assert_eq!(files.take_resume().unwrap(), None);
        let (paged, older) = (files.paged_database(position.epoch), files.paged_database(Epoch::new(2)));
        fs::write(&paged, b"x").unwrap();
        fs::write(&older, b"x").unwrap();
        // Whatever a note says: it is of the whole file's name.
        files.note_resume(position).unwrap();
        assert_eq!(files.take_resume().unwrap(), None);
        files.remove_others(position.epoch);
        assert!(paged.exists() && !older.exists());
        fs::rename(&paged, files.database(position.epoch)).unwrap();
        files.note_resume(position).unwrap();
        assert_eq!(files.take_resume().unwrap(), Some(position));
        fs::write(&paged, b"x").unwrap();
        files.remove_database(position.epoch);
        assert!(!paged.exists() && !files.database(position.epoch).exists());
    }

    #[test]
    fn a_start_sweeps_what_was_not_closed_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let (closed, open) = {
            let data_dir = DataDir::open(dir.path()).unwrap();
            let (closed, open) = (data_dir.cell(&cell("db:closed")), data_dir.cell(&cell("db:open")));
            for files in [&closed, &open] {
                files.take_resume().unwrap();
                fs::write(files.database(Epoch::new(1)), b"x").unwrap();
            }
            closed.note_resume(Position { epoch: Epoch::new(1), txid: Txid::new(1) }).unwrap();
            (closed, open)
        };
        let _data_dir = DataDir::open(dir.path()).unwrap();
        assert!(closed.database(Epoch::new(1)).exists());
        assert!(!open.dir().exists());
    }
}
