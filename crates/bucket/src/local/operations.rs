//! Every operation of the embedded bucket, blocking.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;

use super::fault::Call;
use super::folders::{Folders, sync_folder};
use super::layout;
use super::listing;
use super::locks::Locks;
use super::object_file::{self, Draft, ObjectFile};
use crate::{BucketError, ByteRange, ErrorKind, Guard, Listing, Object, ObjectHead, Version};

/// The file of the tree's lock, among the keys' lock files.
const TREE_LOCK: &str = "folders";

/// One open directory.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    temporary: PathBuf,
    folders: Folders,
    locks: Locks,
}

/// A name that no other writer of this machine has used.
pub(super) fn unique_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // The start instant tells lives of one process id apart; a clash would fail the create, never mix two writers.
    static LIFE: std::sync::LazyLock<u64> =
        std::sync::LazyLock::new(|| getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id())));
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{:016x}-{number}", std::process::id(), *LIFE)
}

impl Store {
    pub(super) fn new(directory: PathBuf, objects: PathBuf, temporary: PathBuf, locks: PathBuf) -> Self {
        let folders = Folders::new(objects, locks.join(TREE_LOCK));
        Self { directory, temporary, folders, locks: Locks::new(locks) }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, key: &str) -> PathBuf {
        layout::object_path(self.folders.root(), key)
    }

    pub(super) fn get(&self, call: Call<'_>) -> Result<Option<Object>, BucketError> {
        let path = self.path(call.key);
        let found = object_file::read_whole(&path).map_err(|error| read_error(call, &path, &error))?;
        Ok(found.map(|(body, version)| Object { body: Bytes::from(body), version }))
    }

    /// Opens the object of `call`, or answers `None`.
    pub(super) fn open(&self, call: Call<'_>) -> Result<Option<ObjectFile>, BucketError> {
        let path = self.path(call.key);
        ObjectFile::open(&path).map_err(|error| read_error(call, &path, &error))
    }

    /// Reads from an object opened before.
    pub(super) fn read(
        &self,
        call: Call<'_>,
        file: &ObjectFile,
        offset: u64,
        len: usize,
    ) -> Result<Bytes, BucketError> {
        let bytes = file.read(offset, len).map_err(|error| read_error(call, &self.path(call.key), &error))?;
        Ok(Bytes::from(bytes))
    }

    pub(super) fn get_range(&self, call: Call<'_>, range: ByteRange) -> Result<Option<Object>, BucketError> {
        let Some(file) = self.open(call)? else { return Ok(None) };
        let range = range.resolve(call.operation, call.key, file.len)?;
        let len = usize::try_from(range.end - range.start)
            .map_err(|_| call.fail(ErrorKind::Invalid, "the range is larger than memory"))?;
        let body = self.read(call, &file, range.start, len)?;
        Ok(Some(Object { body, version: file.version }))
    }

    pub(super) fn head(&self, call: Call<'_>) -> Result<Option<ObjectHead>, BucketError> {
        Ok(self.open(call)?.map(|file| ObjectHead { len: file.len, version: file.version }))
    }

    pub(super) fn list(
        &self,
        call: Call<'_>,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Listing, BucketError> {
        listing::list(self.folders.root(), call.key, start_after, limit)
            .map_err(|(path, error)| call.io("list", &path, &error))
    }

    pub(super) fn put(&self, call: Call<'_>, body: &[u8], deadline: Instant) -> Result<Version, BucketError> {
        let mut draft = self.begin(call)?;
        self.append(call, &mut draft, body)?;
        self.publish(call, draft, deadline)
    }

    /// Begins an object under a temporary name.
    pub(super) fn begin(&self, call: Call<'_>) -> Result<Draft, BucketError> {
        let path = self.temporary.join(unique_name());
        Draft::create(path.clone()).map_err(|error| call.io("create", &path, &error))
    }

    /// Adds to an object that was begun.
    pub(super) fn append(&self, call: Call<'_>, draft: &mut Draft, body: &[u8]) -> Result<(), BucketError> {
        draft.write(body).map_err(|error| call.io("write", draft.path(), &error))
    }

    /// Makes an object visible under its key without a condition.
    pub(super) fn publish(
        &self,
        call: Call<'_>,
        mut draft: Draft,
        deadline: Instant,
    ) -> Result<Version, BucketError> {
        let version = self.seal(call, &mut draft)?;
        self.install(call, &mut draft, deadline, || Ok(true))?;
        Ok(version)
    }

    /// `None` says that the guard did not hold.
    pub(super) fn put_if(
        &self,
        call: Call<'_>,
        body: &[u8],
        guard: &Guard,
        deadline: Instant,
    ) -> Result<Option<Version>, BucketError> {
        // Saves the write when the answer is clear already. Under the lock the guard is asked again.
        if !self.holds(call, guard)? {
            return Ok(None);
        }
        let mut draft = self.begin(call)?;
        self.append(call, &mut draft, body)?;
        let version = self.seal(call, &mut draft)?;
        let is_installed = self.install(call, &mut draft, deadline, || self.holds(call, guard))?;
        Ok(is_installed.then_some(version))
    }

    fn seal(&self, call: Call<'_>, draft: &mut Draft) -> Result<Version, BucketError> {
        draft.seal().map_err(|error| call.io("write", draft.path(), &error))
    }

    fn holds(&self, call: Call<'_>, guard: &Guard) -> Result<bool, BucketError> {
        let path = self.path(call.key);
        match guard {
            Guard::Absent => match std::fs::symlink_metadata(&path) {
                Ok(_) => Ok(false),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
                Err(error) => Err(read_error(call, &path, &error)),
            },
            Guard::Match(version) => Ok(self.open(call)?.is_some_and(|file| file.version == *version)),
        }
    }

    /// Under the key's lock: checks, renames. Then makes the folder durable. False when the check said no.
    fn install(
        &self,
        call: Call<'_>,
        draft: &mut Draft,
        deadline: Instant,
        check: impl Fn() -> Result<bool, BucketError>,
    ) -> Result<bool, BucketError> {
        let path = self.path(call.key);
        let folder = path.parent().expect("an object lies in a folder");
        let held = self.locks.take(call, deadline)?;
        if !check()? {
            return Ok(false);
        }
        if Instant::now() >= deadline {
            let detail = "the deadline passed before the rename; nothing was written";
            return Err(call.fail(ErrorKind::NoAnswer, detail));
        }
        let mut renamed = draft.publish(&path);
        if renamed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            let _kept = self.folders.make(call, folder, deadline)?;
            renamed = draft.publish(&path);
        }
        drop(held);
        renamed.map_err(|error| call.io("rename into place", &path, &error))?;
        self.folders.sync(folder).map_err(|error| call.io("sync", folder, &error))?;
        Ok(true)
    }

    pub(super) fn delete(&self, call: Call<'_>, deadline: Instant) -> Result<(), BucketError> {
        let folder = self.unlink(call, deadline)?;
        self.tidy(call, folder.into_iter().collect(), deadline)
    }

    pub(super) fn delete_many(&self, keys: &[String], deadline: Instant) -> Result<(), BucketError> {
        let mut folders = BTreeSet::new();
        for key in keys {
            folders.extend(self.unlink(Call { operation: "delete_many", key }, deadline)?);
        }
        self.tidy(Call { operation: "delete_many", key: "" }, folders, deadline)
    }

    /// Removes the file; answers its folder when there was one.
    fn unlink(&self, call: Call<'_>, deadline: Instant) -> Result<Option<PathBuf>, BucketError> {
        let path = self.path(call.key);
        let held = self.locks.take(call, deadline)?;
        let removed = std::fs::remove_file(&path);
        drop(held);
        match removed {
            Ok(()) => Ok(path.parent().map(Path::to_owned)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(call.io("remove", &path, &error)),
        }
    }

    /// After removals from these folders: drops those that are empty now, and makes the rest durable, each once.
    fn tidy(&self, call: Call<'_>, folders: BTreeSet<PathBuf>, deadline: Instant) -> Result<(), BucketError> {
        let stay: BTreeSet<&Path> =
            folders.iter().map(|folder| self.folders.remove_empty(folder, deadline)).collect();
        for folder in stay {
            sync_folder(folder).map_err(|error| call.io("sync", folder, &error))?;
        }
        Ok(())
    }
}

fn read_error(call: Call<'_>, path: &Path, error: &io::Error) -> BucketError {
    if object_file::is_damage(error) {
        let detail = format!("`{}` is not a whole object: {error}", path.display());
        return call.fail(ErrorKind::BadBody, detail);
    }
    call.io("read", path, error)
}
