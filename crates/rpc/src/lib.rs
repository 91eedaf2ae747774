//! gRPC between the programs (design 6.1 and `proto/`): who may call whom, what a call to a cell looks like on both
//! ends, and how a failed one is sorted into "did not run" and "may have run". It never sends a request twice.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod call;
mod client;
mod convert;
pub mod follower;
mod grpc;
mod host;
pub mod identity;
pub mod limits;
mod ping;
mod proto;
mod server;
mod socket;
pub mod tokens;

#[cfg(test)]
mod tests;

use holdfast_records::ProtocolRange;

/// The versions of `proto/` that this release speaks. A node publishes them in its lease.
pub const PROTOCOL: ProtocolRange = ProtocolRange { min: 1, max: 1 };

pub use call::{
    Access, ArmedAlarm, Body, BodyError, CallError, CallOrder, CellCall, CellReply, ObjectCall, OwnerHint,
    ThrownError, WakeCall, WakeReply, whole_body,
};
pub use client::{
    AppendConnection, AppendReceiver, AppendSender, AppendStream, AppendStreamOver, CellClient,
    FollowerCallError, FollowerClient, FollowerLink, FollowerPeer, ForwardError, NodeCallError, Peer,
};
pub use holdfast_core::lineage::PastTarget;
pub use host::{CellHost, CellPage, CellSummary, MoveCall, NodeDescription, RestoredCell};
pub use identity::{Caller, ProcessIdentity, Role};
pub use server::{Delivered, ServeError, deliver, serve, serve_follower};
pub use socket::{
    LateBody, NO_CODE, SOCKET_MESSAGE_LEN_MAX, SocketFrame, SocketReader, SocketWriter, late_body,
    socket_pipe,
};
