//! Each broken variant of the core that a model can show must break the property that it is about: a property that always
//! holds would be noticed here. The switch is one for the process, so the tests take turns.

use std::sync::{Mutex, PoisonError};

use holdfast_check::gate::{self, GateModel, Phase};
use holdfast_check::node_log::{self, BUNDLED, CALM, GROWTH, LONE, NodeLogModel};
use holdfast_check::ownership::{self, OwnershipModel};
use holdfast_check::verdict::{Findings, explore};
use holdfast_core::mutant::{ALL, Mutant, activate};

static SWITCH: Mutex<()> = Mutex::new(());

const GATE: gate::Bounds =
    gate::Bounds { writes: 2, reads: 1, closes: false, faults: 0, last_phase: Phase::Early };
const OWNERSHIP: ownership::Bounds =
    ownership::Bounds { nodes: 2, claims: 2, releases: 0, lost_answers: 0, restarts: 0, beyond_skew: false };
const RECOVERY: node_log::Bounds = node_log::Bounds { recoverers: 1, ..CALM };
const BUNDLING: node_log::Bounds =
    node_log::Bounds { followers: 1, views: LONE, uploads: true, frames: 2, rounds: BUNDLED, ..RECOVERY };

/// What a broken variant leads to in the model that shows it.
fn explore_with(mutant: Mutant) -> Option<Findings> {
    let findings = match mutant {
        Mutant::SkipOwnerReread
        | Mutant::CoverBeyondOwnerRead
        | Mutant::CoverTicketEarly
        | Mutant::SkipConfirmation => explore(GateModel::new(GATE)),
        Mutant::IgnoreExpiredLease => {
            explore(GateModel::new(gate::Bounds { last_phase: Phase::Fenced, ..GATE }))
        }
        Mutant::KeepDatabaseAfterFailedProof => {
            explore(GateModel::new(gate::Bounds { last_phase: Phase::Late, ..GATE }))
        }
        Mutant::HideDirtyCell => explore(GateModel::new(gate::Bounds { faults: 1, ..GATE })),
        Mutant::CoverByEnsemble => explore(GateModel::new(gate::Bounds { closes: true, ..GATE })),
        Mutant::TakeOverLiveLease => explore(OwnershipModel(OWNERSHIP)),
        Mutant::SkipClaimGuard | Mutant::ReuseEpochOnWake => explore(OwnershipModel(OWNERSHIP)),
        Mutant::ProveByOneMember
        | Mutant::AbsentLogIsNothing
        | Mutant::AckBeforeFsync
        | Mutant::AppendPastSeal
        | Mutant::SealBeforeCoverage => explore(NodeLogModel(RECOVERY)),
        Mutant::ProveByOldEnsemble
        | Mutant::ActivateBeforeCopy
        | Mutant::ForgetPriorEnsemble
        | Mutant::IgnorePriorEnsemble => {
            explore(NodeLogModel(node_log::Bounds { views: GROWTH, ..RECOVERY }))
        }
        Mutant::IncompleteWitness | Mutant::IgnoreIncarnation | Mutant::AdoptWithoutRecord => {
            explore(NodeLogModel(node_log::Bounds { followers: 1, views: LONE, lost_disks: 1, ..RECOVERY }))
        }
        Mutant::DeclareLoss => explore(NodeLogModel(node_log::Bounds {
            followers: 1,
            views: LONE,
            unanswered_seals: 1,
            ..RECOVERY
        })),
        Mutant::HideDeclaredLoss => explore(NodeLogModel(node_log::Bounds {
            followers: 1,
            views: LONE,
            recoverers: 2,
            unanswered_seals: 2,
            declares_loss: true,
            ..CALM
        })),
        Mutant::TakeOverLiveRecoverer => {
            explore(NodeLogModel(node_log::Bounds { followers: 1, views: LONE, recoverers: 2, ..CALM }))
        }
        Mutant::ReleaseUncovered => explore(NodeLogModel(node_log::Bounds { uploads: true, ..CALM })),
        Mutant::CreditBundlesAsCells | Mutant::IgnoreBundles | Mutant::ReadBundlesBeforeSeal => {
            explore(NodeLogModel(node_log::Bounds { frames: 1, closes: true, ..BUNDLING }))
        }
        Mutant::DropUndrainedBundle | Mutant::DeleteBundleBeforeRecord => explore(NodeLogModel(BUNDLING)),
        // Of machines that no model here drives: the simulator shows these.
        Mutant::LateRenewalIsSuccess
        | Mutant::RestoreWithoutClipping
        | Mutant::TrustListing
        | Mutant::UnknownIsRejected
        | Mutant::IgnoreFloor
        | Mutant::BlameAllSlow
        | Mutant::ForgetSlowness
        | Mutant::RevealBeforeEntry
        | Mutant::TrustRestoredEntry
        | Mutant::RetireWithoutProof
        | Mutant::DeleteArmedEntry
        | Mutant::FireEarly
        | Mutant::OverlapHandlers
        | Mutant::RunWhatWasDeleted
        | Mutant::SkipOverdueAlarm
        | Mutant::GiveBelowShare
        | Mutant::RebalanceAtOnce
        | Mutant::RetireAboveSnapshot
        | Mutant::RetirePredecessors
        | Mutant::RetireWithoutMark
        | Mutant::RetireWithoutOwner
        | Mutant::IgnoreRetired
        | Mutant::TrustFirstMark
        | Mutant::WakerDeletesArmed
        | Mutant::WakerForgetsFailure
        | Mutant::ForceUnasked
        | Mutant::ForceNextEpoch
        | Mutant::ForgetToCount
        | Mutant::PastWithoutBases
        | Mutant::UploadAcrossCut => return None,
    };
    Some(findings)
}

fn must_break(mutant: Mutant, property: &str) {
    let _turn = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    activate(Some(mutant));
    let findings = explore_with(mutant);
    activate(None);
    let Findings { visited, violated, .. } = findings.expect("a model shows it");
    let names: Vec<&str> = violated.iter().map(|(name, _)| *name).collect();
    println!("{mutant:?}: {names:?} after {} states", visited.unique);
    assert!(names.iter().any(|name| name.starts_with(property)), "{mutant:?} broke {names:?} of {visited:?}");
}

macro_rules! mutants {
    ($($test:ident: $mutant:ident, $property:literal;)*) => {
        $(#[test]
        fn $test() {
            must_break(Mutant::$mutant, $property);
        })*

        #[test]
        fn every_mutant_of_a_model_has_its_test() {
            const TESTED: &[Mutant] = &[$(Mutant::$mutant),*];
            const OF_NO_MODEL: &[Mutant] = &[
                Mutant::LateRenewalIsSuccess,
                Mutant::RestoreWithoutClipping,
                Mutant::TrustListing,
                Mutant::UnknownIsRejected,
                Mutant::IgnoreFloor,
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
            let mut known: Vec<Mutant> = TESTED.iter().chain(OF_NO_MODEL).copied().collect();
            known.sort_by_key(|mutant| *mutant as u32);
            assert_eq!(ALL.to_vec(), known);
        }
    };
}

mutants! {
    a_skipped_claim_guard_is_found: SkipClaimGuard, "INV-OWN-1";
    a_takeover_of_a_live_lease_is_found: TakeOverLiveLease, "no claim over a live lease";
    an_epoch_reused_on_wake_is_found: ReuseEpochOnWake, "INV-OWN-1";
    a_skipped_owner_read_is_found: SkipOwnerReread, "INV-ACK-1/2";
    a_cover_beyond_the_owner_read_is_found: CoverBeyondOwnerRead, "INV-ACK-1/2";
    a_ticket_covered_early_is_found: CoverTicketEarly, "INV-ACK-1/2";
    an_ignored_expiry_is_found: IgnoreExpiredLease, "INV-FENCE-1";
    a_database_kept_after_a_failed_proof_is_found: KeepDatabaseAfterFailedProof, "INV-REC-2";
    a_skipped_confirmation_is_found: SkipConfirmation, "INV-ACK-1/2";
    a_seal_before_coverage_is_found: SealBeforeCoverage, "INV-REC-2";
    an_incomplete_witness_is_found: IncompleteWitness, "INV-REC-2";
    an_ignored_prior_ensemble_is_found: IgnorePriorEnsemble, "INV-REC-2";
    an_absent_log_taken_for_nothing_is_found: AbsentLogIsNothing, "INV-REC-1";
    an_acknowledgement_before_the_fsync_is_found: AckBeforeFsync, "INV-LOG-1";
    an_append_past_the_seal_is_found: AppendPastSeal, "INV-LOG-2";
    an_ignored_incarnation_is_found: IgnoreIncarnation, "INV-LOG-1";
    an_adoption_without_the_record_is_found: AdoptWithoutRecord, "INV-LOG-1";
    a_proof_by_one_member_is_found: ProveByOneMember, "INV-LOG-1";
    a_proof_by_the_old_ensemble_is_found: ProveByOldEnsemble, "INV-LOG-1";
    an_activation_before_the_copy_is_found: ActivateBeforeCopy, "INV-LOG-1";
    a_forgotten_prior_ensemble_is_found: ForgetPriorEnsemble, "INV-LOG-1";
    a_release_of_uncovered_frames_is_found: ReleaseUncovered, "INV-LOG-3";
    a_hidden_dirty_cell_is_found: HideDirtyCell, "INV-REC-2";
    a_cover_by_ensemble_is_found: CoverByEnsemble, "a release leaves when the bucket has all";
    a_bundle_credited_as_cells_is_found: CreditBundlesAsCells, "INV-REC-2";
    a_bundle_given_up_undrained_is_found: DropUndrainedBundle, "INV-LOG-3";
    a_bundle_deleted_before_the_record_excludes_it_is_found: DeleteBundleBeforeRecord, "INV-LOG-3";
    a_recovery_that_ignores_bundles_is_found: IgnoreBundles, "INV-REC-2";
    bundles_read_before_the_seal_are_found: ReadBundlesBeforeSeal, "INV-REC-2";
    a_takeover_of_a_live_recoverer_is_found: TakeOverLiveRecoverer, "no live recoverer is taken over";
    a_recovery_that_declares_loss_is_found: DeclareLoss, "INV-REC-3";
    a_declared_loss_that_is_hidden_is_found: HideDeclaredLoss, "INV-REC-2";
}
