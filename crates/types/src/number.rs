//! Numbers with a meaning: epochs, transaction numbers, positions, offsets, times. In keys they are 16 digits of
//! lower-case hex, so that byte order is numeric order.

use alloc::string::String;
use core::fmt;

/// A text is not a number in its key spelling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not 16 lower-case hex digits")]
pub struct NumberError(pub String);

fn parse_hex16(text: &str) -> Result<u64, NumberError> {
    let well_formed = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if well_formed {
        u64::from_str_radix(text, 16).map_err(|_| NumberError(text.into()))
    } else {
        Err(NumberError(text.chars().take(80).collect()))
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(u64);

        impl $type {
            /// Zero: before the first.
            pub const ZERO: Self = Self(0);

            /// Wraps a number.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The next one.
            ///
            /// # Panics
            /// At `u64::MAX`, which no counter of this product reaches.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.checked_add(1).expect("a counter never reaches u64::MAX"))
            }

            /// The one before, or `None` at zero.
            #[must_use]
            pub const fn previous(self) -> Option<Self> {
                match self.0.checked_sub(1) {
                    Some(number) => Some(Self(number)),
                    None => None,
                }
            }

            /// The spelling in keys: 16 lower-case hex digits.
            #[must_use]
            pub fn to_hex(self) -> String {
                alloc::format!("{:016x}", self.0)
            }

            /// Reads [`Self::to_hex`].
            ///
            /// # Errors
            /// [`NumberError`] for any other spelling.
            pub fn from_hex(text: &str) -> Result<Self, NumberError> {
                parse_hex16(text).map(Self)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number!(
    /// Fencing number of one ownership of one cell. The first is 1.
    Epoch
);
number!(
    /// Number of one ensemble of one node log.
    LogEpoch
);
number!(
    /// LTX transaction number of a cell. The first is 1; 0 is the empty database.
    Txid
);
number!(
    /// Position in a node log, in frames. The first is 1.
    LogOffset
);
number!(
    /// Number of one installation of a cell's alarm, in the order of installations. The first is 1.
    AlarmSeq
);
number!(
    /// Minutes since the Unix epoch: where a wake entry stands.
    WakeMinute
);
number!(
    /// A time in milliseconds. Wall clock times count from the Unix epoch; monotonic ones from any fixed start.
    Millis
);

impl Millis {
    /// This time and a span later, saturating.
    #[must_use]
    pub const fn plus(self, span_ms: u64) -> Self {
        Self(self.0.saturating_add(span_ms))
    }

    /// This time and a span earlier, saturating at zero.
    #[must_use]
    pub const fn minus(self, span_ms: u64) -> Self {
        Self(self.0.saturating_sub(span_ms))
    }

    /// Milliseconds since an earlier time; zero when that is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A cell's position: the epoch that wrote it and the transaction number reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The epoch whose prefix holds the transaction.
    pub epoch: Epoch,
    /// The last transaction.
    pub txid: Txid,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.epoch, self.txid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_is_numeric_order() {
        let numbers = [0, 1, 9, 10, 255, 256, u64::MAX];
        for pair in numbers.windows(2) {
            assert!(Epoch::new(pair[0]).to_hex() < Epoch::new(pair[1]).to_hex());
            assert_eq!(Epoch::from_hex(&Epoch::new(pair[1]).to_hex()), Ok(Epoch::new(pair[1])));
        }
    }

    #[test]
    fn another_spelling_is_refused() {
        for bad in ["1", "000000000000000A", "+00000000000001", "00000000000000001", ""] {
            assert!(Txid::from_hex(bad).is_err(), "{bad}");
        }
    }
}
