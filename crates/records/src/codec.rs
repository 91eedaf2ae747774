//! JSON in and out, and the version rule.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// `major.minor` of a record's format. A newer minor adds fields; a newer major may change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordVersion {
    /// Readers refuse a larger one than their own.
    pub major: u16,
    /// Readers ignore what a larger one added.
    pub minor: u16,
}

impl Serialize for RecordVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{}", self.major, self.minor))
    }
}

impl<'de> Deserialize<'de> for RecordVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = text
            .split_once('.')
            .and_then(|(major, minor)| Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? }));
        parsed.ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a `major.minor` version")))
    }
}

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not the JSON of this kind. Disposition: corrupt.
    #[error("{kind} record is malformed: {source}")]
    Malformed {
        /// The kind of record.
        kind: &'static str,
        /// What the decoder says.
        source: serde_json::Error,
    },
    /// Written by a newer release. Disposition: reject; upgrade this program.
    #[error("{kind} record has version {found}.x, this program reads up to {known}.x: upgrade this program")]
    TooNew {
        /// The kind of record.
        kind: &'static str,
        /// The record's major version.
        found: u16,
        /// The newest major version that this program reads.
        known: u16,
    },
}

/// A kind of record.
pub trait Record: Serialize + DeserializeOwned {
    /// The kind's name in messages.
    const KIND: &'static str;
    /// The version that this program writes, and the newest that it reads.
    const VERSION: RecordVersion;

    /// Encodes to JSON.
    ///
    /// # Panics
    /// Never: records hold nothing that JSON cannot say.
    #[must_use]
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a record holds only strings, numbers and lists of them")
    }

    /// Decodes, after checking the version alone, so that a newer major is named as such and not as malformed.
    ///
    /// # Errors
    /// [`RecordError`].
    fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Head {
            version: RecordVersion,
        }
        let malformed = |source| RecordError::Malformed { kind: Self::KIND, source };
        let head: Head = serde_json::from_slice(bytes).map_err(malformed)?;
        if head.version.major > Self::VERSION.major {
            return Err(RecordError::TooNew {
                kind: Self::KIND,
                found: head.version.major,
                known: Self::VERSION.major,
            });
        }
        serde_json::from_slice(bytes).map_err(malformed)
    }
}

#[cfg(test)]
mod tests {
    use crate::{OwnerRecord, Record, RecordError};

    #[test]
    fn a_newer_major_is_refused_with_both_versions() {
        let error = OwnerRecord::decode(br#"{"version":"9.0","shape":"other"}"#).expect_err("too new");
        assert!(matches!(error, RecordError::TooNew { found: 9, known: 1, .. }), "{error}");
    }
}
