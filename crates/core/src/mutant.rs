//! Broken variants of the protocol. They exist so that the simulator can show that it would notice each of them; without
//! the feature `mutants` every question below is the constant `false`.

/// A broken variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mutant {
    /// A rejected claim is taken for an applied one.
    SkipClaimGuard = 1,
    /// A cell is claimed although its owner's lease is live.
    TakeOverLiveLease,
    /// A local wake keeps the epoch.
    ReuseEpochOnWake,
    /// A bucket proof without the read of the owner record.
    SkipOwnerReread,
    /// The owner read covers what was uploaded after the read began.
    CoverBeyondOwnerRead,
    /// A proof covers the transaction after the one it proves.
    CoverTicketEarly,
    /// An output leaves although the lease has expired.
    IgnoreExpiredLease,
    /// A renewal that landed after the prior expiry counts as a success.
    LateRenewalIsSuccess,
    /// A predecessor is read to its end instead of to its base position.
    RestoreWithoutClipping,
    /// The listing's last object is taken for the end of the chain.
    TrustListing,
    /// An ambiguous answer is taken for a rejection.
    UnknownIsRejected,
    /// After a failed proof the cell goes on with its local database.
    KeepDatabaseAfterFailedProof,
    /// A restore reads history below the purge's floor.
    IgnoreFloor,
    /// An epoch reveals what it restored before an owner read has named it.
    SkipConfirmation,
}

/// Every mutant.
pub const ALL: [Mutant; 14] = [
    Mutant::SkipClaimGuard,
    Mutant::TakeOverLiveLease,
    Mutant::ReuseEpochOnWake,
    Mutant::SkipOwnerReread,
    Mutant::CoverBeyondOwnerRead,
    Mutant::CoverTicketEarly,
    Mutant::IgnoreExpiredLease,
    Mutant::LateRenewalIsSuccess,
    Mutant::RestoreWithoutClipping,
    Mutant::TrustListing,
    Mutant::UnknownIsRejected,
    Mutant::KeepDatabaseAfterFailedProof,
    Mutant::IgnoreFloor,
    Mutant::SkipConfirmation,
];

#[cfg(feature = "mutants")]
static ACTIVE: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

/// Switches one mutant on for the whole process, or all off.
#[cfg(feature = "mutants")]
pub fn activate(mutant: Option<Mutant>) {
    ACTIVE.store(mutant.map_or(0, |mutant| mutant as u32), core::sync::atomic::Ordering::SeqCst);
}

/// Whether the mutant is on.
#[cfg(feature = "mutants")]
pub(crate) fn is(mutant: Mutant) -> bool {
    ACTIVE.load(core::sync::atomic::Ordering::Relaxed) == mutant as u32
}

/// Whether the mutant is on: never, in a program.
#[cfg(not(feature = "mutants"))]
pub(crate) const fn is(_: Mutant) -> bool {
    false
}
