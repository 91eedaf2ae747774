//! A disk in memory that keeps for sure only what was fsynced, and fails when it is told to.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Condvar, Mutex};

use crate::journal::{Disk, DiskFile};

const SECTOR_LEN: usize = 512;

#[derive(Default)]
pub(super) struct SimDisk {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, usize>,
    names_synced: BTreeMap<String, usize>,
    files: Vec<Content>,
    faults: Faults,
    syncs: usize,
    operations: usize,
    is_held: bool,
}

#[derive(Clone, Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Clone, Default)]
pub(super) struct Faults {
    /// The fsync of data with this number fails, and all after it.
    pub(super) sync_fails_at: Option<usize>,
    /// The operation with this number, and all after it, do not happen any more.
    pub(super) power_fails_at: Option<usize>,
    /// Bytes for files.
    pub(super) space: Option<usize>,
    /// There is no room for a small file's new content.
    pub(super) replace_is_full: bool,
    /// Writes take fewer bytes than they are given.
    pub(super) short_writes: bool,
}

struct SimFile {
    shared: Arc<Shared>,
    id: usize,
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl State {
    fn operation(&mut self) -> io::Result<()> {
        self.operations += 1;
        match self.faults.power_fails_at {
            Some(at) if self.operations >= at => Err(broken()),
            _ => Ok(()),
        }
    }

    fn used(&self) -> usize {
        self.names.values().map(|id| self.files[*id].now.len()).sum()
    }

    fn id(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl SimDisk {
    pub(super) fn with(faults: Faults) -> Self {
        let disk = Self::default();
        disk.set(faults);
        disk
    }

    pub(super) fn set(&self, faults: Faults) {
        self.shared.state.lock().unwrap().faults = faults;
    }

    pub(super) fn syncs(&self) -> usize {
        self.shared.state.lock().unwrap().syncs
    }

    /// While held, an fsync of data does not return.
    pub(super) fn hold_syncs(&self, is_held: bool) {
        self.shared.state.lock().unwrap().is_held = is_held;
        self.shared.changed.notify_all();
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().names.keys().cloned().collect()
    }

    pub(super) fn remove_by_hand(&self, name: &str) {
        let mut state = self.shared.state.lock().unwrap();
        state.names.remove(name).unwrap();
        state.names_synced.remove(name);
    }

    /// Changes bytes as rot would.
    pub(super) fn alter(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.shared.state.lock().unwrap();
        let id = state.id(name).unwrap();
        change(&mut state.files[id].now);
        state.files[id].synced = state.files[id].now.clone();
    }

    /// The disk after the process was killed: what was written is still in memory, fsynced or not.
    pub(super) fn after_kill(&self) -> Self {
        self.copy(Content::clone, |state| state.names.clone())
    }

    /// The disk after a power cut: of what was not fsynced, each sector survives by `coin`.
    pub(super) fn after_power_cut(&self, mut coin: impl FnMut() -> bool) -> Self {
        let keeps_names = coin();
        let survive = |content: &Content, coin: &mut dyn FnMut() -> bool| {
            let mut data = content.synced.clone();
            data.resize(content.now.len(), 0);
            for (old, new) in data.chunks_mut(SECTOR_LEN).zip(content.now.chunks(SECTOR_LEN)) {
                if old != new && coin() {
                    old.copy_from_slice(new);
                }
            }
            data
        };
        self.copy(
            |content| {
                let now = survive(content, &mut coin);
                Content { synced: now.clone(), now }
            },
            |state| if keeps_names { state.names.clone() } else { state.names_synced.clone() },
        )
    }

    fn copy(
        &self,
        content: impl FnMut(&Content) -> Content,
        names: impl FnOnce(&State) -> BTreeMap<String, usize>,
    ) -> Self {
        let state = self.shared.state.lock().unwrap();
        let names = names(&state);
        let files = state.files.iter().map(content).collect();
        let copy = State { names_synced: names.clone(), names, files, ..State::default() };
        Self { shared: Arc::new(Shared { state: Mutex::new(copy), changed: Condvar::new() }) }
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.shared.state.lock().unwrap();
        state.operation()?;
        let len = usize::try_from(len).unwrap();
        if state.faults.space.is_some_and(|space| state.used() + len > space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let id = state.files.len();
        state.files.push(Content { now: vec![0; len], synced: vec![0; len] });
        state.names.insert(name.into(), id);
        Ok(Arc::new(SimFile { shared: Arc::clone(&self.shared), id }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.shared.state.lock().unwrap().id(name)?;
        Ok(Arc::new(SimFile { shared: Arc::clone(&self.shared), id }))
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let state = self.shared.state.lock().unwrap();
        Ok(state.id(name).ok().map(|id| state.files[id].now.clone()))
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut state = self.shared.state.lock().unwrap();
        state.operation()?;
        if state.faults.replace_is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let id = state.files.len();
        state.files.push(Content { now: content.to_vec(), synced: content.to_vec() });
        state.names.insert(name.into(), id);
        state.names_synced = state.names.clone();
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.shared.state.lock().unwrap();
        state.operation()?;
        let id = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.into(), id);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.shared.state.lock().unwrap();
        state.operation()?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.shared.state.lock().unwrap();
        state.operation()?;
        state.names_synced = state.names.clone();
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.shared.state.lock().unwrap();
        let space = state.faults.space.unwrap_or(1 << 40);
        Ok(space.saturating_sub(state.used()) as u64)
    }
}

impl DiskFile for SimFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.shared.state.lock().unwrap().files[self.id].now.len() as u64)
    }

    fn write_at(&self, position: u64, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.shared.state.lock().unwrap();
        let died = state.operation();
        let mut bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        // A write that the power cut in the middle, or one that the system did not take whole.
        if died.is_err() || (state.faults.short_writes && bytes.len() > 1) {
            bytes.truncate(bytes.len().div_ceil(2));
        }
        let position = usize::try_from(position).unwrap();
        state.files[self.id].now[position..position + bytes.len()].copy_from_slice(&bytes);
        died.map(|()| bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        let state = self.shared.state.lock().unwrap();
        let mut state = self.shared.changed.wait_while(state, |state| state.is_held).unwrap();
        state.operation()?;
        state.syncs += 1;
        if state.faults.sync_fails_at.is_some_and(|at| state.syncs >= at) {
            return Err(broken());
        }
        let content = &mut state.files[self.id];
        content.synced = content.now.clone();
        Ok(())
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.shared.state.lock().unwrap();
        let position = usize::try_from(position).unwrap();
        let data = state.files[self.id].now.get(position..position + buffer.len());
        buffer.copy_from_slice(data.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}
