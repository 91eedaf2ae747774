//! One run of one seed, and its summary. A panic of the core (a broken assert) is a violation like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::scenario::Scenario;
use crate::tally::Tally;
use crate::violation::Violation;
use crate::world::World;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// The scenario.
    pub scenario: Scenario,
    /// Events.
    pub events: u64,
    /// Writes that clients were told are durable.
    pub acknowledged: u64,
    /// Claims over another session's ownership.
    pub takeovers: u64,
    /// Sessions that stopped by themselves.
    pub fences: u64,
    /// Purges.
    pub purges: u64,
    /// Frames appended to node logs.
    pub frames: u64,
    /// What else happened.
    pub tally: Tally,
    /// Hash over all that happened.
    pub trace_hash: u64,
    /// The first violation.
    pub violation: Option<Violation>,
}

impl Summary {
    /// The command that runs it again.
    #[must_use]
    pub fn replay_command(&self) -> String {
        let scenario = self.scenario.name();
        format!("cargo run -p holdfast-sim --bin sim -- --seed {} --scenario {scenario} --trace", self.seed)
    }
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, scenario: Scenario, prints: bool) -> Summary {
    let mut world = World::new(seed, scenario, prints);
    let violation = match catch_unwind(AssertUnwindSafe(|| world.run())) {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(Violation::new("ASSERT", format_args!("{}", text.unwrap_or_default())))
        }
    };
    Summary {
        seed,
        scenario,
        events: world.events(),
        acknowledged: world.checkers.clients.acknowledged_len(),
        takeovers: world.checkers.takeover.takeovers(),
        fences: world.checkers.fence.fences(),
        purges: world.checkers.purge.purges(),
        frames: world.checkers.facts.frames_len(),
        tally: world.tally,
        trace_hash: world.trace.hash(),
        violation,
    }
}
