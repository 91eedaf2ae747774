//! The fleet's identity, `fleet/identity.json`: its id, its certificate authorities and the keys that sign tokens.
//! Created once by the first process; changed only by a rotation. Whoever reads it administers the fleet.

use holdfast_types::{FleetId, WriteId};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Identity and secrets of a fleet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetIdentity {
    /// Format version.
    pub version: RecordVersion,
    /// Unique to this write.
    #[serde(with = "hex::write_id")]
    pub write_id: WriteId,
    /// The fleet.
    #[serde(with = "hex::fleet_id")]
    pub fleet: FleetId,
    /// The authorities: the first that is not pending signs, all are trusted.
    pub cas: Vec<CaCertificate>,
    /// Keys that sign bearer tokens: the first that is not pending signs, all verify.
    pub token_keys: Vec<TokenKey>,
}

/// A certificate authority of the fleet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaCertificate {
    /// Certificate, PEM.
    pub certificate_pem: String,
    /// PKCS#8 private key, PEM.
    pub key_pem: String,
    /// It is to sign later, when every program trusts it. Since 1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// An Ed25519 key that signs tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenKey {
    /// Names the key in tokens.
    pub id: String,
    /// PKCS#8 private key, base64.
    pub pkcs8_base64: String,
    /// As of authorities. Since 1.1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

impl FleetIdentity {
    /// The authority that signs.
    #[must_use]
    pub fn signing_authority(&self) -> Option<&CaCertificate> {
        self.cas.iter().find(|ca| !ca.pending)
    }

    /// The key that signs tokens.
    #[must_use]
    pub fn signing_token_key(&self) -> Option<&TokenKey> {
        self.token_keys.iter().find(|key| !key.pending)
    }
}

impl std::fmt::Debug for FleetIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetIdentity").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

impl Record for FleetIdentity {
    const KIND: &'static str = "fleet identity";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 1 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/fleet_identity-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = FleetIdentity::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.token_keys.len(), 1);
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }

    #[test]
    fn what_is_pending_is_said_and_signs_nothing() {
        let mut record = FleetIdentity::decode(GOLDEN.trim().as_bytes()).expect("golden");
        let pending = CaCertificate { pending: true, ..record.cas[0].clone() };
        record.cas.insert(0, pending);
        let decoded = FleetIdentity::decode(&record.encode()).expect("it was just encoded");
        assert!(decoded == record, "it decodes to what was encoded");
        assert!(decoded.signing_authority() == Some(&record.cas[1]), "the one that is not pending signs");
    }

    #[test]
    fn debug_output_holds_no_secret() {
        let record = FleetIdentity::decode(GOLDEN.trim().as_bytes()).expect("golden");
        let text = format!("{record:?}");
        assert!(!text.contains("PRIVATE") && !text.contains("key"), "{text}");
    }
}
