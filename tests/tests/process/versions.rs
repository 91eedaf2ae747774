//! The programs of the release before beside those of this one, both ways round: a rolling upgrade and the way back under load, and
//! takeovers from one release to the other. They need the other programs: `scripts/previous`.

use std::time::Duration;

use anyhow::{Result, ensure};
use holdfast_tests::cluster::{Cluster, ClusterOptions, Release};
use holdfast_tests::wait;
use http::Method;
use serde_json::json;

use crate::support::{SOON, TTL, client, create, db_on, ids, insert, is_in_full, owner};
use crate::tier::wait_ensemble;
use crate::traffic::{Load, Traffic};

/// Each kind of program meets each other kind in both mixtures on the way.
const ORDER: [&str; 7] = ["i1", "n1", "f1", "w1", "n2", "f2", "i2"];

/// Sets the alarm of a database that inserts one row.
async fn set_alarm(cluster: &Cluster, db: &str, id: &str, in_ms: u64) {
    let (client, path) = (client(), format!("/-/db/{db}/alarm"));
    let sql = "INSERT INTO t (id, n) VALUES (?, 1)";
    let body = json!({ "in_ms": in_ms, "sql": sql, "args": [id] }).to_string();
    let set = wait::until("an alarm", SOON, async || {
        let body = body.clone().into();
        let answer = client.send(Method::POST, cluster.ingress(), &path, body).await.into_result()?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.text());
        Ok(())
    });
    set.await.unwrap();
}

/// Waits until a table holds these rows.
async fn holds(cluster: &Cluster, db: &str, wanted: &[&str]) {
    let (client, ingress) = (client(), cluster.ingress());
    wait::until("rows", SOON, async || {
        let found = ids(&client, ingress, db).await?;
        ensure!(found == wanted, "`{db}` has {found:?}");
        Ok(())
    })
    .await
    .unwrap();
}

/// Both nodes write by both followers, and the waker has given each of them its share.
async fn settle(cluster: &Cluster, cells: u64) {
    for node in ["n1", "n2"] {
        wait_ensemble(cluster, node, &["f1", "f2"]).await;
    }
    wait::until("cells on both nodes", SOON, async || -> Result<()> {
        for node in ["n1", "n2"] {
            let owned = cluster.lease(node).await?.map_or(0, |lease| lease.load.cells);
            ensure!(owned >= cells / 3, "`{node}` owns {owned}");
        }
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_and_the_way_back_fail_no_request_and_lose_no_write() {
    let options = ClusterOptions {
        nodes: 2,
        followers: 2,
        ingresses: 2,
        wakers: 1,
        lease_ttl: TTL,
        release: Release::Previous,
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    let load = match is_in_full() {
        true => Load { cells: 300, sockets: 10, pause: Duration::from_millis(1_500) },
        false => Load { cells: 60, sockets: 4, pause: Duration::from_millis(400) },
    };
    let mut traffic = Traffic::begin(&cluster, load).await;
    let cells = u64::try_from(load.cells).unwrap();
    let mut alarms = Vec::new();
    for release in [Release::This, Release::Previous] {
        for program in ORDER {
            traffic.step(&format!("`{program}` to {release:?}"));
            cluster.process(program).unwrap().terminate().unwrap();
            let exit =
                cluster.process_mut(program).unwrap().wait_exit(Duration::from_secs(60)).await.unwrap();
            assert!(exit.success(), "{program}: {exit}; {}", cluster.process(program).unwrap().log_tail());
            cluster.use_release(program, release);
            cluster.start_again(program).await.unwrap();
            settle(&cluster, cells).await;
            let db = format!("alarm-{}", alarms.len());
            create(&client(), cluster.ingress(), &db).await.unwrap();
            set_alarm(&cluster, &db, "rang", 500).await;
            alarms.push(db);
        }
    }
    for db in &alarms {
        holds(&cluster, db, &["rang"]).await;
    }
    traffic.end(&cluster).await;
    cluster.finish().unwrap();
}

/// The last words of a node are on followers alone; its cell has an alarm to come. The other release seals the log, restores the
/// cell and runs the alarm, and so does the first one with what the other wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_is_taken_over_by_the_other_release_with_all_that_it_acknowledged() {
    for (first, second) in [(Release::Previous, Release::This), (Release::This, Release::Previous)] {
        let options = ClusterOptions {
            nodes: 0,
            ingresses: 0,
            lease_ttl: TTL,
            node_args: ["--upload-pace", "10min"].map(Into::into).to_vec(),
            ..ClusterOptions::default()
        };
        let mut cluster = Cluster::start(options).await.unwrap();
        for (name, release) in [("f1", first), ("f2", second), ("n1", first), ("i1", second), ("w1", first)] {
            cluster.use_release(name, release);
            cluster.start_again(name).await.unwrap();
        }
        let (client, ingress) = (client(), cluster.ingress());
        wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
        let db = db_on(&cluster, &client, "n1").await;
        insert(&client, ingress, &db, "by the first").await.into_result().unwrap();
        cluster.use_release("n2", second);
        cluster.start_node("n2").await.unwrap();
        wait_ensemble(&cluster, "n2", &["f1", "f2"]).await;
        set_alarm(&cluster, &db, "alarm of the first", 5_000).await;
        cluster.kill("n1").unwrap();
        // Nobody asks for the cell: the waker of the first release has the node of the second open it.
        wait::until("another owner", SOON, async || {
            ensure!(owner(&cluster, &db).await == "n2", "not yet");
            Ok(())
        })
        .await
        .unwrap();
        holds(&cluster, &db, &["by the first", "alarm of the first"]).await;

        insert(&client, ingress, &db, "by the second").await.into_result().unwrap();
        cluster.start_node("n1").await.unwrap();
        wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
        set_alarm(&cluster, &db, "alarm of the second", 5_000).await;
        cluster.kill("n2").unwrap();
        let all = ["by the first", "alarm of the first", "by the second", "alarm of the second"];
        holds(&cluster, &db, &all).await;
        assert_eq!(owner(&cluster, &db).await, "n1");
        cluster.finish().unwrap();
    }
}
