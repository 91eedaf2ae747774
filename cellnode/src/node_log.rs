//! This session's node log: gives frames their offsets, retains them until the bucket stores them, and executes the
//! core's [`ensemble::NodeLog`]. It decides nothing: whom to recruit, what is proved, what is bundled and what the record
//! says are the machine's. Keeps INV-LOG-3 by telling the machine only of frames that are in their cells' prefixes, and of
//! bundles that are in the bucket.

mod bundle;
mod link;
mod record;
mod retained;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use holdfast_bucket::Version;
use holdfast_core::ensemble::{
    self, EnsembleProof, MemberFailure, NodeLogConfig, NodeLogEffect, NodeLogEvent, Pressure, RetentionLimits,
};
use holdfast_core::gate::GateEvent;
use holdfast_core::log_record::MemberId;
use holdfast_records::{BUNDLE_BYTES_MAX, Bundle, BundleRow};
use holdfast_rpc::follower::LogFrame;
use holdfast_rpc::{Delivered, FollowerPeer};
use holdfast_sql::{Captured, CapturedBody};
use holdfast_telemetry::metrics;
use holdfast_types::{LogOffset, Txid, WriteId};
use tokio::sync::{Notify, mpsc, watch};

pub(crate) use self::bundle::BundledBody;
#[cfg(test)]
pub(crate) use self::bundle::StoredBundle;
use self::bundle::{KeptBundles, Making};
use self::link::{Command, Link};
use self::retained::Frames;
use crate::cells::Resident;
use crate::critical;
use crate::node::Node;
use crate::{clock, random};

/// How often the machine looks at its clocks.
const TICK: Duration = Duration::from_millis(50);
/// A transaction longer than this goes to the bucket alone: one message carries a frame whole, in bytes.
const FRAME_BYTES_MAX: u64 = 2 << 20;

/// The node log of one session.
pub struct NodeLog {
    state: Mutex<State>,
    limits: RetentionLimits,
    /// The next offset: links wait for it to grow.
    next: watch::Sender<LogOffset>,
    /// How long what is logged may wait for its upload, in times of the pace.
    rounds: AtomicU32,
    /// Bundles that are in the bucket and in memory.
    kept_bundles: KeptBundles,
    retained_bytes: AtomicU64,
    /// The followers' leases are being read: one read at a time.
    is_reading_followers: AtomicBool,
    node: OnceLock<Weak<Node>>,
    fenced: Notify,
    closed: watch::Sender<bool>,
}

struct State {
    machine: ensemble::NodeLog<Version>,
    frames: Frames,
    links: HashMap<MemberId, mpsc::UnboundedSender<Command>>,
    peers: HashMap<MemberId, FollowerPeer>,
    /// Fresh randomness for the next write of the record: most events write none, and asking for it is a system call.
    write_id: WriteId,
    /// The gates were told of the proofs of every frame below.
    told_below: LogOffset,
    /// The session is over: there are no links, and none begins.
    is_over: bool,
}

impl std::fmt::Debug for NodeLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeLog").finish_non_exhaustive()
    }
}

/// What remains to be done for an event once the lock is free.
#[derive(Default)]
struct Later {
    proved: Vec<(EnsembleProof, Arc<Resident>, LogOffset, Txid)>,
    calls: Vec<NodeLogEffect<Version>>,
    bundle: Option<Making>,
}

impl NodeLog {
    /// A log without a frame.
    #[must_use]
    pub fn new(config: NodeLogConfig, limits: RetentionLimits) -> Self {
        let machine = ensemble::NodeLog::new(config);
        let start = machine.start();
        Self {
            state: Mutex::new(State {
                told_below: start,
                machine,
                frames: Frames::new(),
                links: HashMap::new(),
                peers: HashMap::new(),
                write_id: random::write_id(),
                is_over: false,
            }),
            limits,
            next: watch::Sender::new(start),
            rounds: AtomicU32::new(0),
            kept_bundles: KeptBundles::default(),
            retained_bytes: AtomicU64::new(0),
            is_reading_followers: AtomicBool::new(false),
            node: OnceLock::new(),
            fenced: Notify::new(),
            closed: watch::Sender::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked here ends the process: a broken invariant of the log.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&self) -> Option<Arc<Node>> {
        self.node.get().and_then(Weak::upgrade)
    }

    /// Takes a transaction into the log; links are told by [`Self::announce`]. None when it must go to the bucket alone: no
    /// ensemble proves, or it is too long for a frame.
    pub(crate) fn append(&self, resident: &Arc<Resident>, captured: &Captured) -> Option<LogOffset> {
        let CapturedBody::Memory(body) = &captured.body else { return None };
        if captured.len > FRAME_BYTES_MAX {
            return None;
        }
        // None in a session whose log does not run.
        let node = self.node()?;
        let mut state = self.lock();
        let offset = state.machine.append(clock::monotonic())?;
        let (cell, epoch) = (resident.cell.clone(), resident.epoch);
        let frame = LogFrame::new(node.session, offset, cell, epoch, captured.txid, body.clone());
        state.frames.push(Arc::clone(resident), frame);
        self.retained_changed(&state);
        Some(offset)
    }

    /// Tells the links of what was appended: once for all frames that were made together, so that they leave together.
    pub(crate) fn announce(&self) {
        let next = self.lock().machine.next();
        // Two threads may come here in the other order.
        self.next.send_if_modified(|told| {
            let is_news = next > *told;
            *told = next.max(*told);
            is_news
        });
    }

    /// How many bytes are retained, where they are so many that writes must wait.
    pub(crate) fn is_full(&self) -> Option<u64> {
        let bytes = self.retained_bytes.load(Ordering::Relaxed);
        (self.limits.pressure(bytes) == Pressure::Hold).then_some(bytes)
    }

    /// How long what is logged may wait for its upload, in times of the pace.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Acquire)
    }

    /// These frames are in their cells' prefixes.
    pub(crate) fn covered(self: &Arc<Self>, offsets: &[LogOffset]) {
        if offsets.is_empty() {
            return;
        }
        let below = {
            let mut state = self.lock();
            for offset in offsets {
                state.frames.cover(*offset);
            }
            state.frames.covered_below()
        };
        self.on(NodeLogEvent::Covered { below });
    }

    fn retained_changed(&self, state: &State) {
        let bytes = state.frames.bytes();
        let before = self.retained_bytes.swap(bytes, Ordering::Relaxed);
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        metrics().log_retained_changed(signed(bytes) - signed(before));
        self.set_pace(state);
    }

    /// Tells every gate whether it may wait, where that has changed. Under the lock, so that the last word is the newest.
    fn set_pace(&self, state: &State) {
        let is_roomy = self.limits.pressure(state.frames.bytes()) == Pressure::None;
        let may_wait = is_roomy && state.machine.is_by_ensemble();
        let rounds = if may_wait { state.machine.rounds() } else { 0 };
        if self.rounds.swap(rounds, Ordering::AcqRel) != rounds
            && let Some(node) = self.node()
        {
            // On the runtime: this may be a cell's thread, in the middle of its capture.
            critical::spawn(&node.runtime.clone(), "pace", async move {
                for resident in node.cells.gated() {
                    resident.pace();
                }
            });
        }
    }

    /// Takes an event to the machine and does what it asks for.
    fn on(self: &Arc<Self>, event: NodeLogEvent<Version>) {
        let mut later = Later::default();
        {
            let mut state = self.lock();
            let write_id = state.write_id;
            let effects = state.machine.on(event, clock::monotonic(), write_id);
            if effects.iter().any(|effect| matches!(effect, NodeLogEffect::WriteRecord { .. })) {
                state.write_id = random::write_id();
            }
            for effect in effects {
                self.execute(&mut state, effect, &mut later);
            }
            let start = state.machine.start();
            if state.frames.start() < start {
                state.frames.drop_below(start);
                self.retained_changed(&state);
            }
        }
        for (proof, resident, offset, txid) in later.proved {
            resident.on(GateEvent::EnsembleProved { proof, offset, txid });
        }
        for call in later.calls {
            record::call(self, call);
        }
        match later.bundle {
            Some(making) if making.frames.is_empty() => self.on(NodeLogEvent::NothingToBundle),
            Some(making) => bundle::store(self, making),
            None => {}
        }
    }

    /// A round of uploads begins.
    fn round(self: &Arc<Self>) {
        let cells = self.lock().frames.dirty_cells();
        self.on(NodeLogEvent::Round { cells: u64::try_from(cells).unwrap_or(u64::MAX) });
    }

    /// Under the lock, so that each link gets its commands in the machine's order.
    fn execute(self: &Arc<Self>, state: &mut State, effect: NodeLogEffect<Version>, later: &mut Later) {
        match effect {
            NodeLogEffect::Adopt { member, log_epoch, start } => {
                self.command(state, &member, Command::Adopt { log_epoch, start });
            }
            NodeLogEffect::Stream { member, log_epoch, from } => {
                self.command(state, &member, Command::Stream { log_epoch, from });
            }
            NodeLogEffect::Close { member } => {
                state.links.remove(&member);
            }
            NodeLogEffect::Release { start } => {
                for link in state.links.values() {
                    // A link that has ended reports it by itself.
                    let _ = link.send(Command::Release { start });
                }
            }
            NodeLogEffect::Bundle { first, below } => later.bundle = Some(for_bundle(state, first, below)),
            NodeLogEffect::DeleteBundles { firsts } => bundle::delete(self, firsts),
            NodeLogEffect::Rounds { rounds } => {
                tracing::debug!(rounds, "cells' frames gather for so many rounds");
                self.set_pace(state);
            }
            NodeLogEffect::Proved(proof) => later.proved.extend(newly_proved(state, proof)),
            NodeLogEffect::Durability { by_ensemble } => self.durability(state, by_ensemble),
            NodeLogEffect::Active { log_epoch, members } => {
                metrics().log_ensemble(members.len());
                tracing::info!(%log_epoch, followers = names(&members), "an ensemble is active");
            }
            NodeLogEffect::Evicted { member, failure } => {
                tracing::warn!(follower = %member.follower, reason = failure.name(), "a follower was given up");
                metrics().log_eviction(failure.name());
            }
            NodeLogEffect::Fence => self.fenced.notify_one(),
            NodeLogEffect::Closed => {
                self.closed.send_replace(true);
            }
            call @ (NodeLogEffect::WriteRecord { .. }
            | NodeLogEffect::ReadRecord { .. }
            | NodeLogEffect::ReadFollowers) => later.calls.push(call),
        }
    }

    fn command(self: &Arc<Self>, state: &mut State, member: &MemberId, command: Command) {
        if let Some(link) = state.links.get(member)
            && link.send(command).is_ok()
        {
            return;
        }
        // Only an adoption begins a link; whatever else was meant for one that has ended.
        let (Command::Adopt { .. }, Some(node)) = (command, self.node()) else { return };
        if state.is_over {
            return;
        }
        let (commands, queue) = mpsc::unbounded_channel();
        // The queue is empty and its receiver here.
        let _ = commands.send(command);
        state.links.insert(member.clone(), commands);
        let peer = state.peers.get(member).cloned();
        let link = Link::new(Arc::clone(self), member.clone(), queue);
        let runtime = node.runtime.clone();
        // A cell's thread that has appended a frame and has nothing else to do sends it itself.
        runtime.spawn(Delivered::new(critical::guarded("link", link.run(node, peer))));
    }

    fn durability(&self, state: &State, by_ensemble: bool) {
        if by_ensemble {
            tracing::info!("writes are proved by followers");
        } else if self.node().is_none_or(|node| node.is_draining()) {
            tracing::debug!("the node log takes no more frames");
        } else {
            tracing::warn!("writes are proved by the bucket: no ensemble of followers answers");
        }
        metrics().log_by_ensemble(by_ensemble);
        self.set_pace(state);
    }

    fn failed(self: &Arc<Self>, member: &MemberId, failure: MemberFailure) {
        self.on(NodeLogEvent::MemberFailed { member: member.clone(), failure });
    }

    /// Recruits followers and keeps the log until the process ends. Resolves when the session must fence itself.
    pub(crate) async fn run(self: Arc<Self>, node: Weak<Node>) {
        let pace = node.upgrade().map_or(TICK, |node| node.config.upload_pace);
        assert!(self.node.set(node).is_ok(), "a log runs once");
        let mut rounds = tokio::time::interval(pace.max(TICK));
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = self.fenced.notified() => return,
                _ = rounds.tick() => self.round(),
                _ = ticks.tick() => self.on(NodeLogEvent::Tick),
            }
        }
    }

    /// Ends every link: the session is over, however it ended. The process may live on, with other nodes in it, and a
    /// follower that drains waits for the streams of all sessions.
    pub(crate) fn hang_up(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.links.clear();
    }

    /// Closes the log in order, once every frame is covered.
    pub(crate) async fn close(self: &Arc<Self>) {
        let mut closed = self.closed.subscribe();
        self.on(NodeLogEvent::Closing);
        // The sender is in `self`.
        let _ = closed.wait_for(|closed| *closed).await;
    }
}

fn names(members: &[MemberId]) -> String {
    let names: Vec<&str> = members.iter().map(|member| member.follower.as_str()).collect();
    names.join(",")
}

/// What a bundle of a range is made of: as much from its beginning on as one holds.
fn for_bundle(state: &State, first: LogOffset, below: LogOffset) -> Making {
    let mut making = Making { first, below, frames: Vec::new() };
    let mut room = BUNDLE_BYTES_MAX - Bundle::EMPTY_LEN;
    for retained in state.frames.lacking(first, below) {
        let len = BundleRow::len_of(&retained.frame.cell, retained.frame.body.len());
        let Some(left) = room.checked_sub(len) else {
            making.below = retained.frame.offset;
            break;
        };
        room = left;
        making.frames.push((Arc::clone(&retained.resident), retained.frame.clone()));
    }
    making
}

/// The frames that the proof covers and no gate was told of; of each cell in a row only the last.
fn newly_proved(
    state: &mut State,
    proof: EnsembleProof,
) -> Vec<(EnsembleProof, Arc<Resident>, LogOffset, Txid)> {
    let from = state.told_below.max(state.frames.start());
    state.told_below = proof.below();
    let mut told: Vec<(EnsembleProof, Arc<Resident>, LogOffset, Txid)> = Vec::new();
    let frames = state.frames.from(from).into_iter().flatten();
    for retained in frames.take_while(|retained| proof.covers(retained.frame.offset)) {
        let (offset, txid) = (retained.frame.offset, retained.frame.txid);
        match told.last_mut() {
            Some((_, resident, last_offset, last_txid)) if Arc::ptr_eq(resident, &retained.resident) => {
                (*last_offset, *last_txid) = (offset, txid);
            }
            _ => told.push((proof, Arc::clone(&retained.resident), offset, txid)),
        }
    }
    told
}
