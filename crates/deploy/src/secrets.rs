//! The application's secrets: AES-256-GCM under a key of the fleet. What this protects against stands in
//! docs/deploy.md: readers of versions, blobs and logs; not holders of the bucket's credentials.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_bucket::{Guard, Version};
use holdfast_records::{Key, Record, SecretEntry, SecretKey, SecretKeysRecord, SecretsRecord};
use holdfast_types::Millis;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::current::{read, write};
use crate::{DeployError, Deployments, fresh_write_id, now};

/// Most secrets of an application.
pub const SECRETS_MAX: usize = 256;
/// Longest value, in bytes.
pub const SECRET_BYTES_MAX: usize = 64 << 10;
/// Longest name, in bytes.
const NAME_LEN_MAX: usize = 128;
/// Tries of a change before giving up: each lost to another change.
const ROUNDS: u32 = 5;

/// A secret, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretInfo {
    /// The property of `env`.
    pub name: String,
    /// When it was put, wall clock.
    pub put: Millis,
}

impl Deployments {
    /// Every secret's name.
    ///
    /// # Errors
    /// The bucket, or a record that is not one of ours.
    pub async fn secrets(&self) -> Result<Vec<SecretInfo>, DeployError> {
        let (record, _) = self.secrets_record().await?;
        let info = |entry: SecretEntry| SecretInfo { name: entry.name, put: entry.put_ms };
        Ok(record.into_iter().flat_map(|record| record.secrets).map(info).collect())
    }

    /// Puts a secret, or replaces its value. Nodes take it up with the next version or within their watch's pause.
    ///
    /// # Errors
    /// [`DeployError::BadSecret`], [`DeployError::NameTaken`], the bucket.
    pub async fn put_secret(&self, name: &str, value: &str) -> Result<(), DeployError> {
        check(name, value)?;
        if let Some(current) = self.current().await? {
            let bindings = self.version(current.id).await?.manifest.bindings;
            if bindings.iter().any(|binding| binding.name == name) {
                return Err(DeployError::NameTaken(name.to_owned()));
            }
        }
        let key = self.secret_key().await?;
        let entry = seal(&key, name, value)?;
        self.change(|secrets| {
            secrets.retain(|secret| secret.name != name);
            if secrets.len() >= SECRETS_MAX {
                let problem = "is one too many: an application may have 256";
                return Err(DeployError::BadSecret { name: name.to_owned(), problem });
            }
            secrets.push(entry.clone());
            secrets.sort_by(|left, right| left.name.cmp(&right.name));
            Ok(())
        })
        .await
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// [`DeployError::NoSecret`], the bucket.
    pub async fn delete_secret(&self, name: &str) -> Result<(), DeployError> {
        self.change(|secrets| {
            let count = secrets.len();
            secrets.retain(|secret| secret.name != name);
            if secrets.len() == count { Err(DeployError::NoSecret(name.to_owned())) } else { Ok(()) }
        })
        .await
    }

    /// Every secret's value.
    pub(crate) async fn read_secrets(&self) -> Result<BTreeMap<String, String>, DeployError> {
        let (Some(record), _) = self.secrets_record().await? else { return Ok(BTreeMap::new()) };
        if record.secrets.is_empty() {
            return Ok(BTreeMap::new());
        }
        let keys = read::<SecretKeysRecord>(&*self.records, &Key::FleetSecretKeys).await?;
        let keys = keys.map_or_else(Vec::new, |(record, _)| record.keys);
        record.secrets.iter().map(|entry| Ok((entry.name.clone(), open(&keys, entry)?))).collect()
    }

    async fn secrets_record(&self) -> Result<(Option<SecretsRecord>, Option<Version>), DeployError> {
        let found = read::<SecretsRecord>(&*self.records, &Key::Secrets).await?;
        Ok(found.map_or((None, None), |(record, version)| (Some(record), Some(version))))
    }

    async fn change(
        &self,
        change: impl Fn(&mut Vec<SecretEntry>) -> Result<(), DeployError>,
    ) -> Result<(), DeployError> {
        for _ in 0..ROUNDS {
            let (record, version) = self.secrets_record().await?;
            let mut secrets = record.map_or_else(Vec::new, |record| record.secrets);
            change(&mut secrets)?;
            let record =
                SecretsRecord { version: SecretsRecord::VERSION, write_id: fresh_write_id()?, secrets };
            let guard = version.map_or(Guard::Absent, Guard::Match);
            if write(&*self.records, &Key::Secrets, &record, |record| record.write_id, guard).await? {
                return Ok(());
            }
        }
        Err(DeployError::Changed { current: None })
    }

    /// The key that encrypts, made by the first secret.
    async fn secret_key(&self) -> Result<SecretKey, DeployError> {
        for _ in 0..ROUNDS {
            let found = read::<SecretKeysRecord>(&*self.records, &Key::FleetSecretKeys).await?;
            if let Some(key) = found.and_then(|(record, _)| record.keys.into_iter().next()) {
                return Ok(key);
            }
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| DeployError::Randomness(error.to_string()))?;
            let write_id = fresh_write_id()?;
            let key = SecretKey {
                id: format!("{:08x}", write_id.bits() >> 96),
                key_base64: STANDARD.encode(bytes),
            };
            let record = SecretKeysRecord { version: SecretKeysRecord::VERSION, write_id, keys: vec![key] };
            let id = |record: &SecretKeysRecord| record.write_id;
            // Applied or not, what the bucket says is the key.
            write(&*self.records, &Key::FleetSecretKeys, &record, id, Guard::Absent).await?;
        }
        Err(DeployError::Changed { current: None })
    }
}

fn check(name: &str, value: &str) -> Result<(), DeployError> {
    let is_start = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    let is_name = name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    let bad = |problem| Err(DeployError::BadSecret { name: name.to_owned(), problem });
    match () {
        () if !is_name || name.len() > NAME_LEN_MAX => {
            bad("has no name of a JavaScript variable of at most 128 letters")
        }
        () if value.is_empty() => bad("is empty"),
        () if value.len() > SECRET_BYTES_MAX => bad("has more than 64 KiB"),
        () => Ok(()),
    }
}

fn cipher(key: &SecretKey) -> Option<LessSafeKey> {
    let bytes = STANDARD.decode(&key.key_base64).ok()?;
    Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).ok()?))
}

fn seal(key: &SecretKey, name: &str, value: &str) -> Result<SecretEntry, DeployError> {
    let sealed = || DeployError::SealedSecret(name.to_owned());
    let cipher = cipher(key).ok_or_else(sealed)?;
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(|error| DeployError::Randomness(error.to_string()))?;
    let mut bytes = value.as_bytes().to_vec();
    // The name is bound to the value: one secret's bytes under another's name do not open.
    let aad = Aad::from(name.as_bytes());
    cipher
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut bytes)
        .map_err(|_| sealed())?;
    Ok(SecretEntry {
        name: name.to_owned(),
        key: key.id.clone(),
        nonce_base64: STANDARD.encode(nonce),
        sealed_base64: STANDARD.encode(bytes),
        put_ms: now(),
    })
}

fn open(keys: &[SecretKey], entry: &SecretEntry) -> Result<String, DeployError> {
    let value = || {
        let cipher = cipher(keys.iter().find(|key| key.id == entry.key)?)?;
        let nonce = STANDARD.decode(&entry.nonce_base64).ok()?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).ok()?;
        let mut bytes = STANDARD.decode(&entry.sealed_base64).ok()?;
        let opened = cipher.open_in_place(nonce, Aad::from(entry.name.as_bytes()), &mut bytes).ok()?;
        String::from_utf8(opened.to_vec()).ok()
    };
    value().ok_or_else(|| DeployError::SealedSecret(entry.name.clone()))
}
