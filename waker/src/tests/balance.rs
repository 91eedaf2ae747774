//! Evening nodes out: whom it asks for how many cells, and what it leaves alone.

use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::{Bucket, MemoryBucket};
use holdfast_core::rebalance::Rebalance;
use holdfast_records::{Key, RebalanceSwitch, Record};
use holdfast_rpc::{CellClient, ProcessIdentity, Role, identity};
use holdfast_types::{Millis, SessionId, WriteId};
use tokio::sync::watch;

use super::support::*;
use crate::balance::Balance;

async fn put_switch(bucket: &dyn Bucket, paused: bool) {
    let switch = RebalanceSwitch {
        version: RebalanceSwitch::VERSION,
        write_id: WriteId::from_bits(1),
        paused,
        by: "ada".into(),
        at_ms: Millis::new(1),
    };
    bucket.put(&Key::RebalanceSwitch.to_string(), switch.encode().into()).await.unwrap();
}

#[tokio::test]
async fn who_has_too_much_is_asked_to_give_it_to_who_has_too_little() {
    let bucket = Arc::new(MemoryBucket::new());
    let fleet = identity::create().unwrap();
    let full = Node::start_as(&fleet, &*bucket, ("n1", 77), 100).await;
    let fresh = Node::start_as(&fleet, &*bucket, ("n2", 78), 0).await;
    let me = ProcessIdentity::new(fleet, Role::Waker, "w", SessionId::from_bits(1)).unwrap();
    let (tell, mine) = watch::channel(false);
    let balance = Balance {
        interval: Duration::from_secs(30),
        records: bucket.clone(),
        leases: bucket.clone(),
        client: CellClient::new(me),
        mine,
    };
    let mut planner = Rebalance::default();
    // Another waker does it, and then nobody may.
    assert_eq!(balance.round(&mut planner).await.unwrap(), 0);
    tell.send_replace(true);
    put_switch(&*bucket, true).await;
    assert_eq!(balance.round(&mut planner).await.unwrap(), 0);
    let key = Key::RebalanceSwitch.to_string();
    bucket.put(&key, r#"{"version":"9.0"}"#.into()).await.unwrap();
    assert_eq!(balance.round(&mut planner).await.unwrap(), 0, "a newer release may mean that nothing moves");
    assert_eq!(full.moves(), []);

    put_switch(&*bucket, false).await;
    assert_eq!(balance.round(&mut planner).await.unwrap(), 50);
    let moves = full.moves();
    assert_eq!(moves.len(), 1);
    assert_eq!((moves[0].to.node.as_str(), moves[0].to.session), ("n2", SessionId::from_bits(78)));
    assert_eq!((moves[0].cells, moves[0].keep, moves[0].weight), (50, 50, 100));
    // The leases are of before; what the nodes say themselves counts.
    fresh.owns(50);
    assert_eq!(balance.round(&mut planner).await.unwrap(), 0);
    assert!(!planner.is_balancing() && full.moves().is_empty() && fresh.moves().is_empty());
}
