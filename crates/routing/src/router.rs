//! Executes the routing machine for one request after another.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use holdfast_bucket::Bucket;
use holdfast_core::routing::{Effect, Event, LeaseView, Outcome, OwnerView, Refusal, Route, Routing, Timing};
use holdfast_records::ProtocolRange;
use holdfast_rpc::{
    CallError, CellCall, CellClient, CellReply, ForwardError, PROTOCOL, Peer, WakeCall, WakeReply,
};
use holdfast_telemetry::{LookupResult, metrics};
use holdfast_types::{CellName, Millis, NodeName, SessionId};
use tokio::time::Instant;

use crate::RouteError;
use crate::cache::Routes;
use crate::leases::Leases;
use crate::owners::Owners;
use crate::request::{Answer, Routed, Unanswered};

/// What a router may be told.
#[derive(Clone, Copy, Debug)]
pub struct RouterOptions {
    /// How far two clocks of the fleet may differ, in milliseconds. The same in all its programs.
    pub clock_skew_max_ms: u64,
    /// Routes remembered at most; each takes a few hundred bytes.
    pub routes_max: usize,
    /// The protocol versions spoken.
    pub protocol: ProtocolRange,
}

impl Default for RouterOptions {
    fn default() -> Self {
        Self { clock_skew_max_ms: 500, routes_max: 200_000, protocol: PROTOCOL }
    }
}

/// Finds owners and forwards. Cheap to clone; clones share what they remember.
#[derive(Clone)]
pub struct Router {
    inner: Arc<Inner>,
}

struct Inner {
    client: CellClient,
    options: RouterOptions,
    routes: Routes,
    owners: Owners,
    leases: Leases,
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

type Effects = Effect<Arc<Peer>>;
type Events = Event<Arc<Peer>>;

impl Router {
    /// A router over one bucket's records.
    #[must_use]
    pub fn new(bucket: Arc<dyn Bucket>, client: CellClient, options: RouterOptions) -> Self {
        Self::with_lease_bucket(Arc::clone(&bucket), bucket, client, options)
    }

    /// A router where leases are in a bucket of their own.
    #[must_use]
    pub fn with_lease_bucket(
        records: Arc<dyn Bucket>,
        leases: Arc<dyn Bucket>,
        client: CellClient,
        options: RouterOptions,
    ) -> Self {
        let inner = Inner {
            client,
            options,
            routes: Routes::new(options.routes_max),
            owners: Owners::new(records),
            leases: Leases::new(leases, options.protocol),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The client that requests go out with, for questions to nodes.
    #[must_use]
    pub fn client(&self) -> &CellClient {
        &self.inner.client
    }

    /// Sends a request to the owner of its cell, placing the cell when nobody owns it, until there is an answer or the
    /// call's deadline. Dropping the future cancels the request.
    ///
    /// # Errors
    /// [`RouteError`]; only one kind leaves open whether the handler ran.
    #[must_use = "the request is sent by the future"]
    pub fn forward(&self, call: CellCall) -> BoxFuture<'static, Result<CellReply, RouteError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { Ok(forward(&inner, call).await?.0) })
    }

    /// Has the owner of a cell look at its alarm; places the cell when nobody owns it. As [`Self::forward`], but that a hint
    /// may be given again after any failure.
    ///
    /// # Errors
    /// [`RouteError`].
    #[must_use = "the hint is sent by the future"]
    pub fn wake(&self, call: WakeCall) -> BoxFuture<'static, Result<Woken, RouteError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let (reply, Route { node, session, .. }) = forward(&inner, call).await?;
            Ok(Woken { reply, node, session })
        })
    }
}

/// Who looked at a cell's alarm, and what it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Woken {
    /// What it saw.
    pub reply: WakeReply,
    /// The node.
    pub node: NodeName,
    /// Its session.
    pub session: SessionId,
}

async fn forward<R: Routed>(inner: &Inner, request: R) -> Result<(R::Reply, Route<Arc<Peer>>), RouteError> {
    let deadline = request.deadline();
    let deadline_ms = now_ms().plus(millis(deadline.saturating_duration_since(Instant::now())));
    let timing = Timing::until(deadline_ms, inner.options.clock_skew_max_ms);
    let mut routing = Routing::new(request.cell().clone(), timing);
    let mut passage = Passage::new(inner, request);
    let route = inner.routes.get(&passage.cell);
    let mut effect = routing.on(Event::Cached { route, now_ms: now_ms() });
    loop {
        effect = match effect {
            Effect::Answer { learned } => {
                inner.routes.put(&passage.cell, learned.clone());
                return Ok((passage.reply.expect("an answer was reported"), learned));
            }
            Effect::Fail(failure) => {
                if passage.lookup.is_none() {
                    metrics().routing_lookup(LookupResult::Failed);
                }
                return Err(RouteError::new(failure, passage.failed));
            }
            effect => routing.on(passage.execute(effect).await),
        };
    }
}

/// One request on its way: what the machine does not know of it.
struct Passage<'a, R: Routed> {
    inner: &'a Inner,
    cell: CellName,
    deadline: Instant,
    /// The request, while it is here.
    request: Option<R>,
    /// The forward that is out.
    forward: Option<(SessionId, BoxFuture<'a, Answer<R>>)>,
    reply: Option<R::Reply>,
    failed: Option<ForwardError>,
    asked: bool,
    lookup: Option<LookupResult>,
}

impl<'a, R: Routed> Passage<'a, R> {
    fn new(inner: &'a Inner, request: R) -> Self {
        let (cell, deadline) = (request.cell().clone(), request.deadline());
        let (forward, reply, failed, lookup) = (None, None, None, None);
        Self { inner, cell, deadline, request: Some(request), forward, reply, failed, asked: false, lookup }
    }

    async fn execute(&mut self, effect: Effects) -> Events {
        match effect {
            Effect::ReadOwner => {
                self.asked = true;
                let owner =
                    bounded(self.deadline, self.inner.owners.read(&self.cell), OwnerView::Unreadable).await;
                Event::OwnerRead { owner, now_ms: now_ms() }
            }
            Effect::ReadLease(node) => self.read_lease(&node).await,
            Effect::ListNodes => {
                let nodes = bounded(self.deadline, self.inner.leases.list(), None).await;
                Event::NodesListed { nodes, now_ms: now_ms() }
            }
            Effect::Forward { node: _, session, address, may_activate, watch_ms } => {
                self.send(session, address, may_activate);
                self.wait(watch_ms).await
            }
            Effect::KeepWaiting { watch_ms } => self.wait(watch_ms).await,
            Effect::Pause { pause_ms, reason } => {
                tracing::debug!(cell = %self.cell, pause_ms, ?reason, "a request waits for its cell's owner");
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                Event::TimeReached { now_ms: now_ms() }
            }
            Effect::Answer { .. } | Effect::Fail(_) => unreachable!("these end the request"),
        }
    }

    async fn read_lease(&mut self, node: &NodeName) -> Events {
        let read = bounded(self.deadline, self.inner.leases.read(node), LeaseView::Unreadable);
        let Some((session, forward)) = &mut self.forward else {
            return Event::LeaseRead { lease: read.await, now_ms: now_ms() };
        };
        let session = *session;
        tokio::select! {
            biased;
            answer = forward => self.settle(session, answer),
            lease = read => Event::LeaseRead { lease, now_ms: now_ms() },
        }
    }

    fn send(&mut self, session: SessionId, peer: Arc<Peer>, may_activate: bool) {
        if self.lookup.is_none() {
            let found = match (self.asked, may_activate) {
                (false, _) => LookupResult::Hit,
                (true, false) => LookupResult::Miss,
                (true, true) => LookupResult::Placed,
            };
            metrics().routing_lookup(found);
            self.lookup = Some(found);
        }
        let request = self.request.take().expect("the machine sends only a request that is whole");
        self.forward = Some((session, request.send(&self.inner.client, peer)));
    }

    async fn wait(&mut self, watch_ms: Millis) -> Events {
        let (session, forward) = self.forward.as_mut().expect("a forward is out");
        let session = *session;
        let watch = Duration::from_millis(watch_ms.since(now_ms()));
        tokio::select! {
            biased;
            answer = forward => self.settle(session, answer),
            () = tokio::time::sleep(watch) => Event::TimeReached { now_ms: now_ms().max(watch_ms) },
        }
    }

    /// Takes what came of a forward apart: the outcome for the machine, the rest for the caller or the next forward.
    fn settle(&mut self, session: SessionId, answer: Answer<R>) -> Events {
        self.forward = None;
        let (outcome, retry) = match answer {
            Ok(reply) => {
                let epoch = R::epoch(&reply);
                self.reply = Some(reply);
                (Outcome::Answered { epoch }, None)
            }
            Err(Unanswered { error, request }) => {
                self.request = request;
                let sorted = self.sort(&error);
                self.failed = Some(error);
                sorted
            }
        };
        if !outcome.keeps_route() {
            self.inner.routes.forget(&self.cell, session);
        }
        if let Some(reason) = retry {
            metrics().routing_retry(reason);
        }
        Event::Forwarded { outcome, now_ms: now_ms() }
    }

    fn sort(&self, failed: &ForwardError) -> (Outcome, Option<&'static str>) {
        match failed {
            ForwardError::Refused { error, call: _ } => {
                let (refusal, retry) = match error {
                    CallError::NotOwner(_) => (Refusal::NotOwner, Some("not_owner")),
                    CallError::Draining => (Refusal::Draining, Some("draining")),
                    CallError::Overloaded { .. }
                    | CallError::Unavailable { .. }
                    | CallError::Rejected { .. }
                    | CallError::OutcomeUnknown { .. } => (Refusal::Final, None),
                };
                (Outcome::Refused { refusal, is_whole: self.request.is_some() }, retry)
            }
            ForwardError::NeverSent { reason, call: _ } => {
                tracing::debug!(cell = %self.cell, %reason, "a request was not sent");
                (Outcome::NeverSent { is_whole: self.request.is_some() }, Some("never_connected"))
            }
            ForwardError::BodyBroken { .. } => (Outcome::BodyBroken, None),
            ForwardError::MayHaveRun { .. } => (Outcome::MayHaveRun, None),
        }
    }
}

/// A store that hangs must not hold a request beyond its deadline.
async fn bounded<T>(deadline: Instant, read: impl Future<Output = T>, otherwise: T) -> T {
    tokio::time::timeout_at(deadline, read).await.unwrap_or(otherwise)
}

pub(crate) fn now_ms() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Millis::new(millis(since.expect("the clock is past 1970")))
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
