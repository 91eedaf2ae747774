//! Why a request has no answer, as the caller of the router sees it.

use holdfast_core::routing::Failure;
use holdfast_rpc::{CallError, ForwardError};

/// Why there is no answer. All but [`RouteError::OutcomeUnknown`] say that the handler did not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The owner's own refusal: it says what to do.
    #[error(transparent)]
    Refused(CallError),
    /// No live node takes the cell. Disposition: retry later; start a cellnode.
    #[error("no live cellnode takes this cell")]
    NoNode,
    /// The bucket does not answer, so nobody knows who owns the cell. Disposition: retry later.
    #[error("the bucket does not answer")]
    BucketUnreadable,
    /// The owner record is damaged or of a newer release. Disposition: corrupt, or reject; a person must look.
    #[error(
        "the cell's owner record cannot be used by this release; `holdfast cell show` says what is wrong with it"
    )]
    RecordUnusable,
    /// The owner is alive and speaks another protocol. Disposition: reject; upgrade one of the two.
    #[error("the cell's owner speaks another protocol version: upgrade the older of the two programs")]
    ProtocolMismatch,
    /// The owner's lease is not over, and nobody can connect to it. Disposition: retry later.
    #[error("the cell's owner is not reachable: {reason}")]
    Unreachable {
        /// What failed last.
        reason: String,
    },
    /// The ownership moved all the time that the caller was willing to wait. Disposition: retry later.
    #[error("the cell's ownership is moving")]
    Moving,
    /// The request's own body broke or did not arrive in time. Disposition: reject.
    #[error("{reason}")]
    BodyBroken {
        /// What failed.
        reason: String,
    },
    /// The handler may have run, and nobody knows whether its writes survive. Never sent again by a program.
    #[error("outcome unknown: {reason}")]
    OutcomeUnknown {
        /// What happened.
        reason: String,
    },
}

impl RouteError {
    /// Joins the machine's failure with what the last forward said.
    pub(crate) fn new(failure: Failure, last: Option<ForwardError>) -> Self {
        match failure {
            Failure::NoNode => Self::NoNode,
            Failure::BucketUnreadable => Self::BucketUnreadable,
            Failure::RecordUnusable => Self::RecordUnusable,
            Failure::ProtocolMismatch => Self::ProtocolMismatch,
            Failure::Unreachable => {
                let reason = last.map_or_else(|| "no connection".to_owned(), |last| last.to_string());
                Self::Unreachable { reason }
            }
            Failure::Moving => Self::Moving,
            Failure::Refused => match last {
                Some(ForwardError::Refused { error, call: _ }) => Self::Refused(error),
                other => unreachable!("refused without a refusal: {other:?}"),
            },
            Failure::BodyBroken => {
                let reason =
                    last.map_or_else(|| "the request's body broke".to_owned(), |last| last.to_string());
                Self::BodyBroken { reason }
            }
            Failure::OutcomeUnknown => match last {
                Some(ForwardError::MayHaveRun { reason }) => Self::OutcomeUnknown { reason },
                other => unreachable!("an unknown outcome without a reason: {other:?}"),
            },
            Failure::OwnerLost => {
                Self::OutcomeUnknown { reason: "the owner's lease ended while it had the request".into() }
            }
        }
    }
}
