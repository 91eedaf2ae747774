//! A point in a cell's past, as people write it: a time, or a position as the commands print it.

use std::str::FromStr;

use holdfast_core::lineage::PastTarget;
use holdfast_types::{Epoch, Millis, Position, Txid};

/// Why a text is no point in the past.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither a time in UTC such as `2026-12-01T09:30:00Z` nor a position such as `3/41` (epoch/transaction)"
)]
pub struct PastPointError(String);

/// A point in a cell's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastPoint(pub PastTarget);

impl FromStr for PastPoint {
    type Err = PastPointError;

    fn from_str(text: &str) -> Result<Self, PastPointError> {
        let refused = || PastPointError(text.to_owned());
        if let Some((epoch, txid)) = text.split_once('/') {
            let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
            let (epoch, txid) = number(epoch).zip(number(txid)).ok_or_else(refused)?;
            let position = Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) };
            return Ok(Self(PastTarget::Position(position)));
        }
        let time = humantime::parse_rfc3339_weak(text).map_err(|_| refused())?;
        let since = time.duration_since(std::time::UNIX_EPOCH).map_err(|_| refused())?;
        // A second that is named whole is meant whole: what was committed in it is in.
        let ms = u64::try_from(since.as_millis()).map_err(|_| refused())?;
        let is_whole = !text.contains('.');
        Ok(Self(PastTarget::Time(Millis::new(if is_whole { ms.saturating_add(999) } else { ms }))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_positions_are_told_apart() {
        let time = |ms| Ok(PastPoint(PastTarget::Time(Millis::new(ms))));
        assert_eq!("1970-01-01T00:00:01Z".parse(), time(1_999));
        assert_eq!("1970-01-01 00:00:01".parse(), time(1_999));
        assert_eq!("1970-01-01T00:00:01.250Z".parse(), time(1_250));
        let position = Position { epoch: Epoch::new(3), txid: Txid::new(41) };
        assert_eq!("3/41".parse(), Ok(PastPoint(PastTarget::Position(position))));
        for bad in ["", "3", "3/", "0/1", "3/x", "-1/2", "yesterday", "1969-01-01T00:00:00Z"] {
            assert_eq!(bad.parse::<PastPoint>(), Err(PastPointError(bad.to_owned())));
        }
    }
}
