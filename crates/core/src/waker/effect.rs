//! What the shell must do. Each effect is answered by exactly one event.

use alloc::string::String;
use alloc::vec::Vec;

use holdfast_types::{AlarmId, CellName, WakeMinute};

/// An order to the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakerEffect {
    /// Read a page of the index; answer `Listed` or `ListFailed`.
    List {
        /// Keys after this one; none: from the first.
        after: Option<String>,
        /// Rows at most.
        limit: usize,
    },
    /// Read what is retired of a cell; answer `RetirementRead`.
    ReadRetirement {
        /// The cell.
        cell: CellName,
        /// Read the owner record's floor, too.
        with_floor: bool,
    },
    /// Delete entries of a cell; answer `Deleted`.
    Delete {
        /// The cell.
        cell: CellName,
        /// At most [`super::CELL_ENTRIES_MAX`].
        entries: Vec<(WakeMinute, AlarmId)>,
    },
    /// Have the cell's owner open it and look; answer `Hinted`.
    Hint {
        /// The cell.
        cell: CellName,
        /// Where the newest entry stands.
        minute: WakeMinute,
        /// Its installation.
        id: AlarmId,
    },
}
