//! Nodes that claim, serve, release and take over one cell on bucket proofs: the real claims, releases and gates over an
//! owner record with lost answers and late landings. Leases end at any moment; readers notice it later, or, where clocks
//! differ by more than they may, before. Keeps INV-OWN-1, INV-OWN-2, INV-OWN-3, INV-ACK-1, INV-REC-1 and INV-FENCE-1.

mod claiming;
mod process;
mod seen;
mod serving;
mod step;
mod world;

use stateright::{Model, Property};

pub use seen::Seen;
pub use step::Step;
pub use world::World;

/// How much happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Nodes.
    pub nodes: u8,
    /// Claims that are begun, over all nodes.
    pub claims: u8,
    /// Releases that are begun.
    pub releases: u8,
    /// Writes whose answer is lost, of the record or of an object: they may have landed, or land later.
    pub lost_answers: u8,
    /// Kills, each followed by a new session of the node.
    pub restarts: u8,
    /// Whether a reader may take a lease for dead that has not ended.
    pub beyond_skew: bool,
}

/// The model.
#[derive(Clone, Debug)]
pub struct OwnershipModel(pub Bounds);

impl Model for OwnershipModel {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::begin(&self.0)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        world.steps(&self.0, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        next.take(step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("INV-OWN-1: an epoch has one claimant", |_, world: &World| {
                !world.seen.claimed_twice()
            }),
            Property::always("INV-OWN-2: epochs never decrease", |_, world: &World| !world.seen.epoch_fell),
            Property::always(
                "INV-OWN-3: what is acknowledged was stored before the next claim",
                |_, world: &World| world.seen.acknowledged & !world.seen.stored_in_time == 0,
            ),
            Property::always("INV-ACK-1: later epochs restore what was acknowledged", |_, world: &World| {
                world.seen.later_epochs_have_it()
            }),
            Property::always("INV-REC-1: no claim before the log is recovered", |_, world: &World| {
                !world.seen.claimed_unrecovered
            }),
            Property::always("no claim over a live lease", |model: &Self, world: &World| {
                model.0.beyond_skew || !world.seen.claimed_live
            }),
            Property::always("INV-FENCE-1: nothing leaves after the lease", |_, world: &World| {
                !world.seen.left_fenced
            }),
            Property::sometimes("an epoch restores what another acknowledged", |_, world: &World| {
                world.seen.restored.values().any(|restored| restored & world.seen.acknowledged != 0)
            }),
            // Within the skew its lease has ended before that.
            Property::sometimes("a superseded session's proof fails", |model: &Self, world: &World| {
                world.seen.proof_failed || !model.0.beyond_skew
            }),
        ]
    }
}
