//! A host whose behaviour a test gives as a function, served on loopback, and a client of the same fleet.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_records::{FleetIdentity, ProtocolRange};
use holdfast_types::{AlarmTime, CellName, Epoch, NodeName, Position, SessionId, Txid};
use http_body_util::{BodyExt as _, Full, StreamBody};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::follower::LogName;
use crate::{
    Access, ArmedAlarm, Body, BodyError, CallError, CellCall, CellClient, CellHost, CellPage, CellReply,
    CellSummary, MoveCall, NodeDescription, Peer, ProcessIdentity, Role, WakeCall, WakeReply, identity,
    serve,
};

pub(super) const SESSION: SessionId = SessionId::from_bits(0xabc);
pub(super) const POSITION: Position = Position { epoch: Epoch::new(3), txid: Txid::new(14) };

type Answer = Pin<Box<dyn Future<Output = Result<CellReply, CallError>> + Send>>;

pub(super) struct Scripted {
    handler: Box<dyn Fn(CellCall) -> Answer + Send + Sync>,
    drained: mpsc::UnboundedSender<()>,
}

#[async_trait]
impl CellHost for Scripted {
    async fn call(&self, call: CellCall) -> Result<CellReply, CallError> {
        (self.handler)(call).await
    }

    async fn wake(&self, call: WakeCall) -> Result<WakeReply, CallError> {
        if call.cell.name() != "mine" {
            return Err(CallError::NotOwner(None));
        }
        let deadline_ms = AlarmTime::new(i64::try_from(call.minute.begins().get()).unwrap());
        Ok(WakeReply { epoch: POSITION.epoch, armed: Some(ArmedAlarm { id: call.id, deadline_ms }) })
    }

    async fn describe(&self) -> NodeDescription {
        NodeDescription {
            node: NodeName::parse("n1").unwrap(),
            session: SESSION,
            protocol: ProtocolRange { min: 1, max: 2 },
            cells: 3,
            draining: true,
            version: "0.1.0".into(),
        }
    }

    async fn drain(&self) {
        self.drained.send(()).unwrap();
    }

    async fn cover_cell(&self, _cell: &CellName) -> Result<(), CallError> {
        Ok(())
    }

    async fn release_cell(&self, cell: &CellName) -> Result<(), CallError> {
        if cell.name() == "mine" { Ok(()) } else { Err(CallError::NotOwner(None)) }
    }

    async fn restore_cell(
        &self,
        cell: &CellName,
        _target: crate::PastTarget,
    ) -> Result<crate::RestoredCell, CallError> {
        unreachable!("nobody restores `{cell}` here")
    }

    async fn recover_log(&self, log: &LogName) -> Result<(), CallError> {
        match log.node.as_str() {
            "dead" => Ok(()),
            _ => Err(CallError::Unavailable { reason: format!("the session of {log} lives") }),
        }
    }

    async fn adopt_cell(&self, cell: &CellName, is_asleep: bool) -> Result<Epoch, CallError> {
        match (cell.name(), is_asleep) {
            ("mine", true) => Ok(POSITION.epoch),
            _ => Err(CallError::NotOwner(None)),
        }
    }

    async fn move_cells(&self, call: MoveCall) -> Result<u64, CallError> {
        if call.to == self::peer_at("there:1".into()) && call.weight == 300 {
            Ok(call.cells - call.keep)
        } else {
            Err(CallError::Draining)
        }
    }

    async fn list_cells(&self, start_after: Option<&CellName>, limit: usize) -> CellPage {
        let all = ["db:a", "db:b", "db:c"].map(|name| CellName::parse(name).unwrap());
        let mut rest = all.into_iter().filter(|cell| start_after.is_none_or(|after| cell > after));
        let row = |cell| CellSummary { cell, position: POSITION, resident: true };
        let cells: Vec<CellSummary> = rest.by_ref().take(limit).map(row).collect();
        let next = rest.next().and(cells.last().map(|row| row.cell.clone()));
        CellPage { cells, next }
    }
}

pub(super) struct Fleet {
    pub(super) identity: FleetIdentity,
    pub(super) peer: Peer,
    pub(super) client: CellClient,
    pub(super) drained: mpsc::UnboundedReceiver<()>,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) server: JoinHandle<()>,
}

pub(super) fn process(fleet: &FleetIdentity, role: Role, session: u128) -> ProcessIdentity {
    ProcessIdentity::new(fleet.clone(), role, "p", SessionId::from_bits(session)).unwrap()
}

pub(super) fn peer_at(address: String) -> Peer {
    Peer { node: NodeName::parse("n1").unwrap(), session: SESSION, address }
}

/// Serves `handler` as session [`SESSION`].
pub(super) async fn fleet<F, A>(handler: F) -> Fleet
where
    F: Fn(CellCall) -> A + Send + Sync + 'static,
    A: Future<Output = Result<CellReply, CallError>> + Send + 'static,
{
    fleet_of(identity::create().unwrap(), handler).await
}

/// The same in this fleet.
pub(super) async fn fleet_of<F, A>(identity: FleetIdentity, handler: F) -> Fleet
where
    F: Fn(CellCall) -> A + Send + Sync + 'static,
    A: Future<Output = Result<CellReply, CallError>> + Send + 'static,
{
    let node = ProcessIdentity::new(identity.clone(), Role::Cellnode, "n1", SESSION).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = peer_at(listener.local_addr().unwrap().to_string());
    let (drained_tx, drained) = mpsc::unbounded_channel();
    let handler = Box::new(move |call| Box::pin(handler(call)) as Answer);
    let host = Arc::new(Scripted { handler, drained: drained_tx });
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let shutdown = async {
            // A dropped sender stops the server, too.
            let _ = stopped.await;
        };
        serve(listener, host, &node, shutdown).await.unwrap();
    });
    let client = CellClient::new(process(&identity, Role::Ingress, 1));
    Fleet { identity, peer, client, drained, stop, server }
}

pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(super) type Pieces = mpsc::Sender<Result<Bytes, BodyError>>;

/// A body whose pieces the test sends when it wants.
pub(super) fn pieces() -> (Pieces, Body) {
    let (sender, receiver) = mpsc::channel(1);
    let stream = futures::stream::unfold(receiver, |mut receiver| async move {
        let piece: Result<Bytes, BodyError> = receiver.recv().await?;
        Some((piece.map(http_body::Frame::data), receiver))
    });
    (sender, StreamBody::new(stream).boxed_unsync())
}

pub(super) fn call(body: Body) -> CellCall {
    call_for(body, Duration::from_secs(20))
}

pub(super) fn call_for(body: Body, wait: Duration) -> CellCall {
    CellCall {
        cell: CellName::parse("db:users").unwrap(),
        access: Access::ReadWrite,
        request: http::Request::post("/v2/pipeline?x=%2F").header("x-a", "1").body(body).unwrap(),
        object: crate::ObjectCall::default(),
        deadline: tokio::time::Instant::now() + wait,
    }
}

pub(super) fn reply(body: Body) -> CellReply {
    let response = http::Response::builder().status(201).header("x-b", "2").body(body).unwrap();
    CellReply { response, thrown: None, position: POSITION }
}

pub(super) async fn collect(body: Body) -> Bytes {
    body.collect().await.unwrap().to_bytes()
}
