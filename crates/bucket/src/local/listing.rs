//! One page of a listing: a walk of the folders in byte order of the keys, into no folder that the prefix or
//! `start_after` excludes, and no further than the page.

use std::io;
use std::path::{Path, PathBuf};

use super::layout::{self, Entry};
use super::object_file::FOOTER_LEN;
use crate::{ListedObject, Listing};

/// Lists the keys below `root`; the error names the path that failed.
pub(super) fn list(
    root: &Path,
    prefix: &str,
    start_after: Option<&str>,
    limit: usize,
) -> Result<Listing, (PathBuf, io::Error)> {
    let (folder, path) = match prefix.rfind('/') {
        Some(slash) => (&prefix[..=slash], layout::folder_path(root, &prefix[..slash])),
        None => ("", root.to_owned()),
    };
    let mut walk = Walk {
        prefix: prefix.as_bytes(),
        start_after: start_after.map_or(&[], str::as_bytes),
        limit,
        rows: Vec::with_capacity(limit.min(64)),
        has_more: false,
    };
    walk.enter(&path, folder.as_bytes())?;
    let next = if walk.has_more { walk.rows.last().map(|row| row.key.clone()) } else { None };
    Ok(Listing { objects: walk.rows, next })
}

struct Walk<'a> {
    prefix: &'a [u8],
    start_after: &'a [u8],
    limit: usize,
    rows: Vec<ListedObject>,
    has_more: bool,
}

/// A name of one segment: an object, or a folder whose name then ends with a slash. Sorting these names sorts the keys,
/// because no object's name holds a slash.
struct Row {
    name: Vec<u8>,
    path: PathBuf,
    is_folder: bool,
}

impl Walk<'_> {
    /// Walks one folder, whose keys all begin with `base`.
    fn enter(&mut self, path: &Path, base: &[u8]) -> Result<(), (PathBuf, io::Error)> {
        let mut rows = Vec::new();
        self.gather(path, base, &[], &mut rows)?;
        rows.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for row in rows {
            if self.has_more {
                break;
            }
            let key = [base, &row.name].concat();
            if row.is_folder {
                self.enter(&row.path, &key)?;
            } else {
                self.push(&row.path, key)?;
            }
        }
        Ok(())
    }

    /// Collects the names of one folder that may belong to the page; long names continue in folders of their own.
    fn gather(
        &self,
        path: &Path,
        base: &[u8],
        before: &[u8],
        rows: &mut Vec<Row>,
    ) -> Result<(), (PathBuf, io::Error)> {
        let fail = |error| (path.to_owned(), error);
        let folder = match std::fs::read_dir(path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(fail(error)),
        };
        for entry in folder {
            let entry = entry.map_err(fail)?;
            let Some(read) = entry.file_name().to_str().and_then(layout::read_name) else { continue };
            let (mut tail, is_folder, is_rest) = match read {
                Entry::Object(tail) => (tail, false, false),
                Entry::Folder(tail) => (tail, true, false),
                Entry::Rest(tail) => (tail, true, true),
            };
            if is_folder && !is_rest {
                tail.push(b'/');
            }
            let name = [before, &tail].concat();
            if !self.may_hold(&[base, &name].concat(), is_folder) {
                continue;
            }
            if is_rest {
                self.gather(&entry.path(), base, &name, rows)?;
            } else {
                rows.push(Row { name, path: entry.path(), is_folder });
            }
        }
        Ok(())
    }

    /// Whether `key`, or for a folder some key that begins with it, belongs to the listing.
    fn may_hold(&self, key: &[u8], is_folder: bool) -> bool {
        let fits = key.starts_with(self.prefix) || (is_folder && self.prefix.starts_with(key));
        let is_after = key > self.start_after || (is_folder && self.start_after.starts_with(key));
        fits && is_after
    }

    fn push(&mut self, path: &Path, key: Vec<u8>) -> Result<(), (PathBuf, io::Error)> {
        if self.rows.len() == self.limit {
            self.has_more = true;
            return Ok(());
        }
        let len = match std::fs::metadata(path) {
            Ok(metadata) => metadata.len().saturating_sub(FOOTER_LEN),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err((path.to_owned(), error)),
        };
        // Fragments are cut between bytes, keys are UTF-8 as a whole: anything else is a foreign file.
        if let Ok(key) = String::from_utf8(key) {
            self.rows.push(ListedObject { key, len });
        }
        Ok(())
    }
}
