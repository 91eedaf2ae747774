//! What operators and other programs ask of a node.

use std::time::Duration;

use holdfast_records::ProtocolRange;
use holdfast_types::{CellName, Epoch, NodeName, Position, SessionId, Txid};
use http::Uri;
use tonic::{Request, Status};

use super::channel::Channel;
use super::{CellClient, Peer};
use crate::proto::node_service_client::NodeServiceClient;
use crate::{CallError, CellPage, CellSummary, NodeDescription, convert, proto};

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

/// Releasing or covering a cell uploads what is not yet in the bucket.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(60);
/// Everything else answers from memory.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

fn failed(status: Status) -> NodeCallError {
    NodeCallError::Failed(format!("{}: {}", status.code(), status.message()))
}

fn not_valid(detail: impl ToString) -> NodeCallError {
    NodeCallError::Failed(format!("the node's answer is not valid: {}", detail.to_string()))
}

fn timed<T>(message: T, timeout: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

async fn bounded<T>(
    timeout: Duration,
    answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, NodeCallError> {
    match tokio::time::timeout(timeout, answer).await {
        Ok(answer) => answer.map(tonic::Response::into_inner).map_err(failed),
        Err(_) => Err(NodeCallError::Failed(format!("no answer within {timeout:?}"))),
    }
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
        let answer = bounded(ANSWER_TIMEOUT, client.describe(request)).await?;
        let proto::DescribeResponse { node, session, protocol_min, protocol_max, cells, draining, version } =
            answer;
        Ok(NodeDescription {
            node: NodeName::parse(&node).map_err(not_valid)?,
            session: SessionId::parse(&session).map_err(not_valid)?,
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
        let proto::DrainResponse {} = bounded(ANSWER_TIMEOUT, client.drain(request)).await?;
        Ok(())
    }

    /// Tells the owner of a cell to give it up.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn release_cell(&self, peer: &Peer, cell: &CellName) -> Result<(), NodeCallError> {
        let mut client = self.node(peer).await?;
        let request = timed(proto::ReleaseCellRequest { cell: cell.to_string() }, RELEASE_TIMEOUT);
        let proto::ReleaseCellResponse { refusal } =
            bounded(RELEASE_TIMEOUT, client.release_cell(request)).await?;
        refusal.map_or(Ok(()), |refusal| Err(convert::refusal_from_wire(refusal).into()))
    }

    /// Has the owner of a cell bring everything that it acknowledged into the bucket.
    ///
    /// # Errors
    /// [`NodeCallError`].
    pub async fn cover_cell(&self, peer: &Peer, cell: &CellName) -> Result<(), NodeCallError> {
        let mut client = self.node(peer).await?;
        let request = timed(proto::CoverCellRequest { cell: cell.to_string() }, RELEASE_TIMEOUT);
        let proto::CoverCellResponse { refusal } =
            bounded(RELEASE_TIMEOUT, client.cover_cell(request)).await?;
        refusal.map_or(Ok(()), |refusal| Err(convert::refusal_from_wire(refusal).into()))
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
        let proto::ListCellsResponse { cells, next } =
            bounded(ANSWER_TIMEOUT, client.list_cells(request)).await?;
        let cells = cells.into_iter().map(row).collect::<Result<_, _>>()?;
        let next = match next.as_str() {
            "" => None,
            next => Some(CellName::parse(next).map_err(not_valid)?),
        };
        Ok(CellPage { cells, next })
    }
}

fn row(row: proto::CellRow) -> Result<CellSummary, NodeCallError> {
    let proto::CellRow { cell, epoch, txid, resident } = row;
    let cell = CellName::parse(&cell).map_err(not_valid)?;
    let position = Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) };
    Ok(CellSummary { cell, position, resident })
}
