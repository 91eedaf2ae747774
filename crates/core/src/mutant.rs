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
    /// A dead session's log is sealed before its frames are in the bucket.
    SealBeforeCoverage,
    /// Any follower that answers counts as a witness: incomplete, at an older log epoch, on another disk.
    IncompleteWitness,
    /// While a new ensemble is being set up, the prior one is not asked.
    IgnorePriorEnsemble,
    /// A dead session without a log record is passed over, so that it may still begin a log.
    AbsentLogIsNothing,
    /// A follower acknowledges frames that are not fsynced.
    AckBeforeFsync,
    /// A follower accepts appends of a log that it has sealed.
    AppendPastSeal,
    /// A follower with another disk takes itself for the member that the log record names.
    IgnoreIncarnation,
    /// A follower adopts a log epoch without a look at the log record.
    AdoptWithoutRecord,
    /// One member's fsync counts for the whole ensemble.
    ProveByOneMember,
    /// While the log record is being changed, only the ensemble before the change is asked.
    ProveByOldEnsemble,
    /// A new ensemble becomes active before its members hold what was acknowledged under the prior one.
    ActivateBeforeCopy,
    /// The log record of a new ensemble does not keep the prior one.
    ForgetPriorEnsemble,
    /// Followers drop frames that are proved, whether the bucket has them or not.
    ReleaseUncovered,
    /// A discarded cell counts as settled although the bucket lacks frames of it.
    HideDirtyCell,
    /// What an ensemble proved counts as being in the bucket.
    CoverByEnsemble,
    /// What is in a bundle counts as being in its cell's prefix.
    CreditBundlesAsCells,
    /// A bundle is given up before its frames are in their cells' prefixes.
    DropUndrainedBundle,
    /// A drained bundle is deleted while the log record has recoveries begin with it.
    DeleteBundleBeforeRecord,
    /// A recovery asks followers only.
    IgnoreBundles,
    /// A recovery reads bundles before it has sealed a follower.
    ReadBundlesBeforeSeal,
    /// A recovery is taken over from a recoverer that lives.
    TakeOverLiveRecoverer,
    /// A recovery that cannot go on declares the loss itself.
    DeclareLoss,
    /// A log that is sealed with a loss does not say so.
    HideDeclaredLoss,
    /// All members that are slow are given up, though it may be the owner that is.
    BlameAllSlow,
    /// A slow member is taken again at once.
    ForgetSlowness,
    /// What reveals an alarm's installation leaves before its wake entry is there.
    RevealBeforeEntry,
    /// A restored alarm is taken to have its wake entry.
    TrustRestoredEntry,
    /// Wake entries are deleted before a proof covers the state that makes them obsolete.
    RetireWithoutProof,
    /// The wake entry of the armed alarm is deleted with those that are obsolete.
    DeleteArmedEntry,
    /// A handler runs before its alarm is due.
    FireEarly,
    /// A handler begins while the one before runs.
    OverlapHandlers,
    /// A run that was started begins although its alarm was deleted or replaced meanwhile.
    RunWhatWasDeleted,
    /// An alarm whose time passed while nobody looked does not run any more.
    SkipOverdueAlarm,
    /// A donor gives what it was asked for, though it has no more than its share by now.
    GiveBelowShare,
    /// Cells begin to move however little nodes are off their shares.
    RebalanceAtOnce,
    /// Files right above the snapshot that restores begin with are deleted, too.
    RetireAboveSnapshot,
    /// Predecessors are deleted before the epoch has a snapshot of its own.
    RetirePredecessors,
    /// History is deleted without a mark that restores could see.
    RetireWithoutMark,
    /// An owner that was paused retires history without a look whether it still is the owner.
    RetireWithoutOwner,
    /// A restore does not look at what is retired.
    IgnoreRetired,
    /// A restore does not look again at what is retired once it has planned.
    TrustFirstMark,
    /// A waker deletes the entry of the armed alarm with the others.
    WakerDeletesArmed,
    /// A waker does not come back to a cell that nobody could be asked about.
    WakerForgetsFailure,
    /// A forced purge asks no session to let the cell go.
    ForceUnasked,
    /// A forced purge goes just above what it sees of the history.
    ForceNextEpoch,
    /// An alarm that may have ended its process is run again as if nothing had happened.
    ForgetToCount,
    /// A state of the past is looked for where its epoch is named, whether a later one continues it or not.
    PastWithoutBases,
    /// An object of level 0 goes on beyond a cut.
    UploadAcrossCut,
}

/// Every mutant.
pub const ALL: [Mutant; 62] = [
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
    Mutant::SealBeforeCoverage,
    Mutant::IncompleteWitness,
    Mutant::IgnorePriorEnsemble,
    Mutant::AbsentLogIsNothing,
    Mutant::AckBeforeFsync,
    Mutant::AppendPastSeal,
    Mutant::IgnoreIncarnation,
    Mutant::AdoptWithoutRecord,
    Mutant::ProveByOneMember,
    Mutant::ProveByOldEnsemble,
    Mutant::ActivateBeforeCopy,
    Mutant::ForgetPriorEnsemble,
    Mutant::ReleaseUncovered,
    Mutant::HideDirtyCell,
    Mutant::CoverByEnsemble,
    Mutant::CreditBundlesAsCells,
    Mutant::DropUndrainedBundle,
    Mutant::DeleteBundleBeforeRecord,
    Mutant::IgnoreBundles,
    Mutant::ReadBundlesBeforeSeal,
    Mutant::TakeOverLiveRecoverer,
    Mutant::DeclareLoss,
    Mutant::HideDeclaredLoss,
    Mutant::BlameAllSlow,
    Mutant::ForgetSlowness,
    Mutant::RevealBeforeEntry,
    Mutant::TrustRestoredEntry,
    Mutant::RetireWithoutProof,
    Mutant::DeleteArmedEntry,
    Mutant::FireEarly,
    Mutant::OverlapHandlers,
    Mutant::RunWhatWasDeleted,
    Mutant::SkipOverdueAlarm,
    Mutant::GiveBelowShare,
    Mutant::RebalanceAtOnce,
    Mutant::RetireAboveSnapshot,
    Mutant::RetirePredecessors,
    Mutant::RetireWithoutMark,
    Mutant::RetireWithoutOwner,
    Mutant::IgnoreRetired,
    Mutant::TrustFirstMark,
    Mutant::WakerDeletesArmed,
    Mutant::WakerForgetsFailure,
    Mutant::ForceUnasked,
    Mutant::ForceNextEpoch,
    Mutant::ForgetToCount,
    Mutant::PastWithoutBases,
    Mutant::UploadAcrossCut,
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
