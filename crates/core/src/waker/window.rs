//! How many cells are opened at once: more while the fleet keeps up, half as many when a node says that it has enough.

use holdfast_types::Millis;

/// Where it begins: a fleet that has just started has other things to do.
const FIRST: u32 = 8;
/// Refusals that come together halve once.
const SHRINK_PAUSE_MS: u64 = 1_000;

#[derive(Clone, Debug)]
pub(super) struct Window {
    /// In 1/256 of a cell.
    size: u32,
    max: u32,
    shrunk: Option<Millis>,
}

impl Window {
    pub(super) fn new(max: u32) -> Self {
        let max = max.clamp(1, 1 << 16) << 8;
        Self { size: (FIRST << 8).min(max), max, shrunk: None }
    }

    pub(super) fn has_room(&self, in_flight: usize) -> bool {
        u32::try_from(in_flight).is_ok_and(|in_flight| in_flight < self.size >> 8)
    }

    pub(super) fn size(&self) -> u32 {
        self.size >> 8
    }

    /// A cell was opened: a whole window of them is one more.
    pub(super) fn grow(&mut self) {
        self.size = (self.size + (1 << 16) / self.size.max(1 << 8)).min(self.max);
    }

    /// A node has enough.
    pub(super) fn shrink(&mut self, mono: Millis) {
        if self.shrunk.is_none_or(|shrunk| mono.since(shrunk) >= SHRINK_PAUSE_MS) {
            self.shrunk = Some(mono);
            self.size = (self.size / 2).max(1 << 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_slowly_to_its_bound_and_halves_at_once() {
        let mut window = Window::new(16);
        assert!(window.has_room(7) && !window.has_room(8));
        for _ in 0..1_000 {
            window.grow();
        }
        assert_eq!(window.size(), 16);
        window.shrink(Millis::new(5_000));
        window.shrink(Millis::new(5_001));
        assert_eq!(window.size(), 8, "one storm of refusals halves once");
        for second in 6..20 {
            window.shrink(Millis::new(second * 1_000));
        }
        assert!(window.has_room(0) && !window.has_room(1), "one at a time always goes on");
    }
}
