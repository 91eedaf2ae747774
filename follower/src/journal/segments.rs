//! The open segments, and how many retained frames each holds: one with none is given up.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_rpc::follower::LogFrame;
use holdfast_types::{LogOffset, SessionId};

use super::disk::DiskFile;
use super::format::{Reader, read_frame};
use super::index::FramePlace;

/// A frame could not be read. Disposition: corrupt.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The disk did not give it.
    #[error("frame {offset} cannot be read: {source}")]
    Io {
        /// The frame.
        offset: LogOffset,
        /// Why.
        source: io::Error,
    },
    /// What the disk gave is not what was written.
    #[error("frame {0} is not what was written")]
    Altered(LogOffset),
}

/// All segments of the journal.
#[derive(Default)]
pub struct Segments {
    inner: Mutex<BTreeMap<u32, Segment>>,
}

struct Segment {
    file: Arc<dyn DiskFile>,
    /// Retained frames in it.
    live: u64,
    /// Whether it is written no more.
    is_closed: bool,
}

impl Segments {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Segment>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, number: u32, file: Arc<dyn DiskFile>, is_closed: bool) {
        self.lock().insert(number, Segment { file, live: 0, is_closed });
    }

    /// It is written again.
    pub(super) fn reopen(&self, number: u32) {
        if let Some(segment) = self.lock().get_mut(&number) {
            segment.is_closed = false;
        }
    }

    pub(super) fn close(&self, number: u32) {
        if let Some(segment) = self.lock().get_mut(&number) {
            segment.is_closed = true;
        }
    }

    pub(super) fn retain(&self, places: impl IntoIterator<Item = FramePlace>) {
        let mut segments = self.lock();
        for place in places {
            if let Some(segment) = segments.get_mut(&place.segment) {
                segment.live += 1;
            }
        }
    }

    /// These frames are not retained any more, and an entry that says so is fsynced.
    pub fn release(&self, places: &[FramePlace]) {
        let mut segments = self.lock();
        for place in places {
            if let Some(segment) = segments.get_mut(&place.segment) {
                segment.live = segment.live.checked_sub(1).expect("a frame is released once");
            }
        }
    }

    /// Takes the segments out that nobody needs.
    pub(super) fn take_dead(&self) -> Vec<u32> {
        let mut segments = self.lock();
        let dead = segments.iter().filter(|(_, segment)| segment.is_closed && segment.live == 0);
        let dead: Vec<u32> = dead.map(|(number, _)| *number).collect();
        for number in &dead {
            segments.remove(number);
        }
        dead
    }

    /// Segments now.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Reads a frame and checks it.
    ///
    /// # Errors
    /// [`ReadError`]: it is lost, unless it was released meanwhile.
    pub fn read(
        &self,
        session: SessionId,
        (offset, place): (LogOffset, FramePlace),
    ) -> Result<LogFrame, ReadError> {
        let file = self.lock().get(&place.segment).map(|segment| Arc::clone(&segment.file));
        let file = file.ok_or(ReadError::Altered(offset))?;
        let mut bytes = vec![0; usize::try_from(place.len).expect("frames are bounded")];
        file.read_at(u64::from(place.position), &mut bytes)
            .map_err(|source| ReadError::Io { offset, source })?;
        let frame = read_frame(&mut Reader(&bytes));
        let intact = frame.filter(|frame| frame.offset == offset && frame.is_intact(session));
        intact.ok_or(ReadError::Altered(offset))
    }
}
