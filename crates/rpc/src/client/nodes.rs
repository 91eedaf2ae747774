//! What operators and other programs ask of a node.

use std::fmt;
use std::time::Duration;

use holdfast_core::lineage::PastTarget;
use holdfast_records::ProtocolRange;
use holdfast_types::{CellName, CellNameError, Epoch, NodeName, Position, SessionId, Txid};
use http::Uri;
use tonic::{Request, Status};

use super::channel::Channel;
use super::{CellClient, Peer};
use crate::follower::LogName;
use crate::proto::node_service_client::NodeServiceClient;
use crate::{CallError, CellPage, CellSummary, MoveCall, NodeDescription, RestoredCell, convert, proto};

/// Why a node did not answer a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeCallError {
    /// No connection. Disposition: reread the node's lease, retry.
    #[error("{0}")]
    Unreachable(String),
    /// Connected, and then no good answer. Disposition: retry; all these questions may be asked again.
    #[error("{0}")]
    Failed(String),
    /// The node's own answer is no. Disposition: as the error says.
    #[error(transparent)]
    Refused(#[from] CallError),
}

/// Releasing or covering a cell, or recovering a log, uploads what is not yet in the bucket.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(60);
/// A new owner claims and restores.
const ADOPT_TIMEOUT: Duration = Duration::from_secs(10);
/// A state of the past is read as a whole.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(600);
/// Everything else answers from memory.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a node is asked: for the text of an error.
#[derive(Clone, Copy, Debug)]
struct Question<'a> {
    what: &'a str,
    peer: &'a Peer,
}

impl Question<'_> {
    fn failed(&self, reason: impl fmt::Display) -> NodeCallError {
        let Self { what, peer } = self;
        NodeCallError::Failed(format!("{what}, asked of {peer}: {reason}"))
    }

    fn not_valid(&self, detail: impl fmt::Display) -> NodeCallError {
        self.failed(format_args!("the answer is not valid: {detail}"))
    }

    async fn bounded<T>(
        &self,
        timeout: Duration,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, NodeCallError> {
        let failed = |status: Status| self.failed(format_args!("{}: {}", status.code(), status.message()));
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer.map(tonic::Response::into_inner).map_err(failed),
            Err(_) => Err(self.failed(format_args!("no answer within {timeout:?}"))),
        }
    }
}

fn timed<T>(message: T, timeout: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

impl CellClient {
    async fn node(&self, peer: &Peer) -> Result<NodeServiceClient<Channel>, NodeCallError> {
        let channel = self.pool.channel(peer).await.map_err(NodeCallError::Unreachable)?;
        let origin = Uri::from_static("https://cellnode.holdfast.internal");
        Ok(NodeServiceClient::with_origin(channel, origin))
    }

    /// Asks a session to describe itself.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn describe(&self, peer: &Peer) -> Result<NodeDescription, NodeCallError> {
        let mut client = self.node(peer).await?;
        let request = timed(proto::DescribeRequest {}, ANSWER_TIMEOUT);
        let question = Question { what: "a description", peer };
        let answer = question.bounded(ANSWER_TIMEOUT, client.describe(request)).await?;
        let proto::DescribeResponse { node, session, protocol_min, protocol_max, cells, draining, version } =
            answer;
        Ok(NodeDescription {
            node: NodeName::parse(&node).map_err(|error| question.not_valid(error))?,
            session: SessionId::parse(&session).map_err(|error| question.not_valid(error))?,
            protocol: ProtocolRange { min: protocol_min, max: protocol_max },
            cells,
            draining,
            version,
        })
    }

    /// Tells a session to begin its drain.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn drain(&self, peer: &Peer) -> Result<(), NodeCallError> {
        let mut client = self.node(peer).await?;
        let request = timed(proto::DrainRequest {}, ANSWER_TIMEOUT);
        let question = Question { what: "a drain", peer };
        let proto::DrainResponse {} = question.bounded(ANSWER_TIMEOUT, client.drain(request)).await?;
        Ok(())
    }

    /// Tells the owner of a cell to give it up.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn release_cell(&self, peer: &Peer, cell: &CellName) -> Result<(), NodeCallError> {
        let mut client = self.node(peer).await?;
        let request = timed(proto::ReleaseCellRequest { cell: cell.to_string() }, RELEASE_TIMEOUT);
        let question = Question { what: &format!("the release of `{cell}`"), peer };
        let proto::ReleaseCellResponse { refusal } =
            question.bounded(RELEASE_TIMEOUT, client.release_cell(request)).await?;
        refusal.map_or(Ok(()), |refusal| Err(convert::refusal_from_wire(refusal).into()))
    }

    /// Has the owner of a cell bring everything that it acknowledged into the bucket.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn cover_cell(&self, peer: &Peer, cell: &CellName) -> Result<(), NodeCallError> {
        let mut client = self.node(peer).await?;
        let request = timed(proto::CoverCellRequest { cell: cell.to_string() }, RELEASE_TIMEOUT);
        let question = Question { what: &format!("the upload of `{cell}`"), peer };
        let proto::CoverCellResponse { refusal } =
            question.bounded(RELEASE_TIMEOUT, client.cover_cell(request)).await?;
        refusal.map_or(Ok(()), |refusal| Err(convert::refusal_from_wire(refusal).into()))
    }

    /// Has the owner of a cell, or whoever takes it where nobody owns it, put a state of its past in the place of the present
    /// one. It goes on when the answer does not come in time.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn restore_cell(
        &self,
        peer: &Peer,
        cell: &CellName,
        target: PastTarget,
    ) -> Result<RestoredCell, NodeCallError> {
        let mut client = self.node(peer).await?;
        let target = match target {
            PastTarget::Position(position) => {
                proto::restore_cell_request::Target::Position(convert::position_to_wire(position))
            }
            PastTarget::Time(time) => proto::restore_cell_request::Target::TimeMs(time.get()),
        };
        let message = proto::RestoreCellRequest { cell: cell.to_string(), target: Some(target) };
        let question = Question { what: &format!("a restore of `{cell}`"), peer };
        let proto::RestoreCellResponse { refusal, found, before, now } =
            question.bounded(RESTORE_TIMEOUT, client.restore_cell(timed(message, RESTORE_TIMEOUT))).await?;
        if let Some(refusal) = refusal {
            return Err(convert::refusal_from_wire(refusal).into());
        }
        let (Some(found), Some(before), Some(now)) = (found, before, now) else {
            return Err(question.not_valid("it lacks a position"));
        };
        let [found, before, now] = [found, before, now].map(convert::position_from_wire);
        Ok(RestoredCell { found, before, now })
    }

    /// Has a session recover the log of a dead one. The attempt goes on when the answer does not come in time.
    ///
    /// # Errors
    /// [`NodeCallError`]: not recovered yet; ask again.
    pub async fn recover_log(&self, peer: &Peer, log: &LogName) -> Result<(), NodeCallError> {
        let mut client = self.node(peer).await?;
        let message =
            proto::RecoverLogRequest { node: log.node.to_string(), session: log.session.to_string() };
        let question = Question { what: &format!("the recovery of the log of {log}"), peer };
        let proto::RecoverLogResponse { refusal } =
            question.bounded(RELEASE_TIMEOUT, client.recover_log(timed(message, RELEASE_TIMEOUT))).await?;
        refusal.map_or(Ok(()), |refusal| Err(convert::refusal_from_wire(refusal).into()))
    }

    /// Has a session claim a cell that was just given up. Its claim goes on when the answer does not come in time.
    ///
    /// # Errors
    /// [`NodeCallError`]: somebody else may have it, or nobody. Whoever wants it next finds out.
    pub async fn adopt_cell(
        &self,
        peer: &Peer,
        cell: &CellName,
        is_asleep: bool,
    ) -> Result<Epoch, NodeCallError> {
        let mut client = self.node(peer).await?;
        let message = proto::AdoptCellRequest { cell: cell.to_string(), asleep: is_asleep };
        let question = Question { what: &format!("the adoption of `{cell}`"), peer };
        let proto::AdoptCellResponse { refusal, epoch } =
            question.bounded(ADOPT_TIMEOUT, client.adopt_cell(timed(message, ADOPT_TIMEOUT))).await?;
        match refusal {
            Some(refusal) => Err(convert::refusal_from_wire(refusal).into()),
            None => Ok(Epoch::new(epoch)),
        }
    }

    /// Has a session give cells to another, and tells how many that has now.
    ///
    /// # Errors
    /// [`NodeCallError`]: how many have moved is unknown.
    pub async fn move_cells(&self, peer: &Peer, call: &MoveCall) -> Result<u64, NodeCallError> {
        let mut client = self.node(peer).await?;
        let MoveCall { to, weight, cells, keep } = call;
        let message = proto::MoveCellsRequest {
            node: to.node.to_string(),
            session: to.session.to_string(),
            address: to.address.clone(),
            weight: *weight,
            cells: *cells,
            keep: *keep,
        };
        let question = Question { what: &format!("cells for `{}`", to.node), peer };
        let proto::MoveCellsResponse { refusal, moved } =
            question.bounded(RELEASE_TIMEOUT, client.move_cells(timed(message, RELEASE_TIMEOUT))).await?;
        refusal.map_or(Ok(moved), |refusal| Err(convert::refusal_from_wire(refusal).into()))
    }

    /// One page of the cells that a session owns.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn list_cells(
        &self,
        peer: &Peer,
        start_after: Option<&CellName>,
        limit: u32,
    ) -> Result<CellPage, NodeCallError> {
        let mut client = self.node(peer).await?;
        let start_after = start_after.map(ToString::to_string).unwrap_or_default();
        let request = timed(proto::ListCellsRequest { start_after, limit }, ANSWER_TIMEOUT);
        let question = Question { what: "its cells", peer };
        let proto::ListCellsResponse { cells, next } =
            question.bounded(ANSWER_TIMEOUT, client.list_cells(request)).await?;
        let not_valid = |error| question.not_valid(error);
        let cells = cells.into_iter().map(row).collect::<Result<_, _>>().map_err(not_valid)?;
        let next = match next.as_str() {
            "" => None,
            next => Some(CellName::parse(next).map_err(not_valid)?),
        };
        Ok(CellPage { cells, next })
    }
}

fn row(row: proto::CellRow) -> Result<CellSummary, CellNameError> {
    let proto::CellRow { cell, epoch, txid, resident } = row;
    let cell = CellName::parse(&cell)?;
    let position = Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) };
    Ok(CellSummary { cell, position, resident })
}
