//! Leases of nodes that are long gone: marked, deleted, and left alone where a node came back.

use std::collections::HashSet;
use std::sync::Arc;

use holdfast_bucket::{Bucket, MemoryBucket};
use holdfast_core::lease::Now;
use holdfast_core::waker::{Burials, UNCHANGED_MS_MIN};
use holdfast_records::{NodeLease, Record};
use holdfast_rpc::follower::LogName;
use holdfast_rpc::identity;
use holdfast_types::{Millis, NodeName, WriteId};

use super::support::*;
use crate::bury::{bury, seen};
use crate::clock;
use crate::leases::read_leases;

const KEY: &str = "nodes/gone.json";

async fn lease(bucket: &dyn Bucket) -> Option<NodeLease> {
    let object = bucket.get(KEY).await.unwrap()?;
    Some(NodeLease::decode(&object.body).unwrap())
}

/// A waker that has looked at these leases, and deletes what has a tombstone at once.
fn looked_before(leases: &[NodeLease]) -> Burials {
    let seen: Vec<_> = leases.iter().map(seen).collect();
    let mut burials = Burials::new(0);
    burials.observe(&seen, |_, _| false, clock::now(), 500);
    burials
}

/// When it looks again: long enough after.
fn later() -> Now {
    let now = clock::now();
    Now { monotonic: now.monotonic.plus(UNCHANGED_MS_MIN), wall: now.wall }
}

#[tokio::test]
async fn the_lease_of_a_node_that_is_long_gone_is_marked_and_then_deleted() {
    let bucket = Arc::new(MemoryBucket::new());
    let fleet = identity::create().unwrap();
    let _living = Node::start(&fleet, &*bucket).await;
    let living = bucket.get("nodes/n1.json").await.unwrap().unwrap();
    let gone = NodeLease {
        node: NodeName::parse("gone").unwrap(),
        write_id: WriteId::from_bits(5),
        expires_ms: Millis::ZERO,
        ..NodeLease::decode(&living.body).unwrap()
    };
    bucket.put(KEY, gone.encode().into()).await.unwrap();
    let none = HashSet::new();
    let leases = read_leases(&*bucket).await.unwrap();
    let first_look = bury(&*bucket, &mut Burials::new(0), (&leases, &none), later(), 500).await.unwrap();
    assert_eq!(first_look, (0, 0));

    // It came back between the look and the write: its own write stands.
    let renewed = NodeLease { write_id: WriteId::from_bits(6), ..gone.clone() };
    bucket.put(KEY, renewed.encode().into()).await.unwrap();
    let raced = bury(&*bucket, &mut looked_before(&leases), (&leases, &none), later(), 500).await.unwrap();
    assert_eq!((raced, lease(&*bucket).await.unwrap()), ((0, 0), renewed));

    bucket.put(KEY, gone.encode().into()).await.unwrap();
    let unsealed = HashSet::from([LogName { node: gone.node.clone(), session: gone.session }]);
    let kept = bury(&*bucket, &mut looked_before(&leases), (&leases, &unsealed), later(), 500).await.unwrap();
    assert_eq!((kept, lease(&*bucket).await.unwrap()), ((0, 0), gone.clone()), "its log is not recovered");
    let marked = bury(&*bucket, &mut looked_before(&leases), (&leases, &none), later(), 500).await.unwrap();
    assert_eq!(marked, (1, 0));
    let marked = lease(&*bucket).await.unwrap();
    assert!(marked.tombstone_ms.is_some() && marked.write_id != gone.write_id, "{marked:?}");
    assert_eq!((marked.session, marked.expires_ms), (gone.session, Millis::ZERO));

    let leases = read_leases(&*bucket).await.unwrap();
    let removed = bury(&*bucket, &mut looked_before(&leases), (&leases, &none), later(), 500).await.unwrap();
    assert_eq!((removed, lease(&*bucket).await), ((0, 1), None));
    assert_eq!(
        bucket.get("nodes/n1.json").await.unwrap().unwrap().body,
        living.body,
        "who lives is left alone"
    );
}
