//! The application's secrets, `deploy/secrets.json`, and the keys that they are encrypted with, `fleet/secret-keys.json`.
//! The two are apart, so that whoever reads the one below `deploy/` alone learns names and lengths, and no value.

use holdfast_types::{Millis, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// All secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsRecord {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// In byte order of their names.
    pub secrets: Vec<SecretEntry>,
}

/// One secret: AES-256-GCM, its name as the additional data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretEntry {
    /// The property of `env`.
    pub name: String,
    /// The key that it is encrypted with.
    pub key: String,
    /// The nonce: 12 random bytes, base64.
    pub nonce_base64: String,
    /// The encrypted value and its tag, base64.
    pub sealed_base64: String,
    /// When it was put: wall clock, milliseconds since the Unix epoch.
    #[serde(with = "hex::millis")]
    pub put_ms: Millis,
}

impl Record for SecretsRecord {
    const KIND: &'static str = "secrets";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

/// The fleet's keys for secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKeysRecord {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// Newest first: the first encrypts, all decrypt.
    pub keys: Vec<SecretKey>,
}

/// A key of 256 bits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKey {
    /// Names the key in secrets.
    pub id: String,
    /// The key, base64.
    pub key_base64: String,
}

impl std::fmt::Debug for SecretKeysRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretKeysRecord").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl Record for SecretKeysRecord {
    const KIND: &'static str = "secret keys";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: &str = include_str!("../golden/secrets-1.0.json");
    const KEYS: &str = include_str!("../golden/secret_keys-1.0.json");

    #[test]
    fn the_golden_secrets_decode_and_encode_to_themselves() {
        let record = SecretsRecord::decode(SECRETS.trim().as_bytes()).expect("golden");
        assert_eq!(record.secrets[0].name, "API_KEY");
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), SECRETS.trim());
    }

    #[test]
    fn the_golden_keys_decode_encode_to_themselves_and_are_not_shown() {
        let record = SecretKeysRecord::decode(KEYS.trim().as_bytes()).expect("golden");
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), KEYS.trim());
        assert!(!format!("{record:?}").contains("AAAA"), "{record:?}");
    }
}
