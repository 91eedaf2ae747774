//! Moves captured transactions into the bucket and keeps chains short. What to upload, when to read the owner record and
//! when to compact is decided by the core's gate and compaction; this folder does it.

mod compact;
mod due;
mod pending;
mod upload;

pub(crate) use compact::on as on_compaction;
pub use due::DueCells;
pub(crate) use pending::Pending;
pub(crate) use upload::{read_owner, upload};
