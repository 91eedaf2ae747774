//! The JavaScript engine of cells and Workers, and the API that it offers to them: Web platform, Workers, Durable
//! Objects. An isolate belongs to one thread and does no I/O itself: it asks its embedder, and is told.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod application;
mod buffers;
mod clone;
mod effect;
mod foreign;
mod isolate;
mod node;
mod plain;
mod prelude;
mod rpc;
mod source_maps;
mod storage;
#[cfg(test)]
mod testing;
mod wasm;
mod web;
#[cfg(test)]
mod wpt;

pub use application::{Application, ApplicationError, AssetAnswer, AssetServer, Binding, SourceKind};
pub use effect::{
    BrokenCause, CallOrder, ConnectTo, Effect, Ending, EventCall, EventId, HistoryAsk, IncomingBody,
    IncomingBodyId, IncomingRequest, IncomingResponse, JsError, LogLevel, Now, Op, OpAnswer, OpId,
    OutgoingBody, OutgoingBodyId, OutgoingCall, OutgoingConnection, OutgoingRequest, OutgoingResponse,
    Redirect, RunEnd, Security, SocketAction, SocketEnd, SocketEvent, SocketId, SocketMessage, StartError,
    Turn, TurnEnd,
};
pub use isolate::{CRON_CLASS, CRON_OBJECT, Isolate, IsolateKind, Limits, Object, id_from_name, is_id_of};
pub use node::names as node_modules;
pub use web::compression::{ContentDecoder, ContentError};
pub use web::sockets::KeptSockets;
