//! What the router carries: calls, and hints to look at an alarm. The way is the same for both; how one is sent, and what of
//! it can be sent again, is told here.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use holdfast_rpc::{CellCall, CellClient, CellReply, ForwardError, Peer, WakeCall, WakeReply};
use holdfast_types::{CellName, Epoch};
use tokio::time::Instant;

/// Something for a cell's owner.
pub(crate) trait Routed: Sized + Send + 'static {
    /// The owner's answer.
    type Reply: Send + 'static;

    fn cell(&self) -> &CellName;

    fn deadline(&self) -> Instant;

    fn send(self, client: &CellClient, peer: Arc<Peer>) -> BoxFuture<'_, Answer<Self>>;

    /// The epoch that answered.
    fn epoch(reply: &Self::Reply) -> Epoch;
}

pub(crate) type Answer<R> = Result<<R as Routed>::Reply, Unanswered<R>>;

/// Something that has no answer.
pub(crate) struct Unanswered<R> {
    pub(crate) error: ForwardError,
    /// It is whole and can be sent again, where the error leaves that open.
    pub(crate) request: Option<R>,
}

impl Routed for CellCall {
    type Reply = CellReply;

    fn cell(&self) -> &CellName {
        &self.cell
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn send(self, client: &CellClient, peer: Arc<Peer>) -> BoxFuture<'_, Answer<Self>> {
        let unanswered = |mut error: ForwardError| {
            let request = match &mut error {
                ForwardError::Refused { call, .. } | ForwardError::NeverSent { call, .. } => call.take(),
                ForwardError::BodyBroken { .. } | ForwardError::MayHaveRun { .. } => None,
            };
            Unanswered { error, request: request.map(|call| *call) }
        };
        Box::pin(async move { client.call(&peer, self).await.map_err(unanswered) })
    }

    fn epoch(reply: &CellReply) -> Epoch {
        reply.position.epoch
    }
}

impl Routed for WakeCall {
    type Reply = WakeReply;

    fn cell(&self) -> &CellName {
        &self.cell
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn send(self, client: &CellClient, peer: Arc<Peer>) -> BoxFuture<'_, Answer<Self>> {
        async move {
            let answer = client.wake(&peer, &self).await;
            answer.map_err(|error| Unanswered { error, request: Some(self) })
        }
        .boxed()
    }

    fn epoch(reply: &WakeReply) -> Epoch {
        reply.epoch
    }
}
