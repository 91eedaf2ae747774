//! Names that operators give: nodes, followers, hosts, zones, fleets.

use alloc::string::String;
use core::fmt;

/// Longest operator-given name in bytes: it stands in a key, a certificate and a metric label.
pub const NAME_LEN_MAX: usize = 63;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} `{text}` is not valid: use 1 to 63 of `a-z A-Z 0-9 - _ .`, starting with a letter or a digit"
)]
pub struct NameError {
    /// What was being named.
    pub kind: &'static str,
    /// The text, cut to 80 characters.
    pub text: String,
}

fn check(kind: &'static str, text: &str) -> Result<(), NameError> {
    let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let rest_is_well = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if starts_well && rest_is_well && text.len() <= NAME_LEN_MAX {
        Ok(())
    } else {
        Err(NameError { kind, text: text.chars().take(80).collect() })
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            /// Parses the name.
            ///
            /// # Errors
            /// [`NameError`] when the text has other characters or another length. Disposition: reject.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check($kind, text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "`{}`", self.0)
            }
        }

        impl core::str::FromStr for $type {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }
    };
}

name!(
    /// A cellnode's name. It belongs to one data directory.
    NodeName, "node name"
);
name!(
    /// A follower's name.
    FollowerName, "follower name"
);
name!(
    /// A waker's name.
    WakerName, "waker name"
);
name!(
    /// The machine a process runs on; the machine id unless told otherwise.
    HostId, "host id"
);
name!(
    /// A failure zone.
    Zone, "zone"
);
name!(
    /// A fleet: all processes that share one bucket prefix.
    FleetId, "fleet id"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_leave_its_key_is_refused() {
        for bad in ["", ".", "..", "-a", "a/b", "a b", "ä", &"x".repeat(64)] {
            assert!(NodeName::parse(bad).is_err(), "{bad}");
        }
        for good in ["a", "node-1", "N_1.example", &"x".repeat(63)] {
            assert!(NodeName::parse(good).is_ok(), "{good}");
        }
    }
}
