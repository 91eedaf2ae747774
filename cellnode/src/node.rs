//! What all parts of one node share: who it is, its stores, its bounds, and the cells it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use holdfast_bucket::Buckets;
use holdfast_core::compaction::CompactionTriggers;
use holdfast_core::ensemble::{NodeLogConfig, RetentionLimits};
use holdfast_core::ownership::{Claimant, Protocol};
use holdfast_core::shedding::Usage;
use holdfast_routing::Successors;
use holdfast_rpc::{CallError, CellClient, FollowerClient, PROTOCOL, ProcessIdentity};
use holdfast_types::{HostId, Millis, NodeName, SessionId};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::alarm_index::IndexLanes;
use crate::answers::Answers;
use crate::authority::Authority;
use crate::cells::{CallOrders, Cells, Workers};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::dormant::Dormant;
use crate::local_files::LocalFiles;
use crate::memory::Memory;
use crate::node_log::NodeLog;
use crate::orphans::Orphans;
use crate::owners::Owners;
use crate::paged::Paging;
use crate::past::Replacements;
use crate::recovery::{Followers, Recoveries, RecoveryParts};
use crate::replication::DueCells;
use crate::retire::Retirements;
use crate::runtime::Classes;
use crate::{clock, open_files};

/// Compactions and snapshots at once: each holds up to 32 MiB.
const COMPACTIONS_MAX: usize = 2;
/// Uploads at once: enough to keep a store busy that takes 50 ms for each, few enough to keep leases served.
const UPLOADS_MAX: usize = 128;
/// This part of what may be retained may wait for its pace; beyond it uploads go at once.
const RETAINED_UPLOAD_SHARE: u64 = 4;

/// One session of one node.
#[derive(Debug)]
pub struct Node {
    /// What the operator set.
    pub config: Config,
    /// The node.
    pub name: NodeName,
    /// This life of it.
    pub session: SessionId,
    /// The bucket's handles.
    pub buckets: Buckets,
    /// Owner records.
    pub owners: Owners,
    /// Recovers the logs of dead sessions.
    pub recoveries: Recoveries,
    /// Until when the session may act.
    pub authority: Arc<Authority>,
    /// Local files.
    pub data_dir: DataDir,
    /// Those of cells that are not in memory.
    pub(crate) local_files: LocalFiles,
    /// What runs the cells.
    pub(crate) classes: Arc<dyn Classes>,
    /// The cells here.
    pub(crate) cells: Cells,
    /// In which order the calls of stubs begin.
    pub(crate) orders: Arc<CallOrders>,
    /// Cells that sleep: owned, and not in memory.
    pub(crate) dormant: Dormant,
    /// Those whose owner before ended without a release.
    pub(crate) orphans: Orphans,
    /// The threads that run them.
    pub(crate) workers: Workers,
    /// Where their uploads run.
    pub runtime: Handle,
    /// Bounds the restores at once.
    pub restores: Semaphore,
    /// States of the past that cells are to be opened with.
    pub(crate) replacements: Arc<Replacements>,
    /// Large cells that are not whole here.
    pub(crate) paging: Arc<Paging>,
    /// Bounds the compactions at once.
    pub compactions: Semaphore,
    /// Cells in memory at most: what the operator set, or what the process may open files for.
    cells_max: usize,
    /// The memory of the process.
    pub(crate) memory: Memory,
    /// Who gets the cells that are given up.
    pub(crate) successors: Successors,
    /// This session's node log.
    pub log: Arc<NodeLog>,
    /// Reaches followers.
    pub followers: FollowerClient,
    /// Bounds the uploads at once.
    pub uploads: Semaphore,
    /// Bounds the writes of the alarm index.
    pub(crate) index: IndexLanes,
    /// Uploads that wait for their time.
    pub(crate) due_uploads: DueCells,
    /// Histories that wait to be looked after.
    pub(crate) retirements: Retirements,
    /// When chains are shortened.
    pub triggers: CompactionTriggers,
    /// Bounds the memory of request bodies that are being received or wait for their cell, in KiB.
    pub bodies: Arc<Semaphore>,
    /// Answers that wait at gates, by their memory.
    pub(crate) answers: Arc<Answers>,
    /// Outputs that wait at gates.
    pub(crate) waiting: AtomicUsize,
    draining: AtomicBool,
    requests: AtomicUsize,
}

impl Node {
    /// Puts a node together. Nothing runs yet but the worker threads.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        (session, identity, host): (SessionId, ProcessIdentity, HostId),
        buckets: Buckets,
        data_dir: DataDir,
        classes: Arc<dyn Classes>,
    ) -> Arc<Self> {
        let client = CellClient::new(identity.clone());
        let successors = Successors::new(Arc::clone(&buckets.leases), client, PROTOCOL);
        let followers = FollowerClient::new(identity);
        let clock_skew_max_ms = clock::millis(config.max_clock_skew);
        let recoveries = Recoveries::new(RecoveryParts {
            claimant: session,
            claimant_node: Some(config.node.clone()),
            clock_skew_max_ms,
            records: Arc::clone(&buckets.records),
            leases: Arc::clone(&buckets.leases),
            bulk: Arc::clone(&buckets.bulk),
            witness: Arc::new(Followers::new(Arc::clone(&buckets.leases), followers.clone())),
            retry: config.recovery_retry,
        });
        let owners = Owners::new(Arc::clone(&buckets.records), Arc::clone(&buckets.leases))
            .recovering(recoveries.clone());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = config.threads.unwrap_or(processors).max(1);
        let log = NodeLogConfig {
            node: config.node.clone(),
            session,
            host,
            zone: config.zone.clone(),
            own_host_allowed: config.allow_own_host,
            clock_skew_max_ms,
        };
        let limits = RetentionLimits {
            upload_bytes: config.retained_max / RETAINED_UPLOAD_SHARE,
            hold_bytes: config.retained_max,
        };
        Arc::new(Self {
            successors,
            cells_max: cells_max(&config),
            memory: Memory::new(config.memory_max),
            log: Arc::new(NodeLog::new(log, limits)),
            followers,
            recoveries,
            uploads: Semaphore::new(UPLOADS_MAX),
            index: IndexLanes::default(),
            due_uploads: DueCells::default(),
            retirements: Retirements::default(),
            name: config.node.clone(),
            session,
            owners,
            buckets,
            authority: Arc::default(),
            local_files: LocalFiles::of(&data_dir, config.local_files_max),
            data_dir,
            classes,
            cells: Cells::default(),
            orders: Arc::default(),
            dormant: Dormant::default(),
            orphans: Orphans::default(),
            workers: Workers::start(threads, config.node.as_str(), &Handle::current()),
            runtime: Handle::current(),
            restores: Semaphore::new(config.restores_max.max(1)),
            replacements: Arc::default(),
            paging: Paging::new(config.paged_fill_rate),
            compactions: Semaphore::new(COMPACTIONS_MAX),
            triggers: CompactionTriggers::default(),
            bodies: Arc::new(Semaphore::new(config.bodies_max / 1024)),
            answers: Answers::new(config.answers_max),
            waiting: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            config,
        })
    }

    /// Refuses what only a session with authority may do.
    pub(crate) fn check_authority(&self) -> Result<(), CallError> {
        if self.authority.is_live() {
            return Ok(());
        }
        Err(CallError::Unavailable { reason: "the node has lost its lease".into() })
    }

    /// This session as a claimant.
    #[must_use]
    pub fn claimant(&self) -> Claimant {
        let skew = self.config.max_clock_skew.as_millis();
        Claimant {
            node: self.name.clone(),
            session: self.session,
            protocol: Protocol { min: PROTOCOL.min, max: PROTOCOL.max },
            clock_skew_max_ms: u64::try_from(skew).unwrap_or(u64::MAX),
        }
    }

    /// Whether the node takes no new ownership.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Takes no new ownership from now on. Tells whether this call began it.
    pub fn begin_draining(&self) -> bool {
        !self.draining.swap(true, Ordering::AcqRel)
    }

    /// Cells that it owns, resident or asleep; on its way out only those that are not given up yet: nothing of the others is here
    /// alone.
    #[must_use]
    pub(crate) fn owned(&self) -> u64 {
        let asleep = if self.is_draining() { 0 } else { self.dormant.len() };
        u64::try_from(self.cells.held() + asleep).unwrap_or(u64::MAX)
    }

    /// What is in memory, as measured last.
    #[must_use]
    pub(crate) fn usage(&self) -> Usage {
        let cells = u64::try_from(self.cells.len()).unwrap_or(u64::MAX);
        Usage { cells, memory: self.memory.used() }
    }

    /// What may be.
    #[must_use]
    pub(crate) fn caps(&self) -> Usage {
        let cells = u64::try_from(self.cells_max).unwrap_or(u64::MAX);
        Usage { cells, memory: self.memory.max }
    }

    /// When an output that is ready now gives up waiting for its proof.
    #[must_use]
    pub fn proof_deadline(&self) -> Millis {
        let patience = clock::millis(self.config.proof_timeout);
        clock::monotonic().plus(patience)
    }

    /// Requests in flight.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts a request in, unless the bound is reached.
    #[must_use]
    pub fn admit(self: &Arc<Self>) -> Option<Admission> {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        let admission = Admission(Arc::clone(self));
        (before < self.config.requests_max).then_some(admission)
    }
}

fn cells_max(config: &Config) -> usize {
    let of_files = open_files::cells_max();
    if of_files < config.cells_max {
        // Not a warning: the default of `--cells-max` is more than most machines allow, and the node keeps to what they do.
        tracing::info!(
            node = %config.node, cells_max = config.cells_max, of_files,
            "the process may open files for fewer cells than it may have in memory; raise its limit of open files (`ulimit -n`)"
        );
    }
    of_files.min(config.cells_max)
}

/// A request in flight, until dropped.
#[derive(Debug)]
pub struct Admission(Arc<Node>);

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}
