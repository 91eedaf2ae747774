//! Seeds that must pass: those that failed once, a fixed set, and fresh ones.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use clap::ValueEnum;
use holdfast_sim::run::run;
use holdfast_sim::scenario::{ALL, Scenario};
use holdfast_sim::tally::Tally;

/// Seeds of each scenario that always run.
const FIXED_SEEDS: u64 = 60;
/// Fresh seeds of each scenario unless `HOLDFAST_SIM_SEEDS` says otherwise.
const FRESH_SEEDS: u64 = 40;
/// The fresh seeds stop here, however many were asked for without naming a number.
const FRESH_TIME_MAX: Duration = Duration::from_secs(30);

#[track_caller]
fn must_pass(seed: u64, scenario: Scenario) -> u64 {
    let summary = run(seed, scenario, false);
    if let Some(violation) = &summary.violation {
        panic!("seed {seed}, {scenario:?}: {violation}\nreplay: {}", summary.replay_command());
    }
    summary.acknowledged
}

#[test]
fn seeds_that_failed_once_pass() {
    let lines = include_str!("../past_failures.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (seed, scenario) = line.split_once(' ').expect("a line is a seed and a scenario");
        must_pass(seed.parse().unwrap(), Scenario::from_str(scenario.trim(), false).unwrap());
    }
}

fn fixed_seeds_pass(scenarios: impl Iterator<Item = Scenario>) {
    for scenario in scenarios {
        let acknowledged: u64 = (1..=FIXED_SEEDS).map(|seed| must_pass(seed, scenario)).sum();
        assert!(acknowledged > 10 * FIXED_SEEDS, "{scenario:?} acknowledged only {acknowledged} writes");
    }
}

#[test]
fn fixed_seeds_pass_and_do_real_work() {
    fixed_seeds_pass(ALL.into_iter().filter(|scenario| *scenario < Scenario::EnsembleBasics));
}

#[test]
fn fixed_seeds_with_followers_pass_and_do_real_work() {
    fixed_seeds_pass(ALL.into_iter().filter(|scenario| *scenario >= Scenario::EnsembleBasics));
}

/// A world in which nothing of a tier happens proves nothing of it.
#[test]
fn ensembles_prove_move_and_are_recovered() {
    for scenario in ALL.into_iter().filter(|scenario| *scenario >= Scenario::EnsembleBasics) {
        let runs: Vec<_> = (1..=10).map(|seed| run(seed, scenario, false)).collect();
        let mut tally = Tally::default();
        runs.iter().for_each(|run| tally += run.tally);
        assert!(tally.proofs > 100 && tally.ensembles > 30 && tally.recovered > 5, "{scenario:?}: {tally}");
        match scenario {
            Scenario::EnsembleMoves => assert!(tally.asked_anew > 0, "{scenario:?}: {tally}"),
            Scenario::RacingRecoverers => assert!(tally.relieved > 0, "{scenario:?}: {tally}"),
            Scenario::SlowMembers => {
                assert!(tally.slow > 5 && tally.replaced > 0, "{scenario:?}: {tally}");
            }
            Scenario::DeclaredLoss => assert!(tally.declared > 5, "{scenario:?}: {tally}"),
            _ => assert_eq!(tally.declared, 0, "{scenario:?}: {tally}"),
        }
    }
}

#[test]
fn alarms_that_end_their_processes_are_counted_and_given_up() {
    let mut tally = Tally::default();
    (1..=40).for_each(|seed| tally += run(seed, Scenario::PoisonAlarms, false).tally);
    assert!(tally.counted_first > 20 && tally.killed > 20 && tally.given_up > 3, "{tally}");
}

#[test]
fn fresh_seeds_pass() {
    let asked = std::env::var("HOLDFAST_SIM_SEEDS").ok().map(|count| count.parse::<u64>().expect("a number"));
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    let first = u64::from_le_bytes(bytes) >> 16;
    let began = Instant::now();
    for seed in first..first + asked.unwrap_or(FRESH_SEEDS) {
        for scenario in ALL {
            must_pass(seed, scenario);
        }
        if asked.is_none() && began.elapsed() > FRESH_TIME_MAX {
            break;
        }
    }
}

#[test]
fn one_seed_gives_one_trace() {
    for scenario in ALL {
        let hashes: Vec<u64> = [7, 7, 8].iter().map(|seed| run(*seed, scenario, false).trace_hash).collect();
        assert_eq!(hashes[0], hashes[1], "{scenario:?}");
        assert_ne!(hashes[0], hashes[2], "{scenario:?}");
    }
}
