//! The world: true time, the queue of what happens, the store behind its weather, and everybody in it. It decides nothing
//! for a node; it carries calls and messages.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_types::{Epoch, SessionId};

use crate::alarms::AlarmWrites;
use crate::bucket::{Bucket, Cell, OpId, Operation, Reply};
use crate::checkers::Checkers;
use crate::client::Client;
use crate::event::{CallId, Event, NodeEvent, Outcome, Request};
use crate::follower::{Follower, FollowerInput};
use crate::forcing::Forcing;
use crate::network::Connection;
use crate::node::{Node, Purpose};
use crate::quiescence::Quiescence;
use crate::rng::Rng;
use crate::scenario::{Plan, Scenario};
use crate::tally::Tally;
use crate::trace::Trace;
use crate::violation::Violation;
use crate::waker::SimWaker;
use crate::weather::{Answered, Weather};

/// Events after which a run is taken for a livelock.
const EVENTS_MAX: u64 = 3_000_000;

/// A call under way.
#[derive(Clone, Debug)]
struct Call {
    purpose: Purpose,
    operation: Operation,
    reply: Option<Reply>,
}

/// What comes back of a call.
enum Returned {
    Answer { call: CallId, is_ambiguous: bool },
    GiveUp(CallId),
}

/// Everything.
#[derive(Debug)]
pub struct World {
    pub(crate) rng: Rng,
    /// True time, in milliseconds.
    pub(crate) now: u64,
    pub(crate) plan: Plan,
    pub(crate) weather: Weather,
    pub(crate) outage_until: u64,
    pub(crate) bucket: Bucket,
    pub(crate) nodes: Vec<Node>,
    pub(crate) followers: Vec<Follower>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) clients: Vec<Client>,
    pub(crate) checkers: Checkers,
    pub(crate) alarm_writes: AlarmWrites,
    pub(crate) wakers: Vec<SimWaker>,
    /// Forced purges under way.
    pub(crate) forcing: BTreeMap<Cell, Forcing>,
    /// When a cell had its first owner record.
    pub(crate) claimed_first: BTreeMap<Cell, u64>,
    /// Cells whose owner record was harmed.
    pub(crate) harmed: BTreeSet<Cell>,
    pub(crate) trace: Trace,
    pub(crate) quiescence: Option<Quiescence>,
    pub(crate) tally: Tally,
    queue: BTreeMap<(u64, u64, u64), Event>,
    calls: BTreeMap<CallId, Call>,
    names_given: u64,
    ops_given: u32,
    events: u64,
}

impl World {
    /// The world of a seed, with everything about to start.
    #[must_use]
    pub fn new(seed: u64, scenario: Scenario, prints: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(scenario, &mut rng);
        let nodes = (0..plan.nodes).map(|index| Node::new(index, &plan, &mut rng)).collect();
        let followers = (0..plan.followers).map(|index| Follower::new(index, &plan, &mut rng)).collect();
        let clients = (0..plan.clients).map(|_| Client::default()).collect();
        let wakers = if plan.has_alarms { SimWaker::all(&mut rng) } else { Vec::new() };
        let mut world = Self {
            rng,
            now: 0,
            weather: plan.weather,
            plan,
            outage_until: 0,
            bucket: Bucket::default(),
            nodes,
            followers,
            connections: BTreeMap::new(),
            clients,
            checkers: Checkers::default(),
            alarm_writes: AlarmWrites::default(),
            wakers,
            forcing: BTreeMap::new(),
            claimed_first: BTreeMap::new(),
            harmed: BTreeSet::new(),
            trace: Trace::new(prints),
            quiescence: None,
            tally: Tally::default(),
            queue: BTreeMap::new(),
            calls: BTreeMap::new(),
            names_given: 0,
            ops_given: 0,
            events: 0,
        };
        world.trace.line(0, format_args!("{:?}", world.plan));
        for index in 0..world.nodes.len() {
            let delay = world.rng.below(300);
            world.after(delay, Event::Start(index));
        }
        for index in 0..world.followers.len() {
            let delay = world.rng.below(300);
            world.after(delay, Event::StartFollower(index));
        }
        for index in 0..world.clients.len() {
            let delay = world.rng.within(200, 1_500);
            world.after(delay, Event::Think(index));
        }
        world.after(2_000, Event::Fault);
        if world.plan.has_alarms {
            world.start_wakers();
        }
        let until = world.plan.faults_until_ms;
        world.after(until, Event::FaultsEnd);
        world
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// The first violation.
    pub fn run(&mut self) -> Result<(), Violation> {
        while let Some(((at, ..), event)) = self.queue.pop_first() {
            assert!(at >= self.now, "time goes forward");
            self.now = at;
            self.events += 1;
            if self.events > EVENTS_MAX {
                return Err(Violation::new("LIVENESS", format_args!("{EVENTS_MAX} events and no end")));
            }
            self.happen(event)?;
            if self.quiescence.as_ref().is_some_and(|quiescence| quiescence.is_over(self.now)) {
                return Ok(());
            }
        }
        Err(Violation::new("LIVENESS", format_args!("nothing left to happen")))
    }

    /// Events so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Apply(call) => self.on_apply(call),
            Event::Node(index, session, event) => self.on_node_event(index, session, event),
            Event::Follower(index, life, input) => self.on_follower_input(index, life, input),
            Event::Deliver(link, way) => self.on_deliver(link, way),
            Event::StartFollower(index) => self.on_follower_start(index),
            Event::ContinueFollower(index) => {
                self.on_follower_continue(index);
                Ok(())
            }
            Event::Response(request, outcome) => self.on_response(&request, outcome),
            Event::Think(client) => {
                self.on_think(client);
                Ok(())
            }
            Event::Impatience(client, request) => {
                self.on_impatience(client, request);
                Ok(())
            }
            Event::Fault => self.on_fault(),
            Event::Continue(index) => {
                self.on_continue(index);
                Ok(())
            }
            Event::Start(index) => self.on_start(index),
            Event::FaultsEnd => self.on_faults_end(),
            Event::Probe => self.on_probe(),
            Event::Forcing(cell, run, input) => self.on_forcing(cell, run, input),
            Event::Waker(index, life, input) => self.on_waker(index, life, input),
        }
    }

    /// Has something happen after a span of true time; ties are broken by the seed.
    pub(crate) fn after(&mut self, delay_ms: u64, event: Event) {
        let at = self.now + delay_ms;
        let tie = self.rng.bits();
        let serial = self.name();
        self.queue.insert((at, tie, serial), event);
    }

    /// A number never given before.
    pub(crate) fn name(&mut self) -> u64 {
        self.names_given += 1;
        self.names_given
    }

    /// A write's id, never given before.
    pub(crate) fn new_op(&mut self) -> OpId {
        self.ops_given += 1;
        OpId(self.ops_given)
    }

    /// Sends a call of the process on a node, after a pause, with a limit for its answer.
    pub(crate) fn call(
        &mut self,
        index: usize,
        purpose: Purpose,
        operation: Operation,
        (pause_ms, patience_ms): (u64, u64),
    ) -> Result<(), Violation> {
        let session = self.nodes[index].session().expect("only a process calls");
        self.checkers.fence.on_call(session)?;
        let wrap = move |event| {
            let event = match event {
                Returned::Answer { call, is_ambiguous } => NodeEvent::Answer { call, is_ambiguous },
                Returned::GiveUp(call) => NodeEvent::GiveUp(call),
            };
            Event::Node(index, Some(session), event)
        };
        self.send_call(format_args!("n{index}"), purpose, operation, (pause_ms, patience_ms), wrap);
        Ok(())
    }

    /// Sends a call of a follower's process.
    pub(crate) fn follower_call(
        &mut self,
        index: usize,
        purpose: Purpose,
        operation: Operation,
        times: (u64, u64),
    ) {
        let life = self.followers[index].life();
        let wrap = move |event| {
            let input = match event {
                Returned::Answer { call, is_ambiguous } => FollowerInput::Answer { call, is_ambiguous },
                Returned::GiveUp(call) => FollowerInput::GiveUp(call),
            };
            Event::Follower(index, life, input)
        };
        self.send_call(format_args!("f{index}"), purpose, operation, times, wrap);
    }

    fn send_call(
        &mut self,
        caller: std::fmt::Arguments<'_>,
        purpose: Purpose,
        operation: Operation,
        (pause_ms, patience_ms): (u64, u64),
        wrap: impl Fn(Returned) -> Event,
    ) {
        let id = CallId(self.name());
        let outage = self.outage_until.saturating_sub(self.now + pause_ms);
        let fate = self.weather.fate(&mut self.rng, outage);
        self.trace.line(self.now, format_args!("{caller} calls {} {operation:?} {fate:?}", id.0));
        if let Some(after) = fate.applied_after_ms {
            self.after(pause_ms + after, Event::Apply(id));
        }
        if let Some((after, answered)) = fate.answered_after_ms {
            let is_ambiguous = answered == Answered::Ambiguously;
            self.after(pause_ms + after, wrap(Returned::Answer { call: id, is_ambiguous }));
        }
        self.after(pause_ms + patience_ms, wrap(Returned::GiveUp(id)));
        self.calls.insert(id, Call { purpose, operation, reply: None });
    }

    fn on_apply(&mut self, id: CallId) -> Result<(), Violation> {
        let operation = self.calls[&id].operation.clone();
        let stale = self.rng.below(self.weather.list_stale_ms_max + 1);
        if let Operation::Delete(keys) = &operation {
            self.checkers.retirement.before_deletion(&self.bucket, keys);
            self.checkers.past.before_deletion(&self.bucket, keys, &self.checkers.chain)?;
        }
        let (reply, change) = self.bucket.apply(&operation, self.now, stale);
        self.trace.line(self.now, format_args!("store applies {}: {reply:?}", id.0));
        self.calls.get_mut(&id).expect("the call is known").reply = Some(reply);
        if let Operation::Delete(keys) = &operation {
            self.observe_deleted(keys)?;
            self.checkers.retirement.after_deletion(&self.bucket)?;
            self.checkers.past.after_deletion(&self.bucket)?;
        }
        change.map_or(Ok(()), |change| self.observe(&change))
    }

    /// The purpose and the reply of a call that its caller still waits for.
    pub(crate) fn take_reply(&mut self, id: CallId, is_failed: bool) -> Option<(Purpose, Reply)> {
        let call = self.calls.get_mut(&id)?;
        let purpose = std::mem::replace(&mut call.purpose, Purpose::Nobody);
        if purpose == Purpose::Nobody {
            return None;
        }
        let reply =
            if is_failed { Reply::Failed } else { call.reply.take().expect("answers follow applies") };
        Some((purpose, reply))
    }

    /// Sends a response on its way.
    pub(crate) fn respond(&mut self, request: Request, outcome: Outcome) {
        if self.rng.chance(self.weather.message_lost) {
            return;
        }
        let delay = self.rng.within(1, 5);
        self.after(delay, Event::Response(request, outcome));
    }

    /// Whether a session's process lives and may act now, by its own clock.
    pub(crate) fn has_authority(&self, session: SessionId) -> bool {
        let node = self.nodes.iter().find(|node| node.session() == Some(session));
        node.is_some_and(|node| {
            self.checkers.fence.has_authority(session, node.clock.read(self.now).monotonic)
        })
    }

    /// The epoch of a cell's owner record now; for checkers.
    pub(crate) fn epoch_now(&self, cell: Cell) -> Epoch {
        match self.bucket.peek(&crate::bucket::Key::Owner(cell)) {
            Some(crate::bucket::Body::Owner(owner)) => owner.epoch,
            _ => Epoch::ZERO,
        }
    }
}
