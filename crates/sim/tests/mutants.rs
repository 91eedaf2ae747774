//! Each broken variant of the core must be found within a bounded number of seeds: otherwise the world or a checker is too
//! weak. The switch is one for the process, so the tests of this file take turns.

use std::sync::{Mutex, PoisonError};

use holdfast_core::mutant::{ALL, Mutant, activate};
use holdfast_sim::balance;
use holdfast_sim::run::run;
use holdfast_sim::scenario::Scenario;

/// Runs in which a mutant must be found.
const RUNS_MAX: u64 = 3_000;
static SWITCH: Mutex<()> = Mutex::new(());

/// Where to look for a mutant: one seed of each in turn.
fn scenarios(mutant: Mutant) -> &'static [Scenario] {
    match mutant {
        Mutant::SkipClaimGuard => &[Scenario::Crashes, Scenario::Purges],
        Mutant::TakeOverLiveLease | Mutant::CoverTicketEarly | Mutant::CoverBeyondOwnerRead => {
            &[Scenario::Calm]
        }
        Mutant::ReuseEpochOnWake => &[Scenario::Drains],
        Mutant::SkipOwnerReread | Mutant::RestoreWithoutClipping => &[Scenario::BeyondSkew],
        Mutant::IgnoreExpiredLease | Mutant::LateRenewalIsSuccess => &[Scenario::Pauses],
        Mutant::TrustListing => &[Scenario::Drains, Scenario::Lossy],
        Mutant::UnknownIsRejected | Mutant::KeepDatabaseAfterFailedProof => &[Scenario::LongOutages],
        Mutant::IgnoreFloor => &[Scenario::Purges],
        Mutant::SkipConfirmation => &[Scenario::Contested],
        Mutant::SealBeforeCoverage => &[Scenario::FollowerCrashes],
        Mutant::AbsentLogIsNothing => &[Scenario::Crashes],
        Mutant::IncompleteWitness | Mutant::IgnoreIncarnation | Mutant::AdoptWithoutRecord => {
            &[Scenario::DiskLoss]
        }
        Mutant::IgnorePriorEnsemble
        | Mutant::ProveByOldEnsemble
        | Mutant::ActivateBeforeCopy
        | Mutant::ForgetPriorEnsemble => &[Scenario::EnsembleMoves],
        Mutant::AppendPastSeal => &[Scenario::Zombies],
        Mutant::AckBeforeFsync | Mutant::ProveByOneMember | Mutant::ReleaseUncovered => {
            &[Scenario::EnsembleBasics]
        }
        Mutant::HideDirtyCell => &[Scenario::FailedProofs],
        Mutant::CoverByEnsemble => &[Scenario::EnsembleDrains],
        Mutant::CreditBundlesAsCells
        | Mutant::DropUndrainedBundle
        | Mutant::DeleteBundleBeforeRecord
        | Mutant::IgnoreBundles
        | Mutant::ReadBundlesBeforeSeal => &[Scenario::Bundles],
        Mutant::BlameAllSlow | Mutant::ForgetSlowness => &[Scenario::SlowMembers],
        Mutant::DeclareLoss | Mutant::HideDeclaredLoss => &[Scenario::DeclaredLoss],
        Mutant::TakeOverLiveRecoverer => &[Scenario::RacingRecoverers],
        Mutant::RevealBeforeEntry
        | Mutant::TrustRestoredEntry
        | Mutant::RetireWithoutProof
        | Mutant::DeleteArmedEntry
        | Mutant::FireEarly
        | Mutant::OverlapHandlers
        | Mutant::RunWhatWasDeleted
        | Mutant::SkipOverdueAlarm
        | Mutant::WakerDeletesArmed
        | Mutant::WakerForgetsFailure => &[Scenario::Alarms, Scenario::EnsembleAlarms],
        Mutant::ForgetToCount => &[Scenario::PoisonAlarms],
        Mutant::ForceUnasked | Mutant::ForceNextEpoch => &[Scenario::LostRecords],
        // A world of its own shows these.
        Mutant::GiveBelowShare | Mutant::RebalanceAtOnce => &[],
        Mutant::RetireAboveSnapshot | Mutant::RetirePredecessors => &[Scenario::Drains],
        Mutant::RetireWithoutMark | Mutant::IgnoreRetired => &[Scenario::Crashes, Scenario::Drains],
        Mutant::RetireWithoutOwner | Mutant::TrustFirstMark => &[Scenario::Retirement],
        Mutant::PastWithoutBases => &[Scenario::Crashes, Scenario::BeyondSkew],
        Mutant::UploadAcrossCut => &[Scenario::EnsembleBasics, Scenario::EnsembleDrains],
    }
}

fn runs_until_found(mutant: Mutant) -> Option<u64> {
    if matches!(mutant, Mutant::GiveBelowShare | Mutant::RebalanceAtOnce) {
        return (1..=RUNS_MAX).find(|seed| {
            let violation = balance::run(*seed).err();
            violation
                .inspect(|found| println!("{mutant:?}: found by fleet {seed}: {}", found.invariant))
                .is_some()
        });
    }
    let scenarios = scenarios(mutant).iter().cycle();
    (1..=RUNS_MAX).zip(scenarios).find_map(|(seed, scenario)| {
        let violation = run(seed, *scenario, false).violation?;
        println!("{mutant:?}: found by run {seed}, {scenario:?}: {}", violation.invariant);
        Some(seed)
    })
}

fn must_be_found(mutant: Mutant) {
    let _turn = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    activate(Some(mutant));
    let found = runs_until_found(mutant);
    activate(None);
    assert!(found.is_some(), "{mutant:?} was not found in {RUNS_MAX} runs");
}

macro_rules! mutants {
    ($($test:ident: $mutant:ident,)*) => {
        $(#[test]
        fn $test() {
            must_be_found(Mutant::$mutant);
        })*

        #[test]
        fn every_mutant_has_its_test() {
            assert_eq!(ALL.to_vec(), vec![$(Mutant::$mutant),*]);
        }
    };
}

mutants! {
    a_skipped_claim_guard_is_found: SkipClaimGuard,
    a_takeover_of_a_live_lease_is_found: TakeOverLiveLease,
    an_epoch_reused_on_wake_is_found: ReuseEpochOnWake,
    a_skipped_owner_read_is_found: SkipOwnerReread,
    a_cover_beyond_the_owner_read_is_found: CoverBeyondOwnerRead,
    a_ticket_covered_early_is_found: CoverTicketEarly,
    an_ignored_expiry_is_found: IgnoreExpiredLease,
    a_late_renewal_taken_for_success_is_found: LateRenewalIsSuccess,
    a_restore_without_clipping_is_found: RestoreWithoutClipping,
    a_trusted_listing_is_found: TrustListing,
    an_unknown_answer_taken_for_a_rejection_is_found: UnknownIsRejected,
    a_database_kept_after_a_failed_proof_is_found: KeepDatabaseAfterFailedProof,
    an_ignored_floor_is_found: IgnoreFloor,
    a_skipped_confirmation_is_found: SkipConfirmation,
    a_seal_before_coverage_is_found: SealBeforeCoverage,
    an_incomplete_witness_is_found: IncompleteWitness,
    an_ignored_prior_ensemble_is_found: IgnorePriorEnsemble,
    an_absent_log_passed_over_is_found: AbsentLogIsNothing,
    an_acknowledgement_before_its_fsync_is_found: AckBeforeFsync,
    an_append_past_a_seal_is_found: AppendPastSeal,
    an_ignored_incarnation_is_found: IgnoreIncarnation,
    an_adoption_without_the_record_is_found: AdoptWithoutRecord,
    a_proof_by_one_member_is_found: ProveByOneMember,
    a_proof_by_the_old_ensemble_is_found: ProveByOldEnsemble,
    an_activation_before_the_copy_is_found: ActivateBeforeCopy,
    a_forgotten_prior_ensemble_is_found: ForgetPriorEnsemble,
    a_release_of_uncovered_frames_is_found: ReleaseUncovered,
    a_hidden_dirty_cell_is_found: HideDirtyCell,
    a_coverage_by_the_ensemble_alone_is_found: CoverByEnsemble,
    a_bundle_credited_as_cells_is_found: CreditBundlesAsCells,
    a_bundle_given_up_undrained_is_found: DropUndrainedBundle,
    a_bundle_deleted_before_the_record_excludes_it_is_found: DeleteBundleBeforeRecord,
    a_recovery_that_ignores_bundles_is_found: IgnoreBundles,
    bundles_read_before_the_seal_are_found: ReadBundlesBeforeSeal,
    a_takeover_of_a_live_recoverer_is_found: TakeOverLiveRecoverer,
    a_recovery_that_declares_loss_is_found: DeclareLoss,
    a_declared_loss_that_is_hidden_is_found: HideDeclaredLoss,
    a_blame_of_all_slow_members_is_found: BlameAllSlow,
    a_forgotten_slowness_is_found: ForgetSlowness,
    an_alarm_revealed_before_its_entry_is_found: RevealBeforeEntry,
    a_restored_entry_that_is_trusted_is_found: TrustRestoredEntry,
    entries_retired_without_a_proof_are_found: RetireWithoutProof,
    an_armed_entry_that_is_deleted_is_found: DeleteArmedEntry,
    an_alarm_that_runs_early_is_found: FireEarly,
    handlers_that_overlap_are_found: OverlapHandlers,
    a_run_of_a_deleted_alarm_is_found: RunWhatWasDeleted,
    an_overdue_alarm_that_is_skipped_is_found: SkipOverdueAlarm,
    a_gift_of_what_is_not_above_the_share_is_found: GiveBelowShare,
    a_move_without_need_is_found: RebalanceAtOnce,
    files_retired_above_the_snapshot_are_found: RetireAboveSnapshot,
    predecessors_retired_too_early_are_found: RetirePredecessors,
    history_retired_without_a_mark_is_found: RetireWithoutMark,
    history_retired_by_a_superseded_owner_is_found: RetireWithoutOwner,
    a_restore_that_ignores_what_is_retired_is_found: IgnoreRetired,
    a_restore_that_looks_at_the_mark_only_once_is_found: TrustFirstMark,
    an_armed_entry_that_a_waker_deletes_is_found: WakerDeletesArmed,
    a_cell_that_a_waker_does_not_come_back_to_is_found: WakerForgetsFailure,
    a_forced_purge_beside_an_owner_that_was_not_asked_is_found: ForceUnasked,
    a_forced_purge_at_an_epoch_that_somebody_has_is_found: ForceNextEpoch,
    an_alarm_that_is_never_counted_is_found: ForgetToCount,
    a_past_that_nobody_continued_is_found: PastWithoutBases,
    an_object_that_goes_on_beyond_a_cut_is_found: UploadAcrossCut,
}
