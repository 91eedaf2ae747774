use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, Epoch, Millis, Txid, WakeMinute};

use super::*;

const EPOCH: u64 = 4;

fn id(epoch: u64, seq: u64) -> AlarmId {
    AlarmId { epoch: Epoch::new(epoch), seq: AlarmSeq::new(seq) }
}

fn armed(seq: u64, deadline: i64) -> Armed {
    Armed::new(id(EPOCH, seq), AlarmTime::new(deadline))
}

fn put(armed: &Armed, attempt: u32) -> AlarmEffect {
    AlarmEffect::PutEntry { entry: armed.entry(), deadline: armed.deadline, attempt }
}

fn withhold(from: u64) -> AlarmEffect {
    AlarmEffect::Withhold { from: Txid::new(from) }
}

fn reveal(through: u64, from: Option<u64>) -> AlarmEffect {
    AlarmEffect::Reveal { through: Txid::new(through), from: from.map(Txid::new) }
}

struct Cell {
    alarm: Alarm,
    wall: i64,
    monotonic: u64,
    last: u64,
}

impl Cell {
    fn new() -> Self {
        let (cell, effects) = Self::restored(AlarmState::default());
        assert_eq!(effects, vec![]);
        cell
    }

    fn restored(state: AlarmState) -> (Self, Vec<AlarmEffect>) {
        Self::found(state, None)
    }

    /// An alarm of an earlier epoch, whose cell's last owner ended without a release. Its publication is left out.
    fn orphaned(armed: Armed, counted: Option<Armed>) -> (Self, Vec<AlarmEffect>) {
        let state = AlarmState { last: armed.id.seq, armed: Some(armed) };
        let (cell, mut effects) = Self::found(state, Some(Orphan { counted }));
        assert_eq!(effects[..2], [withhold(5), put(&armed, 0)]);
        effects.drain(..2);
        (cell, effects)
    }

    fn found(state: AlarmState, orphan: Option<Orphan>) -> (Self, Vec<AlarmEffect>) {
        let now = AlarmNow { wall: AlarmTime::new(1_000_000), monotonic: Millis::new(500) };
        let (alarm, effects) = Alarm::start(Epoch::new(EPOCH), (state, Txid::new(5)), orphan, now);
        (Self { alarm, wall: 1_000_000, monotonic: 500, last: state.last.get() }, effects)
    }

    fn on(&mut self, event: AlarmEvent) -> Vec<AlarmEffect> {
        let now = AlarmNow { wall: AlarmTime::new(self.wall), monotonic: Millis::new(self.monotonic) };
        self.alarm.on(event, now)
    }

    /// A handler installs an alarm.
    fn install(&mut self, deadline: i64, ticket: u64) -> (Armed, Vec<AlarmEffect>) {
        self.last += 1;
        let armed = armed(self.last, deadline);
        (armed, self.commit(Some(armed), ticket))
    }

    fn commit(&mut self, armed: Option<Armed>, ticket: u64) -> Vec<AlarmEffect> {
        let state = AlarmState { last: AlarmSeq::new(self.last), armed };
        self.on(AlarmEvent::Committed { state, ticket: Txid::new(ticket) })
    }

    /// An alarm that is installed and published, and due now.
    fn due() -> (Self, Armed) {
        let mut cell = Self::new();
        let (armed, effects) = cell.install(1_000_000, 6);
        assert_eq!(effects, vec![withhold(6), put(&armed, 0), AlarmEffect::Start(armed)]);
        assert_eq!(cell.on(AlarmEvent::Published(armed.id)), vec![reveal(6, None)]);
        (cell, armed)
    }

    fn later(&mut self, ms: u64) -> Vec<AlarmEffect> {
        self.wall += i64::try_from(ms).unwrap();
        self.monotonic += ms;
        self.on(AlarmEvent::Tick)
    }
}

#[test]
fn an_installation_is_put_once_and_revealed_when_its_entry_is_there() {
    let mut cell = Cell::new();
    let (armed, effects) = cell.install(2_000_000, 6);
    assert_eq!(effects, vec![withhold(6), put(&armed, 0)]);
    assert_eq!(cell.on(AlarmEvent::PublishFailed(armed.id)), vec![put(&armed, 1)]);
    assert_eq!(cell.on(AlarmEvent::Published(armed.id)), vec![reveal(6, None)]);
    assert_eq!(cell.on(AlarmEvent::Published(armed.id)), vec![], "an answer that came twice");
    assert_eq!(cell.on(AlarmEvent::Tick), vec![]);
}

#[test]
fn installations_during_a_put_share_the_next_one() {
    let mut cell = Cell::new();
    let (first, _) = cell.install(2_000_000, 6);
    let (_, effects) = cell.install(2_000_001, 7);
    assert_eq!(effects, vec![]);
    let (third, effects) = cell.install(2_000_002, 8);
    assert_eq!(effects, vec![]);
    assert_eq!(cell.on(AlarmEvent::Published(first.id)), vec![reveal(6, Some(7)), put(&third, 0)]);
    assert_eq!(cell.on(AlarmEvent::Published(third.id)), vec![reveal(8, None)]);
}

#[test]
fn a_put_that_failed_goes_on_with_the_newest_installation() {
    let mut cell = Cell::new();
    let (first, _) = cell.install(2_000_000, 6);
    let (second, _) = cell.install(2_000_001, 7);
    assert_eq!(cell.on(AlarmEvent::PublishFailed(first.id)), vec![put(&second, 0)]);
    // What waited since 6 leaves with a proof of 7.
    assert_eq!(cell.on(AlarmEvent::Published(second.id)), vec![reveal(7, None)]);
}

#[test]
fn a_cleared_alarm_needs_no_entry_but_a_proof_of_being_cleared() {
    let mut cell = Cell::new();
    let (first, _) = cell.install(2_000_000, 6);
    assert_eq!(cell.commit(None, 7), vec![reveal(7, None)]);
    let (second, effects) = cell.install(2_000_001, 8);
    assert_eq!(effects, vec![withhold(8)], "the write that is under way comes first");
    assert_eq!(cell.on(AlarmEvent::Published(first.id)), vec![put(&second, 0)]);
    assert_eq!(cell.on(AlarmEvent::Published(second.id)), vec![reveal(8, None)]);
}

#[test]
fn a_restored_alarm_is_published_before_anything_leaves() {
    let old = Armed::new(id(2, 9), AlarmTime::new(2_000_000));
    let state = AlarmState { last: AlarmSeq::new(9), armed: Some(old) };
    let (mut cell, effects) = Cell::restored(state);
    assert_eq!(effects, vec![withhold(5), put(&old, 0)]);
    // The waker has seen it: that is as good as the answer.
    assert_eq!(cell.on(AlarmEvent::Hinted(old.entry())), vec![reveal(5, None)]);
}

#[test]
fn it_runs_when_it_is_due_and_never_before() {
    let mut cell = Cell::new();
    let (armed, _) = cell.install(1_000_500, 6);
    assert_eq!(cell.alarm.due(), Some(AlarmTime::new(1_000_500)));
    assert_eq!(cell.later(499), vec![]);
    cell.wall -= 3_600_000;
    assert_eq!(cell.later(1_000), vec![], "the clock stepped back");
    cell.wall += 3_600_000;
    assert_eq!(cell.on(AlarmEvent::Tick), vec![AlarmEffect::Start(armed)]);
    assert_eq!(cell.on(AlarmEvent::Tick), vec![], "once");
}

#[test]
fn times_from_the_first_to_the_last_representable_one_are_kept() {
    for (deadline, minute) in [
        (i64::MIN, 0),
        (-1, 0),
        (1, 0),
        (8_640_000_000_000_000, 144_000_000_000),
        (i64::MAX, 153_722_867_280_912),
    ] {
        let mut cell = Cell::new();
        let (armed, effects) = cell.install(deadline, 6);
        assert_eq!(armed.entry().minute, WakeMinute::new(minute));
        assert_eq!(effects.contains(&AlarmEffect::Start(armed)), deadline <= 1_000_000, "{deadline}");
    }
}

#[test]
fn a_consumed_alarm_is_over() {
    let (mut cell, armed) = Cell::due();
    assert_eq!(cell.commit(None, 7), vec![]);
    assert_eq!(cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::Succeeded)), vec![]);
    assert_eq!(cell.alarm.due(), None);
}

#[test]
fn one_that_is_installed_by_the_handler_waits_for_its_end() {
    let (mut cell, first) = Cell::due();
    let (second, effects) = cell.install(1_000_000, 7);
    assert_eq!(effects, vec![withhold(7), put(&second, 0)], "due, and no overlap");
    assert_eq!(cell.alarm.due(), None);
    // What the handler threw does not concern the alarm that it installed.
    let effects = cell.on(AlarmEvent::Ended(first.id, HandlerEnd::Failed));
    assert_eq!(effects, vec![AlarmEffect::Start(second)]);
}

#[test]
fn a_failure_is_recorded_and_retried_with_growing_pauses_until_it_is_given_up() {
    let (mut cell, mut armed) = Cell::due();
    for (failures, pause) in (1..FAILURES_MAX).zip([2_000, 4_000, 8_000, 16_000, 32_000, 64_000]) {
        let effects = cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::Failed));
        let due = AlarmTime::new(cell.wall + i64::try_from(pause).unwrap());
        armed = Armed { due, attempts: failures, failures, ..armed };
        assert_eq!(effects, vec![AlarmEffect::Record(armed)]);
        assert_eq!(cell.on(AlarmEvent::Tick), vec![], "not before the record is committed");
        assert_eq!(cell.commit(Some(armed), 7), vec![], "the entry stays the same");
        assert_eq!(cell.later(pause - 1), vec![]);
        assert_eq!(cell.later(1), vec![AlarmEffect::Start(armed)]);
    }
    let cause = Abandoned::Failures(FAILURES_MAX);
    let effects = cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::Failed));
    assert_eq!(effects, vec![AlarmEffect::Abandon { id: armed.id, cause }]);
    assert_eq!(cell.commit(None, 8), vec![]);
    assert_eq!(cell.later(1_000_000)[..1], [AlarmEffect::Prove { ticket: Txid::new(8) }]);
}

#[test]
fn a_pause_never_exceeds_its_bound() {
    assert_eq!([1, 2, 7, 8, u32::MAX].map(retry_delay_ms), [2_000, 4_000, 128_000, 128_000, 128_000]);
}

#[test]
fn what_was_not_the_handlers_fault_does_not_count() {
    let (mut cell, armed) = Cell::due();
    for attempts in 1..20 {
        let effects = cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::BrokenOff));
        let [AlarmEffect::Record(again)] = effects[..] else { panic!("{effects:?}") };
        assert_eq!((again.attempts, again.failures), (attempts, 0));
        cell.commit(Some(again), 7);
        assert!(cell.later(128_000).contains(&AlarmEffect::Start(again)));
    }
    assert_eq!(cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::NotBegun)), vec![]);
    assert_eq!(cell.later(999), vec![]);
    let effects = cell.later(1);
    assert!(matches!(effects[..], [AlarmEffect::Start(again)] if again.attempts == 19), "{effects:?}");
}

#[test]
fn a_success_that_consumed_nothing_is_a_failure() {
    let (mut cell, armed) = Cell::due();
    let effects = cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::Succeeded));
    assert!(matches!(effects[..], [AlarmEffect::Record(Armed { failures: 1, .. })]), "{effects:?}");
}

#[test]
fn an_alarm_without_a_handler_is_given_up_at_once() {
    let (mut cell, armed) = Cell::due();
    let effects = cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::NoHandler));
    assert_eq!(effects, vec![AlarmEffect::Abandon { id: armed.id, cause: Abandoned::NoHandler }]);
}

#[test]
fn a_run_that_waits_for_its_turn_does_not_begin_once_its_alarm_is_deleted_or_moved() {
    let now =
        |cell: &Cell| AlarmNow { wall: AlarmTime::new(cell.wall), monotonic: Millis::new(cell.monotonic) };
    let (mut cell, armed) = Cell::due();
    assert!(cell.alarm.may_begin(armed.id, now(&cell)));
    cell.commit(None, 7);
    assert!(!cell.alarm.may_begin(armed.id, now(&cell)), "deleted");
    cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::NotBegun));
    assert_eq!(cell.alarm.due(), None);

    let (mut cell, armed) = Cell::due();
    let (moved, _) = cell.install(2_000_000, 7);
    assert!(!cell.alarm.may_begin(armed.id, now(&cell)), "moved");
    cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::NotBegun));
    assert_eq!(cell.alarm.due(), Some(moved.due));
    assert_eq!(cell.on(AlarmEvent::Tick), vec![]);
}

#[test]
fn a_change_that_was_rolled_back_is_not_the_record_that_a_failed_run_waits_for() {
    let (mut cell, armed) = Cell::due();
    let effects = cell.on(AlarmEvent::Ended(armed.id, HandlerEnd::Failed));
    let [AlarmEffect::Record(again)] = effects[..] else { panic!("{effects:?}") };
    assert_eq!(cell.commit(Some(armed), 7), vec![], "no run without a pause");
    cell.commit(Some(again), 8);
    assert_eq!(cell.later(2_000), vec![AlarmEffect::Start(again)]);
}

#[test]
fn a_cell_that_leaves_begins_nothing() {
    let mut cell = Cell::new();
    cell.install(1_000_500, 6);
    cell.on(AlarmEvent::Stopped);
    assert!(cell.later(10_000).is_empty());
    assert_eq!((cell.alarm.due(), cell.alarm.next_tick()), (None, None));
}

#[test]
fn obsolete_entries_gather_and_go_behind_a_proof_and_the_record() {
    let (mut cell, first) = Cell::due();
    let (second, _) = cell.install(9_000_000, 7);
    cell.on(AlarmEvent::Ended(first.id, HandlerEnd::Succeeded));
    assert!(cell.later(60_000).is_empty(), "what is armed has no entry yet");
    cell.on(AlarmEvent::Published(second.id));
    assert_eq!(cell.alarm.next_tick(), Some(Millis::new(cell.monotonic + 5_000)));
    assert_eq!(cell.later(5_000), vec![AlarmEffect::Prove { ticket: Txid::new(7) }]);
    // What comes meanwhile is of the next round.
    let (third, _) = cell.install(9_000_001, 8);
    let mark = Mark { through: second.id, armed: Some(second.id) };
    assert_eq!(cell.on(AlarmEvent::Proved), vec![AlarmEffect::WriteRetired { mark, attempt: 0 }]);
    assert_eq!(cell.on(AlarmEvent::RetireFailed), vec![AlarmEffect::WriteRetired { mark, attempt: 1 }]);
    let entries = vec![first.entry()];
    let delete = |attempt| AlarmEffect::DeleteEntries { entries: entries.clone(), attempt };
    assert_eq!(cell.on(AlarmEvent::RetiredWritten), vec![delete(0)]);
    assert_eq!(cell.on(AlarmEvent::DeleteFailed), vec![delete(1)]);
    assert_eq!(cell.on(AlarmEvent::Deleted), vec![]);
    cell.on(AlarmEvent::Published(third.id));
    assert_eq!(cell.later(5_000), vec![AlarmEffect::Prove { ticket: Txid::new(8) }]);
}

#[test]
fn a_hint_of_what_is_not_armed_is_cleaned_up_and_one_of_a_later_epoch_is_left_alone() {
    let mut cell = Cell::new();
    let entry = |epoch, seq| EntryName { minute: WakeMinute::new(1), id: id(epoch, seq) };
    cell.on(AlarmEvent::Hinted(entry(EPOCH + 1, 1)));
    cell.on(AlarmEvent::Hinted(entry(EPOCH, 1)));
    assert_eq!(cell.alarm.next_tick(), None);
    cell.on(AlarmEvent::Hinted(entry(EPOCH - 1, 77)));
    assert_eq!(cell.later(5_000), vec![AlarmEffect::Prove { ticket: Txid::new(5) }]);
    let mark = Mark { through: id(EPOCH, 0), armed: None };
    assert!(mark.is_obsolete(id(EPOCH - 1, 77)) && !mark.is_obsolete(id(EPOCH, 1)));
    assert_eq!(cell.on(AlarmEvent::Proved), vec![AlarmEffect::WriteRetired { mark, attempt: 0 }]);
    assert_eq!(cell.on(AlarmEvent::RetiredByAnother), vec![]);
    assert_eq!(cell.on(AlarmEvent::RetiredWritten), vec![]);
}

#[test]
fn a_hint_below_another_minute_is_no_entry_of_the_alarm() {
    let mut cell = Cell::new();
    let (armed, _) = cell.install(2_000_000, 6);
    let other = EntryName { minute: WakeMinute::new(1), id: armed.id };
    assert_eq!(cell.on(AlarmEvent::Hinted(other)), vec![]);
    assert_eq!(cell.later(60_000), vec![]);
}

#[test]
fn the_memory_of_obsolete_entries_is_bounded() {
    let mut cell = Cell::new();
    for seq in 0..2 * u64::try_from(OBSOLETE_MAX).unwrap() {
        cell.on(AlarmEvent::Hinted(EntryName { minute: WakeMinute::new(1), id: id(1, seq) }));
    }
    let mut deleted = 0;
    while !cell.later(5_000).is_empty() {
        cell.on(AlarmEvent::Proved);
        let effects = cell.on(AlarmEvent::RetiredWritten);
        let [AlarmEffect::DeleteEntries { entries, .. }] = &effects[..] else { panic!("{effects:?}") };
        assert!(entries.len() <= ENTRIES_PER_DELETE);
        deleted += entries.len();
        cell.on(AlarmEvent::Deleted);
        cell.on(AlarmEvent::Tick);
    }
    assert_eq!(deleted, OBSOLETE_MAX);
}

/// An installation of an epoch before, as a row of it has it.
fn inherited(due: i64, attempts: u32, failures: u32) -> Armed {
    let due = AlarmTime::new(due);
    Armed { attempts, failures, due, ..Armed::new(id(2, 9), AlarmTime::new(900_000)) }
}

#[test]
fn an_alarm_that_was_due_when_the_owner_died_is_counted_and_runs_once_that_is_proved() {
    let (mut cell, effects) = Cell::orphaned(inherited(900_000, 0, 0), None);
    let counted = inherited(900_000, 0, 1);
    assert_eq!(effects, vec![AlarmEffect::Count(counted)]);
    assert_eq!((cell.commit(Some(counted), 6), cell.alarm.due()), (vec![], None), "not before the proof");
    assert_eq!(cell.on(AlarmEvent::Counted(counted.id)), vec![AlarmEffect::Start(counted)], "at once");
    // And leaves no trace when it goes well.
    assert_eq!(cell.commit(None, 7), vec![reveal(7, None)]);
    assert_eq!(cell.on(AlarmEvent::Ended(counted.id, HandlerEnd::Succeeded)), vec![]);
    let (next, effects) = cell.install(1_000_000, 8);
    assert_eq!((next.failures, effects.last()), (0, Some(&AlarmEffect::Start(next))));
}

#[test]
fn a_run_that_was_counted_first_and_fails_counts_once() {
    for end in [HandlerEnd::Failed, HandlerEnd::BrokenOff] {
        let (mut cell, _) = Cell::orphaned(inherited(900_000, 3, 2), None);
        let counted = inherited(1_008_000, 3, 3);
        cell.commit(Some(counted), 6);
        cell.on(AlarmEvent::Counted(counted.id));
        assert_eq!(cell.later(8_000), vec![AlarmEffect::Start(counted)]);
        let effects = cell.on(AlarmEvent::Ended(counted.id, end));
        let again = Armed { attempts: 4, ..inherited(1_024_000, 3, 3) };
        assert_eq!(effects, vec![AlarmEffect::Record(again)], "{end:?}");
        cell.commit(Some(again), 7);
        assert_eq!(cell.later(16_000), vec![AlarmEffect::Start(again)]);
        let effects = cell.on(AlarmEvent::Ended(counted.id, HandlerEnd::Failed));
        assert!(
            matches!(effects[..], [AlarmEffect::Record(Armed { attempts: 5, failures: 4, .. })]),
            "{effects:?}"
        );
    }
}

#[test]
fn an_alarm_that_ends_each_process_is_started_seven_times_and_given_up() {
    // The first death is of an ordinary run.
    let mut row = inherited(900_000, 0, 0);
    let mut pauses = Vec::new();
    for failures in 1..=UNENDED_MAX {
        let (mut cell, effects) = Cell::orphaned(row, None);
        let [AlarmEffect::Count(counted)] = effects[..] else { panic!("{effects:?}") };
        assert_eq!((counted.attempts, counted.failures), (0, failures));
        cell.commit(Some(counted), 6);
        let pause = counted.due.get() - cell.wall;
        let started = match cell.on(AlarmEvent::Counted(counted.id)) {
            effects if effects.is_empty() => cell.later(pause.unsigned_abs()),
            effects => effects,
        };
        assert_eq!(started, vec![AlarmEffect::Start(counted)]);
        pauses.push(pause);
        // The owner dies; its successor finds it due.
        row = Armed { due: AlarmTime::new(1_000_000), ..counted };
    }
    assert_eq!(pauses[1..], [2_000, 4_000, 8_000, 16_000, 32_000]);
    let (mut cell, effects) = Cell::orphaned(row, None);
    let cause = Abandoned::Unended(UNENDED_MAX);
    assert_eq!(effects, vec![AlarmEffect::Abandon { id: row.id, cause }]);
    assert_eq!(cell.alarm.due(), None, "no run any more");
    assert_eq!(cell.commit(None, 6), vec![reveal(6, None)]);
}

#[test]
fn an_alarm_that_becomes_due_in_a_living_session_is_not_counted_first() {
    let later = inherited(1_000_501, 0, 0);
    let (mut cell, effects) = Cell::orphaned(later, None);
    assert_eq!(effects, vec![]);
    assert_eq!(cell.later(501), vec![AlarmEffect::Start(later)]);
    // Of two clocks within their bound one may have shown that it was due.
    let (_, effects) = Cell::orphaned(inherited(1_000_500, 0, 0), None);
    assert_eq!(effects, vec![AlarmEffect::Count(inherited(1_000_500, 0, 1))]);
    // A release in order says that no run was under way.
    let state = AlarmState { last: AlarmSeq::new(9), armed: Some(inherited(900_000, 0, 0)) };
    let (_, effects) = Cell::restored(state);
    assert_eq!(effects[2..], [AlarmEffect::Start(inherited(900_000, 0, 0))]);
}

#[test]
fn a_count_whose_proof_did_not_come_and_that_landed_is_not_counted_again() {
    let counted = inherited(1_004_000, 0, 3);
    let (mut cell, effects) = Cell::orphaned(counted, Some(counted));
    assert_eq!(effects, vec![]);
    assert_eq!(cell.later(4_000), vec![AlarmEffect::Start(counted)]);
    // One that did not land is.
    let (_, effects) = Cell::orphaned(inherited(900_000, 0, 2), Some(counted));
    assert_eq!(effects, vec![AlarmEffect::Count(counted)]);
}

#[test]
fn a_run_that_a_session_before_counted_fails_once_too() {
    let counted = inherited(900_000, 0, 2);
    let state = AlarmState { last: AlarmSeq::new(9), armed: Some(counted) };
    let (mut cell, _) = Cell::restored(state);
    let effects = cell.on(AlarmEvent::Ended(counted.id, HandlerEnd::Failed));
    assert!(
        matches!(effects[..], [AlarmEffect::Record(Armed { attempts: 2, failures: 2, .. })]),
        "{effects:?}"
    );
}

#[test]
fn an_alarm_that_is_set_or_deleted_while_the_count_is_proved_begins_at_zero() {
    let (mut cell, _) = Cell::orphaned(inherited(900_000, 0, 0), None);
    let counted = inherited(900_000, 0, 1);
    cell.commit(Some(counted), 6);
    let (fresh, effects) = cell.install(1_000_000, 7);
    assert_eq!(effects.last(), Some(&AlarmEffect::Start(fresh)), "it waits for no count");
    assert_eq!(cell.on(AlarmEvent::Counted(counted.id)), vec![]);
    let effects = cell.on(AlarmEvent::Ended(fresh.id, HandlerEnd::Failed));
    assert!(
        matches!(effects[..], [AlarmEffect::Record(Armed { attempts: 1, failures: 1, .. })]),
        "{effects:?}"
    );

    let (mut cell, _) = Cell::orphaned(inherited(900_000, 0, 0), None);
    cell.commit(None, 6);
    assert_eq!((cell.on(AlarmEvent::Counted(counted.id)), cell.alarm.due()), (vec![], None), "deleted");
}
