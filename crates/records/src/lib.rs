//! The bucket's records: one file per kind, and one [`Key`] for every object that Holdfast writes. A record is a small
//! JSON object, `version` first. Readers ignore fields they do not know and refuse a newer major version.

pub mod bundle;
mod codec;
pub mod deployment;
pub mod drain_lease;
pub mod fleet_identity;
pub mod follower_lease;
mod hex;
mod key;
pub mod log_loss;
pub mod manifest;
pub mod node_lease;
pub mod node_log;
pub mod opener;
pub mod owner;
mod package;
pub mod r2_object;
pub mod r2_upload;
pub mod rebalance_switch;
pub mod retired;
pub mod secrets;
pub mod sweep_lease;
pub mod wake_entry;
pub mod wake_format;
pub mod wake_retired;
pub mod waker_lease;

pub use bundle::{BUNDLE_BYTES_MAX, Bundle, BundleError, BundleRow, EncodedBundle};
pub use codec::{Record, RecordError, RecordVersion};
pub use deployment::{CurrentRecord, PruneMark, VersionRecord};
pub use drain_lease::DrainLease;
pub use fleet_identity::{CaCertificate, FleetIdentity, TokenKey};
pub use follower_lease::FollowerLease;
pub use key::{
    BLOBS_PREFIX, Key, KeyError, Level, VERSIONS_PREFIX, WAKE_ENTRIES_PREFIX, WAKER_LEASES_PREFIX,
    bundle_prefix, cell_prefix, epoch_of, epoch_prefix, level_prefix, log_prefix, r2_bodies_prefix,
    r2_objects_prefix, r2_parts_prefix, r2_upload_prefix, r2_uploads_prefix, wake_minute_prefix,
};
pub use log_loss::LogLoss;
pub use manifest::{
    AssetFile, Assets, Binding, BindingEntry, BlobEntry, HtmlHandling, Manifest, MigrationEntry, ModuleEntry,
    ModuleKind, NotFoundHandling,
};
pub use node_lease::{NodeLease, NodeLoad, ProtocolRange};
pub use node_log::{EnsembleRecord, MemberRecord, NodeLogRecord, NodeLogState, RecoveryRecord};
pub use opener::{Opener, OpenerBase, OpenerReason};
pub use owner::{OwnerRecord, OwnerState};
pub use package::{Blobs, Package, PackageError, Sha256, sha256};
pub use r2_object::{
    R2Body, R2Checksums, R2HttpMetadata, R2ObjectHead, R2Record, escape_r2_key, unescape_r2_key,
};
pub use r2_upload::{R2Part, R2Upload};
pub use rebalance_switch::RebalanceSwitch;
pub use retired::{KeptRecord, Retired, SnapshotRecord};
pub use secrets::{SecretEntry, SecretKey, SecretKeysRecord, SecretsRecord};
pub use sweep_lease::SweepLease;
pub use wake_entry::WakeEntry;
pub use wake_format::WakeFormat;
pub use wake_retired::{AlarmIdRecord, WakeRetired};
pub use waker_lease::{ShardWish, WakerLease};
