//! What an object asks of its history: bookmarks of its states, and whether one can be had. Each answer says what it promises
//! once it is given: a bookmark names a state that the bucket has by itself.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_core::lineage::{Bookmark, PastError, PastTarget};
use holdfast_js::JsError;
use holdfast_rpc::CallError;
use holdfast_types::{CellName, Millis, Position, Txid};

use super::lookup::{Wanted, look_up};
use crate::cells::Resident;
use crate::clock;
use crate::node::Node;
use crate::release::{cover, in_bucket};
use crate::restore::RestoreError;

/// The bookmark of the state after a transaction, at which the gate was told to cut. It is there once an object that ends with
/// it is in the bucket: before that a recovery would put the transaction into one object with those that follow.
pub(crate) async fn answer_bookmark(
    node: Arc<Node>,
    resident: Arc<Resident>,
    (at, restore): (Txid, u32),
) -> Result<Bytes, JsError> {
    in_bucket(&node, &resident, at).await.map_err(not_now)?;
    let Some(position) = resident.end_at(at) else {
        return Err(JsError::new("the object has written nothing yet: there is no state to name"));
    };
    Ok(Bookmark { position, restore }.text(&resident.cell).into())
}

/// The bookmark of the newest state that is not after a time.
pub(crate) async fn answer_time(
    node: Arc<Node>,
    resident: Arc<Resident>,
    time: Millis,
) -> Result<Bytes, JsError> {
    if time > clock::wall() {
        return Err(JsError::new("getBookmarkForTime() cannot be called with a time in the future"));
    }
    cover(&node, &resident).await.map_err(not_now)?;
    let wanted = Wanted::AtOrBefore(PastTarget::Time(time));
    match look_up(&node, &resident, wanted, None).await {
        Ok(position) => Ok(Bookmark::at(position).text(&resident.cell).into()),
        Err(error) => Err(not_there("there is no bookmark for this time", &resident.cell, &error)),
    }
}

/// The position of a state, once it is known that it can be had.
pub(crate) async fn answer_find(
    node: Arc<Node>,
    resident: Arc<Resident>,
    position: Position,
) -> Result<Bytes, JsError> {
    cover(&node, &resident).await.map_err(not_now)?;
    match look_up(&node, &resident, Wanted::Exactly(position), None).await {
        Ok(Position { epoch, txid }) => Ok(format!("{}{}", epoch.to_hex(), txid.to_hex()).into()),
        Err(error) => Err(not_there("this bookmark cannot be restored", &resident.cell, &error)),
    }
}

fn not_now(error: CallError) -> JsError {
    JsError { retryable: true, ..JsError::new(error.to_string()) }
}

fn not_there(what: &str, cell: &CellName, error: &RestoreError) -> JsError {
    let why = match error {
        RestoreError::Past { source: PastError::Inexact { asked: _, nearest }, .. } => format!(
            "its state is not kept by itself any more; the nearest before it has the bookmark {}",
            Bookmark::at(*nearest).text(cell)
        ),
        RestoreError::Past { source, .. } => source.to_string(),
        other => {
            let retryable = other.is_transient();
            return JsError { retryable, ..JsError::new(format!("{what}: {other}")) };
        }
    };
    JsError::new(format!("{what}: {why}"))
}
