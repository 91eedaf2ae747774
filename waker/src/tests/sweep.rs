//! The sweep for dead sessions: whom it asks for what, and what it leaves alone.

use std::sync::Arc;
use std::time::Duration;

use holdfast_bucket::{Bucket, MemoryBucket};
use holdfast_records::{EnsembleRecord, Key, NodeLogRecord, NodeLogState, Record};
use holdfast_rpc::follower::LogName;
use holdfast_rpc::{CellClient, ProcessIdentity, Role, identity};
use holdfast_types::{LogEpoch, LogOffset, NodeName, SessionId, WriteId};

use super::support::*;
use crate::sweep::Sweep;

fn log(node: &str, session: u128) -> LogName {
    LogName { node: NodeName::parse(node).unwrap(), session: SessionId::from_bits(session) }
}

async fn put_log(bucket: &dyn Bucket, log: &LogName, state: NodeLogState) {
    let record = NodeLogRecord {
        version: NodeLogRecord::VERSION,
        write_id: WriteId::from_bits(1),
        node: log.node.clone(),
        session: log.session,
        state,
        ensemble: EnsembleRecord { log_epoch: LogEpoch::new(1), members: Vec::new() },
        active: false,
        prior: None,
        recovery: None,
        loss_declared: false,
        bundles_from: None,
    };
    let key = Key::NodeLog(log.node.clone(), log.session).to_string();
    bucket.put(&key, record.encode().into()).await.unwrap();
}

#[tokio::test]
async fn a_round_has_the_dead_recovered_until_they_are_and_leaves_the_living_alone() {
    let bucket = Arc::new(MemoryBucket::new());
    let fleet = identity::create().unwrap();
    let node = Node::start(&fleet, &*bucket).await;
    let me = ProcessIdentity::new(fleet, Role::Waker, "w", SessionId::from_bits(1)).unwrap();
    let sweep = Sweep {
        name: NodeName::parse("w").unwrap(),
        session: SessionId::from_bits(1),
        interval: Duration::from_secs(30),
        records: bucket.clone(),
        leases: bucket.clone(),
        client: CellClient::new(me),
        clock_skew_max_ms: 500,
        forget_after_ms: 86_400_000,
        mine: tokio::sync::watch::Sender::new(false),
    };
    // The node's own session, one of its past, one of a node that is gone, and one that was recovered before.
    let (living, past, gone, done) = (log("n1", 77), log("n1", 70), log("n2", 80), log("n2", 81));
    for log in [&living, &past, &gone] {
        put_log(&*bucket, log, NodeLogState::Open).await;
    }
    put_log(&*bucket, &done, NodeLogState::Sealed).await;
    let bundle = |log: &LogName| Key::Bundle(log.node.clone(), log.session, LogOffset::new(1)).to_string();
    for log in [&gone, &done] {
        bucket.put(&bundle(log), (&b"x"[..]).into()).await.unwrap();
    }
    let mut known = sweep.known();
    assert!(!sweep.round(&mut known).await.unwrap(), "the node does not recover them yet");
    let mut asked = node.recoveries();
    asked.sort_by_key(|log| log.session);
    assert_eq!(asked, [past.clone(), gone.clone()]);
    assert!(bucket.get(&bundle(&done)).await.unwrap().is_none(), "nobody reads it");
    assert!(bucket.get(&bundle(&gone)).await.unwrap().is_some(), "its recovery reads it");

    node.recovers(true);
    assert!(sweep.round(&mut known).await.unwrap());
    for log in [&past, &gone] {
        put_log(&*bucket, log, NodeLogState::Sealed).await;
    }
    assert!(sweep.round(&mut known).await.unwrap());
    assert_eq!(node.recoveries().len(), 4, "what is sealed is left alone");
    assert!(bucket.get(&bundle(&gone)).await.unwrap().is_none());
}
