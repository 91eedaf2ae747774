//! Errors with the codes and texts of R2.

use holdfast_bucket::{BucketError, ErrorKind};

/// Why an operation failed. `Display` is R2's text; which operation it was is told by whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} ({code})")]
pub struct R2Error {
    code: u32,
    text: String,
}

impl R2Error {
    fn new(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The code, as Cloudflare documents it.
    #[must_use]
    pub const fn code(&self) -> u32 {
        self.code
    }

    /// The bucket failed, or an object is damaged: `what` goes to the log. A write may have taken place. Disposition:
    /// reread.
    pub(crate) fn internal(what: impl std::fmt::Display) -> Self {
        tracing::warn!(error = %what, "an operation of an R2 bucket failed");
        Self::new(10_001, "We encountered an internal error. Please try again.")
    }

    /// Disposition: reject.
    pub(crate) fn invalid_name() -> Self {
        Self::new(10_020, "The specified object name is not valid.")
    }

    /// A key that R2 would take, and that the store cannot hold. Disposition: reject.
    pub(crate) fn long_name(len: usize, len_max: usize) -> Self {
        Self::new(
            10_020,
            format!(
                "The specified object name is not valid: it takes {len} bytes in the store, the limit is {len_max}."
            ),
        )
    }

    /// Disposition: reject.
    pub(crate) fn too_large() -> Self {
        Self::new(100_100, "Your proposed upload exceeds the maximum allowed object size.")
    }

    /// Disposition: reject.
    pub(crate) fn large_metadata() -> Self {
        Self::new(10_012, "Your metadata headers exceed the maximum allowed metadata size.")
    }

    /// Disposition: reject.
    pub(crate) fn invalid_limit() -> Self {
        Self::new(10_022, "MaxKeys params must be positive integer <= 1000.")
    }

    /// Disposition: reject.
    pub(crate) fn invalid_argument(text: impl Into<String>) -> Self {
        Self::new(10_029, text)
    }

    /// Disposition: reject.
    pub(crate) fn bad_digest(name: &str, given: &str, actual: &str) -> Self {
        Self::new(
            10_037,
            format!(
                "The {name} checksum you specified did not match what we received.\n\
                 You provided a {name} checksum with value: {given}\nActual {name} was: {actual}"
            ),
        )
    }

    /// Disposition: reject.
    pub(crate) fn invalid_range() -> Self {
        Self::new(10_039, "The requested range is not satisfiable")
    }

    /// Too much is under way. Disposition: retry.
    pub(crate) fn busy() -> Self {
        Self::new(10_043, "Too much is being uploaded at once. Please try again.")
    }

    /// There is no such multipart upload, or not any more. Disposition: reject.
    pub(crate) fn no_such_upload() -> Self {
        Self::new(10_024, "The specified multipart upload does not exist.")
    }

    /// A part of a multipart upload that never was one of it. Disposition: reject.
    pub(crate) fn invalid_part() -> Self {
        Self::new(10_025, "One or more of the specified parts could not be found.")
    }

    /// A part that is not the last one is too small. Disposition: reject.
    pub(crate) fn too_small() -> Self {
        Self::new(10_011, "Your proposed upload is smaller than the minimum allowed object size.")
    }

    /// Parts of unequal lengths, of equal numbers, or none. Disposition: reject.
    pub(crate) fn bad_upload() -> Self {
        Self::new(10_048, "There was a problem with the multipart upload.")
    }

    /// The body ended early, was too long, or broke. Disposition: reject.
    pub(crate) fn broken_body(why: &str) -> Self {
        Self::new(10_013, format!("The body could not be read: {why}."))
    }
}

impl From<BucketError> for R2Error {
    fn from(error: BucketError) -> Self {
        // A key that the store does not take: the prefix of the bucket's URL leaves it less room.
        if error.kind == ErrorKind::Invalid { Self::invalid_name() } else { Self::internal(error) }
    }
}
