//! Rotation of the fleet's keys, by overlap: a new one is trusted by all before anything is signed with it, and an old one is
//! trusted until nothing signed with it is shown any more. How far a rotation has come is in the record itself, so
//! that whoever comes next goes on with it.

use bytes::Bytes;
use holdfast_bucket::{Bucket, Commit, Guard};
use holdfast_records::{CaCertificate, FleetIdentity, Key, Record as _, TokenKey};

use super::{IdentityError, fleet};

/// Bound of one conditional write.
const WRITE_DEADLINE_MS: u64 = 10_000;

/// Keys that may be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotated {
    /// The authorities that sign the certificates of internal calls.
    Authority,
    /// The keys that sign bearer tokens.
    TokenKey,
}

/// One step of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// A new one is made, which signs nothing yet.
    Add,
    /// The new one signs from now on.
    Promote,
    /// The old ones mean nothing any more.
    Retire,
}

trait Rotating: Sized {
    fn is_pending(&self) -> bool;
    fn set_pending(&mut self, is_pending: bool);
}

impl Rotating for CaCertificate {
    fn is_pending(&self) -> bool {
        self.pending
    }
    fn set_pending(&mut self, is_pending: bool) {
        self.pending = is_pending;
    }
}

impl Rotating for TokenKey {
    fn is_pending(&self) -> bool {
        self.pending
    }
    fn set_pending(&mut self, is_pending: bool) {
        self.pending = is_pending;
    }
}

/// The step that comes next.
#[must_use]
pub fn next_step(fleet: &FleetIdentity, what: Rotated) -> RotationStep {
    match what {
        Rotated::Authority => next_of(&fleet.cas),
        Rotated::TokenKey => next_of(&fleet.token_keys),
    }
}

fn next_of<T: Rotating>(keys: &[T]) -> RotationStep {
    if keys.iter().any(T::is_pending) {
        RotationStep::Promote
    } else if keys.len() > 1 {
        RotationStep::Retire
    } else {
        RotationStep::Add
    }
}

/// The identity after its next step.
///
/// # Errors
/// [`IdentityError::Certificate`] when the machine has no randomness.
pub fn advanced(fleet: &FleetIdentity, what: Rotated) -> Result<FleetIdentity, IdentityError> {
    let mut next = fleet.clone();
    next.version = FleetIdentity::VERSION;
    next.write_id = fleet::new_write_id()?;
    match what {
        Rotated::Authority => advance(&mut next.cas, || fleet::new_authority(&fleet.fleet))?,
        Rotated::TokenKey => advance(&mut next.token_keys, fleet::new_token_key)?,
    }
    Ok(next)
}

fn advance<T: Rotating>(
    keys: &mut Vec<T>,
    make: impl FnOnce() -> Result<T, IdentityError>,
) -> Result<(), IdentityError> {
    match next_of(keys) {
        RotationStep::Add => {
            let mut key = make()?;
            key.set_pending(true);
            // Behind the others: a program of an older release signs with the first.
            keys.push(key);
        }
        RotationStep::Promote => {
            keys.iter_mut().for_each(|key| key.set_pending(false));
            // The last one is the newest, and stands first from now on.
            keys.rotate_right(1);
        }
        RotationStep::Retire => keys.truncate(1),
    }
    Ok(())
}

/// Writes an advanced identity over the one that it was made from. False where somebody else has written meanwhile.
///
/// # Errors
/// [`IdentityError::Bucket`]: whether it was written is not known; read the record again.
pub async fn store(
    bucket: &dyn Bucket,
    before: &FleetIdentity,
    next: &FleetIdentity,
) -> Result<bool, IdentityError> {
    let key = Key::FleetIdentity.to_string();
    let found = bucket.get(&key).await?.ok_or(IdentityError::NoFleet)?;
    if FleetIdentity::decode(&found.body)?.write_id != before.write_id {
        return Ok(false);
    }
    let body = Bytes::from(next.encode());
    match bucket.put_if(&key, body, Guard::Match(found.version), WRITE_DEADLINE_MS).await {
        Commit::Applied(_) => Ok(true),
        Commit::Rejected => Ok(false),
        Commit::Unknown(error) => {
            let there = bucket.get(&key).await?.ok_or(IdentityError::NoFleet)?;
            let is_there = FleetIdentity::decode(&there.body)?.write_id == next.write_id;
            if is_there { Ok(true) } else { Err(error.into()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_bucket::MemoryBucket;

    use super::*;
    use crate::identity::{create, load_or_create};

    #[test]
    fn a_key_is_trusted_before_it_signs_and_until_nothing_it_signed_is_shown() {
        for what in [Rotated::Authority, Rotated::TokenKey] {
            let state = |fleet: &FleetIdentity| -> Vec<(String, bool)> {
                match what {
                    Rotated::Authority => {
                        fleet.cas.iter().map(|ca| (ca.key_pem.clone(), ca.pending)).collect()
                    }
                    Rotated::TokenKey => {
                        fleet.token_keys.iter().map(|key| (key.id.clone(), key.pending)).collect()
                    }
                }
            };
            let first = create().unwrap();
            assert_eq!(next_step(&first, what), RotationStep::Add);
            let added = advanced(&first, what).unwrap();
            let (old, new) = (state(&first)[0].0.clone(), state(&added)[1].0.clone());
            assert_eq!(state(&added), [(old.clone(), false), (new.clone(), true)]);
            assert_eq!(next_step(&added, what), RotationStep::Promote);
            let promoted = advanced(&added, what).unwrap();
            assert_eq!(state(&promoted), [(new.clone(), false), (old, false)]);
            assert_eq!(next_step(&promoted, what), RotationStep::Retire);
            let retired = advanced(&promoted, what).unwrap();
            assert_eq!(state(&retired), [(new, false)]);
            assert_eq!(retired.fleet, first.fleet);
            let writes = [&first, &added, &promoted, &retired].map(|fleet| fleet.write_id);
            assert!((1..4).all(|n| !writes[..n].contains(&writes[n])), "each has a write id of its own");
        }
    }

    #[tokio::test]
    async fn of_two_that_rotate_at_once_one_is_told_so() {
        let bucket = MemoryBucket::new();
        let fleet = load_or_create(&bucket).await.unwrap();
        let one = advanced(&fleet, Rotated::Authority).unwrap();
        let other = advanced(&fleet, Rotated::Authority).unwrap();
        assert!(store(&bucket, &fleet, &one).await.unwrap());
        assert!(!store(&bucket, &fleet, &other).await.unwrap());
        assert_eq!(load_or_create(&bucket).await.unwrap(), one);
    }
}
