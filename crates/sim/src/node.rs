//! A node as the product's shell drives it: it executes the core's effects and decides nothing. Its clocks may be wrong, its
//! process may be stopped or end at any step, its directory may stay or be lost.

mod activation;
mod alarm;
mod bundling;
mod claiming;
mod gathering;
mod intake;
mod leasing;
mod leaving;
mod links;
mod log;
mod plan;
mod purging;
mod recovering;
mod residency;
mod restore;
mod retiring;
mod serving;
mod settle;

use std::collections::BTreeMap;

use holdfast_core::alarm::{AlarmEvent, Orphan};
use holdfast_core::lease::LeaseKeeper;
use holdfast_core::ownership::{OwnerView, Protocol};
use holdfast_types::{AlarmId, Incarnation, Millis, NodeName, Position, SessionId, Txid};

pub(crate) use leaving::Closing;
pub(crate) use log::LogShell;
pub(crate) use plan::EpochPlan;
pub(crate) use recovering::{Asking, Recovering, RecoveryStep};
pub(crate) use residency::Residency;
pub(crate) use settle::Settle;

use crate::bucket::{Cell, OpId, Reply};
use crate::clock::NodeClock;
use crate::event::{Event, NodeEvent, Outcome, Request, Stay, Timer};
use crate::fault::wall_ahead;
use crate::follower::{FollowerPurpose, Told};
use crate::rng::Rng;
use crate::scenario::Plan;
use crate::violation::Violation;
use crate::world::World;

/// What every simulated session speaks.
pub(crate) const PROTOCOL: Protocol = Protocol { min: 1, max: 1 };

/// What a call is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Purpose {
    /// Its caller waits no more.
    Nobody,
    /// The lease's own read.
    LeaseRead,
    /// A write of the lease, or its read-back.
    LeaseSettle,
    /// A step of a cell's stay.
    Cell(Cell, Stay, Step),
    /// A write of the session's log record, or its read-back.
    LogSettle,
    /// The node log's own read of its record.
    LogRead,
    /// The followers' leases.
    FollowersRead,
    /// A bundle of the node log.
    Bundle,
    /// A step of a run of a dead session's recovery.
    Recovery(SessionId, u64, RecoveryStep),
    /// A sweep's read of all log records.
    SweepLogs,
    /// A sweep's read of the lease of a session's node, and the wall clock before it began.
    SweepLease(NodeName, SessionId, Millis),
    /// A follower's.
    Follower(FollowerPurpose),
}

/// A step of a cell's stay that waits for the store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The claim's read of the owner record.
    ClaimOwner,
    /// The claim's read of a lease.
    ClaimLease,
    /// A conditional write of the owner record, or its read-back.
    Settle,
    /// The read of one opener.
    Opener,
    /// The listing of an epoch.
    List,
    /// The read of the next key of level 0.
    Tail,
    /// The read of the chain's files.
    Files,
    /// The write of my epoch's opener.
    OpenEpoch,
    /// The upload of a transaction.
    Upload(Txid),
    /// The proof's read of the owner record.
    ProofOwner,
    /// A compaction or a snapshot up to a transaction.
    Compaction(Txid),
    /// The release's read of the owner record.
    ReleaseOwner,
    /// The listing of what a purge deletes.
    PurgeList,
    /// The deletion of some of it.
    PurgeDelete,
    /// A step of the retirement of history.
    Retire,
    /// The write of an alarm's wake entry.
    PutEntry(AlarmId),
    /// The read of the retired record.
    ReadRetired,
    /// Its conditional write.
    WriteRetired,
    /// The deletion of obsolete wake entries.
    DeleteEntries,
}

/// A database file in a node's directory whose content is exactly a position.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    /// The position.
    pub(crate) position: Position,
    /// The content.
    pub(crate) state: Vec<OpId>,
}

/// A cell that a process owns and let sleep.
#[derive(Clone, Debug)]
pub(crate) struct Asleep {
    /// The owner record, and its version.
    pub(crate) record: (OwnerView, u64),
    /// Where the local file was closed.
    pub(crate) slept: Position,
    /// Files that a restore would read.
    pub(crate) files: u64,
}

/// A node: a name, a directory, clocks, and at most one process.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: NodeName,
    pub(crate) incarnation: Incarnation,
    pub(crate) clock: NodeClock,
    pub(crate) disk: BTreeMap<Cell, LocalFile>,
    pub(crate) process: Option<Process>,
    pub(crate) is_paused: bool,
    pub(crate) is_pause_armed: bool,
    pub(crate) deferred: Vec<Event>,
}

/// One process life.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) session: SessionId,
    pub(crate) keeper: LeaseKeeper<u64>,
    pub(crate) lease_settle: Option<Settle>,
    pub(crate) authority_until: Millis,
    pub(crate) cells: BTreeMap<Cell, Slot>,
    pub(crate) asleep: BTreeMap<Cell, Asleep>,
    /// Cells whose owner before ended without a release, until it is settled what that says of their alarms.
    pub(crate) orphans: BTreeMap<Cell, Orphan>,
    pub(crate) is_draining: bool,
    /// From the first confirmation of the lease on.
    pub(crate) log: Option<LogShell>,
    /// By the dead session.
    pub(crate) recoveries: BTreeMap<SessionId, Recovering>,
    /// Questions to followers that have not been answered.
    pub(crate) asking: BTreeMap<u64, Asking>,
}

/// A cell's stay in a process.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) stay: Stay,
    pub(crate) phase: Phase,
    /// Requests that wait for the activation.
    pub(crate) queue: Vec<Request>,
}

/// Where a stay is.
#[derive(Debug)]
pub(crate) enum Phase {
    Claiming(claiming::Claiming),
    Restoring(Box<restore::Restoring>),
    Opening(activation::Opening),
    Serving(Box<Residency>),
    /// Given up; what the node log took of it goes on to the bucket.
    Settling(Box<Residency>),
    Releasing(leaving::Releasing),
    Purging(purging::Purging),
}

impl Node {
    /// A node that has not started.
    pub(crate) fn new(index: usize, plan: &Plan, rng: &mut Rng) -> Self {
        let number = if plan.has_twins && index == 1 { 0 } else { index };
        let drift_ppm = i64::try_from(rng.below(401)).expect("small") - 200;
        let wall_ahead_ms = wall_ahead(rng, plan.wall_off_ms_max);
        Self {
            name: NodeName::parse(&format!("n{number}")).expect("a valid name"),
            incarnation: Incarnation::from_bits(rng.wide_bits()),
            clock: NodeClock { wall_ahead_ms, drift_ppm, monotonic_start_ms: rng.within(1, 1_000_000) },
            disk: BTreeMap::new(),
            process: None,
            is_paused: false,
            is_pause_armed: false,
            deferred: Vec::new(),
        }
    }

    pub(crate) fn session(&self) -> Option<SessionId> {
        self.process.as_ref().map(|process| process.session)
    }
}

impl World {
    pub(crate) fn on_node_event(
        &mut self,
        index: usize,
        session: Option<SessionId>,
        event: NodeEvent,
    ) -> Result<(), Violation> {
        let node = &mut self.nodes[index];
        if node.is_paused {
            node.deferred.push(Event::Node(index, session, event));
            return Ok(());
        }
        if node.process.is_none() || session.is_some_and(|session| node.session() != Some(session)) {
            if let NodeEvent::Request(request) = event {
                // Connection refused: it never reached a handler.
                self.respond(request, Outcome::Refused);
            }
            return Ok(());
        }
        match event {
            NodeEvent::Answer { call, is_ambiguous } => self.on_answer(index, call, is_ambiguous)?,
            NodeEvent::GiveUp(call) => self.on_answer(index, call, true)?,
            NodeEvent::Timer(timer) => self.on_timer(index, timer)?,
            NodeEvent::Request(request) => self.on_request(index, request)?,
            NodeEvent::Proved(proof) => self.on_proved(index, proof)?,
            NodeEvent::Pace => self.on_pace(index)?,
            NodeEvent::Told(rpc, told) => self.on_told(index, rpc, told)?,
            NodeEvent::AskGiveUp(rpc) => self.on_told(index, rpc, Told::Unreachable)?,
        }
        if self.plan.step_crash_ppm > 0
            && self.quiescence.is_none()
            && self.rng.below(1_000_000) < self.plan.step_crash_ppm
        {
            self.trace.line(self.now, format_args!("n{index} dies"));
            self.crash(index);
        }
        Ok(())
    }

    fn on_answer(
        &mut self,
        index: usize,
        call: crate::event::CallId,
        is_failed: bool,
    ) -> Result<(), Violation> {
        let Some((purpose, reply)) = self.take_reply(call, is_failed) else { return Ok(()) };
        match purpose {
            Purpose::Nobody => Ok(()),
            Purpose::LeaseRead => self.on_lease_read(index, reply),
            Purpose::LeaseSettle => self.on_lease_settle(index, reply),
            Purpose::Cell(cell, stay, step) => {
                let Some(slot) = self.take_slot(index, cell, stay) else { return Ok(()) };
                self.on_step(index, cell, slot, step, reply)
            }
            Purpose::LogSettle => self.on_log_settle(index, reply),
            Purpose::LogRead => self.on_log_read(index, reply),
            Purpose::Bundle => self.on_bundle_reply(index, &reply),
            Purpose::FollowersRead => self.on_followers_read(index, reply),
            Purpose::Recovery(session, run, step) => {
                self.on_recovery_reply(index, (session, run, step), reply)
            }
            Purpose::SweepLogs => self.on_swept(index, reply),
            Purpose::SweepLease(node, session, asked_at) => {
                self.on_swept_lease(index, (node, session, asked_at), reply)
            }
            Purpose::Follower(_) => unreachable!("a follower's call"),
        }
    }

    fn on_step(
        &mut self,
        index: usize,
        cell: Cell,
        slot: Slot,
        step: Step,
        reply: Reply,
    ) -> Result<(), Violation> {
        match step {
            Step::ClaimOwner | Step::ClaimLease => self.on_claim_reply(index, cell, slot, reply),
            Step::Settle => self.on_owner_settle(index, cell, slot, reply),
            Step::Opener | Step::List | Step::Tail | Step::Files => {
                self.on_restore_reply(index, cell, slot, reply)
            }
            Step::OpenEpoch => self.on_epoch_opened(index, cell, slot, &reply),
            Step::Upload(txid) => self.on_upload_reply(index, cell, slot, txid, &reply),
            Step::ProofOwner => self.on_proof_reply(index, cell, slot, reply),
            Step::Compaction(max) => self.on_compaction_reply(index, cell, slot, max, &reply),
            Step::ReleaseOwner => self.on_release_reply(index, cell, slot, reply),
            Step::Retire => self.on_retire_reply(index, cell, slot, reply),
            Step::PurgeList | Step::PurgeDelete => self.on_purge_reply(index, cell, slot, reply),
            Step::PutEntry(_) | Step::ReadRetired | Step::WriteRetired | Step::DeleteEntries => {
                let stay = slot.stay;
                self.put_slot(index, cell, slot);
                self.on_alarm_reply(index, (cell, stay), &step, reply)
            }
        }
    }

    fn on_timer(&mut self, index: usize, timer: Timer) -> Result<(), Violation> {
        match timer {
            Timer::LeaseWake => self.wake_lease(index),
            Timer::AuthorityEnd => {
                let process = self.nodes[index].process.as_ref().expect("checked");
                let is_over = self.nodes[index].clock.read(self.now).monotonic >= process.authority_until;
                if is_over { self.wake_lease(index) } else { Ok(()) }
            }
            Timer::OutputDeadline(cell, stay) => {
                let Some(slot) = self.take_slot(index, cell, stay) else { return Ok(()) };
                self.on_output_deadline(index, cell, slot)
            }
            Timer::Retire(cell, stay) => self.on_retire_timer(index, cell, stay),
            Timer::Alarm(cell, stay) => self.alarm_event(index, cell, stay, AlarmEvent::Tick),
            Timer::AlarmRun(cell, stay, armed) => self.run_alarm(index, cell, stay, &armed),
            Timer::AlarmEnd(cell, stay, id) => self.on_alarm_end(index, cell, stay, id),
            Timer::LogTick => self.on_log_tick(index),
            Timer::LogRound => self.on_log_round(index),
            Timer::Sweep => self.on_sweep(index),
            Timer::DrainPatience => {
                let delay = self.rng.within(200, 2_000);
                self.end_process(index);
                self.after(delay, Event::Start(index));
                Ok(())
            }
        }
    }

    /// Takes a stay out of its process, to be put back or not.
    pub(crate) fn take_slot(&mut self, index: usize, cell: Cell, stay: Stay) -> Option<Slot> {
        let cells = &mut self.nodes[index].process.as_mut()?.cells;
        cells.get(&cell).is_some_and(|slot| slot.stay == stay).then(|| cells.remove(&cell)).flatten()
    }

    pub(crate) fn put_slot(&mut self, index: usize, cell: Cell, slot: Slot) {
        let process = self.nodes[index].process.as_mut().expect("a stay is put back into its process");
        let before = process.cells.insert(cell, slot);
        assert!(before.is_none(), "one stay of a cell at a time");
    }

    /// Ends a stay: what waits is answered, a drain may be done.
    pub(crate) fn drop_slot(&mut self, index: usize, slot: Slot, outcome: &Outcome) -> Result<(), Violation> {
        for request in slot.queue {
            self.respond(request, outcome.clone());
        }
        self.leave_when_drained(index)
    }

    pub(crate) fn start_timer(&mut self, index: usize, delay_ms: u64, timer: Timer) {
        let session = self.nodes[index].session();
        self.after(delay_ms, Event::Node(index, session, NodeEvent::Timer(timer)));
    }

    pub(crate) fn start_timer_at(&mut self, index: usize, monotonic: Millis, timer: Timer) {
        let at = self.nodes[index].clock.true_at(monotonic);
        self.start_timer(index, at.saturating_sub(self.now), timer);
    }

    /// Whether the process may act now, as the product's shell asks before each event.
    pub(crate) fn may_act(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        let process = node.process.as_ref().expect("asked of a process");
        process.keeper.is_held() && node.clock.read(self.now).monotonic < process.authority_until
    }

    /// The process is gone, its memory with it; the directory may hold the databases as they were.
    pub(crate) fn end_process(&mut self, index: usize) {
        let Some(process) = self.nodes[index].process.take() else { return };
        self.nodes[index].is_paused = false;
        self.nodes[index].is_pause_armed = false;
        self.nodes[index].deferred.clear();
        self.checkers.fence.on_stop(process.session);
        self.break_connections(|connection| {
            connection.node == index && connection.session == process.session
        });
        for (cell, slot) in process.cells {
            let local = match slot.phase {
                Phase::Serving(residency) => residency.into_local_file(),
                _ => None,
            };
            if let Some(local) = local.filter(|_| self.rng.chance(600)) {
                self.nodes[index].disk.insert(cell, local);
            }
        }
    }
}
