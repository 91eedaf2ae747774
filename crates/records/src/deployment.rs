//! Records of deployments. `deploy/current.json` says which version runs; it is changed by compare-and-swap only, by a
//! deploy, a rollback or a prune. `deploy/versions/<id>.json` is one version; created once, never changed.

use holdfast_types::{Millis, VersionId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Manifest, Record, RecordVersion, hex};

/// Which version runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentRecord {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The version that runs; none where a prune came before the first deploy.
    #[serde(with = "hex::optional_version_id")]
    pub current: Option<VersionId>,
    /// The version that ran before it; what a rollback goes back to.
    #[serde(with = "hex::optional_version_id")]
    pub previous: Option<VersionId>,
    /// When `current` became what it is: wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub since_ms: Millis,
    /// A prune that is under way: until its end nothing is published, because it may delete what a new version would
    /// share with old ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<PruneMark>,
}

/// A prune that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneMark {
    /// The write that began it.
    #[serde(with = "hex::write_id")]
    pub by: WriteId,
    /// After this it deletes nothing more: wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub ends_ms: Millis,
}

impl Record for CurrentRecord {
    const KIND: &'static str = "current deployment";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

/// One version of the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// When it was first published: wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub created_ms: Millis,
    /// What its publisher said about it.
    pub message: String,
    /// What it is. The record's key is its [`Manifest::id`].
    pub manifest: Manifest,
}

impl Record for VersionRecord {
    const KIND: &'static str = "version";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURRENT: &str = include_str!("../golden/current-1.0.json");
    const VERSION: &str = include_str!("../golden/version-1.0.json");

    #[test]
    fn the_golden_record_of_the_current_version_decodes_and_encodes_to_itself() {
        let record = CurrentRecord::decode(CURRENT.trim().as_bytes()).expect("golden");
        assert_eq!(record.previous, None);
        assert_eq!(record.prune.as_ref().map(|mark| mark.ends_ms), Some(Millis::new(1_790_000_600_000)));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), CURRENT.trim());
    }

    #[test]
    fn the_golden_record_of_a_version_decodes_and_encodes_to_itself() {
        let record = VersionRecord::decode(VERSION.trim().as_bytes()).expect("golden");
        assert_eq!(record.manifest.bindings.len(), 3);
        assert_eq!(record.manifest.migrations[0].renamed_classes, [("A".to_owned(), "B".to_owned())]);
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), VERSION.trim());
    }

    #[test]
    fn the_id_of_the_golden_version_never_changes() {
        let record = VersionRecord::decode(VERSION.trim().as_bytes()).expect("golden");
        assert_eq!(record.manifest.id().to_string(), "3823b92672b4f7e193331c3c36a1d5e7");
    }
}
