//! Who is who inside a fleet (design 6.1). The fleet's authority lives in the bucket, created once; each process makes
//! a short-lived certificate for its role, name and session; every internal call is mutual TLS, and the caller pins the
//! session that it means to reach. Secrets stay in memory: nothing here writes a key anywhere but the bucket.

mod caller;
mod fleet;
mod follow;
mod process;
mod rotation;

use holdfast_bucket::BucketError;
use holdfast_records::RecordError;
use holdfast_types::SessionId;

pub use caller::Caller;
pub use fleet::{create, load, load_or_create};
pub use follow::{FOLLOW_INTERVAL, follow};
pub(crate) use process::{ALPN_H2, ALPN_SOCKETS};
pub use process::{ProcessIdentity, fingerprint};
pub use rotation::{Rotated, RotationStep, advanced, next_step, store};

/// What a process is in its fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The public edge.
    Ingress,
    /// Owns cells.
    Cellnode,
    /// Stores node logs.
    Follower,
    /// Wakes cells.
    Waker,
    /// An operator's tool.
    Tools,
}

impl Role {
    pub(crate) const ALL: [Self; 5] =
        [Self::Ingress, Self::Cellnode, Self::Follower, Self::Waker, Self::Tools];

    /// The role as it stands in certificates.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Cellnode => "cellnode",
            Self::Follower => "follower",
            Self::Waker => "waker",
            Self::Tools => "tools",
        }
    }
}

/// What the names of all certificates end with.
const DOMAIN: &str = ".holdfast.internal";

/// The name that the certificate of one session is for. It says nothing of addresses: a call reaches that session or
/// fails, wherever it was sent.
#[must_use]
pub fn server_name(role: Role, session: SessionId) -> String {
    format!("{session}.{}{DOMAIN}", role.as_str())
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The bucket did not answer. Disposition: retry.
    #[error("cannot read or create `fleet/identity.json`: {0}")]
    Bucket(#[from] BucketError),
    /// The record is not one of ours. Disposition: corrupt.
    #[error("`fleet/identity.json`: {0}")]
    Record(#[from] RecordError),
    /// The bucket holds no identity. Disposition: reject; start a process of the fleet first.
    #[error("the bucket holds no fleet: start a cellnode or an ingress on it first")]
    NoFleet,
    /// A race over the first creation did not settle. Disposition: retry.
    #[error("`fleet/identity.json` could neither be created nor read in {rounds} rounds")]
    Unsettled {
        /// Rounds tried.
        rounds: u32,
    },
    /// A key or certificate cannot be made or used. Disposition: corrupt when it comes from the record.
    #[error("{what}: {detail}")]
    Certificate {
        /// What was being made or read.
        what: &'static str,
        /// What is wrong.
        detail: String,
    },
}

impl IdentityError {
    fn certificate(what: &'static str, detail: impl ToString) -> Self {
        Self::Certificate { what, detail: detail.to_string() }
    }
}
