//! Bearer tokens of the SQL API: `hf1.<claims>.<signature>`, both parts base64url without padding, the claims JSON,
//! the signature Ed25519 over everything before the last dot. Verified offline, with the fleet's public keys alone.
//! There is no revocation short of removing the key from the fleet's identity: tokens expire.

mod pattern;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use holdfast_records::{FleetIdentity, TokenKey};
use holdfast_types::CellName;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use crate::Access;

pub use pattern::{CellPattern, PatternError};

/// Names the format; another one gets another prefix.
const PREFIX: &str = "hf1";
/// Longer texts are not tokens of ours: a pattern has at most 255 bytes.
const TOKEN_LEN_MAX: usize = 2048;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The key that signed it.
    #[serde(rename = "kid")]
    pub key_id: String,
    /// The cells it is for, for example `db:tenant-*`.
    pub cells: CellPattern,
    /// What it allows.
    #[serde(with = "access")]
    pub access: Access,
    /// When it ends, seconds since the Unix epoch.
    #[serde(rename = "exp")]
    pub expires_s: u64,
    /// When it was made, seconds since the Unix epoch.
    #[serde(rename = "iat")]
    pub issued_s: u64,
    /// Names the token in logs.
    pub id: String,
}

mod access {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::Access;

    pub(super) fn serialize<S: Serializer>(access: &Access, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match access {
            Access::ReadOnly => "ro",
            Access::ReadWrite => "rw",
        })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Access, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "ro" => Ok(Access::ReadOnly),
            "rw" => Ok(Access::ReadWrite),
            other => Err(D::Error::custom(format!("`{other}` is not an access"))),
        }
    }
}

/// Why a token does not open a cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token of this format. Disposition: reject (401).
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// Signed by nobody of this fleet. Disposition: reject (401).
    #[error("the token's signature is not one of this fleet")]
    BadSignature,
    /// Its time is over. Disposition: reject (401); make a new one.
    #[error("the token `{id}` expired at {expires_s} (seconds since the Unix epoch): make a new one")]
    Expired {
        /// The token.
        id: String,
        /// When.
        expires_s: u64,
    },
    /// A good token for other cells. Disposition: reject (403).
    #[error("the token `{id}` is for `{cells}`, not for this cell")]
    NotForThisCell {
        /// The token.
        id: String,
        /// What it is for.
        cells: CellPattern,
    },
}

/// Why a token cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot sign tokens with the fleet's key `{key_id}`: {detail}")]
pub struct MintError {
    /// The key.
    pub key_id: String,
    /// What is wrong.
    pub detail: String,
}

/// Makes a token with the fleet's signing key.
///
/// # Errors
/// [`MintError`] when the fleet's record holds no usable key.
pub fn mint(
    fleet: &FleetIdentity,
    cells: CellPattern,
    access: Access,
    issued_s: u64,
    expires_s: u64,
) -> Result<String, MintError> {
    let failed = |key_id: &str, detail: String| MintError { key_id: key_id.to_owned(), detail };
    let key = fleet.signing_token_key().ok_or_else(|| failed("", "the record has none".into()))?;
    let pair = key_pair(key).map_err(|detail| failed(&key.id, detail))?;
    let mut id = [0; 8];
    getrandom::fill(&mut id).map_err(|e| failed(&key.id, e.to_string()))?;
    let claims = Claims {
        key_id: key.id.clone(),
        cells,
        access,
        expires_s,
        issued_s,
        id: format!("{:016x}", u64::from_be_bytes(id)),
    };
    let json = serde_json::to_vec(&claims).expect("claims are strings and numbers");
    let signed = format!("{PREFIX}.{}", URL_SAFE_NO_PAD.encode(json));
    let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
    Ok(format!("{signed}.{signature}"))
}

fn key_pair(key: &TokenKey) -> Result<Ed25519KeyPair, String> {
    let pkcs8 = STANDARD.decode(&key.pkcs8_base64).map_err(|e| e.to_string())?;
    Ed25519KeyPair::from_pkcs8(&pkcs8).map_err(|e| e.to_string())
}

/// Verifies tokens with the fleet's public keys.
#[derive(Clone)]
pub struct TokenVerifier {
    keys: Vec<(String, Vec<u8>)>,
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.keys.iter().map(|(id, _)| id);
        f.debug_list().entries(ids).finish()
    }
}

impl TokenVerifier {
    /// Takes the public halves of the fleet's keys.
    ///
    /// # Errors
    /// [`MintError`] names a key of the record that cannot be used.
    pub fn new(fleet: &FleetIdentity) -> Result<Self, MintError> {
        let public = |key: &TokenKey| match key_pair(key) {
            Ok(pair) => Ok((key.id.clone(), pair.public_key().as_ref().to_vec())),
            Err(detail) => Err(MintError { key_id: key.id.clone(), detail }),
        };
        Ok(Self { keys: fleet.token_keys.iter().map(public).collect::<Result<_, _>>()? })
    }

    /// Says what a token allows on a cell at a time in seconds since the Unix epoch.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn verify(&self, token: &str, now_s: u64, cell: &CellName) -> Result<Access, TokenError> {
        let Claims { key_id: _, cells, access, expires_s, issued_s: _, id } = self.read(token)?;
        if expires_s <= now_s {
            return Err(TokenError::Expired { id, expires_s });
        }
        if !cells.matches(cell) {
            return Err(TokenError::NotForThisCell { id, cells });
        }
        Ok(access)
    }

    /// Reads the claims of a token whose signature is good, expired or not.
    ///
    /// # Errors
    /// [`TokenError::Malformed`] and [`TokenError::BadSignature`].
    pub fn read(&self, token: &str) -> Result<Claims, TokenError> {
        use TokenError::Malformed;
        if token.len() > TOKEN_LEN_MAX {
            return Err(Malformed("it is too long"));
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Malformed("it has no signature"))?;
        let (prefix, body) = signed.split_once('.').ok_or(Malformed("it has no claims"))?;
        if prefix != PREFIX {
            return Err(Malformed("it does not start with `hf1.`"));
        }
        let signature =
            URL_SAFE_NO_PAD.decode(signature).map_err(|_| Malformed("the signature is not base64url"))?;
        let body = URL_SAFE_NO_PAD.decode(body).map_err(|_| Malformed("the claims are not base64url"))?;
        let claims: Claims =
            serde_json::from_slice(&body).map_err(|_| Malformed("the claims are not the JSON of a token"))?;
        let (_, key) =
            self.keys.iter().find(|(id, _)| *id == claims.key_id).ok_or(TokenError::BadSignature)?;
        UnparsedPublicKey::new(&ED25519, key)
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| TokenError::BadSignature)?;
        Ok(claims)
    }
}

#[cfg(test)]
mod tests;
