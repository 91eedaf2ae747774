use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use holdfast_types::{CellName, NodeName};
use proptest::prelude::*;

use super::*;
use crate::placement::{Candidate, place, prefers};

fn node(index: usize) -> NodeName {
    NodeName::parse(&format!("node-{index}")).unwrap()
}

fn cell(index: usize) -> CellName {
    CellName::parse(&format!("db:tenant-{index}")).unwrap()
}

fn loads(nodes: &[(u32, u64)]) -> Vec<Load> {
    let load = |(index, (weight, cells)): (usize, &(u32, u64))| Load {
        node: node(index),
        weight: *weight,
        cells: *cells,
    };
    nodes.iter().enumerate().map(load).collect()
}

/// A fleet of cells with names: who owns which, and how often each has moved.
struct Fleet {
    weights: Vec<u32>,
    owned: Vec<Vec<CellName>>,
    moves: BTreeMap<CellName, usize>,
}

impl Fleet {
    fn new(nodes: &[(u32, u64)]) -> Self {
        let mut next = 0;
        let owned = nodes.iter().map(|(_, cells)| {
            let names = (next..next + usize::try_from(*cells).unwrap()).map(cell).collect();
            next += usize::try_from(*cells).unwrap();
            names
        });
        let owned = owned.collect();
        Self { weights: nodes.iter().map(|(weight, _)| *weight).collect(), owned, moves: BTreeMap::new() }
    }

    fn loads(&self) -> Vec<Load> {
        let cells = self.owned.iter().map(|cells| u64::try_from(cells.len()).unwrap());
        loads(&self.weights.iter().copied().zip(cells).collect::<Vec<_>>())
    }

    fn index(name: &NodeName) -> usize {
        name.as_str().strip_prefix("node-").unwrap().parse().unwrap()
    }

    /// A donor does what it is asked, of which only `part` in 4 succeed.
    fn execute(&mut self, transfer: &Transfer, part: u64) {
        let (from, to) = (Self::index(&transfer.from), Self::index(&transfer.to));
        let owned = u64::try_from(self.owned[from].len()).unwrap();
        let count = gives(owned, transfer.cells, transfer.keep) * part / 4;
        let movable = |cell: &CellName| Movable { cell: cell.clone(), activity: Activity::Idle };
        let cells = self.owned[from].iter().map(movable).collect();
        let giver = (&transfer.from, self.weights[from]);
        let taker = (&transfer.to, self.weights[to]);
        for Movable { cell, .. } in choose(cells, giver, taker, usize::try_from(count).unwrap()) {
            self.owned[from].retain(|owned| *owned != cell);
            *self.moves.entry(cell.clone()).or_default() += 1;
            self.owned[to].push(cell);
        }
    }

    fn off(&self) -> u64 {
        let loads = self.loads();
        loads.iter().zip(shares(&loads)).map(|(load, share)| load.cells.abs_diff(share)).sum()
    }
}

fn is_even(fleet: &Fleet, percent: u64, slack: u64) -> bool {
    let loads = fleet.loads();
    let within =
        |(load, share): (&Load, u64)| load.cells.abs_diff(share) <= (share * percent / 100).max(slack);
    loads.iter().zip(shares(&loads)).all(within)
}

#[test]
fn a_node_that_joins_three_gets_its_quarter_of_the_cells_that_placement_gives_it() {
    let mut fleet = Fleet::new(&[(100, 0), (100, 0), (100, 0), (100, 0)]);
    let candidate = |index| Candidate {
        node: node(index),
        weight: 100,
        cells: 0,
        draining: false,
        live: true,
        protocol_ok: true,
    };
    let three: Vec<Candidate> = (0..3).map(candidate).collect();
    for index in 0..3_000 {
        let owner = Fleet::index(place(&cell(index), &three).unwrap());
        fleet.owned[owner].push(cell(index));
    }
    let mut planner = Rebalance::default();
    let mut rounds = 0;
    loop {
        let transfers = planner.plan(&fleet.loads());
        if transfers.is_empty() {
            break;
        }
        rounds += 1;
        assert!(rounds < 40);
        for transfer in &transfers {
            fleet.execute(transfer, 4);
        }
    }
    assert!(is_even(&fleet, 2, 1), "{:?}", fleet.loads());
    // Nearly all of them are where placement would put them.
    let at_home = |cell: &&CellName| (0..3).all(|other| prefers(cell, (&node(3), 100), (&node(other), 100)));
    let home = fleet.owned[3].iter().filter(at_home).count();
    assert!(home * 10 > fleet.owned[3].len() * 8, "{home} of {}", fleet.owned[3].len());
}

#[test]
fn little_is_no_reason_to_begin_and_once_begun_it_is_brought_to_its_end() {
    let mut planner = Rebalance::default();
    assert_eq!(planner.plan(&loads(&[(100, 30), (100, 0)])), []);
    assert_eq!(planner.plan(&loads(&[(100, 1_050), (100, 950)])), []);
    assert_eq!(planner.plan(&loads(&[(100, 500)])), []);
    assert_eq!(planner.plan(&[]), []);
    let transfer = |cells| Transfer { from: node(0), to: node(1), cells, keep: 1_000 };
    assert_eq!(planner.plan(&loads(&[(100, 1_051), (100, 949)])), [transfer(51)]);
    assert_eq!(planner.plan(&loads(&[(100, 1_021), (100, 979)])), [transfer(21)]);
    assert_eq!(planner.plan(&loads(&[(100, 1_020), (100, 980)])), []);
    assert_eq!(planner.plan(&loads(&[(100, 1_021), (100, 979)])), []);
    assert_eq!(planner.plan(&loads(&[(100, 2_000), (100, 0)])), [transfer(64)]);
    planner.stop();
    assert_eq!(planner.plan(&loads(&[(100, 1_021), (100, 979)])), []);
}

#[test]
fn a_donor_gives_nothing_of_its_share_whoever_asks() {
    assert_eq!(gives(1_000, 64, 750), 64);
    assert_eq!(gives(760, 64, 750), 10);
    assert_eq!(gives(750, 64, 750), 0);
    assert_eq!(gives(10, 64, 750), 0);
}

#[test]
fn what_nobody_would_notice_goes_first() {
    let of = |index, activity| Movable { cell: cell(index), activity };
    let cells = [
        of(0, Activity::Sockets),
        of(1, Activity::Between),
        of(2, Activity::Asleep),
        of(3, Activity::Idle),
        of(4, Activity::Asleep),
    ];
    let (from, to) = ((&node(0), 100), (&node(1), 100));
    let chosen = choose(cells.to_vec(), from, to, 4);
    let activities: Vec<Activity> = chosen.iter().map(|movable| movable.activity).collect();
    assert_eq!(activities, [Activity::Asleep, Activity::Asleep, Activity::Idle, Activity::Between]);
    let many = (0..40).map(|index| of(index, Activity::Idle)).collect();
    for Movable { cell, .. } in choose(many, from, to, 10) {
        assert!(prefers(&cell, to, from), "{cell} would come back");
    }
}

fn fleets() -> impl Strategy<Value = Vec<(u32, u64)>> {
    proptest::collection::vec((0u32..400, 0u64..300), 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn shares_are_all_cells_in_proportion_to_weights(nodes in proptest::collection::vec((0u32..10_000, 0u64..1_000_000), 1..9)) {
        let loads = loads(&nodes);
        let shares = shares(&loads);
        let total: u64 = nodes.iter().map(|(_, cells)| cells).sum();
        let weights: u64 = nodes.iter().map(|(weight, _)| u64::from((*weight).max(1))).sum();
        prop_assert_eq!(shares.iter().sum::<u64>(), total);
        for (share, (weight, _)) in shares.iter().zip(&nodes) {
            let exact = total * u64::from((*weight).max(1)) / weights;
            prop_assert!(*share == exact || *share == exact + 1);
        }
    }

    #[test]
    fn from_any_start_it_ends_even_and_no_cell_moves_twice(nodes in fleets(), parts in proptest::collection::vec(1u64..5, 8)) {
        let mut fleet = Fleet::new(&nodes);
        let mut planner = Rebalance::default();
        let mut rounds = 0;
        loop {
            let transfers = planner.plan(&fleet.loads());
            if transfers.is_empty() {
                break;
            }
            rounds += 1;
            // A part that moves none of a few would go on for ever by itself: then all of it moves.
            prop_assert!(rounds < 400, "{:?}", fleet.loads());
            let mut given: BTreeMap<NodeName, u64> = BTreeMap::new();
            let before = fleet.off();
            for (index, transfer) in transfers.iter().enumerate() {
                *given.entry(transfer.from.clone()).or_default() += transfer.cells;
                *given.entry(transfer.to.clone()).or_default() += transfer.cells;
                let part = if transfer.cells < 4 { 4 } else { parts[(rounds + index) % parts.len()] };
                fleet.execute(transfer, part);
            }
            prop_assert!(given.values().all(|cells| *cells <= MOVES_OF_NODE_MAX));
            prop_assert!(fleet.off() < before);
        }
        let (percent, slack) = if rounds == 0 { (BEGIN_PERCENT, BEGIN_SLACK_CELLS) } else { (END_PERCENT, 1) };
        prop_assert!(is_even(&fleet, percent, slack), "{:?}", fleet.loads());
        prop_assert!(fleet.moves.values().all(|moves| *moves == 1), "a cell moved twice");
        prop_assert!(planner.plan(&fleet.loads()).is_empty());
    }

    /// Two planners, of which each may know the loads of some rounds ago.
    #[test]
    fn planners_that_know_old_loads_never_make_it_worse_and_end_when_they_know_better(
        nodes in fleets(), ages in proptest::collection::vec(0usize..4, 24)
    ) {
        let mut fleet = Fleet::new(&nodes);
        let mut planners = [Rebalance::default(), Rebalance::default()];
        let mut past = alloc::vec![fleet.loads()];
        for age in &ages {
            for planner in &mut planners {
                let known = past[past.len().saturating_sub(1 + age)].clone();
                let before = fleet.off();
                for transfer in planner.plan(&known) {
                    fleet.execute(&transfer, 4);
                }
                prop_assert!(fleet.off() <= before, "a plan made it worse");
            }
            past.push(fleet.loads());
        }
        for _ in 0..40 {
            for planner in &mut planners {
                for transfer in planner.plan(&fleet.loads()) {
                    fleet.execute(&transfer, 4);
                }
            }
        }
        let still: Vec<Transfer> = planners.iter_mut().flat_map(|planner| planner.plan(&fleet.loads())).collect();
        prop_assert!(still.is_empty(), "{still:?}");
        prop_assert!(is_even(&fleet, BEGIN_PERCENT, BEGIN_SLACK_CELLS));
    }
}
