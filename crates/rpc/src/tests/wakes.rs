//! Hints: what they carry, and what becomes of those that nobody takes.

use std::time::Duration;

use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, CellName, Epoch, NodeName, WakeMinute};
use tokio::time::Instant;

use super::support::*;
use crate::{ArmedAlarm, CallError, ForwardError, Peer, WakeCall, WakeReply};

fn hint(cell: &str) -> WakeCall {
    let id = AlarmId { epoch: Epoch::new(2), seq: AlarmSeq::new(5) };
    let cell = CellName::parse(cell).unwrap();
    WakeCall { cell, minute: WakeMinute::new(9), id, deadline: Instant::now() + Duration::from_secs(20) }
}

#[tokio::test]
async fn a_hint_brings_back_what_is_armed() {
    let fleet = fleet(|_| async { unreachable!("a hint is no call") }).await;
    let call = hint("Room:mine");
    let armed = ArmedAlarm { id: call.id, deadline_ms: AlarmTime::new(540_000) };
    let reply = fleet.client.wake(&fleet.peer, &call).await.unwrap();
    assert_eq!(reply, WakeReply { epoch: POSITION.epoch, armed: Some(armed) });
}

#[tokio::test]
async fn a_hint_that_is_refused_or_reaches_nobody_says_so() {
    let fleet = fleet(|_| async { unreachable!("a hint is no call") }).await;
    let refused = fleet.client.wake(&fleet.peer, &hint("Room:other")).await.unwrap_err();
    assert!(
        matches!(&refused, ForwardError::Refused { error: CallError::NotOwner(None), call: None }),
        "{refused:?}"
    );
    let nobody = Peer { node: NodeName::parse("n2").unwrap(), address: "127.0.0.1:1".into(), ..fleet.peer };
    let lost = fleet.client.wake(&nobody, &hint("Room:mine")).await.unwrap_err();
    assert!(matches!(&lost, ForwardError::NeverSent { .. }), "{lost:?}");
}
