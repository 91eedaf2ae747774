//! Bundles in the bucket, each named by its first frame, and the one that the session is storing.

use std::collections::BTreeMap;

use holdfast_types::LogOffset;

/// What a bundle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bundle {
    /// Where the next one begins.
    pub(super) below: LogOffset,
    /// Its frames, a bit each.
    pub(super) frames: u32,
}

/// A bundle on its way into the bucket: put until the session knows that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bundling {
    pub(super) first: LogOffset,
    pub(super) bundle: Bundle,
    pub(super) is_stored: bool,
}

/// All that are in the bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bundles {
    stored: BTreeMap<LogOffset, Bundle>,
    /// Writes of which nobody will know. Each may still land.
    pub(super) floating: Vec<(LogOffset, Bundle)>,
    /// One was deleted with a frame that its cell's prefix lacked.
    pub(super) deleted_uncovered: bool,
}

impl Bundles {
    pub(super) fn get(&self, first: LogOffset) -> Option<Bundle> {
        self.stored.get(&first).copied()
    }

    pub(super) fn store(&mut self, first: LogOffset, bundle: Bundle) {
        self.stored.insert(first, bundle);
    }

    pub(super) fn delete(&mut self, first: LogOffset, covered: u32) {
        let gone = self.stored.remove(&first);
        self.deleted_uncovered |= gone.is_some_and(|bundle| bundle.frames & !covered != 0);
    }

    /// The first bundle is not there, or no more.
    pub(super) fn is_first_gone(&self) -> bool {
        self.get(LogOffset::new(1)).is_none()
    }

    /// Frames that a recovery finds which begins with this one.
    pub(super) fn readable(&self, from: Option<LogOffset>) -> u32 {
        let first = from.and_then(|from| self.get(from));
        std::iter::successors(first, |bundle| self.get(bundle.below))
            .fold(0, |bits, bundle| bits | bundle.frames)
    }
}
