//! The fleet's identity record: made by whichever process comes first, read by all.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use holdfast_bucket::{Bucket, Commit, Guard};
use holdfast_records::{CaCertificate, FleetIdentity, Key, Record, TokenKey};
use holdfast_types::{FleetId, WriteId};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose};
use ring::signature::Ed25519KeyPair;

use super::IdentityError;

/// Rounds of create and read-back before giving up. Two settle every race of live processes; the rest are for a store
/// that loses answers.
const ROUNDS_MAX: u32 = 5;
/// Bound of one conditional create.
const CREATE_DEADLINE_MS: u64 = 10_000;
/// Pause between rounds, times the round: only after an answer that settled nothing.
const PAUSE_MS: u64 = 100;
/// An authority outlives its rotation by far; leaves are what is short-lived.
const CA_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Clocks of a fleet differ.
const CA_BACKDATE: Duration = Duration::from_secs(24 * 3600);

/// Reads the fleet's identity.
///
/// # Errors
/// [`IdentityError::NoFleet`] when there is none yet.
pub async fn load(bucket: &dyn Bucket) -> Result<FleetIdentity, IdentityError> {
    read_patiently(bucket).await?.ok_or(IdentityError::NoFleet)
}

/// Reads the fleet's identity, or creates it when this is the first process.
///
/// # Errors
/// [`IdentityError`].
pub async fn load_or_create(bucket: &dyn Bucket) -> Result<FleetIdentity, IdentityError> {
    if let Some(fleet) = read_patiently(bucket).await? {
        return Ok(fleet);
    }
    // One record for all rounds: a create whose answer was lost may land late, and then it must be this one.
    let record = create()?;
    let body = Bytes::from(record.encode());
    let key = Key::FleetIdentity.to_string();
    for round in 1..=ROUNDS_MAX {
        let commit = bucket.put_if(&key, body.clone(), Guard::Absent, CREATE_DEADLINE_MS).await;
        let settled = match commit {
            Commit::Applied(_) | Commit::Rejected => None,
            Commit::Unknown(error) => Some(error),
        };
        // Read back also after `Applied`: what the bucket says is the identity, whoever wrote it.
        match (read(bucket).await, settled) {
            (Ok(Some(found)), _) => {
                if found.write_id == record.write_id {
                    tracing::info!(fleet = %found.fleet, "created the fleet's identity");
                }
                return Ok(found);
            }
            (Err(error), _) if round == ROUNDS_MAX => return Err(error),
            (Ok(None), Some(error)) if round == ROUNDS_MAX => return Err(error.into()),
            (Err(_) | Ok(None), _) => {
                tokio::time::sleep(Duration::from_millis(PAUSE_MS * u64::from(round))).await;
            }
        }
    }
    Err(IdentityError::Unsettled { rounds: ROUNDS_MAX })
}

/// Reads the record. One cut connection is no reason for a process not to start.
async fn read_patiently(bucket: &dyn Bucket) -> Result<Option<FleetIdentity>, IdentityError> {
    for round in 1..ROUNDS_MAX {
        match read(bucket).await {
            Err(IdentityError::Bucket(error)) if error.kind.is_transient() => {
                tracing::debug!(%error, round, "the fleet's identity could not be read; trying again");
                tokio::time::sleep(Duration::from_millis(PAUSE_MS * u64::from(round))).await;
            }
            settled => return settled,
        }
    }
    read(bucket).await
}

async fn read(bucket: &dyn Bucket) -> Result<Option<FleetIdentity>, IdentityError> {
    match bucket.get(&Key::FleetIdentity.to_string()).await? {
        Some(object) => Ok(Some(FleetIdentity::decode(&object.body)?)),
        None => Ok(None),
    }
}

/// Makes a new identity: one authority, one token key.
///
/// # Errors
/// [`IdentityError::Certificate`] when the machine has no randomness.
pub fn create() -> Result<FleetIdentity, IdentityError> {
    let bits = random_bits()?;
    let fleet = FleetId::parse(&format!("fleet-{:08x}", bits >> 96)).expect("hex digits make a name");
    let write_id = new_write_id()?;
    let cas = vec![new_authority(&fleet)?];
    let token_keys = vec![new_token_key()?];
    Ok(FleetIdentity { version: FleetIdentity::VERSION, write_id, fleet, cas, token_keys })
}

/// A new authority for a fleet.
pub(super) fn new_authority(fleet: &FleetId) -> Result<CaCertificate, IdentityError> {
    let failed = |e| IdentityError::certificate("making the fleet's authority", e);
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = authority_params(fleet).self_signed(&key).map_err(failed)?;
    Ok(CaCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem(), pending: false })
}

/// What an authority's certificate says. The subject depends on the fleet alone, so that signing a leaf needs the key
/// and this function, and no parser of certificates.
pub(super) fn authority_params(fleet: &FleetId) -> CertificateParams {
    let now = SystemTime::now();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("holdfast {fleet}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = (now - CA_BACKDATE).into();
    params.not_after = (now + CA_LIFETIME).into();
    params
}

pub(super) fn new_token_key() -> Result<TokenKey, IdentityError> {
    let document = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new())
        .map_err(|e| IdentityError::certificate("making a token key", e))?;
    let id = format!("{:08x}", random_bits()? >> 96);
    Ok(TokenKey { id, pkcs8_base64: STANDARD.encode(document.as_ref()), pending: false })
}

pub(super) fn new_write_id() -> Result<WriteId, IdentityError> {
    Ok(WriteId::from_bits(random_bits()?))
}

fn random_bits() -> Result<u128, IdentityError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| IdentityError::certificate("reading randomness", e))?;
    Ok(u128::from_be_bytes(bytes))
}
