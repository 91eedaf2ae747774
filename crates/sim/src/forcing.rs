//! A person who purges a cell by force, since its owner record is gone or cannot be read: the real machine of the core, on a
//! clock of its own, with the store's and the network's weather. It is tried again until the cell is purged.

use holdfast_core::log_record::LogState;
use holdfast_core::ownership::{
    Claimant, ForcedPurge, ForcedPurgeEffect, ForcedPurgeEvent, ForcedPurgeOutcome, LeaseView, OwnerView,
    Sighting,
};
use holdfast_core::store::{Answer, Guard};
use holdfast_types::{Epoch, Millis, NodeName, SessionId, WriteId};

use crate::bucket::{Body, Cell, Key, Operation, Reply};
use crate::clock::NodeClock;
use crate::event::{Ask, Asker, Event, NodeEvent, Outcome, Request};
use crate::fault::wall_ahead;
use crate::node::PROTOCOL;
use crate::scenario::CLOCK_SKEW_MAX_MS;
use crate::violation::Violation;
use crate::world::World;

/// How often a session is asked.
const ASKED_MAX: u32 = 4;
/// Between two times.
const ASKED_AGAIN_MS: u64 = 400;
/// One that did not answer by then does not.
const PATIENCE_MS: u64 = 3_000;
/// A first claim is sent again for 6 s, and lands 8 s later at most.
const SETTLED_AFTER_MS: u64 = 15_000;
/// Longest time between the harm and somebody's notice, and between two attempts.
const NOTICE_MS_MAX: u64 = 6_000;

/// A forced purge under way.
#[derive(Debug)]
pub(crate) struct Forcing {
    machine: ForcedPurge<u64>,
    clock: NodeClock,
    /// Its process; what belongs to an earlier one is dropped.
    run: u64,
    asking: Option<Asking>,
}

/// A session that is asked to let the cell go.
#[derive(Clone, Debug)]
struct Asking {
    node: NodeName,
    session: SessionId,
    request: u64,
    times: u32,
}

/// What happens to a forced purge.
#[derive(Clone, Debug)]
pub(crate) enum ForcingInput {
    /// Somebody begins one.
    Begin,
    /// The store does what it asked for at this wall clock.
    Do(ForcedPurgeEffect<u64>, Millis),
    /// It is told what became of that.
    Told(ForcedPurgeEvent<u64>),
    /// The session is asked once more, unless it was since this request.
    AskAgain(u64),
    /// A session did not answer this request in time.
    AskOver(u64),
    /// A write lands of which nobody knows.
    Land(OwnerView, Guard<u64>),
}

impl World {
    /// The owner record of a cell is gone, or what is there is none. Gone it is but once for each cell, when the claims that
    /// took the cell for new have landed or never will, and where there is history: else nothing tells the cell from one
    /// that never was, and a late claim makes it one.
    pub(crate) fn harm_owner_record(&mut self, cell: Cell) {
        let key = Key::Owner(cell);
        if !matches!(self.bucket.peek(&key), Some(Body::Owner(_))) {
            return;
        }
        let is_settled = self.now > self.claimed_first[&cell] + SETTLED_AFTER_MS;
        let is_gone = is_settled && self.newest_of_history(cell).is_some() && self.rng.chance(600);
        if !self.harmed.insert(cell) {
            return;
        }
        self.trace.line(self.now, format_args!("the owner record of {cell:?} is harmed, gone: {is_gone}"));
        let harm = if is_gone { Operation::Delete(vec![key]) } else { Operation::Put(key, Body::Unreadable) };
        self.bucket.apply(&harm, self.now, 0);
        self.begin_forcing_later(cell);
    }

    fn begin_forcing_later(&mut self, cell: Cell) {
        let delay = self.rng.below(NOTICE_MS_MAX);
        self.after(delay, Event::Forcing(cell, 0, ForcingInput::Begin));
    }

    pub(crate) fn on_forcing(&mut self, cell: Cell, run: u64, input: ForcingInput) -> Result<(), Violation> {
        match input {
            ForcingInput::Begin => {
                self.begin_forcing(cell);
                return Ok(());
            }
            ForcingInput::Land(owner, guard) => return self.apply_forced(cell, owner, guard).map(|_| ()),
            _ => {}
        }
        if self.forcing.get(&cell).is_none_or(|forcing| forcing.run != run) {
            return Ok(());
        }
        match input {
            ForcingInput::Begin | ForcingInput::Land(..) => unreachable!("as above"),
            ForcingInput::Do(effect, asked_at) => self.store_does_forced(cell, effect, asked_at),
            ForcingInput::Told(event) => self.tell_forcing(cell, event),
            ForcingInput::AskAgain(last) => {
                let asking = self.forcing.get(&cell).and_then(|forcing| forcing.asking.as_ref());
                if asking.is_some_and(|asking| asking.request == last) {
                    self.ask_to_let_go(cell);
                }
                Ok(())
            }
            ForcingInput::AskOver(request) => self.on_let_go(cell, request, false),
        }
    }

    fn begin_forcing(&mut self, cell: Cell) {
        let me = Claimant {
            node: NodeName::parse("operator").expect("a valid name"),
            session: SessionId::from_bits(self.rng.wide_bits()),
            protocol: PROTOCOL,
            clock_skew_max_ms: CLOCK_SKEW_MAX_MS,
        };
        let (machine, effect) = ForcedPurge::start(me, WriteId::from_bits(self.rng.wide_bits()));
        let wall_ahead_ms = wall_ahead(&mut self.rng, self.plan.wall_off_ms_max);
        let clock = NodeClock { wall_ahead_ms, drift_ppm: 0, monotonic_start_ms: 0 };
        let run = self.name();
        self.forcing.insert(cell, Forcing { machine, clock, run, asking: None });
        self.forced_effect(cell, effect);
    }

    fn tell_forcing(&mut self, cell: Cell, event: ForcedPurgeEvent<u64>) -> Result<(), Violation> {
        let forcing = self.forcing.get_mut(&cell).expect("a forced purge is under way");
        let effect = forcing.machine.on(event);
        let ForcedPurgeEffect::Finish(outcome) = effect else {
            self.forced_effect(cell, effect);
            return Ok(());
        };
        self.trace.line(self.now, format_args!("the forced purge of {cell:?}: {outcome:?}"));
        self.forcing.remove(&cell);
        match outcome {
            ForcedPurgeOutcome::Purged(epoch) => self.delete_purged(cell, epoch),
            ForcedPurgeOutcome::Readable | ForcedPurgeOutcome::NothingToPurge => Ok(()),
            ForcedPurgeOutcome::Failed(_) => {
                self.begin_forcing_later(cell);
                Ok(())
            }
        }
    }

    fn forced_effect(&mut self, cell: Cell, effect: ForcedPurgeEffect<u64>) {
        self.trace.line(self.now, format_args!("forced purge of {cell:?}: {effect:?}"));
        let forcing = self.forcing.get_mut(&cell).expect("a forced purge is under way");
        if let ForcedPurgeEffect::AskToLetGo { node, session } = effect {
            forcing.asking = Some(Asking { node, session, request: 0, times: 0 });
            return self.ask_to_let_go(cell);
        }
        let (run, asked_at) = (forcing.run, forcing.clock.read(self.now).wall);
        let delay = self.rng.within(1, 60);
        self.after(delay, Event::Forcing(cell, run, ForcingInput::Do(effect, asked_at)));
    }

    fn tell_forcing_later(&mut self, cell: Cell, event: ForcedPurgeEvent<u64>) {
        let run = self.forcing[&cell].run;
        let delay = self.rng.within(1, 60);
        self.after(delay, Event::Forcing(cell, run, ForcingInput::Told(event)));
    }

    fn store_does_forced(
        &mut self,
        cell: Cell,
        effect: ForcedPurgeEffect<u64>,
        wall_now: Millis,
    ) -> Result<(), Violation> {
        let event = match effect {
            ForcedPurgeEffect::WriteOwner { owner, guard } => self.write_forced(cell, owner, guard)?,
            _ if self.quiescence.is_none() && self.rng.chance(50) => ForcedPurgeEvent::ReadFailed,
            ForcedPurgeEffect::LookAtOwner => ForcedPurgeEvent::Seen(self.sight_owner(cell)),
            ForcedPurgeEffect::ReadLeases => ForcedPurgeEvent::LeasesRead { leases: self.leases(), wall_now },
            ForcedPurgeEffect::ReadLogs => ForcedPurgeEvent::LogsRead { unsealed: self.open_logs() },
            ForcedPurgeEffect::ListHistory => self.history_of(cell),
            ForcedPurgeEffect::AskToLetGo { .. } | ForcedPurgeEffect::Finish(_) => {
                unreachable!("the store is not asked: {effect:?}")
            }
        };
        self.tell_forcing_later(cell, event);
        Ok(())
    }

    fn sight_owner(&mut self, cell: Cell) -> Sighting<u64> {
        match self.bucket.apply(&Operation::Get(Key::Owner(cell)), self.now, 0).0 {
            Reply::Object(None) => Sighting::Missing,
            Reply::Object(Some((Body::Owner(owner), version))) => Sighting::Readable { owner, version },
            Reply::Object(Some((_, version))) => Sighting::Unreadable { version },
            reply => unreachable!("{reply:?} does not answer a read"),
        }
    }

    fn leases(&self) -> Vec<(NodeName, Option<LeaseView>)> {
        let leases = self.bucket.objects().filter_map(|(key, body)| match (key, body) {
            (Key::Lease(node), Body::Lease(lease, protocol)) => {
                let view =
                    LeaseView { session: lease.session, expires_ms: lease.expires_ms, protocol: *protocol };
                Some((node.clone(), Some(view)))
            }
            _ => None,
        });
        leases.collect()
    }

    fn open_logs(&self) -> Vec<(NodeName, SessionId)> {
        let logs = self.bucket.objects().filter_map(|(key, body)| match (key, body) {
            (Key::Log(node, session), Body::Log(record)) if record.state != LogState::Sealed => {
                Some((node.clone(), *session))
            }
            _ => None,
        });
        logs.collect()
    }

    fn history_of(&self, cell: Cell) -> ForcedPurgeEvent<u64> {
        let newest = self.newest_of_history(cell);
        ForcedPurgeEvent::HistorySeen { newest, is_there: newest.is_some() }
    }

    /// The newest epoch that has an object of the cell.
    pub(crate) fn newest_of_history(&self, cell: Cell) -> Option<Epoch> {
        let epochs = self.bucket.objects().filter_map(|(key, _)| match key {
            Key::Opener(of, epoch) | Key::File(of, epoch, ..) if *of == cell => Some(*epoch),
            _ => None,
        });
        epochs.max()
    }

    /// The write lands and is answered; or nobody knows, and it has landed, does so later, or never.
    fn write_forced(
        &mut self,
        cell: Cell,
        owner: OwnerView,
        guard: Guard<u64>,
    ) -> Result<ForcedPurgeEvent<u64>, Violation> {
        let is_known = self.quiescence.is_some() || !self.rng.chance(300);
        if is_known {
            return self.apply_forced(cell, owner, guard).map(ForcedPurgeEvent::Answered);
        }
        match self.rng.below(3) {
            0 => {
                self.apply_forced(cell, owner, guard)?;
            }
            1 => {
                let delay = self.rng.within(1, self.weather.late_ms_max);
                self.after(delay, Event::Forcing(cell, 0, ForcingInput::Land(owner, guard)));
            }
            _ => {}
        }
        Ok(ForcedPurgeEvent::Answered(Answer::Unknown))
    }

    fn apply_forced(
        &mut self,
        cell: Cell,
        owner: OwnerView,
        guard: Guard<u64>,
    ) -> Result<Answer<u64>, Violation> {
        let write = Operation::PutIf(Key::Owner(cell), Body::Owner(owner), guard);
        let (reply, change) = self.bucket.apply(&write, self.now, 0);
        self.trace.line(self.now, format_args!("store applies {write:?}: {reply:?}"));
        if let Some(change) = &change {
            self.tally.forced += 1;
            self.observe(change)?;
        }
        Ok(match reply {
            Reply::Applied(version) => Answer::Applied(version),
            _ => Answer::Rejected,
        })
    }

    /// Everything below the purge's epoch is deleted, now or by somebody later.
    fn delete_purged(&mut self, cell: Cell, epoch: Epoch) -> Result<(), Violation> {
        if self.rng.chance(300) {
            return Ok(());
        }
        let list = Operation::ListBelow(cell, epoch);
        let Reply::Keys(keys) = self.bucket.apply(&list, self.now, 0).0 else {
            unreachable!("a listing has keys")
        };
        self.bucket.apply(&Operation::Delete(keys.clone()), self.now, 0);
        self.observe_deleted(&keys)
    }

    fn ask_to_let_go(&mut self, cell: Cell) {
        let id = self.name();
        let forcing = self.forcing.get_mut(&cell).expect("a forced purge is under way");
        let asking = forcing.asking.as_mut().expect("a session is asked");
        (asking.request, asking.times) = (id, asking.times + 1);
        let (run, session) = (forcing.run, asking.session);
        let index =
            self.nodes.iter().position(|node| node.name == asking.node && node.session() == Some(session));
        let request = Request { id, asker: Asker::Forcer, cell, ask: Ask::LetGo, began_ms: self.now };
        self.trace.line(self.now, format_args!("{request:?} to {session}"));
        self.after(PATIENCE_MS, Event::Forcing(cell, run, ForcingInput::AskOver(id)));
        if let Some(index) = index.filter(|_| !self.rng.chance(self.weather.message_lost)) {
            let delay = self.rng.within(1, 5);
            self.after(delay, Event::Node(index, Some(session), NodeEvent::Request(request)));
        }
    }

    pub(crate) fn on_forcer_response(
        &mut self,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), Violation> {
        self.on_let_go(request.cell, request.id, matches!(outcome, Outcome::LetGo))
    }

    fn on_let_go(&mut self, cell: Cell, request: u64, has_let_go: bool) -> Result<(), Violation> {
        let Some(forcing) = self.forcing.get_mut(&cell) else { return Ok(()) };
        let Some(asking) = forcing.asking.as_ref().filter(|asking| asking.request == request) else {
            return Ok(());
        };
        if !has_let_go && asking.times < ASKED_MAX {
            let run = forcing.run;
            self.after(ASKED_AGAIN_MS, Event::Forcing(cell, run, ForcingInput::AskAgain(request)));
            return Ok(());
        }
        forcing.asking = None;
        self.tell_forcing(cell, if has_let_go { ForcedPurgeEvent::LetGo } else { ForcedPurgeEvent::NotLetGo })
    }
}
