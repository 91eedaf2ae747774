//! What a store operation can fail with, by what the caller must do.

/// A failed operation: which one, on which key, and why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("bucket {operation} of `{key}` failed: {kind}: {detail}")]
pub struct BucketError {
    /// The operation's name, for example `put_if`.
    pub operation: &'static str,
    /// The key or prefix.
    pub key: String,
    /// What happened.
    pub kind: ErrorKind,
    /// The store's own words: status, code, message.
    pub detail: String,
}

/// Kinds of failure. `is_transient` tells which are worth a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ErrorKind {
    /// No answer in time, or a cut connection: a write may have landed.
    #[error("no answer")]
    NoAnswer,
    /// 5xx, 429 or a conflict (409): the store asks to come again.
    #[error("the store is busy or failing")]
    Unavailable,
    /// 401 or 403: credentials or permissions.
    #[error("access denied")]
    Denied,
    /// 403 RequestTimeTooSkewed: this machine's clock is off.
    #[error("this machine's clock differs too much from the store's")]
    ClockSkew,
    /// 416.
    #[error("range not satisfiable")]
    RangeNotSatisfiable,
    /// 501, or a header or an operation that the store refuses.
    #[error("the store does not support this")]
    Unsupported,
    /// The body was shorter or longer than announced, or a checksum did not match.
    #[error("the body is damaged or incomplete")]
    BadBody,
    /// No space left, or a quota is used up.
    #[error("no space left")]
    NoSpace,
    /// The key, bucket or request is not valid, or the bucket does not exist.
    #[error("invalid request")]
    Invalid,
    /// An error of the local machine: file system, name resolution, configuration.
    #[error("local failure")]
    Local,
}

impl ErrorKind {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(self) -> bool {
        match self {
            Self::NoAnswer | Self::Unavailable | Self::BadBody | Self::NoSpace => true,
            Self::Denied
            | Self::ClockSkew
            | Self::RangeNotSatisfiable
            | Self::Unsupported
            | Self::Invalid
            | Self::Local => false,
        }
    }
}

impl BucketError {
    /// Builds an error.
    #[must_use]
    pub fn new(
        operation: &'static str,
        key: impl Into<String>,
        kind: ErrorKind,
        detail: impl Into<String>,
    ) -> Self {
        Self { operation, key: key.into(), kind, detail: detail.into() }
    }
}
