//! The real disk: a folder of the file system.

use std::fs::{self, File};
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, CWD, FallocateFlags, RenameFlags, fadvise, fallocate, renameat_with, statvfs};
use rustix::io::{Errno, pwritev};

use super::disk::{Disk, DiskFile};

/// What small files are padded to, with line ends, and how much they may grow on a full disk.
const REPLACED_LEN: usize = 16 * 1024;

/// A folder.
#[derive(Debug)]
pub struct FolderDisk {
    root: PathBuf,
}

impl FolderDisk {
    /// Makes the folder where there is none.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        if let Some(parent) = root.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self { root: root.to_path_buf() })
    }
}

impl Disk for FolderDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.root)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.root.join(name);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        let allocated = match fallocate(&file, FallocateFlags::empty(), 0, len) {
            // A file system without it: the space is taken by writing.
            Err(Errno::OPNOTSUPP) => write_zeros(&file, len),
            other => other.map_err(io::Error::from),
        };
        if let Err(error) = allocated.and_then(|()| file.sync_all()) {
            // Half a file must not hold the space that somebody else needs.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::options().read(true).write(true).open(self.root.join(name))?))
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.root.join(name)) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The new content takes the place of the one before the last, whose space stays taken, so that a full disk has room for
    /// it.
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let (old, new) = (self.root.join(name), self.root.join(format!("{name}.new")));
        write_padded(&new, content)?;
        match renameat_with(CWD, &new, CWD, &old, RenameFlags::EXCHANGE) {
            // The first time there is nothing to exchange it with, and some file systems cannot.
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {
                fs::rename(&new, &old)?;
                self.sync_names()?;
                // Takes the space of the next one. This one is in place, whatever becomes of that.
                let _ = write_padded(&new, content);
                Ok(())
            }
            exchanged => {
                exchanged?;
                self.sync_names()
            }
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.root.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.root)?.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = statvfs(&self.root)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Writes over what is there, and never makes it shorter: space that is given back may be somebody else's the next time.
fn write_padded(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
    let needed = content.len().next_multiple_of(REPLACED_LEN);
    // Without the space to grow, what is there already may do.
    let _ = fallocate(&file, FallocateFlags::empty(), 0, (needed + REPLACED_LEN) as u64);
    let len =
        usize::try_from(file.metadata()?.len()).expect("small files are smaller than the address space");
    let mut padded = content.to_vec();
    padded.resize(len.max(needed), b'\n');
    file.write_all(&padded)?;
    file.sync_all()
}

fn write_zeros(file: &File, len: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut position = 0;
    while position < len {
        let piece = usize::try_from(len - position).map_or(zeros.len(), |rest| rest.min(zeros.len()));
        file.write_all_at(&zeros[..piece], position)?;
        position += piece as u64;
    }
    Ok(())
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn write_at(&self, position: u64, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(pwritev(self, pieces, position)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, position)
    }

    fn forget_cached(&self) -> io::Result<()> {
        Ok(fadvise(self, 0, None, Advice::DontNeed)?)
    }
}
