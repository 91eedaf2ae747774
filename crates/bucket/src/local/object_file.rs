//! The file of one object: its body, then a footer of fixed length with the body's MD5 and length. Files are written
//! under a temporary name, made durable, and renamed into place; never changed after. So an open file is a snapshot, and
//! the version it carries belongs to the bytes it carries.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};

use crate::Version;
use crate::range::version_of_digest;

/// `\nHFB1 <md5, 32 hex> <length, 16 hex>\n`.
pub(super) const FOOTER_LEN: u64 = 56;

const MAGIC: &[u8; 6] = b"\nHFB1 ";

/// An object opened for reading.
#[derive(Debug)]
pub(super) struct ObjectFile {
    file: File,
    /// Length of the body.
    pub len: u64,
    /// The version of the body.
    pub version: Version,
}

impl ObjectFile {
    /// Opens the object at `path`; `None` when there is none.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let Some((file, file_len)) = open(path)? else { return Ok(None) };
        let body_len = file_len.checked_sub(FOOTER_LEN).ok_or_else(damaged)?;
        let mut footer = [0; FOOTER_LEN as usize];
        file.read_exact_at(&mut footer, body_len)?;
        let version = read_footer(&footer, body_len)?;
        Ok(Some(Self { file, len: body_len, version }))
    }

    /// The bytes from `offset`, exactly `len` of them.
    pub(super) fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

/// The whole object at `path` in one read; `None` when there is none.
pub(super) fn read_whole(path: &Path) -> io::Result<Option<(Vec<u8>, Version)>> {
    let Some((file, file_len)) = open(path)? else { return Ok(None) };
    let body_len = file_len.checked_sub(FOOTER_LEN).ok_or_else(damaged)?;
    let mut bytes = vec![0; usize::try_from(file_len).map_err(|_| damaged())?];
    file.read_exact_at(&mut bytes, 0)?;
    let footer = bytes.split_off(body_len as usize);
    let version = read_footer(&footer, body_len)?;
    Ok(Some((bytes, version)))
}

/// Whether `error` says that a file is not an object of this format.
pub(super) fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let len = file.metadata()?.len();
    Ok(Some((file, len)))
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file does not end with the footer of its body")
}

fn footer(version: &Version, body_len: u64) -> [u8; FOOTER_LEN as usize] {
    let text = format!("\nHFB1 {} {body_len:016x}\n", version.as_str());
    text.into_bytes().try_into().expect("an MD5 has 32 digits")
}

fn read_footer(bytes: &[u8], body_len: u64) -> io::Result<Version> {
    let digest = bytes.get(MAGIC.len()..MAGIC.len() + 32).ok_or_else(damaged)?;
    let version = Version::new(String::from_utf8_lossy(digest));
    let is_hex = digest.iter().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    if is_hex && *bytes == footer(&version, body_len) { Ok(version) } else { Err(damaged()) }
}

/// An object being written. Its file is locked while it lives, which tells it from a dead process's leavings, and is
/// removed on drop unless it was published.
#[derive(Debug)]
pub(super) struct Draft {
    file: File,
    path: PathBuf,
    digest: Md5,
    len: u64,
    is_published: bool,
}

impl Draft {
    /// Begins a new object under the temporary name `path`, which must be unused.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let draft = Self { file, path, digest: Md5::new(), len: 0, is_published: false };
        draft.file.try_lock().map_err(io::Error::from)?;
        Ok(draft)
    }

    /// The temporary name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds to the body.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.len += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Ends the body and makes the file durable; answers its version.
    pub(super) fn seal(&mut self) -> io::Result<Version> {
        let version = version_of_digest(self.digest.finalize_reset().into());
        self.file.write_all(&footer(&version, self.len))?;
        self.file.sync_data()?;
        Ok(version)
    }

    /// Renames the file to `target`, replacing what is there.
    pub(super) fn publish(&mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_published {
            // Best effort: what stays is removed by a later `open` of the bucket.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_never_an_object() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("object");
        let mut draft = Draft::create(folder.path().join("draft")).unwrap();
        draft.write(b"hello").unwrap();
        let version = draft.seal().unwrap();
        draft.publish(&target).unwrap();
        assert_eq!(read_whole(&target).unwrap(), Some((b"hello".to_vec(), version)));
        let good = std::fs::read(&target).unwrap();
        let mut damaged = vec![vec![], good[..1].to_vec(), good[..good.len() - 1].to_vec()];
        damaged.push(vec![0; good.len()]);
        damaged.push(good[1..].to_vec());
        for bytes in damaged {
            std::fs::write(&target, &bytes).unwrap();
            assert!(is_damage(&read_whole(&target).unwrap_err()), "{bytes:?}");
            assert!(is_damage(&ObjectFile::open(&target).unwrap_err()), "{bytes:?}");
        }
    }

    #[test]
    fn an_unpublished_draft_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut draft = Draft::create(folder.path().join("draft")).unwrap();
        draft.write(b"hello").unwrap();
        drop(draft);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
