//! What a cellnode offers to the fleet: the trait behind the internal listener, in the terms of the product. The gRPC
//! around it is [`crate::serve`]'s; this trait must never see it.

use async_trait::async_trait;
use holdfast_core::lineage::PastTarget;
use holdfast_records::ProtocolRange;
use holdfast_types::{CellName, Epoch, NodeName, Position, SessionId};

use crate::follower::LogName;
use crate::{CallError, CellCall, CellReply, Peer, WakeCall, WakeReply};

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDescription {
    /// The node.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
    /// The protocol versions that it speaks.
    pub protocol: ProtocolRange,
    /// Cells owned.
    pub cells: u64,
    /// Takes no new ownership.
    pub draining: bool,
    /// The program's version.
    pub version: String,
}

/// One owned cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSummary {
    /// The cell.
    pub cell: CellName,
    /// Its position.
    pub position: Position,
    /// In memory, not merely owned.
    pub resident: bool,
}

/// One page of a node's cells, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellPage {
    /// The rows.
    pub cells: Vec<CellSummary>,
    /// Where more remains: list again after this cell.
    pub next: Option<CellName>,
}

/// Cells that a node is asked to give to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveCall {
    /// Who is to have them.
    pub to: Peer,
    /// The taker's weight.
    pub weight: u32,
    /// How many at most.
    pub cells: u64,
    /// How many the giver keeps at least.
    pub keep: u64,
}

/// A cell whose past has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoredCell {
    /// Where the state was found.
    pub found: Position,
    /// The state before: restoring that undoes it.
    pub before: Position,
    /// The transaction that brought it back.
    pub now: Position,
}

/// A process that owns cells.
#[async_trait]
pub trait CellHost: Send + Sync + 'static {
    /// Answers one request. Dropping the future (the caller went away) cancels the request. A request body that is not
    /// yet polled when this fails with [`CallError::NotOwner`] or [`CallError::Draining`] can be sent elsewhere by the
    /// caller: poll it only when the handler runs.
    ///
    /// # Errors
    /// [`CallError`], split by whether the handler may have run.
    async fn call(&self, call: CellCall) -> Result<CellReply, CallError>;

    /// Opens a cell, which it claims where it may, and tells what alarm is armed. Any number of these calls changes nothing
    /// but when the alarm is looked at. A cell that does not exist is not made.
    ///
    /// # Errors
    /// [`CallError`]; [`CallError::Rejected`] with 404 where there is no such cell.
    async fn wake(&self, call: WakeCall) -> Result<WakeReply, CallError>;

    /// Describes the node.
    async fn describe(&self) -> NodeDescription;

    /// Begins a drain and returns; repeated calls change nothing.
    async fn drain(&self);

    /// Gives a cell up, after everything acknowledged is in the bucket.
    ///
    /// # Errors
    /// [`CallError::NotOwner`] when the cell is not owned here; [`CallError::Unavailable`] when the release did not
    /// succeed and the cell is still owned.
    async fn release_cell(&self, cell: &CellName) -> Result<(), CallError>;

    /// Resolves once the bucket holds everything that the cell had acknowledged. A cell that is not in memory is covered
    /// already.
    ///
    /// # Errors
    /// [`CallError::Unavailable`] when the bucket did not take it in time.
    async fn cover_cell(&self, cell: &CellName) -> Result<(), CallError>;

    /// Puts a state of the past in the place of the present one, as a transaction like any other, and resolves once that is in
    /// the bucket. Requests meanwhile see one or the other.
    ///
    /// # Errors
    /// [`CallError`], as of any call; [`CallError::Rejected`] with 404 where there is no such cell, and with 409 where there is
    /// no such state or not any more; [`CallError::OutcomeUnknown`] when it may have come back or not.
    async fn restore_cell(&self, cell: &CellName, target: PastTarget) -> Result<RestoredCell, CallError>;

    /// Recovers the log of a dead session.
    ///
    /// # Errors
    /// [`CallError::Unavailable`] when it is not recovered yet; [`CallError::Rejected`] when the session lives.
    async fn recover_log(&self, log: &LogName) -> Result<(), CallError>;

    /// Claims a cell that another has just given up, where it may, and opens it. One that was asleep there need not stay in memory.
    /// Any number of these calls changes nothing but where the cell is. A cell that does not exist is not made.
    ///
    /// # Errors
    /// [`CallError`], as of any call; [`CallError::Rejected`] with 404 where there is no such cell.
    async fn adopt_cell(&self, cell: &CellName, is_asleep: bool) -> Result<Epoch, CallError>;

    /// Gives cells to another node, and tells how many it has now.
    ///
    /// # Errors
    /// [`CallError`] when it gives none for a reason of its own; that none could be given is no error.
    async fn move_cells(&self, call: MoveCall) -> Result<u64, CallError>;

    /// One page of owned cells after `start_after`, at most `limit` rows.
    async fn list_cells(&self, start_after: Option<&CellName>, limit: usize) -> CellPage;
}
