//! One checker per promise. They see what the store applied, what sessions did and what clients were told; nothing that a
//! node believes of itself counts as evidence, except its clock. Each is tried with a direct violation in its own tests.

pub mod alarms;
pub mod bundles;
pub mod chain;
pub mod clients;
pub mod durability;
pub mod facts;
pub mod fence;
pub mod ownership;
pub mod past;
pub mod proof;
pub mod purge;
pub mod recovery;
pub mod release;
pub mod relief;
pub mod retirement;
pub mod seal;
pub mod slowness;
pub mod takeover;

use alarms::AlarmChecker;
use chain::ChainChecker;
use clients::ClientsChecker;
use durability::DurabilityChecker;
use facts::LogFacts;
use fence::FenceChecker;
use ownership::OwnershipChecker;
use past::PastChecker;
use proof::ProofChecker;
use purge::PurgeChecker;
use recovery::{ClaimChecker, CoverageChecker, LossChecker};
use release::ReleaseChecker;
use relief::ReliefChecker;
use retirement::RetirementChecker;
use seal::SealChecker;
use slowness::SlownessChecker;
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
    /// What is true of node logs.
    pub facts: LogFacts,
    /// INV-LOG-1.
    pub proof: ProofChecker,
    /// INV-LOG-2.
    pub seal: SealChecker,
    /// INV-LOG-3.
    pub release: ReleaseChecker,
    /// INV-GC-1.
    pub retirement: RetirementChecker,
    /// INV-PAST-1, INV-PAST-2.
    pub past: PastChecker,
    /// INV-REC-1.
    pub claim: ClaimChecker,
    /// INV-REC-2.
    pub coverage: CoverageChecker,
    /// INV-REC-3.
    pub loss: LossChecker,
    /// No live recoverer is taken over.
    pub relief: ReliefChecker,
    /// Who is slow is given up, and nobody else.
    pub slowness: SlownessChecker,
    /// INV-WAKE-1, INV-WAKE-2.
    pub alarms: AlarmChecker,
    /// What clients may expect of the answers that they got.
    pub clients: ClientsChecker,
}
