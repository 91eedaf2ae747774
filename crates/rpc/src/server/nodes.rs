//! `NodeService`: what operators and other programs ask of a node.

use std::sync::Arc;

use holdfast_core::lineage::PastTarget;
use holdfast_types::{CellName, Millis, NodeName, SessionId};
use tonic::{Request, Response, Status};

use crate::follower::LogName;
use crate::proto::node_service_server::NodeService;
use crate::{
    CellHost, CellPage, CellSummary, MoveCall, NodeDescription, Peer, RestoredCell, convert, limits, proto,
};

pub(super) struct Nodes {
    host: Arc<dyn CellHost>,
}

impl Nodes {
    pub(super) fn new(host: Arc<dyn CellHost>) -> Self {
        Self { host }
    }
}

fn cell(text: &str) -> Result<CellName, Status> {
    CellName::parse(text).map_err(|error| Status::invalid_argument(error.to_string()))
}

#[tonic::async_trait]
impl NodeService for Nodes {
    async fn describe(
        &self,
        _request: Request<proto::DescribeRequest>,
    ) -> Result<Response<proto::DescribeResponse>, Status> {
        let NodeDescription { node, session, protocol, cells, draining, version } =
            self.host.describe().await;
        Ok(Response::new(proto::DescribeResponse {
            node: node.to_string(),
            session: session.to_string(),
            protocol_min: protocol.min,
            protocol_max: protocol.max,
            cells,
            draining,
            version,
        }))
    }

    async fn drain(
        &self,
        _request: Request<proto::DrainRequest>,
    ) -> Result<Response<proto::DrainResponse>, Status> {
        self.host.drain().await;
        Ok(Response::new(proto::DrainResponse {}))
    }

    async fn release_cell(
        &self,
        request: Request<proto::ReleaseCellRequest>,
    ) -> Result<Response<proto::ReleaseCellResponse>, Status> {
        let cell = cell(&request.into_inner().cell)?;
        let refusal = self.host.release_cell(&cell).await.err().map(convert::refusal_to_wire);
        Ok(Response::new(proto::ReleaseCellResponse { refusal }))
    }

    async fn cover_cell(
        &self,
        request: Request<proto::CoverCellRequest>,
    ) -> Result<Response<proto::CoverCellResponse>, Status> {
        let cell = cell(&request.into_inner().cell)?;
        let refusal = self.host.cover_cell(&cell).await.err().map(convert::refusal_to_wire);
        Ok(Response::new(proto::CoverCellResponse { refusal }))
    }

    async fn restore_cell(
        &self,
        request: Request<proto::RestoreCellRequest>,
    ) -> Result<Response<proto::RestoreCellResponse>, Status> {
        let proto::RestoreCellRequest { cell: name, target } = request.into_inner();
        let target = match target {
            Some(proto::restore_cell_request::Target::Position(position)) => {
                PastTarget::Position(convert::position_from_wire(position))
            }
            Some(proto::restore_cell_request::Target::TimeMs(ms)) => PastTarget::Time(Millis::new(ms)),
            None => return Err(Status::invalid_argument("the request names neither a position nor a time")),
        };
        let answer = match self.host.restore_cell(&cell(&name)?, target).await {
            Ok(RestoredCell { found, before, now }) => proto::RestoreCellResponse {
                refusal: None,
                found: Some(convert::position_to_wire(found)),
                before: Some(convert::position_to_wire(before)),
                now: Some(convert::position_to_wire(now)),
            },
            Err(error) => proto::RestoreCellResponse {
                refusal: Some(convert::refusal_to_wire(error)),
                ..Default::default()
            },
        };
        Ok(Response::new(answer))
    }

    async fn recover_log(
        &self,
        request: Request<proto::RecoverLogRequest>,
    ) -> Result<Response<proto::RecoverLogResponse>, Status> {
        let proto::RecoverLogRequest { node, session } = request.into_inner();
        let node = NodeName::parse(&node).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let session =
            SessionId::parse(&session).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let answer = self.host.recover_log(&LogName { node, session }).await;
        let refusal = answer.err().map(convert::refusal_to_wire);
        Ok(Response::new(proto::RecoverLogResponse { refusal }))
    }

    async fn adopt_cell(
        &self,
        request: Request<proto::AdoptCellRequest>,
    ) -> Result<Response<proto::AdoptCellResponse>, Status> {
        let proto::AdoptCellRequest { cell: name, asleep } = request.into_inner();
        let answer = match self.host.adopt_cell(&cell(&name)?, asleep).await {
            Ok(epoch) => proto::AdoptCellResponse { refusal: None, epoch: epoch.get() },
            Err(error) => {
                proto::AdoptCellResponse { refusal: Some(convert::refusal_to_wire(error)), epoch: 0 }
            }
        };
        Ok(Response::new(answer))
    }

    async fn move_cells(
        &self,
        request: Request<proto::MoveCellsRequest>,
    ) -> Result<Response<proto::MoveCellsResponse>, Status> {
        let proto::MoveCellsRequest { node, session, address, weight, cells, keep } = request.into_inner();
        let node = NodeName::parse(&node).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let session =
            SessionId::parse(&session).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let call = MoveCall { to: Peer { node, session, address }, weight, cells, keep };
        let answer = match self.host.move_cells(call).await {
            Ok(moved) => proto::MoveCellsResponse { refusal: None, moved },
            Err(error) => {
                proto::MoveCellsResponse { refusal: Some(convert::refusal_to_wire(error)), moved: 0 }
            }
        };
        Ok(Response::new(answer))
    }

    async fn list_cells(
        &self,
        request: Request<proto::ListCellsRequest>,
    ) -> Result<Response<proto::ListCellsResponse>, Status> {
        let proto::ListCellsRequest { start_after, limit } = request.into_inner();
        let start_after = if start_after.is_empty() { None } else { Some(cell(&start_after)?) };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, limits::CELLS_PAGE_MAX);
        let CellPage { cells, next } = self.host.list_cells(start_after.as_ref(), limit).await;
        let row = |CellSummary { cell, position, resident }| proto::CellRow {
            cell: cell.to_string(),
            epoch: position.epoch.get(),
            txid: position.txid.get(),
            resident,
        };
        Ok(Response::new(proto::ListCellsResponse {
            cells: cells.into_iter().map(row).collect(),
            next: next.map(|cell| cell.to_string()).unwrap_or_default(),
        }))
    }
}
