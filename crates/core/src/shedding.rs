//! When a node lets cells leave memory, and when it takes no more: by the number of cells and by the memory of its process. It begins
//! late, goes on until clearly below, and refuses before its cap is reached, so that what is on its way still fits.

/// Cells begin to leave at this part of a cap...
pub const BEGIN_PERCENT: u64 = 85;
/// ...until it is this part.
pub const END_PERCENT: u64 = 75;
/// From this part of the memory's cap on nothing more is opened: openings under way, and what is measured late, take the rest.
pub const REFUSE_PERCENT: u64 = 95;
/// At most this part of the cells leaves between two measurements: how much memory one takes is only guessed.
const STEP_SHARE: u64 = 8;

/// What there is, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Cells in memory.
    pub cells: u64,
    /// Memory of the process, in bytes.
    pub memory: u64,
}

/// Whether a node sheds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shedding {
    is_shedding: bool,
}

/// Whether another cell may be opened. As many cells as the cap are; memory is kept free for what is on its way.
#[must_use]
pub fn may_open(usage: Usage, caps: Usage) -> bool {
    usage.cells < caps.cells && usage.memory < percent(caps.memory, REFUSE_PERCENT)
}

fn percent(of: u64, percent: u64) -> u64 {
    of / 100 * percent + of % 100 * percent / 100
}

impl Shedding {
    /// How many cells are to leave before it is measured again. 0: none, until [`BEGIN_PERCENT`] is reached again.
    #[must_use]
    pub fn surplus(&mut self, usage: Usage, caps: Usage) -> u64 {
        let mark = if self.is_shedding { END_PERCENT } else { BEGIN_PERCENT };
        self.is_shedding =
            usage.cells > percent(caps.cells, mark) || usage.memory > percent(caps.memory, mark);
        if !self.is_shedding {
            return 0;
        }
        let by_cells = usage.cells.saturating_sub(percent(caps.cells, END_PERCENT));
        let excess = usage.memory.saturating_sub(percent(caps.memory, END_PERCENT));
        let by_memory = u128::from(usage.cells) * u128::from(excess) / u128::from(usage.memory.max(1));
        let by_memory = u64::try_from(by_memory).unwrap_or(u64::MAX);
        // What is not of cells is counted as theirs: rather too few at once than too many.
        let step = (usage.cells / STEP_SHARE).max(1);
        let by_memory = if excess > 0 { by_memory.clamp(1, step) } else { 0 };
        by_cells.max(by_memory).min(usage.cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Usage = Usage { cells: 1_000, memory: 1_000_000 };

    fn usage(cells: u64, memory: u64) -> Usage {
        Usage { cells, memory }
    }

    #[test]
    fn it_begins_late_and_goes_on_until_clearly_below() {
        let mut shedding = Shedding::default();
        assert_eq!(shedding.surplus(usage(850, 850_000), CAPS), 0);
        assert_eq!(shedding.surplus(usage(851, 0), CAPS), 101);
        assert_eq!(shedding.surplus(usage(751, 0), CAPS), 1);
        assert_eq!(shedding.surplus(usage(750, 0), CAPS), 0);
        assert_eq!(shedding.surplus(usage(850, 0), CAPS), 0);
        // By memory, in steps.
        assert_eq!(shedding.surplus(usage(100, 850_001), CAPS), 11);
        assert_eq!(shedding.surplus(usage(100, 2_000_000), CAPS), 12);
        assert_eq!(shedding.surplus(usage(90, 750_001), CAPS), 1);
        assert_eq!(shedding.surplus(usage(90, 750_000), CAPS), 0);
        // The memory may be of something else.
        assert_eq!(shedding.surplus(usage(1, 900_000), CAPS), 1);
        assert_eq!(shedding.surplus(usage(0, 900_000), CAPS), 0);
    }

    #[test]
    fn it_refuses_at_the_cap_of_cells_and_before_that_of_memory() {
        assert!(may_open(usage(999, 949_999), CAPS));
        assert!(!may_open(usage(1_000, 0), CAPS));
        assert!(!may_open(usage(0, 950_000), CAPS));
        let unbounded = usage(u64::MAX, u64::MAX);
        assert!(may_open(usage(1 << 40, 1 << 50), unbounded));
        assert_eq!(Shedding::default().surplus(usage(1 << 40, 1 << 50), unbounded), 0);
    }

    #[test]
    fn whatever_a_cell_takes_it_ends_below_the_mark() {
        for (base, each) in [(0, 1_000), (400_000, 300), (100_000, 9_000)] {
            let mut cells = (990_000 - base) / each;
            let mut shedding = Shedding::default();
            let mut steps = 0;
            loop {
                match shedding.surplus(usage(cells, base + cells * each), CAPS) {
                    0 => break,
                    surplus => cells -= surplus,
                }
                steps += 1;
                assert!(steps < 60);
            }
            assert!(base + cells * each <= 750_000, "{base} {each}: {cells}");
        }
    }
}
