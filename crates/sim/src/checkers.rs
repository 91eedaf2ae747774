//! One checker per promise. They see what the store applied, what sessions did and what clients were told; nothing that a
//! node believes of itself counts as evidence, except its clock. Each is tried with a direct violation in its own tests.

pub mod chain;
pub mod clients;
pub mod durability;
pub mod fence;
pub mod ownership;
pub mod purge;
pub mod takeover;

use chain::ChainChecker;
use clients::ClientsChecker;
use durability::DurabilityChecker;
use fence::FenceChecker;
use ownership::OwnershipChecker;
use purge::PurgeChecker;
use takeover::TakeoverChecker;

/// All checkers of a run.
#[derive(Clone, Debug, Default)]
pub struct Checkers {
    /// INV-OWN-1, INV-OWN-2.
    pub ownership: OwnershipChecker,
    /// No live session is taken over.
    pub takeover: TakeoverChecker,
    /// INV-ACK-1, INV-ACK-2, INV-OWN-3.
    pub durability: DurabilityChecker,
    /// INV-CHAIN-1, INV-CHAIN-2.
    pub chain: ChainChecker,
    /// INV-FENCE-1.
    pub fence: FenceChecker,
    /// A purge's old content never reappears.
    pub purge: PurgeChecker,
    /// What clients may expect of the answers that they got.
    pub clients: ClientsChecker,
}
