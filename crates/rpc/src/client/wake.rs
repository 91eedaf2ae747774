//! Hints to owners: open the cell and look at its alarm.

use http::Uri;
use tokio::time::{Instant, timeout_at};
use tonic::Request;

use super::send::Failure;
use super::{CellClient, ForwardError, Peer};
use crate::proto::cell_service_client::CellServiceClient;
use crate::{CallError, WakeCall, WakeReply, convert};

impl CellClient {
    /// Has a session open a cell and look at its alarm, until the call's deadline. Dropping the future cancels the wait.
    ///
    /// # Errors
    /// [`ForwardError`], without the call, which is the caller's. The hint may be given again after any of them.
    pub async fn wake(&self, peer: &Peer, call: &WakeCall) -> Result<WakeReply, ForwardError> {
        let never_sent = |reason| ForwardError::NeverSent { reason, call: None };
        let channel = match timeout_at(call.deadline, self.pool.channel(peer)).await {
            Ok(channel) => channel.map_err(never_sent)?,
            Err(_) => return Err(never_sent(format!("no connection with {peer} before the deadline"))),
        };
        let origin = Uri::from_static("https://cellnode.holdfast.internal");
        let mut client = CellServiceClient::with_origin(channel, origin);
        let mut request = Request::new(convert::wake_to_wire(call));
        request.set_timeout(call.deadline.saturating_duration_since(Instant::now()));
        let asked =
            |reason: &str| format!("a look at the alarm of `{}`, asked of {peer}: {reason}", call.cell);
        let reply = match timeout_at(call.deadline, client.wake(request)).await {
            Ok(Ok(reply)) => reply.into_inner(),
            Ok(Err(status)) => {
                return Err(match Failure::from(status) {
                    Failure::NeverSent(reason) => never_sent(asked(&reason)),
                    Failure::MayHaveRun(reason) => ForwardError::MayHaveRun { reason: asked(&reason) },
                    Failure::NotKnown => never_sent(asked("its release does not know this call")),
                });
            }
            Err(_) => {
                return Err(ForwardError::MayHaveRun { reason: asked("no answer before the deadline") });
            }
        };
        convert::wake_answer_from_wire(reply).map_err(|error| match error {
            CallError::OutcomeUnknown { reason } => ForwardError::MayHaveRun { reason },
            error => ForwardError::Refused { error, call: None },
        })
    }
}
