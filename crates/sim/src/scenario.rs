//! What a run consists of: sizes, clocks, weather, and how often which fault strikes.

mod shapes;

use crate::rng::Rng;
use crate::weather::Weather;

/// TTL of a lease, in milliseconds.
pub const TTL_MS: u64 = 10_000;
/// How far two clocks may differ, in milliseconds.
pub const CLOCK_SKEW_MAX_MS: u64 = 500;

/// A kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Scenario {
    /// No faults.
    Calm,
    /// Processes die at any step and come back.
    Crashes,
    /// Processes are stopped and continued.
    Pauses,
    /// The store loses requests and answers, is late and ambiguous, and lists late.
    Lossy,
    /// The store is away for up to 1.5 s at a time; nobody may stop for it.
    ShortOutages,
    /// The store is away for longer than a write waits.
    LongOutages,
    /// Clocks differ as far as allowed, drift and step.
    Skew,
    /// Clocks differ by more than allowed: only proofs protect.
    BeyondSkew,
    /// As beyond-skew, with one cell that everybody takes from everybody while reads of its history
    /// are lost and asked for again.
    Contested,
    /// Cells are given up, put to sleep and woken; nodes drain.
    Drains,
    /// Two directories claim one node name.
    SameName,
    /// Cells are purged while late uploads land.
    Purges,
    /// All of it at once, clocks within bounds.
    Everything,
    /// History is retired at once and swept at once, by owners that are superseded meanwhile, while restores plan slowly from
    /// old listings.
    Retirement,
    /// Alarms are set, deleted and run while owners die, cells move, and writes of the alarm index are lost or late.
    Alarms,
    /// As alarms, where some handlers end their process from some run on, and little else dies.
    PoisonAlarms,
    /// Followers, and no faults but broken links.
    EnsembleBasics,
    /// Followers and owners die and come back in every order.
    FollowerCrashes,
    /// Followers lose their power, all at once as well: what was not fsynced is gone.
    PowerCuts,
    /// Ensembles move, shrink and grow under load, and sessions die meanwhile.
    EnsembleMoves,
    /// Writes of the log record lose their answers and land late.
    RecordFaults,
    /// An fsync takes a second; links break, and what was not answered is sent again.
    SlowDisks,
    /// Disks of one member, or of all at once, are slow for long; followers enough to take their place.
    SlowMembers,
    /// Owners are stopped, taken over, and continued.
    Zombies,
    /// Followers lose their disks or parts of them, one at a time.
    DiskLoss,
    /// All followers lose their disks while the owner dies: recovery stays required.
    AllDisksLost,
    /// All followers are away with or without their disks while the owner dies; a person declares the loss, and followers
    /// come back afterwards.
    DeclaredLoss,
    /// Nodes and followers drain; cells are given up and woken.
    EnsembleDrains,
    /// Proofs fail while the node log holds what the bucket lacks; cells are woken again.
    FailedProofs,
    /// Everybody recovers everybody, and dies at it.
    RacingRecoverers,
    /// Followers' disks are full now and then.
    FullDisks,
    /// Rounds are bundled; owners and followers die and stop at any step, answers are lost, and clocks are beyond their
    /// bound, so that live owners are recovered.
    Bundles,
    /// All of it at once.
    EnsembleEverything,
    /// All of it at once, two directories of one name, leases erased and clocks beyond their bound: live owners are taken
    /// over, and only proofs protect.
    EnsembleBeyondSkew,
    /// As alarms, with followers.
    EnsembleAlarms,
    /// Owner records are lost or torn, and a person purges the cells by force, while their owners live, sleep and die.
    LostRecords,
}

/// Every scenario.
pub const ALL: [Scenario; 36] = [
    Scenario::Calm,
    Scenario::Crashes,
    Scenario::Pauses,
    Scenario::Lossy,
    Scenario::ShortOutages,
    Scenario::LongOutages,
    Scenario::Skew,
    Scenario::BeyondSkew,
    Scenario::Contested,
    Scenario::Drains,
    Scenario::SameName,
    Scenario::Purges,
    Scenario::Everything,
    Scenario::Retirement,
    Scenario::Alarms,
    Scenario::PoisonAlarms,
    Scenario::EnsembleBasics,
    Scenario::FollowerCrashes,
    Scenario::PowerCuts,
    Scenario::EnsembleMoves,
    Scenario::RecordFaults,
    Scenario::SlowDisks,
    Scenario::SlowMembers,
    Scenario::Zombies,
    Scenario::DiskLoss,
    Scenario::AllDisksLost,
    Scenario::DeclaredLoss,
    Scenario::EnsembleDrains,
    Scenario::FailedProofs,
    Scenario::RacingRecoverers,
    Scenario::FullDisks,
    Scenario::Bundles,
    Scenario::EnsembleEverything,
    Scenario::EnsembleBeyondSkew,
    Scenario::EnsembleAlarms,
    Scenario::LostRecords,
];

impl Scenario {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        use clap::ValueEnum;
        self.to_possible_value().expect("every scenario has a name").get_name().to_owned()
    }
}

/// A fault that a person or the machine causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A process dies; it is started again later.
    Crash,
    /// A process is stopped for a while.
    Pause,
    /// The store is away for a while.
    Outage,
    /// A node gives up its cells and its lease, and is started again.
    Drain,
    /// A node gives up one cell.
    Release,
    /// A node puts one cell to sleep: still owned, not in memory.
    Sleep,
    /// An operator purges a cell.
    Purge,
    /// An owner record is lost or torn, and a person purges the cell by force.
    HarmOwnerRecord,
    /// Somebody deletes a node's lease record.
    EraseLease,
    /// A wall clock is set anew, within the scenario's bound.
    ClockStep,
    /// A follower's process dies; what it gave to the system stays.
    KillFollower,
    /// A follower's machine loses power.
    CutPower,
    /// All followers' machines do at once, and a node's process with them, or not.
    CutAllPower,
    /// A node and some followers die in the same moment, and come back in any order.
    CrashTogether,
    /// A follower is stopped for a while.
    PauseFollower,
    /// A follower asks its sessions to leave, and is started again.
    DrainFollower,
    /// A follower comes back with an empty disk.
    LoseDisk,
    /// A node dies, and every follower comes back with an empty disk.
    LoseAllDisks,
    /// A node dies, and all followers are away for long; some come back without their disk or a part of it.
    TakeAllAway,
    /// A person looks for a recovery that is blocked, and declares the loss.
    DeclareLoss,
    /// A follower loses a segment of its journal.
    LoseSegment,
    /// An fsync takes a second, for a while.
    SlowDisk,
    /// A disk is slow for seconds: its fsyncs take a tenth of a second, or a whole one.
    SlowMember,
    /// All disks are.
    SlowAll,
    /// A disk is full, for a while.
    FullDisk,
    /// The links of a follower break.
    BreakLinks,
}

/// The decided sizes and odds of one run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is a plan for.
    pub scenario: Scenario,
    /// Node processes.
    pub nodes: usize,
    /// Cells.
    pub cells: u8,
    /// Clients, each with one request at a time.
    pub clients: usize,
    /// When faults and clients stop, true time in milliseconds.
    pub faults_until_ms: u64,
    /// The store and the network until then.
    pub weather: Weather,
    /// Faults, with their weights.
    pub faults: Vec<(Fault, u64)>,
    /// Longest pause between faults, in milliseconds.
    pub fault_every_ms_max: u64,
    /// Longest outage, in milliseconds.
    pub outage_ms_max: u64,
    /// How far a wall clock may be off the truth, in milliseconds.
    pub wall_off_ms_max: u64,
    /// Chance, in millionths, that a process dies right after a step.
    pub step_crash_ppm: u64,
    /// Requests, in thousandths, that go to any node instead of the one that is thought to own the cell.
    pub strays: u64,
    /// Whether two nodes share a name.
    pub has_twins: bool,
    /// Whether clocks keep the bound that leases rely on.
    pub clocks_in_bounds: bool,
    /// Whether a session may lose its lease at all.
    pub may_fence: bool,
    /// Follower processes.
    pub followers: usize,
    /// Whether a follower on the session's own machine will do.
    pub own_host_allowed: bool,
    /// Time between the uploads of what an ensemble holds, in milliseconds.
    pub pace_ms: u64,
    /// Longest fsync of a healthy disk, in milliseconds.
    pub fsync_ms_max: u64,
    /// Messages of a link, in thousandths, that are slow.
    pub link_slow: u64,
    /// Longest time between two sweeps of a node, in milliseconds.
    pub sweep_every_ms: u64,
    /// As how many dirty cells each one counts, for bundles are made of many.
    pub cell_weight: u64,
    /// What an fsync of a slow disk takes, in milliseconds.
    pub slow_fsync_ms: (u64, u64),
    /// Whether a person declares the loss of what can never be recovered, when faults have stopped.
    pub declares_loss: bool,
    /// Whether handlers write at the worst moments.
    pub has_adversary: bool,
    /// Whether clients set alarms.
    pub has_alarms: bool,
    /// Alarms that clients set, in thousandths, whose handler ends its process from some run on.
    pub poisoned: u64,
    /// Whether history is mostly retired at once and swept at once.
    pub retires_at_once: bool,
}

/// An fsync of a disk that stalls takes at least a second...
const STALL_MS: (u64, u64) = (1_000, 1_300);
/// ...and of one that crawls long enough to be noticed.
const CRAWL_MS: (u64, u64) = (60, 150);
/// The bound of half a skew, less what drift makes of a TTL.
const WALL_OFF_IN_BOUNDS_MS: u64 = CLOCK_SKEW_MAX_MS / 2 - 10;

impl Plan {
    /// Decides the sizes of a run.
    #[must_use]
    pub fn new(scenario: Scenario, rng: &mut Rng) -> Self {
        let mut plan = Self {
            scenario,
            nodes: 2 + rng.index(3),
            cells: 1 + rng.byte() % 3,
            clients: 2 + rng.index(4),
            faults_until_ms: rng.within(30_000, 70_000),
            weather: Weather::CALM,
            faults: Vec::new(),
            fault_every_ms_max: 8_000,
            outage_ms_max: 1_500,
            wall_off_ms_max: 20,
            step_crash_ppm: 0,
            strays: 150,
            has_twins: false,
            clocks_in_bounds: true,
            may_fence: true,
            followers: 0,
            own_host_allowed: true,
            pace_ms: 2_000,
            fsync_ms_max: 5,
            link_slow: 0,
            sweep_every_ms: 20_000,
            cell_weight: 1,
            slow_fsync_ms: STALL_MS,
            declares_loss: false,
            has_adversary: false,
            has_alarms: false,
            poisoned: 0,
            retires_at_once: false,
        };
        plan.weather.list_stale_ms_max = 3_000;
        if scenario >= Scenario::EnsembleBasics {
            plan.shape_ensembles(rng);
        }
        plan.shape(scenario);
        if scenario == Scenario::SlowMembers && rng.chance(500) {
            plan.slow_fsync_ms = CRAWL_MS;
        }
        // Half of the runs have a store far away, so that much is under way at any moment.
        if rng.chance(500) {
            plan.weather.latency_ms_max = 90;
        }
        plan
    }
}
