//! Names of R2 buckets, which are parts of the fleet's bucket.

use alloc::string::String;
use core::fmt;

/// Why a text does not name an R2 bucket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "R2 bucket name `{0}` is not valid: use 3 to 63 of `a-z 0-9 -`, starting and ending with a letter or a digit"
)]
pub struct R2BucketNameError(String);

/// An R2 bucket, as Cloudflare lets one be named. It is a segment of keys as it stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct R2BucketName(String);

impl R2BucketName {
    /// Longest name in bytes.
    pub const LEN_MAX: usize = 63;

    /// Parses the name.
    ///
    /// # Errors
    /// [`R2BucketNameError`]. Disposition: reject.
    pub fn parse(text: &str) -> Result<Self, R2BucketNameError> {
        let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let is_inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_valid = (3..=Self::LEN_MAX).contains(&text.len())
            && text.chars().all(is_inside)
            && is_end(text.chars().next())
            && is_end(text.chars().next_back());
        if is_valid { Ok(Self(text.into())) } else { Err(R2BucketNameError(text.chars().take(80).collect())) }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for R2BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for R2BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

impl core::str::FromStr for R2BucketName {
    type Err = R2BucketNameError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_cloudflare_takes() {
        for good in ["abc", "my-bucket-1", "0a0", &"x".repeat(63)] {
            assert!(R2BucketName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "ab", "-abc", "abc-", "Abc", "a.b", "a_b", "a/b", "äbc", &"x".repeat(64)] {
            assert!(R2BucketName::parse(bad).is_err(), "{bad}");
        }
    }
}
