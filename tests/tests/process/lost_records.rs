//! Cells whose owner record is missing, torn, or of a newer release: nobody serves them from then on, and an operator can
//! delete them by force, once no node has them; what a late uploader brings stays unread.

use std::time::Duration;

use holdfast_tests::client::Outcome;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;

use crate::support::{SOON, TTL, client, create, db_on, ids, insert};

/// Refused by a node that is killed and whose lease has not ended.
const LEASE: Duration = Duration::from_secs(10);

fn own(db: &str) -> String {
    format!("cells/db:{db}/own.json")
}

async fn objects(cluster: &Cluster, db: &str) -> Vec<String> {
    cluster.raw_store().list(&format!("cells/db:{db}/ltx/")).await.unwrap()
}

/// Breaks the record, has the cell deleted by force while its owner serves it, brings everything back that a late uploader
/// could, and finds a new, empty cell.
async fn is_deleted_for_ever(cluster: &Cluster, found: Option<&str>, named: &str) {
    let (client, ingress, raw) = (client(), cluster.ingress(), cluster.raw_store());
    let db = db_on(cluster, &client, "n1").await;
    insert(&client, ingress, &db, "old").await.into_result().unwrap();
    let uploaded = async || {
        let keys = objects(cluster, &db).await;
        anyhow::ensure!(keys.iter().any(|key| key.ends_with(".ltx")), "{keys:?}");
        Ok(keys)
    };
    let keys = wait::until("the history", SOON, uploaded).await.unwrap();
    let mut late = Vec::new();
    for key in keys {
        let body = raw.get(&key).await.unwrap().unwrap();
        late.push((key, body));
    }
    match found {
        Some(body) => raw.put(&own(&db), body.to_owned()).await.unwrap(),
        None => raw.delete(&own(&db)).await.unwrap(),
    }

    let cell = format!("db:{db}");
    let refused = cluster.tool(&["cell", "delete", &cell, "--yes"]).await.unwrap();
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.stderr.contains(named) && refused.stderr.contains("--force-unreadable"), "{refused:?}");
    let deleted =
        cluster.tool(&["--json", "cell", "delete", &cell, "--yes", "--force-unreadable"]).await.unwrap();
    assert_eq!(deleted.code, 0, "{deleted:?}");
    let epoch = deleted.json().unwrap()["epoch"].as_u64().unwrap();
    assert!(epoch > 1 << 32, "{deleted:?}");
    assert_eq!(objects(cluster, &db).await, Vec::<String>::new());

    for (key, body) in late {
        raw.put(&key, body).await.unwrap();
    }
    let gone = async || match client.query(ingress, &db, "SELECT id FROM t", &[]).await {
        Outcome::Refused(text) if text.contains("no such table") => Ok(()),
        other => anyhow::bail!("{other:?}"),
    };
    wait::until("a new cell", SOON, gone).await.unwrap();
    create(&client, ingress, &db).await.unwrap();
    insert(&client, ingress, &db, "new").await.into_result().unwrap();
    assert_eq!(ids(&client, ingress, &db).await.unwrap(), ["new"]);
    assert!(cluster.owner(&db).await.unwrap().unwrap().epoch.get() > epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_without_a_readable_record_is_deleted_by_force_and_stays_deleted() {
    let options = ClusterOptions { nodes: 2, followers: 2, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    cluster.allow_in_logs("owner record");
    cluster.allow_in_logs("could not be given up");
    for (found, named) in [
        (None, "no owner record"),
        (Some("{\"version\":\"1.0\",\"write_"), "malformed"),
        (Some("{\"version\":\"9.0\",\"shape\":\"other\"}"), "version 9"),
    ] {
        is_deleted_for_ever(&cluster, found, named).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_lives_and_does_not_answer_stops_the_deletion_until_its_lease_ends() {
    let options = ClusterOptions { nodes: 2, lease_ttl: LEASE, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let client = client();
    let db = db_on(&cluster, &client, "n1").await;
    cluster.kill("n1").unwrap();
    cluster.raw_store().put(&own(&db), "torn").await.unwrap();
    let cell = format!("db:{db}");
    let args = ["cell", "delete", &cell, "--yes", "--force-unreadable"];
    let refused = cluster.tool(&args).await.unwrap();
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.stderr.contains("node `n1` lives"), "{refused:?}");
    assert_eq!(cluster.raw_store().get(&own(&db)).await.unwrap().unwrap(), "torn", "nothing is written");
    let deleted = async || {
        let answer = cluster.tool(&args).await?;
        anyhow::ensure!(answer.code == 0, "{answer:?}");
        Ok(())
    };
    wait::until("the deletion", LEASE + SOON, deleted).await.unwrap();
    assert_eq!(objects(&cluster, &db).await, Vec::<String>::new());
}
