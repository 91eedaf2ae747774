//! What the node offers to the fleet over its internal listener.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use holdfast_core::lineage::PastTarget;
use holdfast_core::ownership::OwnerState;
use holdfast_records::cell_prefix;
use holdfast_rpc::follower::LogName;
use holdfast_rpc::limits::WHOLE_BODY_LEN_MAX;
use holdfast_rpc::{
    Body, CallError, CellCall, CellHost, CellPage, CellReply, CellSummary, MoveCall, NodeDescription,
    PROTOCOL, RestoredCell, WakeCall, WakeReply, whole_body,
};
use holdfast_telemetry::names::span;
use holdfast_telemetry::{RequestOutcome, metrics};
use holdfast_types::{CellName, Epoch, Position, Txid};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::cells::{Cells, Event, EventHandle, EventReply, Resident, cancel_at};
use crate::handoff::{adopt, move_cells};
use crate::node::Node;
use crate::past::restore_cell;
use crate::recovery::recover_dead;
use crate::release::{cover, release, release_unresident};
use crate::runtime::{EventCall, ReplyBody, RequestBody};
use crate::wake::wake;

/// How long before a call's deadline the node answers, so that its answer arrives in time.
pub(crate) const ANSWER_MARGIN: Duration = Duration::from_millis(150);

/// What an answer reveals that is not from the cell.
const NOTHING: Position = Position { epoch: Epoch::ZERO, txid: Txid::ZERO };

/// The node as others see it.
#[derive(Debug)]
pub(crate) struct Host {
    node: Arc<Node>,
    /// Told when somebody asks for a drain.
    drain: Arc<Notify>,
}

impl Host {
    /// For this node; `drain` is told when somebody asks for a drain.
    pub(crate) fn new(node: Arc<Node>, drain: Arc<Notify>) -> Self {
        Self { node, drain }
    }

    async fn answer(&self, call: CellCall) -> Result<CellReply, CallError> {
        let classes = &self.node.classes;
        // Whatever comes of it, those behind it wait no longer than this does.
        let mut place = call.object.order.map(|order| self.node.orders.arrive(order));
        classes.check(&call.cell)?;
        let Some(admission) = self.node.admit() else {
            let reason = format!("node `{}` has {} requests in flight", self.node.name, self.node.requests());
            return Err(CallError::Overloaded { reason, retry_after_ms: 500 });
        };
        self.node.check_authority()?;
        if !classes.may_create(&call.cell, call.access, call.request.method()) {
            if let Some(response) = classes.without_cell(&call.cell, &call.request) {
                return Ok(CellReply { response: response.map(whole_body), thrown: None, position: NOTHING });
            }
            self.must_exist(&call.cell).await?;
        }
        // What an activation waits for is told before the caller gives up.
        let patience = call.deadline.checked_sub(ANSWER_MARGIN).unwrap_or(call.deadline);
        let resident = Cells::resident(&self.node, &call.cell, patience).await?;
        let CellCall { cell, access, request, object, deadline } = call;
        let (parts, body) = request.into_parts();
        if object.is_socket && !classes.takes_streams(&cell, &object) {
            let reason = format!("cells of class `{}` have no WebSockets", cell.class());
            return Err(CallError::Rejected { status: http::StatusCode::UPGRADE_REQUIRED, reason });
        }
        // What a socket's client says never ends by itself, whatever its request announced.
        let is_streamed = object.is_socket || is_streamed(&body);
        let mut memory = BodyMemory { pool: Arc::clone(&self.node.bodies), held: Vec::new() };
        // The first message of a session came along.
        memory.take(object.session.as_ref().map_or(0, Bytes::len))?;
        let (body, memory) = if is_streamed && classes.takes_streams(&cell, &object) {
            (RequestBody::Stream(body), memory)
        } else {
            let (body, memory) = self.collect(body, deadline, memory).await?;
            (RequestBody::Whole(body), memory)
        };
        let request = http::Request::from_parts(parts, body);
        if let Some(place) = &mut place {
            place.come(patience).await;
        }
        let event = Event::new(EventCall { access, request, object }, Box::new((admission, memory)));
        let handle = resident.submit(self.node.config.cell_queue_max, event).map_err(|waiting| {
            let reason = format!("{waiting} requests wait for cell `{}`", resident.cell);
            CallError::Overloaded { reason, retry_after_ms: 500 }
        })?;
        if let Some(place) = &mut place {
            place.begin();
        }
        let EventReply { response, thrown, position } = Caller::of(&resident, handle).wait(patience).await?;
        Ok(CellReply { response: response.map(body_of), thrown, position })
    }

    /// Refuses to open a cell, which may mean to claim it, for somebody who must not make it.
    async fn may_open(&self, cell: &CellName) -> Result<(), CallError> {
        self.node.classes.check(cell)?;
        if self.node.is_draining() {
            return Err(CallError::Draining);
        }
        self.node.check_authority()?;
        self.must_exist(cell).await
    }

    /// Refuses a call that must not make its cell, where there is none. What else may be wrong with the cell is told by
    /// its activation.
    async fn must_exist(&self, cell: &CellName) -> Result<(), CallError> {
        if self.node.cells.is_here(cell) || self.node.dormant.contains(cell) {
            return Ok(());
        }
        let is_absent = match self.node.owners.read(cell).await {
            Ok(Some((owner, _))) => owner.state == OwnerState::Purged,
            // Objects without a record are damage, and no answer for somebody who only asks.
            Ok(None) => self
                .node
                .buckets
                .bulk
                .list(&cell_prefix(cell), None, 1)
                .await
                .is_ok_and(|page| page.objects.is_empty()),
            Err(_) => false,
        };
        if !is_absent {
            return Ok(());
        }
        Err(CallError::Rejected {
            status: http::StatusCode::NOT_FOUND,
            reason: format!("there is no cell `{cell}`: the first POST with a token that may write makes it"),
        })
    }

    async fn collect(
        &self,
        body: Body,
        deadline: Instant,
        memory: BodyMemory,
    ) -> Result<(Bytes, BodyMemory), CallError> {
        match tokio::time::timeout_at(deadline, collect_up_to(body, self.node.config.body_max, memory)).await
        {
            Ok(collected) => collected,
            Err(_) => Err(CallError::Rejected {
                status: http::StatusCode::REQUEST_TIMEOUT,
                reason: "the request body did not arrive within the request's deadline".into(),
            }),
        }
    }
}

/// Whoever waits for an event's answer. When it goes away, a handler that has begun is told.
struct Caller<'a> {
    resident: &'a Arc<Resident>,
    handle: EventHandle,
    is_answered: bool,
}

impl<'a> Caller<'a> {
    fn of(resident: &'a Arc<Resident>, handle: EventHandle) -> Self {
        Self { resident, handle, is_answered: false }
    }

    /// The answer, before the caller's own clock strikes: a request that has not started can still be told so.
    async fn wait(mut self, patience: Instant) -> Result<EventReply, CallError> {
        match tokio::time::timeout_at(patience, &mut self.handle.answer).await {
            Ok(answer) => {
                self.is_answered = true;
                answer.unwrap_or_else(|_| {
                    Err(CallError::OutcomeUnknown { reason: "the cell's thread has ended".into() })
                })
            }
            Err(_) if self.handle.withdraw() => {
                let cell = &self.resident.cell;
                let reason = format!("the request waited for cell `{cell}` until its deadline");
                Err(CallError::Overloaded { reason, retry_after_ms: 500 })
            }
            Err(_) => {
                Err(CallError::OutcomeUnknown { reason: "no answer within the request's deadline".into() })
            }
        }
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if !self.is_answered
            && let Some(event) = self.handle.abandon()
        {
            cancel_at(self.resident, event);
        }
    }
}

/// Whether a body is not here yet.
fn is_streamed(body: &Body) -> bool {
    body.size_hint().exact().is_none_or(|len| usize::try_from(len).is_ok_and(|len| len > WHOLE_BODY_LEN_MAX))
}

fn body_of(body: ReplyBody) -> Body {
    match body {
        ReplyBody::Whole(body) => whole_body(body),
        ReplyBody::Stream(reader) => reader.boxed_unsync(),
        ReplyBody::Joined(body) => body,
    }
}

/// What a request body holds of the node's memory for bodies.
struct BodyMemory {
    pool: Arc<Semaphore>,
    held: Vec<OwnedSemaphorePermit>,
}

impl BodyMemory {
    fn take(&mut self, len: usize) -> Result<(), CallError> {
        let kib = u32::try_from(len.div_ceil(1024)).unwrap_or(u32::MAX);
        let permit =
            Arc::clone(&self.pool).try_acquire_many_owned(kib).map_err(|_| CallError::Overloaded {
                reason: "the node's memory for request bodies is used up".into(),
                retry_after_ms: 500,
            })?;
        self.held.push(permit);
        Ok(())
    }
}

/// The whole body. One that arrives in a single piece is not copied.
async fn collect_up_to(
    mut body: Body,
    max: usize,
    mut memory: BodyMemory,
) -> Result<(Bytes, BodyMemory), CallError> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| CallError::Rejected {
            status: http::StatusCode::BAD_REQUEST,
            reason: format!("the request body broke off: {error}"),
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        if first.len() + rest.len() + piece.len() > max {
            return Err(CallError::Rejected {
                status: http::StatusCode::PAYLOAD_TOO_LARGE,
                reason: format!(
                    "the request body is longer than {max} bytes; split the work into smaller requests"
                ),
            });
        }
        memory.take(piece.len())?;
        if first.is_empty() {
            first = piece;
        } else {
            rest.extend_from_slice(&piece);
        }
    }
    if rest.is_empty() {
        return Ok((first, memory));
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok((whole.freeze(), memory))
}

#[async_trait]
impl CellHost for Host {
    async fn call(&self, call: CellCall) -> Result<CellReply, CallError> {
        let _in_flight = metrics().cellnode_in_flight();
        let started = Instant::now();
        let cancelled = CancelGuard(started);
        let span = tracing::debug_span!(span::CELLNODE_CALL, cell = %call.cell);
        let result = self.answer(call).instrument(span).await;
        std::mem::forget(cancelled);
        let outcome = match &result {
            Ok(_) => RequestOutcome::Answered,
            Err(CallError::OutcomeUnknown { .. }) => RequestOutcome::Unknown,
            Err(_) => RequestOutcome::Refused,
        };
        metrics().cellnode_request(outcome, started.elapsed());
        result
    }

    async fn wake(&self, call: WakeCall) -> Result<WakeReply, CallError> {
        self.node.classes.check(&call.cell)?;
        self.node.check_authority()?;
        self.must_exist(&call.cell).await?;
        wake(&self.node, call).await
    }

    async fn describe(&self) -> NodeDescription {
        NodeDescription {
            node: self.node.name.clone(),
            session: self.node.session,
            protocol: PROTOCOL,
            cells: self.node.owned(),
            draining: self.node.is_draining(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    async fn drain(&self) {
        if self.node.begin_draining() {
            tracing::info!(node = %self.node.name, "draining on request");
            self.drain.notify_one();
        }
    }

    async fn release_cell(&self, cell: &CellName) -> Result<(), CallError> {
        // In a task of its own: a caller that goes away must not leave a cell half released.
        let (node, cell) = (Arc::clone(&self.node), cell.clone());
        let released = tokio::spawn(async move {
            match release(&node, &cell).await {
                Err(CallError::NotOwner(_)) => release_unresident(&node, &cell).await,
                result => result,
            }
        });
        released.await.unwrap_or_else(|panic| {
            tracing::error!(%panic, "a release ended by a bug");
            Err(CallError::Unavailable { reason: "the release failed: a bug, see the log".into() })
        })
    }

    async fn cover_cell(&self, cell: &CellName) -> Result<(), CallError> {
        // Those on their way out are covered by whoever gives them up; waiting for that is waiting for the same.
        let gated = self.node.cells.gated().into_iter().find(|resident| resident.cell == *cell);
        let Some(resident) = gated else { return Ok(()) };
        cover(&self.node, &resident).await
    }

    async fn restore_cell(&self, cell: &CellName, target: PastTarget) -> Result<RestoredCell, CallError> {
        self.may_open(cell).await?;
        // In a task of its own: a caller that goes away must not leave it half done.
        let (node, cell) = (Arc::clone(&self.node), cell.clone());
        let restored = tokio::spawn(async move { restore_cell(&node, &cell, target).await });
        restored.await.unwrap_or_else(|panic| {
            tracing::error!(%panic, "a restore ended by a bug");
            Err(CallError::OutcomeUnknown { reason: "the restore failed: a bug, see the log".into() })
        })
    }

    async fn recover_log(&self, log: &LogName) -> Result<(), CallError> {
        self.node.check_authority()?;
        let clock_skew_max_ms = self.node.claimant().clock_skew_max_ms;
        recover_dead(&self.node.owners, &self.node.recoveries, log, clock_skew_max_ms).await
    }

    async fn adopt_cell(&self, cell: &CellName, is_asleep: bool) -> Result<Epoch, CallError> {
        self.may_open(cell).await?;
        let (node, cell) = (Arc::clone(&self.node), cell.clone());
        let adopted = tokio::spawn(async move { adopt(&node, &cell, is_asleep).await });
        adopted.await.unwrap_or_else(|panic| {
            tracing::error!(%panic, "an adoption ended by a bug");
            Err(CallError::Unavailable { reason: "the adoption failed: a bug, see the log".into() })
        })
    }

    async fn move_cells(&self, call: MoveCall) -> Result<u64, CallError> {
        if self.node.is_draining() {
            return Err(CallError::Draining);
        }
        self.node.check_authority()?;
        // In a task of its own: a caller that goes away must not leave a cell half released.
        let node = Arc::clone(&self.node);
        let moved = tokio::spawn(async move { move_cells(&node, &call).await });
        moved.await.map_err(|panic| {
            tracing::error!(%panic, "a move of cells ended by a bug");
            CallError::Unavailable { reason: "the move failed: a bug, see the log".into() }
        })
    }

    async fn list_cells(&self, start_after: Option<&CellName>, limit: usize) -> CellPage {
        let mut residents = self.node.cells.residents();
        residents.retain(|resident| start_after.is_none_or(|after| resident.cell > *after));
        residents.sort_unstable_by(|a, b| a.cell.cmp(&b.cell));
        let more = residents.len() > limit;
        residents.truncate(limit.max(1));
        let summary = |resident: &Arc<crate::cells::Resident>| CellSummary {
            cell: resident.cell.clone(),
            position: resident.position(),
            resident: true,
        };
        let cells: Vec<_> = residents.iter().map(summary).collect();
        let next = if more { cells.last().map(|last| last.cell.clone()) } else { None };
        CellPage { cells, next }
    }
}

/// Counts a call whose caller went away.
struct CancelGuard(Instant);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        metrics().cellnode_request(RequestOutcome::Cancelled, self.0.elapsed());
    }
}
