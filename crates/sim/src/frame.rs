//! A frame of a node log: one captured transaction of one cell.

use holdfast_types::{Epoch, LogOffset, Txid};

use crate::bucket::{Cell, OpId};

/// Which transaction a frame holds.
pub type FrameId = (Cell, Epoch, Txid);

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its place in its session's log.
    pub offset: LogOffset,
    /// What it holds.
    pub id: FrameId,
    /// The operations of the transaction.
    pub ops: Vec<OpId>,
}
