//! One journal for the logs of all sessions: numbered segments in one folder, one thread that writes. Everything that waits
//! while a batch is written and fsynced is the next batch: one write and one fsync, whatever the number of sessions.
//! An entry is reported as persisted after its fsync, never before (INV-LOG-1). The first error of a write or an fsync is
//! the last thing that the journal does: what the disk holds then is known only after reading it anew.

mod batch;
mod disk;
mod folder;
mod format;
mod index;
mod manifest;
mod open;
mod queue;
mod scan;
mod segments;
mod writer;

#[cfg(test)]
mod tests;

pub use disk::{Disk, DiskFile};
pub use folder::FolderDisk;
pub use format::{Entry, EntryBody};
pub use index::{FrameIndex, FramePlace};
pub use open::{BatchStats, Journal, JournalError, JournalOptions, Opened};
pub use queue::{Completed, Ends};
pub use scan::RecoveredLog;
pub use segments::{ReadError, Segments};
pub use writer::Report;
