//! `sim`: runs seeds of the simulation, names the command that replays a failing one, and sums up.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use holdfast_core::mutant;
use holdfast_sim::run::run;
use holdfast_sim::scenario::{self, Scenario};
use holdfast_sim::tally::Tally;

/// Seeded simulation of the core: ownership, leases, gates, node logs, followers, recovery and restores.
#[derive(Debug, Parser)]
struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, counting up.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// The scenario; all of them when not given.
    #[arg(long)]
    scenario: Option<Scenario>,
    /// Run with this broken variant of the core, named as in `holdfast_core::mutant`.
    #[arg(long)]
    mutant: Option<String>,
    /// Print everything that happens.
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(name) = &options.mutant {
        let Some(mutant) = mutant::ALL.into_iter().find(|mutant| format!("{mutant:?}") == *name) else {
            eprintln!("`{name}` is no mutant; there are {:?}", mutant::ALL);
            return ExitCode::from(2);
        };
        mutant::activate(Some(mutant));
    }
    let scenarios = options.scenario.map_or(scenario::ALL.to_vec(), |scenario| vec![scenario]);
    if !options.trace {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let violations: u64 = scenarios.into_iter().map(|scenario| run_seeds(&options, scenario)).sum();
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_seeds(options: &Options, scenario: Scenario) -> u64 {
    let (mut frames, mut tally) = (0, Tally::default());
    let (mut events, mut acknowledged, mut takeovers, mut fences, mut purges, mut violations) =
        (0, 0, 0, 0, 0, 0);
    for seed in options.seed..options.seed + options.seeds {
        let summary = run(seed, scenario, options.trace);
        events += summary.events;
        acknowledged += summary.acknowledged;
        takeovers += summary.takeovers;
        fences += summary.fences;
        purges += summary.purges;
        frames += summary.frames;
        tally += summary.tally;
        if let Some(violation) = &summary.violation {
            violations += 1;
            let mutant = options.mutant.as_ref().map(|name| format!(" --mutant {name}")).unwrap_or_default();
            println!("seed {seed}: {violation}\n  replay: {}{mutant}", summary.replay_command());
        } else if options.trace {
            println!("trace hash {:016x}", summary.trace_hash);
        }
    }
    println!(
        "{}: {} seeds, {events} events, {acknowledged} acknowledged writes, {takeovers} takeovers, {fences} \
         fences, {purges} purges, {frames} frames, {tally}, {violations} violations",
        scenario.to_possible_value().expect("every scenario has a name").get_name(),
        options.seeds
    );
    violations
}
