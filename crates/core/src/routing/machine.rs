//! The machine. Every path ends in an answer or a failure by the request's deadline: a pause that would reach past it is
//! the failure that it was for.

use alloc::vec::Vec;
use core::fmt::Debug;

use holdfast_types::{CellName, Epoch, Millis, NodeName, SessionId};

use super::{Effect, Event, Failure, LeaseView, NodeView, Outcome, OwnerView, Refusal, Route, Timing};
use crate::placement::{Candidate, place};

/// Longest pause while an ownership moves in order, which takes milliseconds: the cell is without service meanwhile.
const MOVING_PAUSE_MS_MAX: u64 = 40;

/// One request on its way. `A` is an address, which this crate does not look into.
#[derive(Clone, Debug)]
pub struct Routing<A> {
    cell: CellName,
    timing: Timing,
    state: State<A>,
    /// Nodes that refused or could not be reached; placed elsewhere while there is an elsewhere.
    avoided: Vec<NodeName>,
    /// Whether this request was turned away before.
    is_turned_away: bool,
    /// Pauses so far.
    pauses: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State<A> {
    /// Waits for the cache.
    New,
    /// Waits for a fresh lease of a remembered route.
    Refreshing(Route<A>),
    /// Waits for the owner record.
    Asking,
    /// Waits for the lease of the owner that the record names.
    Checking { session: SessionId, epoch: Epoch },
    /// Waits for the list of nodes; the node that owned the cell last is preferred when it is back.
    Placing { last: Option<NodeName> },
    /// The request is out.
    Sent(Sent<A>),
    /// The request is out, and the owner's lease is being read.
    Watching(Sent<A>),
    /// Nothing is out; asks again when the pause is over.
    Paused,
    /// Over.
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent<A> {
    route: Route<A>,
    /// From the cache: the first failure may only mean that the cache was old.
    from_cache: bool,
}

impl<A: Clone + Debug> Routing<A> {
    /// A request that has just arrived.
    #[must_use]
    pub fn new(cell: CellName, timing: Timing) -> Self {
        Self { cell, timing, state: State::New, avoided: Vec::new(), is_turned_away: false, pauses: 0 }
    }

    /// Takes an event and says what to do.
    ///
    /// # Panics
    /// When the event answers no effect that is open: a bug of the shell.
    pub fn on(&mut self, event: Event<A>) -> Effect<A> {
        let state = core::mem::replace(&mut self.state, State::Done);
        match (state, event) {
            (State::New, Event::Cached { route, now_ms }) => self.start(route, now_ms),
            (State::Refreshing(route), Event::LeaseRead { lease, now_ms }) => {
                self.refresh(route, lease, now_ms)
            }
            (State::Asking, Event::OwnerRead { owner, now_ms }) => self.owner_read(owner, now_ms),
            (State::Checking { session, epoch }, Event::LeaseRead { lease, now_ms }) => {
                self.owner_checked(session, epoch, lease, now_ms)
            }
            (State::Placing { last }, Event::NodesListed { nodes, now_ms }) => {
                self.place(last.as_ref(), nodes, now_ms)
            }
            (State::Sent(sent) | State::Watching(sent), Event::Forwarded { outcome, now_ms }) => {
                self.forwarded(sent, outcome, now_ms)
            }
            (State::Sent(sent), Event::TimeReached { now_ms: _ }) => {
                let node = sent.route.node.clone();
                self.state = State::Watching(sent);
                Effect::ReadLease(node)
            }
            (State::Watching(sent), Event::LeaseRead { lease, now_ms }) => self.watched(sent, lease, now_ms),
            (State::Paused, Event::TimeReached { now_ms: _ }) => self.ask(),
            (state, event) => panic!("{event:?} answers nothing in {state:?}"),
        }
    }

    fn start(&mut self, route: Option<Route<A>>, now_ms: Millis) -> Effect<A> {
        match route {
            Some(route) if now_ms < route.expires_ms => self.send(route, true, false),
            // The session may have renewed: its lease alone tells, one read for all its cells.
            Some(route) => {
                let node = route.node.clone();
                self.state = State::Refreshing(route);
                Effect::ReadLease(node)
            }
            None => self.ask(),
        }
    }

    fn refresh(&mut self, route: Route<A>, lease: LeaseView<A>, now_ms: Millis) -> Effect<A> {
        match lease {
            LeaseView::Found(node) if node.session == route.session && now_ms < node.expires_ms => {
                let route = Route { address: node.address, expires_ms: node.expires_ms, ..route };
                self.send(route, true, false)
            }
            LeaseView::Found(_) | LeaseView::Absent | LeaseView::Unreadable => self.ask(),
        }
    }

    fn ask(&mut self) -> Effect<A> {
        self.state = State::Asking;
        Effect::ReadOwner
    }

    fn owner_read(&mut self, owner: OwnerView, now_ms: Millis) -> Effect<A> {
        match owner {
            OwnerView::Owned { node, session, epoch } => {
                self.state = State::Checking { session, epoch };
                Effect::ReadLease(node)
            }
            OwnerView::Unowned => self.list(None),
            OwnerView::Unreadable => self.pause(Failure::BucketUnreadable, now_ms),
            OwnerView::Unusable => Effect::Fail(Failure::RecordUnusable),
        }
    }

    fn list(&mut self, last: Option<NodeName>) -> Effect<A> {
        self.state = State::Placing { last };
        Effect::ListNodes
    }

    fn owner_checked(
        &mut self,
        session: SessionId,
        epoch: Epoch,
        lease: LeaseView<A>,
        now_ms: Millis,
    ) -> Effect<A> {
        let node = match lease {
            LeaseView::Unreadable => return self.pause(Failure::BucketUnreadable, now_ms),
            LeaseView::Absent => return self.list(None),
            LeaseView::Found(node) => node,
        };
        let is_live = node.is_live(now_ms, self.timing.clock_skew_max_ms);
        if node.session != session || !is_live {
            // Dead. Where the same node lives on in another session, it has the cell's files.
            return self.list(is_live.then_some(node.node));
        }
        if !node.protocol_ok {
            return Effect::Fail(Failure::ProtocolMismatch);
        }
        self.send(route_to(node, epoch), false, false)
    }

    fn place(
        &mut self,
        last: Option<&NodeName>,
        nodes: Option<Vec<NodeView<A>>>,
        now_ms: Millis,
    ) -> Effect<A> {
        let Some(nodes) = nodes else { return self.pause(Failure::BucketUnreadable, now_ms) };
        let candidates: Vec<Candidate> =
            nodes.iter().map(|node| node.candidate(now_ms, self.avoided.contains(&node.node))).collect();
        let preferred = candidates.iter().filter(|candidate| Some(&candidate.node) == last);
        let preferred: Vec<Candidate> = preferred.cloned().collect();
        let chosen = place(&self.cell, &preferred).or_else(|| place(&self.cell, &candidates));
        let Some(chosen) = chosen.and_then(|name| nodes.iter().find(|node| node.node == *name)) else {
            // Those that were avoided may be better than nobody, after a pause.
            self.avoided.clear();
            return self.pause(Failure::NoNode, now_ms);
        };
        self.send(route_to(chosen.clone(), Epoch::ZERO), false, true)
    }

    fn send(&mut self, route: Route<A>, from_cache: bool, may_activate: bool) -> Effect<A> {
        let effect = Effect::Forward {
            node: route.node.clone(),
            session: route.session,
            address: route.address.clone(),
            may_activate,
            watch_ms: route.expires_ms,
        };
        self.state = State::Sent(Sent { route, from_cache });
        effect
    }

    fn forwarded(&mut self, sent: Sent<A>, outcome: Outcome, now_ms: Millis) -> Effect<A> {
        let Sent { route, from_cache } = sent;
        let (failure, is_whole) = match outcome {
            Outcome::Answered { epoch } => return Effect::Answer { learned: Route { epoch, ..route } },
            Outcome::MayHaveRun => return Effect::Fail(Failure::OutcomeUnknown),
            Outcome::BodyBroken => return Effect::Fail(Failure::BodyBroken),
            Outcome::Refused { refusal: Refusal::Final, .. } => return Effect::Fail(Failure::Refused),
            Outcome::Refused { refusal: Refusal::NotOwner, is_whole } => (Failure::Moving, is_whole),
            Outcome::Refused { refusal: Refusal::Draining, is_whole } => {
                self.avoid(route.node);
                (Failure::Moving, is_whole)
            }
            Outcome::NeverSent { is_whole } => {
                // What the cache said may be a session of the past; its node is not to blame yet.
                if !from_cache {
                    self.avoid(route.node);
                }
                (Failure::Unreachable, is_whole)
            }
        };
        if !is_whole {
            return Effect::Fail(failure);
        }
        // The first time the records have the news already.
        let is_first = !core::mem::replace(&mut self.is_turned_away, true);
        if is_first && now_ms < self.timing.deadline_ms { self.ask() } else { self.pause(failure, now_ms) }
    }

    fn avoid(&mut self, node: NodeName) {
        if !self.avoided.contains(&node) {
            self.avoided.push(node);
        }
    }

    /// The owner's lease at the time when it was to end. Renewed: go on. Over, or another session's: nobody will answer.
    fn watched(&mut self, mut sent: Sent<A>, lease: LeaseView<A>, now_ms: Millis) -> Effect<A> {
        let dead_ms = sent.route.expires_ms.plus(self.timing.clock_skew_max_ms);
        let watch_ms = match lease {
            LeaseView::Found(node) if node.session == sent.route.session => {
                sent.route.expires_ms = node.expires_ms;
                if !node.is_live(now_ms, self.timing.clock_skew_max_ms) {
                    return Effect::Fail(Failure::OwnerLost);
                }
                // Past its end and inside the margin: a claimant has to wait for the margin, too.
                if now_ms < node.expires_ms {
                    node.expires_ms
                } else {
                    node.expires_ms.plus(self.timing.clock_skew_max_ms)
                }
            }
            LeaseView::Found(_) | LeaseView::Absent => return Effect::Fail(Failure::OwnerLost),
            // An owner that cannot reach the bucket either stops by itself; one that can may answer yet.
            LeaseView::Unreadable => dead_ms.max(now_ms.plus(self.timing.pause_ms_max)),
        };
        self.state = State::Sent(sent);
        Effect::KeepWaiting { watch_ms }
    }

    fn pause(&mut self, reason: Failure, now_ms: Millis) -> Effect<A> {
        let Timing { deadline_ms, clock_skew_max_ms: _, pause_ms_min, pause_ms_max } = self.timing;
        let longest_ms =
            if reason == Failure::Moving { MOVING_PAUSE_MS_MAX.min(pause_ms_max) } else { pause_ms_max };
        let pause_ms = (pause_ms_min << self.pauses.min(16)).min(longest_ms);
        self.pauses = self.pauses.saturating_add(1);
        if now_ms.plus(pause_ms) >= deadline_ms {
            return Effect::Fail(reason);
        }
        self.state = State::Paused;
        Effect::Pause { pause_ms, reason }
    }
}

fn route_to<A>(node: NodeView<A>, epoch: Epoch) -> Route<A> {
    let NodeView { node, session, address, expires_ms, draining: _, protocol_ok: _, weight: _, cells: _ } =
        node;
    Route { node, session, epoch, address, expires_ms }
}
