//! What a node refuses to start on (field cases 24 and 104).

use std::time::Duration;

use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::fault_proxy::{Action, Rule};
use http::Method;

use crate::support::{SOON, TTL};

async fn store() -> Cluster {
    Cluster::start_store(ClusterOptions { lease_ttl: TTL, ..ClusterOptions::default() }).await.unwrap()
}

/// Starts `n1` and waits for its end; its log.
async fn refusal(cluster: &mut Cluster, more: &[&str]) -> String {
    cluster.spawn_node("n1", more).await.unwrap();
    ended(cluster).await
}

async fn ended(cluster: &mut Cluster) -> String {
    let status = cluster.process_mut("n1").unwrap().wait_exit(SOON).await.unwrap();
    let log = cluster.log("n1");
    assert!(status.code().is_some_and(|code| code != 0 && code != 101), "{status}:\n{log}");
    assert!(!log.contains("panicked"), "{log}");
    log
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_ignores_conditions_is_refused_by_name() {
    let mut cluster = store().await;
    cluster.allow_in_logs("condition");
    cluster.bucket_args("n1").await.unwrap();
    cluster.faults("n1").add(Rule::new(Action::IgnoreConditions).conditional(true));
    let log = refusal(&mut cluster, &[]).await;
    assert!(log.contains("s3://holdfast") && log.to_lowercase().contains("condition"), "{log}");
    assert_eq!(cluster.lease("n1").await.unwrap(), None, "it has written no lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_says_no_to_everything_is_named() {
    let mut cluster = store().await;
    cluster.allow_in_logs("denied");
    cluster.bucket_args("n1").await.unwrap();
    let denied = Action::Status { status: 403, code: "AccessDenied".into() };
    cluster.faults("n1").add(Rule::new(denied).method(&Method::PUT));
    let log = refusal(&mut cluster, &[]).await;
    assert!(log.contains("AccessDenied") || log.contains("access denied"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_data_directory_is_named() {
    let mut cluster = store().await;
    cluster.allow_in_logs("data-n1");
    cluster.spawn_node_on_disk("n1", "ro").await.unwrap();
    let log = ended(&mut cluster).await;
    assert!(log.contains("data-n1") && log.contains("Read-only file system"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_in_use_is_refused() {
    let mut cluster = store().await;
    cluster.start_node("n1").await.unwrap();
    cluster.allow_in_logs("data-n2");
    std::os::unix::fs::symlink(cluster.data_dir("n1"), cluster.data_dir("n2")).unwrap();
    cluster.spawn_node("n2", &[]).await.unwrap();
    let status = cluster.process_mut("n2").unwrap().wait_exit(SOON).await.unwrap();
    let log = cluster.log("n2");
    assert!(!status.success() && log.contains("data-n2"), "{status}: {log}");
    assert!(cluster.process_mut("n1").unwrap().exit_status().unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_on_the_same_directory_is_immediate_and_on_another_it_waits_for_the_lease() {
    let mut cluster = store().await;
    cluster.start_node("n1").await.unwrap();
    cluster.kill("n1").unwrap();
    let started = std::time::Instant::now();
    cluster.start_node("n1").await.unwrap();
    let same = started.elapsed();
    assert!(same < Duration::from_millis(2_500), "its own lease is replaced at once, not after {same:?}");
    cluster.kill("n1").unwrap();
    std::fs::remove_dir_all(cluster.data_dir("n1")).unwrap();
    let lease = cluster.lease("n1").await.unwrap().unwrap();
    cluster.start_node("n1").await.unwrap();
    let after = cluster.lease("n1").await.unwrap().unwrap();
    assert_ne!(after.incarnation, lease.incarnation);
    assert!(after.started_ms >= lease.started_ms);
    let now_ms = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    assert!(now_ms >= u128::from(lease.expires_ms.get()), "ready before the old lease was over");
}
