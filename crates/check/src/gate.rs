//! One gate of a cell that restored one transaction, its node log and its bucket: captures, uploads, ensemble proofs and owner
//! reads in every order, with failures, a takeover by another session at any moment, and the end of the lease. Keeps
//! INV-ACK-1 and INV-ACK-2 (what left is in the state that a later epoch restores), INV-FENCE-1, INV-REC-2's share of
//! the owner (settled means covered), and the order of outputs.

mod proofs;
mod step;
mod world;

use stateright::{Model, Property};

pub use proofs::Proofs;
pub use step::Step;
pub use world::{Phase, World};

/// How much happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Writes, each with an output.
    pub writes: u8,
    /// Outputs of reads.
    pub reads: u8,
    /// Whether the cell is given up in order, by an output that the bucket must hold.
    pub closes: bool,
    /// Uploads, reads and captures that fail, and times that the cell is abandoned.
    pub faults: u8,
    /// How far time goes.
    pub last_phase: Phase,
}

/// The model.
#[derive(Clone, Debug)]
pub struct GateModel {
    bounds: Bounds,
    proofs: Proofs,
}

impl GateModel {
    /// With these bounds.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, proofs: Proofs::made_by_a_node_log(u64::from(bounds.writes) + 1) }
    }
}

impl Model for GateModel {
    type State = World;
    type Action = Step;

    /// The epoch may be superseded before it has restored anything, and what it restored may have landed after that.
    fn init_states(&self) -> Vec<World> {
        vec![World::begin(self.bounds, false), World::begin(self.bounds, true)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        world.steps(self.bounds, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        next.take(step, &self.proofs);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("INV-ACK-1/2: what left is durable", |_, world: &World| {
                !world.seen.left_undurable
            }),
            Property::always("INV-FENCE-1: nothing leaves after the lease", |_, world: &World| {
                !world.seen.left_fenced
            }),
            Property::always("outputs leave in order", |_, world: &World| !world.seen.left_unordered),
            Property::always("a release leaves when the bucket has all", |_, world: &World| {
                !world.seen.closed_early
            }),
            Property::always("INV-REC-2: settled means covered", |_, world: &World| {
                !world.seen.settled_early
            }),
            Property::sometimes("a write leaves on an ensemble proof", |_, world: &World| {
                world.seen.left_by_ensemble
            }),
            Property::sometimes("a write leaves on a bucket proof", |_, world: &World| {
                world.seen.left_by_bucket
            }),
            Property::sometimes("a failed gate settles after what it logged", |_, world: &World| {
                world.seen.settled_logged
            }),
        ]
    }
}
