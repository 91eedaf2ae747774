//! The fleet's keys are rotated under load, and no program is restarted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use serde_json::Value;

use crate::support::{TTL, client, db_on, ids, insert};

/// A little more than the time in which programs read the fleet's identity.
const STEP_WAIT: &str = "35s";
const PAUSE: Duration = Duration::from_millis(20);

async fn fleet(cluster: &Cluster, command: &[&str]) -> Result<Value> {
    let args: Vec<&str> = ["--json", "fleet"].iter().chain(command).copied().collect();
    let ended = cluster.tool(&args).await?;
    ensure!(ended.code == 0, "{ended:?}");
    ended.json()
}

fn keys(shown: &Value) -> Vec<(String, String, String)> {
    let rows = shown["keys"].as_array().expect("a list of keys").iter();
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    rows.map(|row| (text(row, "kind"), text(row, "state"), text(row, "name"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authority_is_rotated_under_load_without_a_restart() {
    let options = ClusterOptions { nodes: 2, followers: 2, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    let db = db_on(&cluster, &client, "n1").await;

    let is_over = AtomicBool::new(false);
    let load = async {
        let mut written = Vec::new();
        while !is_over.load(Ordering::Acquire) {
            let id = written.len().to_string();
            insert(&client, ingress, &db, &id).await.into_result().unwrap();
            written.push(id);
            tokio::time::sleep(PAUSE).await;
        }
        written
    };
    let rotation = async {
        let before = keys(&fleet(&cluster, &["show"]).await.unwrap());
        let rotated = fleet(&cluster, &["rotate", "authority", "--step-wait", STEP_WAIT]).await;
        is_over.store(true, Ordering::Release);
        (before, keys(&rotated.unwrap()))
    };
    let (written, (before, after)) = tokio::join!(load, rotation);
    assert_eq!(after.len(), 2, "{after:?}");
    assert_eq!(after[0].1, "signs");
    assert_ne!(after[0].2, before[0].2, "another authority signs");
    assert_eq!(after[1], before[1], "the token key is as it was");

    // New connections of old processes, and those of a new one.
    cluster.kill("n1").unwrap();
    cluster.start_node("n1").await.unwrap();
    assert_eq!(ids(&client, ingress, &db).await.unwrap(), written, "nothing that was acknowledged is lost");
    db_on(&cluster, &client, "n1").await;
    let checked = cluster.tool(&["diagnose", "--read-only"]).await.unwrap();
    assert_eq!(checked.code, 0, "{checked:?}");
}
