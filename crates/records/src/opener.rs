//! An epoch's opener, `cells/<cell>/ltx/e<epoch>/opener.json`: the position that the epoch continues from. Written by
//! the epoch's owner before anything of the epoch is served; an epoch without one never acknowledged anything.

use holdfast_types::{Epoch, Position, Txid};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordVersion, hex};

/// Where an epoch begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opener {
    /// Format version.
    pub version: RecordVersion,
    /// The position that the epoch continues; none for an empty database.
    pub base: Option<OpenerBase>,
    /// Why the epoch began, for people.
    pub reason: OpenerReason,
}

/// The position an epoch continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenerBase {
    /// An earlier epoch.
    #[serde(with = "hex::epoch")]
    pub epoch: Epoch,
    /// The last transaction of it that counts; later ones in that epoch are not part of the chain.
    #[serde(with = "hex::txid")]
    pub txid: Txid,
}

impl From<Position> for OpenerBase {
    fn from(Position { epoch, txid }: Position) -> Self {
        Self { epoch, txid }
    }
}

impl From<OpenerBase> for Position {
    fn from(OpenerBase { epoch, txid }: OpenerBase) -> Self {
        Self { epoch, txid }
    }
}

/// Why an epoch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenerReason {
    /// The cell did not exist.
    Created,
    /// The same session woke the cell again.
    LocalWake,
    /// The previous owner had released it.
    AfterRelease,
    /// The previous owner was dead.
    Takeover,
    /// The cell had been purged.
    AfterPurge,
}

impl Record for Opener {
    const KIND: &'static str = "opener";
    const VERSION: RecordVersion = RecordVersion { major: 1, minor: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../golden/opener-1.0.json");

    #[test]
    fn the_golden_record_decodes_and_encodes_to_itself() {
        let record = Opener::decode(GOLDEN.trim().as_bytes()).expect("golden");
        assert_eq!(record.base.map(|base| base.txid), Some(Txid::new(41)));
        assert_eq!(String::from_utf8(record.encode()).expect("utf-8"), GOLDEN.trim());
    }
}
