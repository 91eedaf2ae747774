//! Hints from wakers: open the cell and look at its alarm. What is armed is the database's to say, and firing it the
//! resident cell's own business; a hint changes nothing but when somebody looks.

use std::sync::Arc;

use holdfast_rpc::{ArmedAlarm, CallError, WakeCall, WakeReply};

use crate::cells::{Cells, Resident};
use crate::host::ANSWER_MARGIN;
use crate::node::Node;

/// Activates the cell, which this node claims where it may, and looks.
///
/// # Errors
/// [`CallError`], as of any call; 404 where there is no cell.
pub(crate) async fn wake(node: &Arc<Node>, call: WakeCall) -> Result<WakeReply, CallError> {
    let patience = call.deadline.checked_sub(ANSWER_MARGIN).unwrap_or(call.deadline);
    let resident = Cells::resident(node, &call.cell, patience).await?;
    let armed = look(&resident, &call).await?;
    Ok(WakeReply { epoch: resident.epoch, armed })
}

/// What alarm the cell has. Activation has armed the cell's own timer already.
#[expect(clippy::unused_async, reason = "cells without alarms have nothing to look at")]
async fn look(_resident: &Arc<Resident>, _call: &WakeCall) -> Result<Option<ArmedAlarm>, CallError> {
    Ok(None)
}
