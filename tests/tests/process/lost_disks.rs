//! Every disk of an ensemble is gone: the programs never decide by themselves that writes are lost (INV-REC-3).

use bytes::Bytes;
use holdfast_records::NodeLogState;
use holdfast_tests::client::{Answer, Outcome, SqlClient, db_path};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::fault_proxy::{Action, Rule};
use holdfast_tests::wait;
use holdfast_types::SessionId;
use http::Method;
use serde_json::{Value, json};

use crate::support::{SOON, TTL, client, create, ids, insert};
use crate::tier::{wait_covered, wait_ensemble};

async fn ask(cluster: &Cluster, client: &SqlClient, db: &str) -> Answer {
    let body = Bytes::from(json!({ "sql": "SELECT id FROM t" }).to_string());
    match client.send(Method::POST, cluster.ingress(), &db_path(db, "query"), body).await {
        Outcome::Acked(answer, _) => answer,
        Outcome::Refused(reason) | Outcome::Unknown(reason) => panic!("no answer at all: {reason}"),
    }
}

/// Waits for attempts at the recovery that end blocked, on a node.
async fn wait_blocked(cluster: &Cluster, node: &str, times: f64) {
    wait::until("attempts that end blocked", SOON, async || {
        let blocked = "outcome=\"blocked\"";
        let count = cluster.metric(node, "holdfast_cellnode_recoveries_count_total", blocked).await?;
        anyhow::ensure!(count >= times, "{count} so far");
        Ok(())
    })
    .await
    .unwrap();
}

/// The line of `diagnose` about a log.
async fn diagnosed(cluster: &Cluster, word: &str) -> (i32, Value) {
    let answer = cluster.tool(&["--json", "diagnose"]).await.unwrap();
    let report: Value = serde_json::from_str(answer.stdout.lines().next().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"].as_str().unwrap().contains(word));
    (answer.code, found.unwrap_or_else(|| panic!("no `{word}` in {report}")).clone())
}

async fn must_be_blocked(cluster: &Cluster, client: &SqlClient, session: SessionId) {
    let answer = ask(cluster, client, "db").await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    let (session, text) = (session.to_string(), answer.text());
    for part in ["n1", &session, "f1", "f2", "another disk"] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    let (code, check) = diagnosed(cluster, &session).await;
    assert_eq!((code, &check["status"]), (1, &json!("fault")), "{check}");
    let detail = check["detail"].as_str().unwrap();
    for part in ["BLOCKED", "f1", "f2", "declare-loss"] {
        assert!(detail.contains(part), "`{part}` is not in {detail}");
    }
    let shown = cluster.tool(&["log", "show", "n1", &session]).await.unwrap();
    for part in ["BLOCKED", "`f1`", "`f2`", "has another disk now"] {
        assert!(shown.stdout.contains(part), "`{part}` is not in {shown:?}");
    }
    let shown = cluster.tool(&["--json", "log", "show", "n1", &session]).await.unwrap().json().unwrap();
    assert_eq!((&shown["state"], &shown["loss_declared"]), (&json!("recovering"), &json!(false)), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_disk_of_the_ensemble_a_recovery_waits_until_a_person_declares_loss() {
    let options = ClusterOptions {
        nodes: 1,
        followers: 2,
        lease_ttl: TTL,
        // Requests for a cell that cannot be had wait for this long, and there are several.
        ingress_args: ["--request-timeout", "4s"].map(Into::into).to_vec(),
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    cluster.allow_in_logs("RECOVERY BLOCKED");
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "db").await.unwrap();
    let record = wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    insert(&client, ingress, "db", "kept").await.into_result().unwrap();
    wait_covered(&cluster, "n1").await;
    let down = Action::Status { status: 503, code: "SlowDown".into() };
    cluster.faults("n1").add(Rule::new(down).method(&Method::PUT).contains(".ltx"));
    for id in ["lost-0", "lost-1"] {
        insert(&client, ingress, "db", id).await.into_result().unwrap();
    }
    for program in ["n1", "f1", "f2"] {
        cluster.kill(program).unwrap();
    }
    cluster.wipe_node("n1").unwrap();
    for follower in ["f1", "f2"] {
        cluster.wipe_follower(follower).unwrap();
        cluster.start_follower(follower).await.unwrap();
    }
    cluster.start_node("n2").await.unwrap();

    // Asked for by requests, again and again, by this node and by the one after it.
    must_be_blocked(&cluster, &client, record.session).await;
    wait_blocked(&cluster, "n2", 4.0).await;
    cluster.kill("n2").unwrap();
    cluster.start_node("n3").await.unwrap();
    must_be_blocked(&cluster, &client, record.session).await;
    wait_blocked(&cluster, "n3", 2.0).await;
    assert_eq!(cluster.metric("n3", "holdfast_cellnode_recoveries_blocked_count", "").await.unwrap(), 1.0);

    let session = record.session.to_string();
    let recover = cluster.tool(&["log", "recover", "n1", &session]).await.unwrap();
    assert!(recover.code == 1 && recover.stderr.contains("declare-loss"), "{recover:?}");
    let declare = ["log", "declare-loss", "n1", &session, "--reason", "both disks burnt"];
    let unsure = cluster.tool(&declare).await.unwrap();
    assert!(unsure.code == 1 && unsure.stderr.contains("--yes"), "{unsure:?}");
    must_be_blocked(&cluster, &client, record.session).await;

    let declared = cluster.tool(&[&declare[..], &["--yes"]].concat()).await.unwrap();
    assert_eq!(declared.code, 0, "{declared:?}");
    assert_eq!(ids(&client, ingress, "db").await.unwrap(), ["kept"], "what the bucket had, and no more");
    insert(&client, ingress, "db", "next").await.into_result().unwrap();
    let log = cluster.node_log("n1", record.session).await.unwrap().unwrap();
    assert!(log.state == NodeLogState::Sealed && log.loss_declared, "{log:?}");
    let (code, loss) = diagnosed(&cluster, "LOSS").await;
    assert_eq!((code, &loss["status"]), (0, &json!("note")), "{loss}");
    assert!(loss["detail"].as_str().unwrap().contains("both disks burnt"), "{loss}");
    wait::until("no recovery to be blocked", SOON, async || {
        let blocked = cluster.metric("n3", "holdfast_cellnode_recoveries_blocked_count", "").await?;
        anyhow::ensure!(blocked == 0.0, "{blocked}");
        Ok(())
    })
    .await
    .unwrap();
}
