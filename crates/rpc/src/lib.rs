//! gRPC between the programs.

mod call;

pub use call::{Access, Body, BodyError, CallError, CellCall, CellReply, OwnerHint};
