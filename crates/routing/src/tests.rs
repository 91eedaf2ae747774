//! The router against real nodes on loopback and a scripted bucket.

mod support;

use std::time::Duration;

use holdfast_bucket::ErrorKind;
use holdfast_bucket::faults::{Fault, Operation, Rule};
use holdfast_records::OwnerState;
use holdfast_rpc::{CallError, WakeReply};
use holdfast_types::Epoch;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::RouteError;
use support::*;

/// Compiles only when a server may move a request between threads.
#[tokio::test]
async fn a_request_can_be_moved_between_threads() {
    let fleet = std::sync::Arc::new(Fleet::new());
    let asking = tokio::spawn(async move { fleet.ask_for(Duration::from_millis(50)).await });
    assert_eq!(asking.await.unwrap().unwrap_err(), RouteError::NoNode);
}

#[tokio::test]
async fn a_resident_cell_costs_no_look_at_the_bucket() {
    let fleet = Fleet::new();
    let node = fleet.node("n1", echo()).await;
    fleet.lease(&node, 60_000).await;
    fleet.own(&node, OwnerState::Owned).await;
    for _ in 0..5 {
        assert_eq!(fleet.ask().await.unwrap(), "n1");
    }
    assert_eq!(fleet.bucket.count(Operation::Get, "own.json"), 1);
    assert_eq!(fleet.bucket.count(Operation::Get, "nodes/"), 1);
    assert_eq!(fleet.bucket.count(Operation::List, ""), 0);
}

#[tokio::test]
async fn a_route_is_read_again_at_its_lease_deadline_and_only_the_lease() {
    let fleet = Fleet::new();
    let node = fleet.node("n1", echo()).await;
    fleet.lease(&node, 400).await;
    fleet.own(&node, OwnerState::Owned).await;
    fleet.ask().await.unwrap();
    fleet.wait_until_wall(node.expires_ms()).await;
    fleet.lease(&node, 60_000).await;
    fleet.ask().await.unwrap();
    assert_eq!(fleet.bucket.count(Operation::Get, "own.json"), 1);
    assert_eq!(fleet.bucket.count(Operation::Get, "nodes/"), 2);
}

#[tokio::test]
async fn an_unowned_cell_goes_to_a_node_that_takes_it() {
    let fleet = Fleet::new();
    let (full, taker) = (fleet.node("n1", echo()).await, fleet.node("n2", echo()).await);
    fleet.lease_draining(&full, 60_000).await;
    fleet.lease(&taker, 60_000).await;
    assert_eq!(fleet.ask().await.unwrap(), "n2");
    assert_eq!(fleet.bucket.count(Operation::List, ""), 1);
}

#[tokio::test]
async fn a_cell_of_a_dead_session_goes_elsewhere() {
    let fleet = Fleet::new();
    let (dead, alive) = (fleet.node("n1", echo()).await, fleet.node("n2", echo()).await);
    fleet.lease(&dead, 0).await;
    fleet.lease(&alive, 60_000).await;
    fleet.own(&dead, OwnerState::Owned).await;
    assert_eq!(fleet.ask().await.unwrap(), "n2");
}

#[tokio::test]
async fn a_restarted_node_is_found_again_after_a_connection_that_failed() {
    let fleet = Fleet::new();
    let old = fleet.node("n1", echo()).await;
    fleet.lease(&old, 60_000).await;
    fleet.own(&old, OwnerState::Owned).await;
    assert_eq!(fleet.ask().await.unwrap(), "n1");
    old.stop().await;
    let new = fleet.node("n1", named("n1 again")).await;
    fleet.lease(&new, 60_000).await;
    assert_eq!(fleet.ask().await.unwrap(), "n1 again");
}

#[tokio::test]
async fn not_owner_is_followed_to_the_new_owner() {
    let fleet = Fleet::new();
    let old = fleet.node("n1", refuses(CallError::NotOwner(None))).await;
    let new = fleet.node("n2", echo()).await;
    fleet.lease(&old, 60_000).await;
    fleet.lease(&new, 60_000).await;
    fleet.own(&old, OwnerState::Owned).await;
    // The record changes while the request is at the old owner.
    let (asked, owned) = tokio::join!(fleet.ask(), async {
        old.called(1).await;
        fleet.own(&new, OwnerState::Owned).await;
    });
    let () = owned;
    assert_eq!(asked.unwrap(), "n2");
}

#[tokio::test]
async fn a_draining_node_sends_its_unowned_cells_elsewhere() {
    let fleet = Fleet::new();
    let first = fleet.node("n1", refuses(CallError::Draining)).await;
    fleet.lease(&first, 60_000).await;
    let second = fleet.node("n2", refuses(CallError::Draining)).await;
    fleet.lease(&second, 60_000).await;
    let third = fleet.node("n3", echo()).await;
    fleet.lease(&third, 60_000).await;
    assert_eq!(fleet.ask().await.unwrap(), "n3");
}

#[tokio::test]
async fn what_may_have_run_is_sent_once() {
    let fleet = Fleet::new();
    let unknown = CallError::OutcomeUnknown { reason: "fenced".into() };
    let node = fleet.node("n1", refuses(unknown)).await;
    let other = fleet.node("n2", echo()).await;
    fleet.lease(&node, 60_000).await;
    fleet.lease(&other, 60_000).await;
    fleet.own(&node, OwnerState::Owned).await;
    let failed = fleet.ask().await.unwrap_err();
    assert_eq!(failed, RouteError::OutcomeUnknown { reason: "fenced".into() });
    assert_eq!((node.calls(), other.calls()), (1, 0));
}

#[tokio::test]
async fn a_frozen_owner_holds_a_request_no_longer_than_its_lease() {
    let fleet = Fleet::new();
    let frozen = fleet.node("n1", silent()).await;
    fleet.lease(&frozen, 600).await;
    fleet.own(&frozen, OwnerState::Owned).await;
    let started = Instant::now();
    let failed = fleet.ask().await.unwrap_err();
    assert!(matches!(failed, RouteError::OutcomeUnknown { .. }), "{failed}");
    let took = started.elapsed();
    let lease_and_skew = Duration::from_millis(600 + SKEW_MS);
    assert!(took < lease_and_skew + Duration::from_secs(2), "held for {took:?}");
    assert_eq!(frozen.calls(), 1);
}

#[tokio::test]
async fn a_slow_owner_that_renews_is_waited_for() {
    let fleet = Fleet::new();
    let (go, gone) = oneshot::channel();
    let slow = fleet.node("n1", waits_for(gone)).await;
    fleet.lease(&slow, 300).await;
    fleet.own(&slow, OwnerState::Owned).await;
    let first_end = slow.expires_ms();
    let (asked, ()) = tokio::join!(fleet.ask(), async {
        slow.called(1).await;
        fleet.lease(&slow, 60_000).await;
        fleet.wait_until_wall(first_end.plus(SKEW_MS)).await;
        go.send(()).unwrap();
    });
    assert_eq!(asked.unwrap(), "waited");
}

#[tokio::test]
async fn a_bucket_that_does_not_answer_is_named_and_nothing_ran() {
    let fleet = Fleet::new();
    let node = fleet.node("n1", echo()).await;
    fleet.lease(&node, 60_000).await;
    fleet.own(&node, OwnerState::Owned).await;
    fleet
        .bucket
        .add(Rule::new(Fault::Fail(ErrorKind::Unavailable)).on(Operation::Get).containing("own.json"));
    let failed = fleet.ask_for(Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(failed, RouteError::BucketUnreadable);
    assert_eq!(node.calls(), 0);
    // When it is back, so is the cell.
    fleet.bucket.clear();
    assert_eq!(fleet.ask().await.unwrap(), "n1");
}

#[tokio::test]
async fn without_nodes_the_caller_is_told_so_at_its_deadline() {
    let fleet = Fleet::new();
    let failed = fleet.ask_for(Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(failed, RouteError::NoNode);
}

#[tokio::test]
async fn an_owner_of_another_protocol_is_not_taken_over() {
    let fleet = Fleet::new();
    let (newer, other) = (fleet.node("n1", echo()).await, fleet.node("n2", echo()).await);
    fleet.lease_of_protocol(&newer, 60_000, 7).await;
    fleet.lease(&other, 60_000).await;
    fleet.own(&newer, OwnerState::Owned).await;
    assert_eq!(fleet.ask().await.unwrap_err(), RouteError::ProtocolMismatch);
    assert_eq!(other.calls(), 0);
}

#[tokio::test]
async fn a_final_refusal_reaches_the_caller_as_it_is() {
    let fleet = Fleet::new();
    let refusal = CallError::Overloaded { reason: "full".into(), retry_after_ms: 9 };
    let node = fleet.node("n1", refuses(refusal.clone())).await;
    fleet.lease(&node, 60_000).await;
    fleet.own(&node, OwnerState::Owned).await;
    assert_eq!(fleet.ask().await.unwrap_err(), RouteError::Refused(refusal.clone()));
    assert_eq!(fleet.ask().await.unwrap_err(), RouteError::Refused(refusal));
    assert_eq!(node.calls(), 2, "one call a request");
}

#[tokio::test]
async fn a_hint_goes_where_a_call_would_and_tells_who_looked() {
    let fleet = Fleet::new();
    let old = fleet.node("n1", refuses(CallError::NotOwner(None))).await;
    let new = fleet.node("n2", echo()).await;
    fleet.lease(&old, 60_000).await;
    fleet.lease(&new, 60_000).await;
    fleet.own(&old, OwnerState::Owned).await;
    let (woken, ()) = tokio::join!(fleet.wake_for(Duration::from_secs(20)), async {
        old.called(1).await;
        fleet.own(&new, OwnerState::Owned).await;
    });
    let woken = woken.unwrap();
    assert_eq!((woken.node, woken.session), (new.name.clone(), new.session));
    assert_eq!(woken.reply, WakeReply { epoch: Epoch::new(1), armed: None });
    // The route is remembered.
    fleet.wake_for(Duration::from_secs(20)).await.unwrap();
    assert_eq!((old.calls(), new.calls()), (1, 2));
}

#[tokio::test]
async fn a_cell_that_is_given_up_goes_where_a_request_would_place_it_and_elsewhere_once_that_fails() {
    let fleet = Fleet::new();
    let (me, first, other) =
        (fleet.node("me", echo()).await, fleet.node("n1", echo()).await, fleet.node("n2", echo()).await);
    let draining = fleet.node("n3", echo()).await;
    for node in [&me, &first, &other] {
        fleet.lease(node, 60_000).await;
    }
    fleet.lease_draining(&draining, 60_000).await;
    let successors = fleet.successors();
    assert!(successors.are_there(&me.name).await);
    let cell = "db:users".parse().unwrap();
    let chosen = successors.of(&cell, &me.name).await.unwrap();
    let (chosen_node, left) = if chosen.node == first.name { (first, other) } else { (other, first) };
    assert_eq!(chosen.node, chosen_node.name);
    successors.tell(&chosen, &cell, false).await.unwrap();
    assert_eq!(chosen_node.calls(), 1);
    fleet.lease_draining(&me, 60_000).await;
    assert_eq!(fleet.ask().await.unwrap(), chosen.node.as_str());
    // It goes: the next cell is not offered to it, though its lease lives on.
    chosen_node.stop().await;
    assert!(successors.tell(&chosen, &cell, false).await.is_err());
    assert_eq!(successors.of(&cell, &me.name).await.unwrap().node, left.name);
    // Nobody is left: the cell is for whoever is asked for it.
    left.stop().await;
    let next = successors.of(&cell, &me.name).await.unwrap();
    assert!(successors.tell(&next, &cell, false).await.is_err());
    assert_eq!(successors.of(&cell, &me.name).await, None);
}
