//! Why a session ends: three causes, told apart in the log and all with exit code 3 (field cases 17, 99 and 105).

use std::time::Duration;

use holdfast_records::Record;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use holdfast_types::{SessionId, WriteId};

use crate::support::{SOON, client, create, fleet, ids, insert};

async fn fence_line(cluster: &mut Cluster) -> String {
    let status = cluster.process_mut("n1").unwrap().wait_exit(SOON).await.unwrap();
    let log = cluster.log("n1");
    assert_eq!(status.code(), Some(3), "{log}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("SELF-FENCE:")).collect();
    assert_eq!(lines.len(), 1, "one line tells the cause:\n{log}");
    lines[0].to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_lease_fences_as_missing() {
    let mut cluster = fleet(1, 0).await;
    cluster.allow_in_logs("SELF-FENCE");
    cluster.raw_store().delete("nodes/n1.json").await.unwrap();
    let line = fence_line(&mut cluster).await;
    assert!(line.contains("lease_record_missing"), "{line}");
    assert!(cluster.lease("n1").await.unwrap().is_none(), "a fenced session writes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_lease_fences_as_mismatch() {
    let mut cluster = fleet(1, 0).await;
    cluster.allow_in_logs("SELF-FENCE");
    let mut lease = cluster.lease("n1").await.unwrap().unwrap();
    lease.session = SessionId::from_bits(7);
    lease.write_id = WriteId::from_bits(7);
    let forged = lease.encode();
    cluster.raw_store().put("nodes/n1.json", forged.clone()).await.unwrap();
    let line = fence_line(&mut cluster).await;
    assert!(line.contains("lease_record_mismatch"), "{line}");
    let left = cluster.raw_store().get("nodes/n1.json").await.unwrap().unwrap();
    assert_eq!(left, forged, "a fenced session writes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_store_fences_as_expired() {
    let mut cluster = fleet(1, 0).await;
    cluster.allow_in_logs("SELF-FENCE");
    cluster.faults("n1").cut_for(Duration::from_secs(60));
    let line = fence_line(&mut cluster).await;
    assert!(line.contains("lease_expired"), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_one_and_a_half_seconds_fences_nobody() {
    let options =
        ClusterOptions { nodes: 1, lease_ttl: Duration::from_secs(10), ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "db").await.unwrap();
    let session = cluster.lease("n1").await.unwrap().unwrap().session;
    // Several outages, so that at least one falls on a renewal, which comes every 3.3 s.
    for round in 0..4 {
        cluster.faults("n1").cut_for(Duration::from_millis(1_500));
        let before = cluster.lease("n1").await.unwrap().unwrap().expires_ms;
        wait::until("a renewal after the outage", SOON, async || {
            let lease = cluster.lease("n1").await?.unwrap();
            anyhow::ensure!(lease.expires_ms > before, "not renewed");
            Ok(())
        })
        .await
        .unwrap();
        let id = format!("round-{round}");
        insert(&client, ingress, "db", &id).await.into_result().unwrap();
        assert!(cluster.process_mut("n1").unwrap().exit_status().unwrap().is_none());
    }
    assert_eq!(cluster.lease("n1").await.unwrap().unwrap().session, session);
    assert_eq!(ids(&client, ingress, "db").await.unwrap().len(), 4);
}
