//! When an alarm is due, and which installation of it is meant.

use alloc::string::String;
use core::fmt;

use crate::{AlarmSeq, Epoch, WakeMinute};

/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;

/// When an alarm is due: milliseconds since the Unix epoch, before which it may lie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlarmTime(i64);

impl AlarmTime {
    /// Wraps milliseconds since the Unix epoch.
    #[must_use]
    pub const fn new(deadline_ms: i64) -> Self {
        Self(deadline_ms)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The minute below which the wake entry stands. What lies before 1970 is due with the first minute.
    #[must_use]
    pub const fn minute(self) -> WakeMinute {
        WakeMinute::new(if self.0 < 0 { 0 } else { self.0.unsigned_abs() / MINUTE_MS })
    }
}

impl WakeMinute {
    /// The minute that a wall clock shows.
    #[must_use]
    pub const fn of(wall: crate::Millis) -> Self {
        Self::new(wall.get() / MINUTE_MS)
    }

    /// When the minute begins, wall clock.
    #[must_use]
    pub const fn begins(self) -> crate::Millis {
        crate::Millis::new(self.get().saturating_mul(MINUTE_MS))
    }
}

impl fmt::Display for AlarmTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for AlarmTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One installation of a cell's alarm: the epoch that installed it, and its number in the cell, which no other
/// installation of that epoch has. Ordered by epoch, then by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlarmId {
    /// The epoch that installed it.
    pub epoch: Epoch,
    /// Its number.
    pub seq: AlarmSeq,
}

impl AlarmId {
    /// The spelling in keys, `<epoch>-<seq>`.
    #[must_use]
    pub fn to_hex(self) -> String {
        alloc::format!("{}-{}", self.epoch.to_hex(), self.seq.to_hex())
    }

    /// Reads [`Self::to_hex`].
    ///
    /// # Errors
    /// [`crate::NumberError`] for any other spelling.
    pub fn from_hex(text: &str) -> Result<Self, crate::NumberError> {
        let (epoch, seq) = text.split_once('-').ok_or_else(|| crate::NumberError(text.into()))?;
        Ok(Self { epoch: Epoch::from_hex(epoch)?, seq: AlarmSeq::from_hex(seq)? })
    }
}

impl fmt::Display for AlarmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stands_below_its_minute() {
        let minute = |ms| AlarmTime::new(ms).minute().get();
        assert_eq!(minute(i64::MIN), 0);
        assert_eq!(minute(-1), 0);
        assert_eq!(minute(59_999), 0);
        assert_eq!(minute(60_000), 1);
        // The last time that JavaScript can say, in the year 275760.
        assert_eq!(minute(8_640_000_000_000_000), 144_000_000_000);
        assert_eq!(WakeMinute::new(2).begins().get(), 120_000);
        assert_eq!(WakeMinute::of(crate::Millis::new(179_999)).get(), 2);
    }

    #[test]
    fn an_identity_survives_its_key_spelling_and_another_spelling_is_refused() {
        let id = AlarmId { epoch: Epoch::new(7), seq: AlarmSeq::new(u64::MAX) };
        assert_eq!(id.to_hex(), "0000000000000007-ffffffffffffffff");
        assert_eq!(AlarmId::from_hex(&id.to_hex()), Ok(id));
        for bad in ["", "7-1", "0000000000000007", "0000000000000007-ffffffffffffffff-"] {
            assert!(AlarmId::from_hex(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn installations_are_ordered_by_epoch_first() {
        let id = |epoch, seq| AlarmId { epoch: Epoch::new(epoch), seq: AlarmSeq::new(seq) };
        assert!(id(1, 9) < id(2, 1) && id(2, 1) < id(2, 2));
    }
}
