//! Opens the directory of an embedded bucket: makes its folders, checks its format, clears dead writers' leavings.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::fault::Call;
use super::folders::sync_folder;
use super::operations::Store;
use crate::{BucketError, ErrorKind};

/// Names inside the directory. Objects lie below `objects`, so that nothing of ours can be taken for one.
const OBJECTS: &str = "objects";
const TEMPORARY: &str = "temporary";
const LOCKS: &str = "locks";
const FORMAT_FILE: &str = "format";

/// What the format file says. A change that an older program must not touch takes another text.
const FORMAT: &str = "holdfast bucket 1\n";

/// Temporary files younger than this may be between creation and their lock.
const LEAVINGS_AGE_MIN: Duration = Duration::from_secs(60);

const CALL: Call<'static> = Call { operation: "open", key: "" };

/// Opens or makes the bucket in `directory`.
pub(super) fn open(directory: &Path) -> Result<Store, BucketError> {
    let directory = std::path::absolute(directory)
        .map_err(|error| CALL.io("find the absolute path of", directory, &error))?;
    let objects = directory.join(OBJECTS);
    let temporary = directory.join(TEMPORARY);
    match make(&directory) {
        Ok(()) => clear_leavings(&temporary),
        // A bucket that may only be read is still a bucket; each write will name the reason.
        Err(error) if error.kind == ErrorKind::Denied && objects.is_dir() => {
            tracing::warn!(directory = %directory.display(), %error, "the bucket opens for reading only");
        }
        Err(error) => return Err(error),
    }
    check_format(&directory)?;
    Ok(Store::new(directory.clone(), objects, temporary, directory.join(LOCKS)))
}

fn make(directory: &Path) -> Result<(), BucketError> {
    for folder in [OBJECTS, TEMPORARY, LOCKS].map(|name| directory.join(name)) {
        std::fs::create_dir_all(&folder).map_err(|error| CALL.io("create", &folder, &error))?;
    }
    let format = directory.join(FORMAT_FILE);
    if !format.exists() {
        write_format(directory, &format).map_err(|error| CALL.io("write", &format, &error))?;
    }
    for folder in directory.ancestors().take(2) {
        sync_folder(folder).map_err(|error| CALL.io("sync", folder, &error))?;
    }
    Ok(())
}

/// Writes the format file aside and renames it, so that nobody reads half of it. Racing openers write the same bytes.
fn write_format(directory: &Path, format: &Path) -> io::Result<()> {
    let aside = directory.join(TEMPORARY).join(super::operations::unique_name());
    std::fs::write(&aside, FORMAT)?;
    File::open(&aside)?.sync_all()?;
    std::fs::rename(&aside, format)
}

fn check_format(directory: &Path) -> Result<(), BucketError> {
    let path = directory.join(FORMAT_FILE);
    let found = std::fs::read(&path).map_err(|error| CALL.io("read", &path, &error))?;
    if found == FORMAT.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(&found[..found.len().min(80)]).into_owned();
    let detail = format!("`{}` says {found:?}; this program knows {FORMAT:?}", path.display());
    Err(CALL.fail(ErrorKind::Unsupported, detail))
}

/// Removes temporary files that are old and that nobody holds locked: their writers are dead. Failures only cost space.
fn clear_leavings(temporary: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if is_left_behind(&path).unwrap_or(false) {
            match std::fs::remove_file(&path) {
                Ok(()) => tracing::info!(path = %path.display(), "removed a dead writer's temporary file"),
                Err(error) => tracing::debug!(path = %path.display(), %error, "a temporary file stays"),
            }
        }
    }
}

fn is_left_behind(path: &PathBuf) -> io::Result<bool> {
    let file = File::open(path)?;
    let age = SystemTime::now().duration_since(file.metadata()?.modified()?).unwrap_or_default();
    Ok(age >= LEAVINGS_AGE_MIN && file.try_lock().is_ok())
}
