//! How many files the process may have open, and how many cells that is enough for: a cell that cannot open its files fails, and takes
//! others' files with it.

use rustix::process::{Resource, getrlimit};

/// Files of a cell: its database, its write-ahead log, and while it is in use the latter again, to capture it.
const FILES_OF_CELL: u64 = 3;
/// At least so many files are left to connections, uploads and restores...
const OTHER_FILES_MIN: u64 = 256;
/// ...and at least this part of all.
const OTHER_FILES_SHARE: u64 = 16;

/// How many cells the process may open files for. Its start has raised its limit as far as it may.
pub(crate) fn cells_max() -> usize {
    // None: as many as there are.
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, cells_for)
}

fn cells_for(files: u64) -> usize {
    let others = (files / OTHER_FILES_SHARE).max(OTHER_FILES_MIN);
    usize::try_from(files.saturating_sub(others) / FILES_OF_CELL).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_to_others() {
        assert_eq!(cells_for(1_024), 256);
        assert_eq!(cells_for(65_536), 20_480);
        assert_eq!(cells_for(100), 1);
        assert_eq!(cells_for(u64::MAX), usize::try_from((u64::MAX - u64::MAX / 16) / 3).unwrap());
        assert!(cells_max() >= 1);
    }
}
