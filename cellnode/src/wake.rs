//! Hints from wakers: open the cell and look at its alarm. What is armed is the database's to say, and firing it the
//! resident cell's own business; a hint changes nothing but when somebody looks.

use std::sync::Arc;

use holdfast_core::alarm::EntryName;
use holdfast_rpc::{ArmedAlarm, CallError, WakeCall, WakeReply};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::cells::{AlarmInput, Cells, Job, Resident};
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

/// Has the cell's thread look: what is due runs, and an entry that means nothing any more is cleaned up.
async fn look(resident: &Arc<Resident>, call: &WakeCall) -> Result<Option<ArmedAlarm>, CallError> {
    let (armed, answer) = oneshot::channel();
    let entry = EntryName { minute: call.minute, id: call.id };
    resident.send(Job::Alarm(Arc::clone(resident), AlarmInput::Hint { entry, armed }));
    let armed = match timeout_at(call.deadline, answer).await {
        Ok(Ok(armed)) => armed,
        // It left its thread meanwhile.
        Ok(Err(_)) => return Err(CallError::NotOwner(None)),
        Err(_) => {
            let reason = format!("the thread of cell `{}` is busy", call.cell);
            return Err(CallError::Unavailable { reason });
        }
    };
    Ok(armed.map(|armed| ArmedAlarm { id: armed.id, deadline_ms: armed.due }))
}
