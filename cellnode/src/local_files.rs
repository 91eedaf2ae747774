//! How much of the disk the files of cells take that are not in memory. They spare a download when their cell is opened again,
//! and nothing else: beyond the budget those go first whose cells left memory first. A cell that is in memory, or on its way
//! there, is not in this book, so its files are never touched.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_telemetry::metrics;
use holdfast_types::CellName;

use crate::data_dir::DataDir;

/// The book.
#[derive(Debug)]
pub(crate) struct LocalFiles {
    bytes_max: u64,
    trash: PathBuf,
    removed: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// By the order in which the cells left memory.
    folders: BTreeMap<u64, Folder>,
    numbers: HashMap<CellName, u64>,
    entered: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Folder {
    cell: CellName,
    path: PathBuf,
    bytes: u64,
}

impl LocalFiles {
    /// With what the data directory holds, and not more of it than the budget allows.
    pub(crate) fn of(data_dir: &DataDir, bytes_max: u64) -> Self {
        let files =
            Self { bytes_max, trash: data_dir.trash(), removed: AtomicU64::new(0), book: Mutex::default() };
        for cell in data_dir.resumable() {
            files.left(&cell, data_dir.cell(&cell).dir());
        }
        files
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cell is not in memory any more, and left this folder. Blocks.
    pub(crate) fn left(&self, cell: &CellName, path: &Path) {
        let bytes = match len_of(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                tracing::debug!(%cell, %error, "how much the local files of a cell take is unknown");
                0
            }
        };
        let over = {
            let mut book = self.book();
            book.remove(cell);
            book.enter(Folder { cell: cell.clone(), path: path.to_path_buf(), bytes });
            self.take_over_budget(&mut book)
        };
        for path in over {
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(path = %path.display(), %error, "local files could not be removed");
            }
        }
    }

    /// A cell is about to be opened: its files are its own now.
    pub(crate) fn taken(&self, cell: &CellName) {
        self.book().remove(cell);
    }

    /// Bytes that cells take which are not in memory.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.book().bytes
    }

    /// Takes folders out of the book until it is within its budget, and moves them aside: under the lock, so that nobody opens
    /// a cell whose folder is about to go.
    fn take_over_budget(&self, book: &mut Book) -> Vec<PathBuf> {
        let mut over = Vec::new();
        while book.bytes > self.bytes_max {
            let Some(Folder { cell, path, bytes }) = book.pop_first() else { break };
            let number = self.removed.fetch_add(1, Ordering::Relaxed);
            let aside = self.trash.join(number.to_string());
            match std::fs::rename(&path, &aside) {
                Ok(()) => over.push(aside),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(%cell, path = %path.display(), %error, "local files could not be removed");
                    continue;
                }
            }
            metrics().local_files_removed(bytes);
        }
        over
    }
}

impl Drop for LocalFiles {
    fn drop(&mut self) {
        // A process may run one session after another.
        let left = i64::try_from(self.book().bytes).unwrap_or(i64::MAX);
        metrics().local_files_changed(-left);
    }
}

impl Book {
    fn enter(&mut self, folder: Folder) {
        self.entered += 1;
        self.changed(folder.bytes, true);
        self.numbers.insert(folder.cell.clone(), self.entered);
        self.folders.insert(self.entered, folder);
    }

    fn remove(&mut self, cell: &CellName) {
        let number = self.numbers.remove(cell);
        if let Some(folder) = number.and_then(|number| self.folders.remove(&number)) {
            self.changed(folder.bytes, false);
        }
    }

    fn pop_first(&mut self) -> Option<Folder> {
        let (_, folder) = self.folders.pop_first()?;
        self.numbers.remove(&folder.cell);
        self.changed(folder.bytes, false);
        Some(folder)
    }

    fn changed(&mut self, bytes: u64, is_more: bool) {
        let delta = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.bytes = if is_more { self.bytes + bytes } else { self.bytes - bytes };
        metrics().local_files_changed(if is_more { delta } else { -delta });
    }
}

/// What a folder's files take on disk: of a file with holes only what is there.
fn len_of(folder: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        // One that has gone meanwhile takes nothing.
        if let Ok(metadata) = entry?.metadata() {
            bytes += metadata.blocks() * 512;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use holdfast_types::{Epoch, Position, Txid};

    use super::*;

    const LEN: usize = 64 << 10;

    fn cell(number: u64) -> CellName {
        CellName::parse(&format!("db:{number}")).unwrap()
    }

    /// A cell that was closed in order, and how much its folder takes.
    fn closed(data_dir: &DataDir, number: u64) -> u64 {
        let files = data_dir.cell(&cell(number));
        files.take_resume().unwrap();
        std::fs::write(files.database(Epoch::new(1)), vec![7; LEN]).unwrap();
        files.note_resume(Position { epoch: Epoch::new(1), txid: Txid::new(1) }).unwrap();
        len_of(files.dir()).unwrap()
    }

    fn there(data_dir: &DataDir, numbers: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        numbers.filter(|number| data_dir.cell(&cell(*number)).dir().exists()).collect()
    }

    #[test]
    fn beyond_the_budget_the_files_of_those_that_left_first_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(dir.path()).unwrap();
        let each = closed(&data_dir, 1);
        assert!(each >= u64::try_from(LEN).unwrap());
        let files = LocalFiles::of(&data_dir, 3 * each);
        assert_eq!(files.bytes(), each, "what is there is counted");
        for number in 2..=3 {
            assert_eq!(closed(&data_dir, number), each);
            files.left(&cell(number), data_dir.cell(&cell(number)).dir());
        }
        assert_eq!((files.bytes(), there(&data_dir, 1..=3)), (3 * each, vec![1, 2, 3]));
        // Opened, the first is nobody's to remove; closed again, it is the newest.
        files.taken(&cell(1));
        closed(&data_dir, 4);
        files.left(&cell(4), data_dir.cell(&cell(4)).dir());
        assert_eq!((files.bytes(), there(&data_dir, 1..=4)), (3 * each, vec![1, 2, 3, 4]));
        files.left(&cell(1), data_dir.cell(&cell(1)).dir());
        assert_eq!((files.bytes(), there(&data_dir, 1..=4)), (3 * each, vec![1, 3, 4]));
        // Twice the same is once.
        files.left(&cell(1), data_dir.cell(&cell(1)).dir());
        assert_eq!(files.bytes(), 3 * each);
        assert!(std::fs::read_dir(data_dir.trash()).unwrap().next().is_none(), "nothing is left aside");
    }

    #[test]
    fn a_start_keeps_to_its_budget_too() {
        let dir = tempfile::tempdir().unwrap();
        let each = {
            let data_dir = DataDir::open(dir.path()).unwrap();
            (1..=5).map(|number| closed(&data_dir, number)).max().unwrap()
        };
        let data_dir = DataDir::open(dir.path()).unwrap();
        let files = LocalFiles::of(&data_dir, 2 * each);
        assert_eq!((files.bytes(), there(&data_dir, 1..=5).len()), (2 * each, 2));
        drop(files);
        assert_eq!(LocalFiles::of(&data_dir, 0).bytes(), 0);
        assert!(there(&data_dir, 1..=5).is_empty());
    }
}
