//! Reads the state that an object wished for.

use std::sync::Arc;

use holdfast_types::{Position, Txid};
use tempfile::TempPath;

use super::lookup::{Wanted, look_up};
use super::{must_have_room, new_file};
use crate::backoff::Backoff;
use crate::cells::Resident;
use crate::node::Node;
use crate::release::in_bucket;
use crate::restore::RestoreError;

/// While it fails: 500 ms doubling to 4 s.
const PAUSES: Backoff = Backoff::new(500, 3);
/// Tries while this machine fails, for example because its disk is full: the object is worth more than its wish.
const LOCAL_TRIES_MAX: u32 = 5;

/// Why a state was not read.
enum Failure {
    /// The store fails, for a time.
    Store(String),
    /// This machine does.
    Local(String),
    /// There is no such state.
    Final(String),
}

/// Reads the state into a file, once the bucket has the present one by itself, to which the wish's bookmark leads back. While
/// the store fails it is tried again, for ever: until then nobody could prove anything that the object does.
///
/// # Errors
/// Why the state will not be had.
pub(crate) async fn fetch_wished(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    (before, target): (Txid, Position),
) -> Result<TempPath, String> {
    let mut local = 0;
    for attempt in 0.. {
        let reason = match fetch(node, resident, (before, target)).await {
            Ok(file) => return Ok(file),
            Err(Failure::Final(reason)) => return Err(reason),
            Err(Failure::Store(reason)) => reason,
            Err(Failure::Local(reason)) => {
                local += 1;
                if local == LOCAL_TRIES_MAX {
                    return Err(reason);
                }
                reason
            }
        };
        tracing::warn!(cell = %resident.cell, %target, attempt, %reason, "a state of the past that the object wished for could not be read; it is tried again");
        PAUSES.pause(attempt).await;
    }
    unreachable!("it is tried for ever")
}

async fn fetch(
    node: &Arc<Node>,
    resident: &Arc<Resident>,
    (before, target): (Txid, Position),
) -> Result<TempPath, Failure> {
    in_bucket(node, resident, before).await.map_err(|error| Failure::Store(error.to_string()))?;
    let file = new_file(node).map_err(|error| Failure::Local(format!("its file cannot be made: {error}")))?;
    match look_up(node, resident, Wanted::Exactly(target), Some(&file)).await {
        Ok(_) => match must_have_room(node, &resident.cell, &file) {
            Ok(()) => Ok(file),
            Err(error) => Err(Failure::Local(error.to_string())),
        },
        Err(RestoreError::Past { source, .. }) => Err(Failure::Final(source.to_string())),
        Err(error @ RestoreError::Local { .. }) => Err(Failure::Local(error.to_string())),
        Err(error) if error.is_transient() => Err(Failure::Store(error.to_string())),
        Err(error) => Err(Failure::Final(error.to_string())),
    }
}
