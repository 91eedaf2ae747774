//! The bucket's records: one file per kind, and one [`Key`] for every object that Holdfast writes. A record is a small
//! JSON object, `version` first. Readers ignore fields they do not know and refuse a newer major version.

mod codec;
pub mod fleet_identity;
mod hex;
mod key;
pub mod node_lease;
pub mod opener;
pub mod owner;

pub use codec::{Record, RecordError, RecordVersion};
pub use fleet_identity::{CaCertificate, FleetIdentity, TokenKey};
pub use key::{Key, KeyError, Level, cell_prefix, epoch_prefix, level_prefix};
pub use node_lease::{NodeLease, NodeLoad, ProtocolRange};
pub use opener::{Opener, OpenerBase, OpenerReason};
pub use owner::{OwnerRecord, OwnerState};
