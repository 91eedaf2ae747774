mod withheld;

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::ensemble::EnsembleProof;
use crate::ownership::{OwnerState, OwnerView};
use holdfast_types::{Epoch, LogEpoch, LogOffset, Millis, NodeName, SessionId, Txid, WriteId};

const LEASE_END: Millis = Millis::new(1_000_000);
const PACE_MS: u64 = 2_000;

fn owner(epoch: u64, session: u128) -> OwnerView {
    OwnerView {
        node: NodeName::parse("m").unwrap(),
        session: SessionId::from_bits(session),
        epoch: Epoch::new(epoch),
        state: OwnerState::Owned,
        floor: Epoch::ZERO,
        write_id: WriteId::from_bits(1),
    }
}

struct Cell {
    gate: Gate,
    now: Millis,
}

impl Cell {
    fn new() -> Self {
        let mut cell = Self::unconfirmed();
        assert_eq!(cell.output(0, 5), vec![GateEffect::ReadOwner { attempt: 0 }]);
        assert_eq!(released(&cell.owner_read(3, 1)), vec![0]);
        cell
    }

    /// Just activated: no owner read of this epoch yet.
    fn unconfirmed() -> Self {
        let node = NodeName::parse("m").unwrap();
        let owner = GateOwner { node, session: SessionId::from_bits(1), epoch: Epoch::new(3) };
        Self { gate: Gate::new(owner, Txid::new(5), PACE_MS), now: Millis::ZERO }
    }

    fn on(&mut self, event: GateEvent) -> Vec<GateEffect> {
        self.gate.on(event, self.now, LEASE_END)
    }

    fn output(&mut self, id: u64, ticket: u64) -> Vec<GateEffect> {
        let deadline = Millis::new(5_000);
        self.on(GateEvent::OutputReady {
            output: OutputId(id),
            ticket: Txid::new(ticket),
            deadline,
            in_bucket: false,
        })
    }

    /// An output that leaves only when the bucket has everything.
    fn release(&mut self, id: u64, ticket: u64) -> Vec<GateEffect> {
        let deadline = Millis::new(5_000);
        self.on(GateEvent::OutputReady {
            output: OutputId(id),
            ticket: Txid::new(ticket),
            deadline,
            in_bucket: true,
        })
    }

    /// Captured, and taken by the node log.
    fn logged(&mut self, txid: u64, offset: u64) -> Vec<GateEffect> {
        let captured = Some((Txid::new(txid), Some(LogOffset::new(offset))));
        self.on(GateEvent::Captured { captured, len: 1 })
    }

    fn proved(&mut self, txid: u64, offset: u64) -> Vec<GateEffect> {
        let proof = EnsembleProof::new_for_tests(LogEpoch::new(1), LogOffset::new(offset + 1));
        self.on(GateEvent::EnsembleProved { proof, offset: LogOffset::new(offset), txid: Txid::new(txid) })
    }

    fn paced(&mut self) {
        self.on(GateEvent::PaceChanged { rounds: 1 });
    }

    fn captured(&mut self, txid: u64) -> Vec<GateEffect> {
        self.captured_of(txid, 1)
    }

    fn captured_of(&mut self, txid: u64, len: u64) -> Vec<GateEffect> {
        self.on(GateEvent::Captured { captured: Some((Txid::new(txid), None)), len })
    }

    fn uploaded(&mut self, txid: u64) -> Vec<GateEffect> {
        self.on(GateEvent::Uploaded { last: Txid::new(txid) })
    }

    fn owner_read(&mut self, epoch: u64, session: u128) -> Vec<GateEffect> {
        self.on(GateEvent::OwnerRead { owner: Some(owner(epoch, session)) })
    }
}

fn upload(first: u64, last: u64, attempt: u32) -> GateEffect {
    GateEffect::Upload { first: Txid::new(first), last: Txid::new(last), attempt }
}

fn released(effects: &[GateEffect]) -> Vec<u64> {
    let ids = effects.iter().filter_map(|effect| match effect {
        GateEffect::Release { output, .. } => Some(output.0),
        _ => None,
    });
    ids.collect()
}

fn failed(effects: &[GateEffect]) -> Vec<(u64, FailCause)> {
    let ids = effects.iter().filter_map(|effect| match effect {
        GateEffect::Fail { output, cause } => Some((output.0, *cause)),
        _ => None,
    });
    ids.collect()
}

#[test]
fn nothing_uncovered_is_no_wait() {
    let mut cell = Cell::new();
    assert_eq!(released(&cell.output(1, 5)), vec![1]);
}

#[test]
fn an_epoch_reveals_nothing_before_one_owner_read_names_it() {
    let mut cell = Cell::unconfirmed();
    assert_eq!(cell.output(1, 5), vec![GateEffect::ReadOwner { attempt: 0 }]);
    assert_eq!(cell.output(2, 5), vec![], "one read for all that wait");
    assert_eq!(cell.on(GateEvent::OwnerUnreadable), vec![GateEffect::ReadOwner { attempt: 1 }]);
    let effects = cell.owner_read(4, 1);
    assert_eq!(failed(&effects), vec![(1, FailCause::OwnershipLost), (2, FailCause::OwnershipLost)]);
}

#[test]
fn the_proof_of_a_first_write_confirms_the_epoch_too() {
    let mut cell = Cell::unconfirmed();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    cell.captured(6);
    assert_eq!(cell.uploaded(6), vec![GateEffect::ReadOwner { attempt: 0 }]);
    assert_eq!(cell.owner_read(3, 1).len(), 1);
    assert_eq!(released(&cell.output(2, 6)), vec![2]);
}

#[test]
fn a_write_waits_for_its_upload_and_for_the_owner_read() {
    let mut cell = Cell::new();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    assert_eq!(cell.captured(6), vec![upload(6, 6, 0)]);
    assert_eq!(cell.uploaded(6), vec![GateEffect::ReadOwner { attempt: 0 }]);
    let effects = cell.owner_read(3, 1);
    let [GateEffect::Release { clearance: Clearance::Proved(proof), .. }] = effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((proof.kind(), proof.epoch(), proof.upto()), (ProofKind::Bucket, Epoch::new(3), Txid::new(6)));
}

#[test]
fn a_read_behind_an_uncovered_commit_waits_with_it() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    assert_eq!(released(&cell.output(2, 6)), Vec::<u64>::new());
    cell.captured(6);
    cell.uploaded(6);
    assert_eq!(released(&cell.owner_read(3, 1)), vec![1, 2]);
}

#[test]
fn commits_during_an_upload_share_the_next_one() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.captured(6);
    for id in 2..50 {
        assert_eq!(cell.output(id, 7), vec![]);
    }
    let effects = cell.uploaded(6);
    assert_eq!(effects, vec![GateEffect::ReadOwner { attempt: 0 }, GateEffect::Capture]);
    cell.captured(7);
    assert_eq!(released(&cell.owner_read(3, 1)), vec![1]);
    cell.uploaded(7);
    assert_eq!(released(&cell.owner_read(3, 1)).len(), 48);
}

#[test]
fn an_owner_read_proves_only_what_was_uploaded_before_it_began() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.captured(6);
    cell.output(2, 7);
    cell.uploaded(6);
    cell.captured(7);
    assert_eq!(cell.uploaded(7), vec![]);
    let effects = cell.owner_read(3, 1);
    assert_eq!(released(&effects), vec![1]);
    assert!(effects.contains(&GateEffect::ReadOwner { attempt: 0 }), "a second read for 7");
}

#[test]
fn another_owner_epoch_or_state_fails_every_output_and_discards() {
    for owner in [
        Some(owner(4, 1)),
        Some(owner(3, 2)),
        Some(OwnerView { state: OwnerState::Released, ..owner(3, 1) }),
        None,
    ] {
        let mut cell = Cell::new();
        cell.output(1, 6);
        cell.captured(6);
        cell.uploaded(6);
        let effects = cell.on(GateEvent::OwnerRead { owner });
        assert_eq!(failed(&effects), vec![(1, FailCause::OwnershipLost)]);
        assert!(effects.contains(&GateEffect::Discard { cause: FailCause::OwnershipLost }));
        let later = cell.output(2, 5);
        assert_eq!(failed(&later), vec![(2, FailCause::OwnershipLost)]);
    }
}

#[test]
fn a_failed_upload_is_tried_again_with_the_same_transaction() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.captured(6);
    let effects = cell.on(GateEvent::UploadFailed { last: Txid::new(6) });
    assert_eq!(effects, vec![upload(6, 6, 1)]);
}

#[test]
fn a_proof_that_does_not_come_fails_all_waiting_outputs() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.captured(6);
    cell.output(2, 7);
    cell.now = Millis::new(5_000);
    let effects = cell.on(GateEvent::Tick);
    assert_eq!(failed(&effects), vec![(1, FailCause::TimedOut), (2, FailCause::TimedOut)]);
    assert!(effects.contains(&GateEffect::Discard { cause: FailCause::TimedOut }));
    cell.uploaded(6);
    assert_eq!(cell.owner_read(3, 1), vec![], "a proof that comes late releases nothing");
}

#[test]
fn a_long_transaction_has_the_time_that_its_upload_takes_and_so_has_what_is_behind_it() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.now = Millis::new(4_000);
    // 60 MB: a minute by the slowest store, and 5 s.
    assert_eq!(cell.captured_of(6, 60_000_000), vec![upload(6, 6, 0)]);
    cell.output(2, 7);
    cell.now = Millis::new(68_999);
    assert_eq!(cell.on(GateEvent::Tick), vec![]);
    let mut slower = Cell { gate: cell.gate.clone(), now: Millis::new(69_000) };
    let late = [(1, FailCause::TimedOut), (2, FailCause::TimedOut)];
    assert_eq!(failed(&slower.on(GateEvent::Tick)), late);

    cell.uploaded(6);
    assert_eq!(released(&cell.owner_read(3, 1)), vec![1]);
    // Covered, it gives nobody any more time.
    cell.now = Millis::new(69_100);
    cell.captured(7);
    cell.output(3, 8);
    cell.now = Millis::new(74_101);
    assert_eq!(failed(&cell.on(GateEvent::Tick)).len(), 2);
}

#[test]
fn whoever_waits_for_a_busy_thread_gives_up_later_and_has_a_while_once_it_is_captured() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.now = Millis::new(34_999);
    assert_eq!(cell.on(GateEvent::Tick), vec![]);
    let mut stuck = Cell { gate: cell.gate.clone(), now: Millis::new(35_000) };
    assert_eq!(failed(&stuck.on(GateEvent::Tick)), [(1, FailCause::TimedOut)]);

    assert_eq!(cell.captured(6), vec![upload(6, 6, 0)]);
    cell.now = Millis::new(39_998);
    assert_eq!(cell.on(GateEvent::Tick), vec![]);
    cell.now = Millis::new(39_999);
    assert_eq!(failed(&cell.on(GateEvent::Tick)), [(1, FailCause::TimedOut)]);
}

#[test]
fn what_must_be_in_the_bucket_hurries_also_with_answers_behind_it() {
    let mut cell = Cell::new();
    cell.paced();
    // A restore's answer, and a request that came before its capture.
    cell.release(1, 6);
    cell.output(2, 6);
    assert_eq!(cell.logged(6, 40), vec![upload(6, 6, 0)]);
}

#[test]
fn nothing_leaves_once_authority_has_ended() {
    let mut cell = Cell::new();
    cell.now = LEASE_END;
    let effects = cell.output(1, 5);
    assert_eq!(failed(&effects), vec![(1, FailCause::LeaseLost)]);
    assert_eq!(released(&effects), Vec::<u64>::new());
}

#[test]
fn losing_the_lease_ends_every_wait() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.captured(6);
    let effects = cell.on(GateEvent::Fenced);
    assert_eq!(failed(&effects), vec![(1, FailCause::LeaseLost)]);
}

#[test]
fn a_commit_without_a_page_is_nothing_to_wait_for() {
    let mut cell = Cell::new();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    assert_eq!(released(&cell.on(GateEvent::Captured { captured: None, len: 0 })), vec![1]);
}

#[test]
fn an_unreadable_owner_record_is_read_again() {
    let mut cell = Cell::new();
    cell.output(1, 6);
    cell.captured(6);
    cell.uploaded(6);
    assert_eq!(cell.on(GateEvent::OwnerUnreadable), vec![GateEffect::ReadOwner { attempt: 1 }]);
    assert_eq!(released(&cell.owner_read(3, 1)), vec![1]);
}

#[test]
fn an_ensemble_proof_releases_without_the_bucket() {
    let mut cell = Cell::new();
    cell.paced();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    assert_eq!(
        cell.logged(6, 40),
        vec![GateEffect::WakeAt(Millis::new(PACE_MS))],
        "no upload before its pace"
    );
    let effects = cell.proved(6, 40);
    let [GateEffect::Release { clearance: Clearance::Proved(proof), .. }] = effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((proof.kind(), proof.upto()), (ProofKind::Ensemble, Txid::new(6)));
    assert_eq!((cell.gate.covered(), cell.gate.uploaded()), (Txid::new(6), Txid::new(5)));
}

#[test]
fn two_transactions_are_on_their_way_to_the_ensemble_and_the_rest_gathers() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    cell.logged(6, 40);
    assert_eq!(cell.output(2, 7), vec![GateEffect::Capture]);
    cell.logged(7, 41);
    for id in 3..20 {
        assert_eq!(cell.output(id, 8), vec![]);
    }
    let effects = cell.proved(6, 40);
    assert_eq!(released(&effects), vec![1]);
    assert!(effects.contains(&GateEffect::Capture));
    cell.logged(8, 42);
    assert_eq!(released(&cell.proved(8, 42)).len(), 18, "a proof covers what is before it");
}

#[test]
fn what_is_logged_goes_up_at_its_pace_in_aligned_pieces() {
    let mut cell = Cell::new();
    cell.paced();
    for at in 0..7 {
        cell.output(at + 1, 6 + at);
        cell.logged(6 + at, 40 + at);
        cell.proved(6 + at, 40 + at);
    }
    assert_eq!(cell.on(GateEvent::Tick), vec![], "not due yet");
    cell.now = Millis::new(PACE_MS);
    assert_eq!(cell.on(GateEvent::Tick), vec![upload(6, 6, 0)]);
    assert_eq!(cell.uploaded(6), vec![upload(7, 8, 0)], "no owner read: all is proved");
    cell.output(8, 13);
    cell.logged(13, 47);
    assert_eq!(cell.uploaded(8), vec![upload(9, 12, 0)]);
    let effects = cell.uploaded(12);
    assert_eq!(effects, vec![GateEffect::WakeAt(Millis::new(2 * PACE_MS))], "the rest joins the next round");
    assert_eq!(released(&cell.proved(13, 47)), vec![8]);
    assert_eq!(cell.release(99, 13), vec![upload(13, 13, 0)], "a release waits for the bucket");
    assert_eq!(released(&cell.uploaded(13)), vec![99]);
}

#[test]
fn without_an_ensemble_what_was_logged_goes_up_at_once_and_is_proved_by_the_bucket() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    cell.logged(6, 40);
    assert_eq!(cell.on(GateEvent::PaceChanged { rounds: 0 }), vec![upload(6, 6, 0)]);
    assert_eq!(cell.uploaded(6), vec![GateEffect::ReadOwner { attempt: 0 }]);
    assert_eq!(released(&cell.owner_read(3, 1)), vec![1]);
    assert_eq!(cell.proved(6, 40), vec![], "a proof that comes second changes nothing");
}

#[test]
fn what_the_log_did_not_take_goes_up_before_the_next_capture() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    assert_eq!(cell.captured(6), vec![upload(6, 6, 0)]);
    assert_eq!(cell.output(2, 7), vec![]);
    assert!(cell.uploaded(6).contains(&GateEffect::Capture));
}

#[test]
fn a_discarded_cell_settles_only_when_the_bucket_has_what_was_logged() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    cell.logged(6, 40);
    cell.output(2, 7);
    cell.logged(7, 41);
    cell.proved(7, 41);
    cell.output(3, 8);
    cell.logged(8, 42);
    cell.now = Millis::new(5_000);
    let effects = cell.on(GateEvent::Tick);
    assert_eq!(failed(&effects), vec![(3, FailCause::TimedOut)]);
    assert!(effects.contains(&GateEffect::Discard { cause: FailCause::TimedOut }));
    assert!(effects.contains(&upload(6, 6, 0)), "{effects:?}");
    assert_eq!(cell.uploaded(6), vec![upload(7, 8, 0)]);
    assert_eq!(cell.on(GateEvent::UploadFailed { last: Txid::new(8) }), vec![upload(7, 8, 1)]);
    assert_eq!(cell.uploaded(8), vec![GateEffect::Settled]);
    assert_eq!(cell.on(GateEvent::Tick), vec![], "settled once");
}

#[test]
fn a_capture_that_ends_after_the_failure_is_covered_too() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    cell.now = Millis::new(35_000);
    let effects = cell.on(GateEvent::Tick);
    assert!(!effects.contains(&GateEffect::Settled), "a capture is under way");
    assert_eq!(cell.logged(6, 40), vec![upload(6, 6, 0)]);
    assert_eq!(cell.uploaded(6), vec![GateEffect::Settled]);
}

#[test]
fn a_session_without_its_lease_uploads_nothing_more() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    cell.logged(6, 40);
    cell.now = LEASE_END;
    let effects = cell.proved(6, 40);
    assert_eq!(failed(&effects), vec![(1, FailCause::LeaseLost)]);
    assert!(!effects.iter().any(|effect| matches!(effect, GateEffect::Upload { .. } | GateEffect::Settled)));
}

#[test]
fn a_backup_does_not_wait_for_the_pace_and_holds_up_nobody() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    cell.logged(6, 40);
    cell.proved(6, 40);
    assert_eq!(cell.on(GateEvent::Cover), vec![upload(6, 6, 0)]);
    assert_eq!(released(&cell.output(2, 6)), vec![2]);
    cell.output(3, 7);
    cell.logged(7, 41);
    assert_eq!(cell.uploaded(6), vec![GateEffect::WakeAt(Millis::new(PACE_MS))], "what came later waits");
}

#[test]
fn a_proof_that_is_faster_than_the_report_of_its_capture_counts() {
    let mut cell = Cell::new();
    cell.paced();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    assert_eq!(released(&cell.proved(6, 1)), Vec::<u64>::new(), "nobody has said yet what the frame holds");
    assert_eq!(released(&cell.logged(6, 1)), vec![1]);
    // The same with the one before it still on its way: a proof covers all frames before its own.
    assert_eq!(cell.output(2, 7), vec![GateEffect::Capture]);
    cell.logged(7, 2);
    cell.output(3, 8);
    assert_eq!(released(&cell.proved(8, 3)), Vec::<u64>::new());
    assert_eq!(released(&cell.logged(8, 3)), vec![2, 3]);
}

#[test]
fn an_early_proof_of_another_frame_than_the_captured_one_proves_nothing() {
    let mut cell = Cell::new();
    cell.paced();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    cell.proved(6, 1);
    assert_eq!(released(&cell.captured(6)), Vec::<u64>::new(), "the log did not take it after all");
    cell.uploaded(6);
    assert_eq!(released(&cell.owner_read(3, 1)), vec![1]);
    assert_eq!(cell.output(2, 7), vec![GateEffect::Capture]);
    assert_eq!(
        released(&cell.logged(7, 2)),
        Vec::<u64>::new(),
        "what came early is not kept for later frames"
    );
}

#[test]
fn an_early_proof_releases_nothing_after_a_failure() {
    let mut cell = Cell::new();
    cell.paced();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    cell.proved(6, 1);
    assert_eq!(failed(&cell.on(GateEvent::Abandoned)), vec![(1, FailCause::Abandoned)]);
    assert_eq!(released(&cell.logged(6, 1)), Vec::<u64>::new());
}

#[test]
fn a_database_that_fails_while_a_capture_is_under_way_settles_when_that_has_ended() {
    let mut cell = Cell::new();
    cell.paced();
    assert_eq!(cell.output(1, 6), vec![GateEffect::Capture]);
    let effects = cell.on(GateEvent::DatabaseFailed);
    assert_eq!(failed(&effects), vec![(1, FailCause::CaptureFailed)]);
    assert!(!effects.contains(&GateEffect::Settled));
    assert_eq!(cell.on(GateEvent::Captured { captured: None, len: 0 }), vec![GateEffect::Settled]);
}

#[test]
fn an_object_ends_where_it_is_cut_however_much_was_captured_behind() {
    let mut cell = Cell::new();
    cell.paced();
    cell.output(1, 6);
    cell.logged(6, 40);
    cell.proved(6, 40);
    // What is committed is to be captured and to go up, although nobody else waits for it.
    let cut = cell.on(GateEvent::Cut { at: Txid::new(7) });
    assert_eq!(cut, vec![GateEffect::Capture, upload(6, 6, 0)]);
    cell.logged(7, 41);
    cell.proved(7, 41);
    cell.output(2, 8);
    cell.logged(8, 42);
    assert_eq!(released(&cell.proved(8, 42)), vec![2]);
    assert_eq!(cell.uploaded(6), vec![upload(7, 7, 0)]);
    // What was captured when that object began belongs to its round; what came later waits for its pace.
    cell.output(3, 9);
    cell.logged(9, 43);
    assert_eq!(cell.uploaded(7), vec![upload(8, 8, 0)]);
    assert_eq!(cell.uploaded(8), vec![GateEffect::WakeAt(Millis::new(PACE_MS))]);
}

#[test]
fn a_cut_where_an_object_ends_already_asks_for_nothing() {
    let mut cell = Cell::new();
    cell.paced();
    assert_eq!(cell.on(GateEvent::Cut { at: Txid::new(5) }), vec![]);
    cell.output(1, 6);
    cell.logged(6, 40);
    cell.proved(6, 40);
    assert_eq!(cell.on(GateEvent::Cover), vec![upload(6, 6, 0)]);
    assert_eq!(cell.on(GateEvent::Cut { at: Txid::new(6) }), vec![]);
    cell.uploaded(6);
}

#[test]
fn a_cover_behind_a_cut_does_not_hold_it_up() {
    let mut cell = Cell::new();
    cell.paced();
    assert_eq!(cell.on(GateEvent::Cut { at: Txid::new(6) }), vec![GateEffect::Capture]);
    cell.on(GateEvent::Cover);
    assert_eq!(cell.logged(6, 40), vec![upload(6, 6, 0)]);
}
