//! Cells that wait to be looked at, by time. Those that could not be looked at the last time wait apart: at most half of what
//! may be under way at once is theirs, so that any number of cells that nobody can open holds up none that can be.

use alloc::collections::BTreeSet;

use holdfast_types::{CellName, Millis};

/// A cell and when it is looked at.
type Waiting = (Millis, CellName);

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    sound: BTreeSet<Waiting>,
    failing: BTreeSet<Waiting>,
    /// Failing ones that are being looked at.
    under_way: BTreeSet<CellName>,
}

impl Queue {
    /// A cell waits from now on; it waited nowhere.
    pub(super) fn insert(&mut self, at: Millis, cell: CellName, is_failing: bool) {
        let queue = if is_failing { &mut self.failing } else { &mut self.sound };
        queue.insert((at, cell));
    }

    /// A cell does not wait any more.
    pub(super) fn remove(&mut self, at: Millis, cell: &CellName) {
        let waiting = (at, cell.clone());
        if !self.sound.remove(&waiting) {
            self.failing.remove(&waiting);
        }
    }

    /// The next one, of those that may be begun where `room` looks may be under way at once.
    fn next(&self, room: u32) -> Option<(&Waiting, bool)> {
        let failing_max = usize::try_from(room / 2).unwrap_or(usize::MAX).max(1);
        let failing = self.failing.first().filter(|_| self.under_way.len() < failing_max);
        match (self.sound.first(), failing) {
            (Some(sound), Some(failing)) if failing < sound => Some((failing, true)),
            (Some(sound), _) => Some((sound, false)),
            (None, failing) => failing.map(|waiting| (waiting, true)),
        }
    }

    /// When the next one's time comes.
    pub(super) fn next_at(&self, room: u32) -> Option<Millis> {
        self.next(room).map(|((at, _), _)| *at)
    }

    /// The next one, if its time has come. [`Self::ended`] must follow.
    pub(super) fn begin(&mut self, now: Millis, room: u32) -> Option<CellName> {
        let (waiting, is_failing) = self.next(room).filter(|((at, _), _)| *at <= now)?;
        let waiting = waiting.clone();
        if is_failing {
            self.failing.remove(&waiting);
            self.under_way.insert(waiting.1.clone());
        } else {
            self.sound.remove(&waiting);
        }
        Some(waiting.1)
    }

    /// A look has ended.
    pub(super) fn ended(&mut self, cell: &CellName) {
        self.under_way.remove(cell);
    }

    /// The one whose time comes last of all.
    pub(super) fn last(&self) -> Option<&Waiting> {
        self.sound.last().max(self.failing.last())
    }
}
