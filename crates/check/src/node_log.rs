//! One session's node log, its followers, its record in the bucket, and recoverers that may start at any moment. The owner
//! may be paused at any step and go on after its takeover: nothing forces it to do anything, and nothing stops it. Keeps
//! INV-LOG-1, INV-LOG-2, INV-LOG-3, INV-REC-1, INV-REC-2, INV-REC-3 and INV-ACK-1 for what an ensemble proved.

mod bounds;
mod bundle;
mod follower;
mod owner;
mod properties;
mod recoverer;
mod step;
mod world;

use stateright::{Model, Property};

pub use bounds::{BUNDLED, Bounds, CALM, GROWTH, LONE, MOVE, SPARE, SWAP, Seen};
pub use step::Step;
pub use world::World;

/// The model.
#[derive(Clone, Debug)]
pub struct NodeLogModel(pub Bounds);

impl Model for NodeLogModel {
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
        next.take(&self.0, step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
