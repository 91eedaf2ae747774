//! The node log's verdicts: everything within these bounds was visited. In all of them a recoverer may start at any moment
//! and the session may go on after it.

use holdfast_check::node_log::{BUNDLED, Bounds, CALM, GROWTH, LONE, NodeLogModel, SWAP};
use holdfast_check::verdict::{Verdict, must_hold};

const PLAIN: Bounds = Bounds { recoverers: 1, ..CALM };
const ONE_FOLLOWER: Bounds = Bounds { followers: 1, views: LONE, ..PLAIN };

const fn pinned(generated: usize, unique: usize, depth: usize) -> Verdict {
    Verdict { generated, unique, depth }
}

#[test]
fn a_paused_owner_proves_nothing_that_its_recovery_lacks() {
    must_hold("node log", NodeLogModel(PLAIN), pinned(34_532, 13_094, 48));
}

#[test]
fn a_write_of_the_record_whose_answer_is_lost_changes_nothing() {
    let bounds = Bounds { lost_answers: 1, ..PLAIN };
    must_hold("node log, lost answer", NodeLogModel(bounds), pinned(394_234, 140_624, 54));
}

#[test]
fn an_ensemble_grows_while_frames_are_proved() {
    let bounds = Bounds { views: GROWTH, ..PLAIN };
    must_hold("node log, growth", NodeLogModel(bounds), pinned(401_700, 148_691, 70));
}

#[test]
fn an_ensemble_moves_while_frames_are_proved() {
    let bounds = Bounds { views: SWAP, ..PLAIN };
    must_hold("node log, move", NodeLogModel(bounds), pinned(55_846, 23_601, 61));
}

#[test]
fn a_follower_crashes_with_frames_that_are_not_fsynced() {
    let bounds = Bounds { crashes: 1, ..PLAIN };
    must_hold("node log, crash", NodeLogModel(bounds), pinned(404_317, 145_522, 64));
}

#[test]
fn a_follower_with_another_disk_is_no_member_and_no_witness() {
    let bounds = Bounds { lost_disks: 1, ..ONE_FOLLOWER };
    must_hold("node log, lost disk", NodeLogModel(bounds), pinned(43_092, 15_267, 66));
}

#[test]
fn followers_drop_what_the_bucket_has() {
    let bounds = Bounds { uploads: true, frames: 2, ..ONE_FOLLOWER };
    must_hold("node log, uploads", NodeLogModel(bounds), pinned(126_368, 34_276, 46));
}

#[test]
fn recoverers_race() {
    let bounds = Bounds { recoverers: 2, ..ONE_FOLLOWER };
    must_hold("node log, race", NodeLogModel(bounds), pinned(110_722, 43_682, 53));
}

#[test]
fn a_silent_recoverer_is_taken_over() {
    let bounds = Bounds { recoverers: 2, leaps: 1, ..ONE_FOLLOWER };
    must_hold("node log, takeover of a recovery", NodeLogModel(bounds), pinned(1_941_561, 747_002, 67));
}

#[test]
fn a_recoverer_that_dies_is_taken_over_at_once_and_one_that_lives_never() {
    let bounds = Bounds { recoverers: 2, deaths: 1, ..ONE_FOLLOWER };
    must_hold("node log, death of a recoverer", NodeLogModel(bounds), pinned(314_556, 113_662, 60));
}

#[test]
fn a_person_declares_loss_and_what_comes_back_changes_nothing() {
    let bounds = Bounds { recoverers: 2, unanswered_seals: 1, declares_loss: true, ..ONE_FOLLOWER };
    must_hold("node log, declared loss", NodeLogModel(bounds), pinned(343_228, 124_628, 60));
}

#[test]
fn a_second_crash_and_a_second_frame_change_nothing() {
    let bounds = Bounds { crashes: 2, frames: 2, leaps: 1, ..ONE_FOLLOWER };
    must_hold("node log, two crashes and a pause", NodeLogModel(bounds), pinned(678_176, 290_969, 68));
}

/// Two frames of two cells, a bundle for each, brought into their cells' prefixes in any order.
const BUNDLING: Bounds = Bounds { uploads: true, frames: 2, rounds: BUNDLED, ..ONE_FOLLOWER };
const ONE_BUNDLE: Bounds = Bounds { frames: 1, ..BUNDLING };
const CLOSING: Bounds = Bounds { closes: true, uploads: true, frames: 2, ..ONE_FOLLOWER };

#[test]
fn bundles_stand_in_for_prefixes_until_they_are_drained() {
    must_hold("node log, bundles", NodeLogModel(BUNDLING), pinned(6_266_922, 1_475_288, 75));
}

#[test]
fn a_bundle_whose_answer_is_lost_is_put_again_and_may_land_late() {
    let bounds = Bounds { lost_answers: 1, ..ONE_BUNDLE };
    must_hold("node log, bundle, lost answer", NodeLogModel(bounds), pinned(3_520_093, 883_583, 67));
}

#[test]
fn a_follower_that_crashes_may_rely_on_a_bundle() {
    let bounds = Bounds { crashes: 1, ..ONE_BUNDLE };
    must_hold("node log, bundle, crash", NodeLogModel(bounds), pinned(1_745_172, 437_619, 62));
}

#[test]
fn a_log_ends_in_order_when_all_is_covered() {
    must_hold("node log, close", NodeLogModel(CLOSING), pinned(792_490, 212_081, 51));
}

#[test]
fn a_log_whose_end_nobody_answers_has_ended_or_is_recovered() {
    let bounds = Bounds { frames: 1, lost_answers: 1, ..CLOSING };
    must_hold("node log, close, lost answer", NodeLogModel(bounds), pinned(955_396, 276_493, 49));
}

#[test]
fn a_log_with_a_bundle_ends_in_order_when_all_is_covered() {
    let bounds = Bounds { closes: true, ..ONE_BUNDLE };
    must_hold("node log, bundle, close", NodeLogModel(bounds), pinned(1_359_654, 344_455, 62));
}
