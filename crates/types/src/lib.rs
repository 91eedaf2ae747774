//! The nouns of Holdfast as newtypes. Every identifier is parsed once, at the border, and carried as its own
//! type from there on. This crate must never know a clock, a socket, a file or an encoding of a record.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod alarm;
mod cell;
mod content;
mod name;
mod number;
mod r2;
mod token;

pub use alarm::{AlarmId, AlarmTime};
pub use cell::{CELL_NAME_LEN_MAX, CellName, CellNameError};
pub use content::{ContentHash, ContentHashError};
pub use name::{FleetId, FollowerName, HostId, NAME_LEN_MAX, NameError, NodeName, WakerName, Zone};
pub use number::{AlarmSeq, Epoch, LogEpoch, LogOffset, Millis, NumberError, Position, Txid, WakeMinute};
pub use r2::{R2BucketName, R2BucketNameError};
pub use token::{Incarnation, R2BodyId, SessionId, TokenError, VersionId, WriteId};
