use alloc::vec;
use alloc::vec::Vec;

use holdfast_types::{CellName, Epoch, Millis, NodeName, SessionId};

use super::*;

const SKEW: u64 = 500;
const DEADLINE: Millis = Millis::new(130_000);
/// When the tests' leases end.
const EXPIRES: Millis = Millis::new(110_000);

const fn at(ms: u64) -> Millis {
    Millis::new(100_000 + ms)
}

fn name(text: &str) -> NodeName {
    NodeName::parse(text).unwrap()
}

fn session(bits: u128) -> SessionId {
    SessionId::from_bits(bits)
}

/// Node `n<bits>` with session `bits`, listening at address `bits`.
fn view(bits: u128) -> NodeView<u128> {
    NodeView {
        node: name(&alloc::format!("n{bits}")),
        session: session(bits),
        address: bits,
        expires_ms: EXPIRES,
        draining: false,
        protocol_ok: true,
        weight: 100,
        cells: 0,
    }
}

fn route(bits: u128) -> Route<u128> {
    let NodeView { node, session, address, expires_ms, .. } = view(bits);
    Route { node, session, epoch: Epoch::new(4), address, expires_ms }
}

fn owned(bits: u128) -> OwnerView {
    OwnerView::Owned { node: name(&alloc::format!("n{bits}")), session: session(bits), epoch: Epoch::new(5) }
}

struct Script {
    routing: Routing<u128>,
    now_ms: Millis,
}

impl Script {
    fn begin(route: Option<Route<u128>>) -> (Self, Effect<u128>) {
        Self::begin_at(route, at(0))
    }

    fn begin_at(route: Option<Route<u128>>, now_ms: Millis) -> (Self, Effect<u128>) {
        let timing = Timing::until(DEADLINE, SKEW);
        let mut routing = Routing::new(CellName::parse("db:a").unwrap(), timing);
        let effect = routing.on(Event::Cached { route, now_ms });
        (Self { routing, now_ms }, effect)
    }

    fn owner(&mut self, owner: OwnerView) -> Effect<u128> {
        self.routing.on(Event::OwnerRead { owner, now_ms: self.now_ms })
    }

    fn lease(&mut self, lease: LeaseView<u128>) -> Effect<u128> {
        self.routing.on(Event::LeaseRead { lease, now_ms: self.now_ms })
    }

    fn nodes(&mut self, nodes: Vec<NodeView<u128>>) -> Effect<u128> {
        self.routing.on(Event::NodesListed { nodes: Some(nodes), now_ms: self.now_ms })
    }

    fn outcome(&mut self, outcome: Outcome) -> Effect<u128> {
        self.routing.on(Event::Forwarded { outcome, now_ms: self.now_ms })
    }

    fn time(&mut self, now_ms: Millis) -> Effect<u128> {
        self.now_ms = now_ms;
        self.routing.on(Event::TimeReached { now_ms })
    }

    /// From the begin to a request that is out at the owner `bits`.
    fn sent_to(bits: u128) -> Self {
        let (mut script, effect) = Self::begin(None);
        assert_eq!(effect, Effect::ReadOwner);
        assert_eq!(script.owner(owned(bits)), Effect::ReadLease(view(bits).node));
        assert_sent(&script.lease(LeaseView::Found(view(bits))), bits, false);
        script
    }
}

fn assert_sent(effect: &Effect<u128>, bits: u128, activates: bool) {
    let Effect::Forward { node, session: to, address, may_activate, watch_ms } = effect else {
        panic!("not sent: {effect:?}")
    };
    assert_eq!((node, *to, *address), (&view(bits).node, session(bits), bits));
    assert_eq!(*may_activate, activates);
    assert_eq!(*watch_ms, EXPIRES);
}

fn pause_of(effect: &Effect<u128>) -> (u64, Failure) {
    let Effect::Pause { pause_ms, reason } = effect else { panic!("no pause: {effect:?}") };
    (*pause_ms, *reason)
}

const NOT_OWNER: Outcome = Outcome::Refused { refusal: Refusal::NotOwner, is_whole: true };
const DRAINING: Outcome = Outcome::Refused { refusal: Refusal::Draining, is_whole: true };
const NEVER_SENT: Outcome = Outcome::NeverSent { is_whole: true };
const ANSWERED: Outcome = Outcome::Answered { epoch: Epoch::new(9) };

#[test]
fn a_remembered_route_is_used_without_a_look_at_the_bucket() {
    let (mut script, effect) = Script::begin(Some(route(1)));
    assert_sent(&effect, 1, false);
    let learned = Route { epoch: Epoch::new(9), ..route(1) };
    assert_eq!(script.outcome(ANSWERED), Effect::Answer { learned });
}

#[test]
fn a_route_at_its_lease_deadline_is_read_again() {
    let (_, effect) = Script::begin_at(Some(route(1)), Millis::new(EXPIRES.get() - 1));
    assert_sent(&effect, 1, false);
    let (mut script, effect) = Script::begin_at(Some(route(1)), EXPIRES);
    assert_eq!(effect, Effect::ReadLease(name("n1")));
    let renewed = NodeView { expires_ms: EXPIRES.plus(5_000), ..view(1) };
    let effect = script.lease(LeaseView::Found(renewed));
    assert!(
        matches!(&effect, Effect::Forward { watch_ms, .. } if *watch_ms == EXPIRES.plus(5_000)),
        "{effect:?}"
    );
}

#[test]
fn a_route_whose_session_is_over_is_forgotten() {
    for lease in [
        LeaseView::Found(NodeView { session: session(2), expires_ms: EXPIRES.plus(5_000), ..view(1) }),
        LeaseView::Found(view(1)),
        LeaseView::Absent,
        LeaseView::Unreadable,
    ] {
        let (mut script, _) = Script::begin_at(Some(route(1)), EXPIRES);
        assert_eq!(script.lease(lease), Effect::ReadOwner);
    }
}

#[test]
fn an_unowned_cell_is_placed() {
    let (mut script, _) = Script::begin(None);
    assert_eq!(script.owner(OwnerView::Unowned), Effect::ListNodes);
    assert_sent(&script.nodes(vec![NodeView { draining: true, ..view(1) }, view(2)]), 2, true);
}

#[test]
fn a_cell_of_a_dead_session_is_placed() {
    for lease in [
        LeaseView::Absent,
        LeaseView::Found(NodeView { expires_ms: at(0).minus(SKEW), ..view(1) }),
        LeaseView::Found(NodeView { expires_ms: Millis::ZERO, ..view(1) }),
        LeaseView::Found(NodeView { session: session(8), expires_ms: at(0).minus(SKEW), ..view(1) }),
    ] {
        let (mut script, _) = Script::begin(None);
        script.owner(owned(1));
        assert_eq!(script.lease(lease.clone()), Effect::ListNodes, "{lease:?}");
        assert_sent(&script.nodes(vec![view(2)]), 2, true);
    }
}

#[test]
fn a_cell_comes_back_to_its_restarted_node() {
    for other in 2..20 {
        let (mut script, _) = Script::begin(None);
        script.owner(owned(1));
        let restarted = NodeView { session: session(100), ..view(1) };
        assert_eq!(script.lease(LeaseView::Found(restarted.clone())), Effect::ListNodes);
        let effect = script.nodes(vec![view(other), restarted]);
        assert!(matches!(&effect, Effect::Forward { session: to, .. } if *to == session(100)), "{effect:?}");
    }
}

#[test]
fn an_owner_inside_the_skew_margin_is_alive_still() {
    let (mut script, _) = Script::begin(None);
    script.owner(owned(1));
    let late = NodeView { expires_ms: at(0).minus(SKEW - 1), ..view(1) };
    let effect = script.lease(LeaseView::Found(late));
    assert!(matches!(effect, Effect::Forward { may_activate: false, .. }), "{effect:?}");
}

#[test]
fn a_live_owner_of_another_protocol_is_an_error_and_never_a_takeover() {
    let (mut script, _) = Script::begin(None);
    script.owner(owned(1));
    let other = NodeView { protocol_ok: false, ..view(1) };
    assert_eq!(script.lease(LeaseView::Found(other)), Effect::Fail(Failure::ProtocolMismatch));
}

#[test]
fn not_owner_is_sent_again_after_a_fresh_read() {
    let (mut script, _) = Script::begin(Some(route(1)));
    assert_eq!(script.outcome(NOT_OWNER), Effect::ReadOwner);
    script.owner(owned(2));
    assert_sent(&script.lease(LeaseView::Found(view(2))), 2, false);
    // The second time it waits a little.
    assert_eq!(pause_of(&script.outcome(NOT_OWNER)), (10, Failure::Moving));
    assert_eq!(script.time(at(10)), Effect::ReadOwner);
}

#[test]
fn a_draining_node_is_passed_over() {
    let (mut script, _) = Script::begin(None);
    script.owner(OwnerView::Unowned);
    let Effect::Forward { address: first, .. } = script.nodes(vec![view(1), view(2)]) else { panic!() };
    let other = 3 - first;
    assert_eq!(script.outcome(DRAINING), Effect::ReadOwner);
    script.owner(OwnerView::Unowned);
    assert_sent(&script.nodes(vec![view(1), view(2)]), other, true);
}

#[test]
fn an_unreachable_node_is_passed_over_until_there_is_no_other() {
    let (mut script, _) = Script::begin(None);
    script.owner(OwnerView::Unowned);
    assert_sent(&script.nodes(vec![view(1)]), 1, true);
    assert_eq!(script.outcome(NEVER_SENT), Effect::ReadOwner);
    script.owner(OwnerView::Unowned);
    assert_eq!(pause_of(&script.nodes(vec![view(1)])), (10, Failure::NoNode));
    assert_eq!(script.time(at(10)), Effect::ReadOwner);
    script.owner(OwnerView::Unowned);
    assert_sent(&script.nodes(vec![view(1)]), 1, true);
}

#[test]
fn a_stale_cache_does_not_discredit_a_node() {
    let (mut script, _) = Script::begin(Some(Route { session: session(77), ..route(1) }));
    assert_eq!(script.outcome(NEVER_SENT), Effect::ReadOwner);
    script.owner(OwnerView::Unowned);
    assert_sent(&script.nodes(vec![view(1)]), 1, true);
}

#[test]
fn what_may_have_run_is_never_sent_again() {
    let (mut script, _) = Script::begin(Some(route(1)));
    assert_eq!(script.outcome(Outcome::MayHaveRun), Effect::Fail(Failure::OutcomeUnknown));
    let mut script = Script::sent_to(1);
    assert_eq!(script.outcome(Outcome::MayHaveRun), Effect::Fail(Failure::OutcomeUnknown));
    assert!(Failure::OutcomeUnknown.is_unknown() && Failure::OwnerLost.is_unknown());
}

#[test]
fn a_request_whose_body_is_lost_is_never_sent_again() {
    for (outcome, failure) in [
        (Outcome::NeverSent { is_whole: false }, Failure::Unreachable),
        (Outcome::Refused { refusal: Refusal::NotOwner, is_whole: false }, Failure::Moving),
        (Outcome::Refused { refusal: Refusal::Draining, is_whole: false }, Failure::Moving),
        (Outcome::BodyBroken, Failure::BodyBroken),
    ] {
        assert_eq!(Script::sent_to(1).outcome(outcome), Effect::Fail(failure));
        assert!(!failure.is_unknown());
    }
}

#[test]
fn a_final_refusal_goes_to_the_caller_and_keeps_the_route() {
    let outcome = Outcome::Refused { refusal: Refusal::Final, is_whole: true };
    assert_eq!(Script::sent_to(1).outcome(outcome), Effect::Fail(Failure::Refused));
    assert!(outcome.keeps_route());
    assert!(!NOT_OWNER.keeps_route() && !DRAINING.keeps_route() && !NEVER_SENT.keeps_route());
}

#[test]
fn a_frozen_owner_cannot_hold_a_request_beyond_its_lease() {
    let mut script = Script::sent_to(1);
    assert_eq!(script.time(EXPIRES), Effect::ReadLease(name("n1")));
    // Not renewed: a claimant waits out the margin, and so does the request.
    let dead = EXPIRES.plus(SKEW);
    assert_eq!(script.lease(LeaseView::Found(view(1))), Effect::KeepWaiting { watch_ms: dead });
    assert_eq!(script.time(dead), Effect::ReadLease(name("n1")));
    assert_eq!(script.lease(LeaseView::Found(view(1))), Effect::Fail(Failure::OwnerLost));
}

#[test]
fn a_renewed_owner_may_take_its_time() {
    let mut script = Script::sent_to(1);
    for renewal in 1..4 {
        script.time(EXPIRES.plus(5_000 * (renewal - 1)));
        let watch_ms = EXPIRES.plus(5_000 * renewal);
        let renewed = NodeView { expires_ms: watch_ms, ..view(1) };
        assert_eq!(script.lease(LeaseView::Found(renewed)), Effect::KeepWaiting { watch_ms });
    }
    let learned = Route { epoch: Epoch::new(9), expires_ms: EXPIRES.plus(15_000), ..route(1) };
    assert_eq!(script.outcome(ANSWERED), Effect::Answer { learned });
}

#[test]
fn another_session_or_no_lease_at_the_deadline_ends_the_request_as_unknown() {
    for lease in [
        LeaseView::Absent,
        LeaseView::Found(NodeView { session: session(9), expires_ms: EXPIRES.plus(5_000), ..view(1) }),
        LeaseView::Found(NodeView { expires_ms: Millis::ZERO, ..view(1) }),
    ] {
        let mut script = Script::sent_to(1);
        script.time(EXPIRES);
        assert_eq!(script.lease(lease), Effect::Fail(Failure::OwnerLost));
    }
}

#[test]
fn a_bucket_that_does_not_answer_ends_no_request() {
    let mut script = Script::sent_to(1);
    script.time(EXPIRES);
    let watch_ms = EXPIRES.plus(SKEW);
    assert_eq!(script.lease(LeaseView::Unreadable), Effect::KeepWaiting { watch_ms });
    script.time(watch_ms);
    let watch_ms = watch_ms.plus(500);
    assert_eq!(script.lease(LeaseView::Unreadable), Effect::KeepWaiting { watch_ms });
}

#[test]
fn an_answer_counts_while_the_lease_is_being_read() {
    let mut script = Script::sent_to(1);
    assert_eq!(script.time(EXPIRES), Effect::ReadLease(name("n1")));
    assert!(matches!(script.outcome(ANSWERED), Effect::Answer { .. }));
}

#[test]
fn a_record_that_is_none_fails_at_once() {
    let (mut script, effect) = Script::begin(None);
    assert_eq!(effect, Effect::ReadOwner);
    assert_eq!(script.owner(OwnerView::Unusable), Effect::Fail(Failure::RecordUnusable));
}

#[test]
fn pauses_double_up_to_their_bound_and_end_with_the_deadline() {
    let (mut script, mut effect) = Script::begin(None);
    let mut pauses = vec![];
    loop {
        effect = match effect {
            Effect::ReadOwner => script.owner(OwnerView::Unreadable),
            Effect::Pause { pause_ms, .. } => {
                pauses.push(pause_ms);
                script.time(script.now_ms.plus(pause_ms))
            }
            other => {
                assert_eq!(other, Effect::Fail(Failure::BucketUnreadable));
                break;
            }
        };
    }
    assert_eq!(pauses[..7], [10, 20, 40, 80, 160, 320, 500]);
    assert!(pauses[6..].iter().all(|pause| *pause == 500));
    assert!(script.now_ms < DEADLINE && script.now_ms.plus(500) >= DEADLINE, "{}", script.now_ms);
}

#[test]
fn a_move_is_asked_about_often() {
    let (mut script, mut effect) = Script::begin(None);
    let mut longest = 0;
    for _ in 0..40 {
        effect = match effect {
            Effect::ReadOwner => script.owner(owned(1)),
            Effect::ReadLease(_) => script.lease(LeaseView::Found(view(1))),
            Effect::Forward { .. } => script.outcome(DRAINING),
            Effect::Pause { pause_ms, reason: Failure::Moving } => {
                longest = longest.max(pause_ms);
                script.time(script.now_ms.plus(pause_ms))
            }
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(longest, 40);
}
