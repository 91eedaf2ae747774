//! Identities of 128 bits each, spelled as 32 lower-case hex digits. Whoever makes one brings the randomness, or the hash.

use alloc::string::String;
use core::fmt;

/// A text is not 32 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{text}` is not 32 lower-case hex digits")]
pub struct TokenError {
    /// What was being read.
    pub kind: &'static str,
    /// The text, cut to 80 characters.
    pub text: String,
}

macro_rules! token {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(u128);

        impl $type {
            /// Wraps 128 bits, which must be random, or a hash, wherever two processes could meet.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The bits.
            #[must_use]
            pub const fn bits(self) -> u128 {
                self.0
            }

            /// Reads 32 lower-case hex digits.
            ///
            /// # Errors
            /// [`TokenError`] for any other spelling. Disposition: reject.
            pub fn parse(text: &str) -> Result<Self, TokenError> {
                let well_formed =
                    text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                let bad = || TokenError { kind: $kind, text: text.chars().take(80).collect() };
                if !well_formed {
                    return Err(bad());
                }
                u128::from_str_radix(text, 16).map(Self).map_err(|_| bad())
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl core::str::FromStr for $type {
            type Err = TokenError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }
    };
}

token!(
    /// One process life of a node.
    SessionId, "session id"
);
token!(
    /// Marks one write of one record, so that its writer knows it again after a lost answer.
    WriteId, "write id"
);
token!(
    /// Made when a data or log directory is created: another disk under the same name is another member.
    Incarnation, "incarnation"
);
token!(
    /// One version of the deployed application: the first 128 bits of the SHA-256 of its manifest.
    VersionId, "version id"
);
token!(
    /// One body of an object of an R2 bucket: milliseconds since 1970 in the upper 48 bits, randomness below.
    R2BodyId, "R2 body id"
);

impl R2BodyId {
    /// An id made `ms` milliseconds since 1970, with randomness.
    #[must_use]
    pub const fn new(ms: u64, random: u128) -> Self {
        Self(((ms as u128) << 80) | (random & (u128::MAX >> 48)))
    }

    /// When it was made, by the clock of whoever made it.
    #[must_use]
    pub const fn made_ms(self) -> u64 {
        (self.0 >> 80) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_token_survives_its_text() {
        for bits in [0, 1, u128::MAX, 0xdead_beef] {
            let token = SessionId::from_bits(bits);
            assert_eq!(SessionId::parse(&token.to_string()), Ok(token));
        }
        assert!(SessionId::parse("+0000000000000000000000000000001").is_err());
        assert!(SessionId::parse("0000000000000000000000000000000A").is_err());
    }
}
