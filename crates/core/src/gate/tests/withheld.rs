//! Outputs that wait for something besides their proofs.

use super::*;

impl Cell {
    fn withhold(&mut self, from: u64) {
        assert_eq!(self.on(GateEvent::Withhold { from: Txid::new(from) }), vec![]);
    }

    fn revealed(&mut self, through: u64, from: Option<u64>) -> Vec<GateEffect> {
        self.on(GateEvent::Revealed { through: Txid::new(through), from: from.map(Txid::new) })
    }

    fn prove(&mut self, txid: u64) -> Vec<u64> {
        let mut effects = self.captured(txid);
        effects.extend(self.uploaded(txid));
        effects.extend(self.owner_read(3, 1));
        released(&effects)
    }
}

#[test]
fn an_output_waits_for_the_proof_and_for_what_it_reveals() {
    let mut cell = Cell::new();
    cell.withhold(6);
    cell.output(1, 5);
    cell.output(2, 6);
    assert_eq!(cell.prove(6), vec![], "proved, and still withheld");
    assert_eq!(released(&cell.revealed(6, None)), vec![2]);

    cell.withhold(7);
    cell.output(3, 7);
    assert_eq!(released(&cell.revealed(7, None)), vec![], "revealed, and not proved yet");
    assert_eq!(cell.prove(7), vec![3]);
}

#[test]
fn what_leaves_before_it_is_not_held_up() {
    let mut cell = Cell::new();
    cell.withhold(6);
    assert_eq!(released(&cell.output(1, 5)), vec![1]);
    cell.output(2, 6);
    assert_eq!(cell.prove(6), vec![]);
    assert_eq!(released(&cell.output(3, 5)), vec![], "outputs leave in order");
    assert_eq!(released(&cell.revealed(6, None)), vec![2, 3]);
}

#[test]
fn an_output_of_a_superseded_state_waits_for_the_proof_of_what_superseded_it() {
    let mut cell = Cell::new();
    cell.withhold(6);
    cell.output(1, 6);
    assert_eq!(cell.prove(6), vec![]);
    cell.output(2, 7);
    assert_eq!(released(&cell.revealed(7, None)), vec![], "6 was never published: 7 must be proved");
    assert_eq!(cell.prove(7), vec![1, 2]);
}

#[test]
fn a_later_installation_goes_on_being_withheld() {
    let mut cell = Cell::new();
    cell.withhold(6);
    cell.output(1, 6);
    assert_eq!(cell.prove(6), vec![]);
    cell.output(2, 7);
    assert_eq!(released(&cell.revealed(6, Some(7))), vec![1]);
    assert_eq!(cell.prove(7), vec![]);
    assert_eq!(released(&cell.revealed(7, None)), vec![2]);
}

#[test]
fn what_is_never_published_fails_in_time_and_a_release_waits_too() {
    let mut cell = Cell::new();
    cell.withhold(5);
    assert_eq!(released(&cell.release(1, 5)), vec![]);
    cell.now = Millis::new(5_000);
    assert_eq!(failed(&cell.on(GateEvent::Tick)), vec![(1, FailCause::TimedOut)]);
}
