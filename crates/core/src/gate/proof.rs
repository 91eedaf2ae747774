//! A durability proof: a value that only this module makes, from what the store and the owner record said.

use holdfast_types::{Epoch, LogOffset, NodeName, SessionId, Txid};

use crate::ensemble::EnsembleProof;
use crate::mutant::{self, Mutant};
use crate::ownership::OwnerView;

/// How a position is known to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProofKind {
    /// Every follower that a recovery might ask has fsynced it: a takeover must seal one of them first.
    Ensemble,
    /// The bucket holds it, and one later read of the owner record still named this session at this epoch.
    Bucket,
}

impl ProofKind {
    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ensemble => "ensemble",
            Self::Bucket => "bucket",
        }
    }
}

/// Shows that everything up to a transaction survives the loss of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DurabilityProof {
    kind: ProofKind,
    epoch: Epoch,
    upto: Txid,
}

impl DurabilityProof {
    /// A bucket proof: the objects up to `upto` were stored before `owner` was read, and `owner` names the session.
    pub(super) fn from_bucket(
        upto: Txid,
        owner: Option<&OwnerView>,
        (node, session, epoch): (&NodeName, SessionId, Epoch),
    ) -> Option<Self> {
        let named = owner.is_some_and(|owner| owner.is_owned_by(node, session, epoch));
        (named || mutant::is(Mutant::SkipOwnerReread)).then_some(Self {
            kind: ProofKind::Bucket,
            epoch,
            upto,
        })
    }

    /// An ensemble proof: the frame at `offset`, which holds `upto`, is among those that the node log proved.
    pub(super) fn from_ensemble(
        proof: &EnsembleProof,
        (offset, upto): (LogOffset, Txid),
        epoch: Epoch,
    ) -> Option<Self> {
        proof.covers(offset).then_some(Self { kind: ProofKind::Ensemble, epoch, upto })
    }

    /// How the position is known to be stored.
    #[must_use]
    pub const fn kind(&self) -> ProofKind {
        self.kind
    }

    /// The epoch that it speaks of.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The last transaction covered.
    #[must_use]
    pub fn upto(&self) -> Txid {
        if mutant::is(Mutant::CoverTicketEarly) { self.upto.next() } else { self.upto }
    }
}
