//! A store that misbehaves before a node that must not (field cases 33, 34, 36, 44 and 46).

use std::time::Duration;

use holdfast_tests::client::Outcome;
use holdfast_tests::fault_proxy::{Action, Rule};
use holdfast_tests::wait;
use http::Method;

use crate::support::{SOON, TTL, acked, client, create, fleet, ids, insert};

fn put(action: Action, key: &str) -> Rule {
    Rule::new(action).method(&Method::PUT).contains(key).times(1)
}

/// The write that the fault hits is acknowledged all the same, once, and nobody is fenced.
async fn one_fault_is_settled(action: Action) {
    let mut cluster = fleet(1, 1).await;
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "old").await.unwrap();
    let session = cluster.lease("n1").await.unwrap().unwrap().session;
    let faults = cluster.faults("n1").clone();

    let on_owner = faults.add(put(action.clone(), "own.json"));
    create(&client, ingress, "new").await.unwrap();
    assert_eq!(faults.hits(on_owner), 1, "the owner record of a new cell");

    let on_lease = faults.add(put(action.clone(), "/nodes/n1.json"));
    wait::until("a renewal", SOON, async || {
        anyhow::ensure!(faults.hits(on_lease) == 1, "none yet");
        Ok(())
    })
    .await
    .unwrap();

    let on_data = faults.add(put(action, ".ltx"));
    insert(&client, ingress, "new", "hit").await.into_result().unwrap();
    assert_eq!(faults.hits(on_data), 1, "the upload of the write");
    insert(&client, ingress, "new", "next").await.into_result().unwrap();

    // Longer than the lease: a renewal that was taken for a theft would have ended the session by now.
    let expires_ms = cluster.lease("n1").await.unwrap().unwrap().expires_ms;
    wait::until("two renewals", SOON, async || {
        let lease = cluster.lease("n1").await?.unwrap();
        anyhow::ensure!(lease.expires_ms.since(expires_ms) >= u64::try_from(TTL.as_millis())?, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(cluster.lease("n1").await.unwrap().unwrap().session, session);
    cluster.kill("n1").unwrap();
    std::fs::remove_dir_all(cluster.data_dir("n1")).unwrap();
    cluster.start_node("n2").await.unwrap();
    assert_eq!(ids(&client, ingress, "new").await.unwrap(), ["hit", "next"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_are_settled_by_reading_back() {
    one_fault_is_settled(Action::DropAnswer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_500_after_the_write_was_applied_is_settled_by_reading_back() {
    one_fault_is_settled(Action::AnswerAfter { status: 500, code: "InternalError".into() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_409_is_no_rejection() {
    one_fault_is_settled(Action::Status { status: 409, code: "ConditionalRequestConflict".into() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_success_of_the_store_is_an_acknowledgement() {
    let mut cluster = fleet(1, 1).await;
    cluster.allow_in_logs("db:");
    let (client, ingress) = (client(), cluster.ingress());
    for (number, status) in [403, 500, 502].into_iter().enumerate() {
        let db = format!("s{number}");
        create(&client, ingress, &db).await.unwrap();
        let failing = Action::Status { status, code: "AccessDenied".into() };
        let rule = Rule::new(failing).method(&Method::PUT).contains(".ltx");
        let rule = cluster.faults("n1").add(rule);
        let outcome = insert(&client, ingress, &db, "during").await;
        assert!(!matches!(outcome, Outcome::Acked(..)), "status {status}: {outcome:?}");
        cluster.faults("n1").remove(rule);
        acked(&client, ingress, &db, "INSERT INTO t (id) VALUES ('after')", &[]).await.unwrap();
        let found = ids(&client, ingress, &db).await.unwrap();
        assert!(found.contains(&"after".into()), "status {status}: {found:?}");
    }
    assert!(cluster.process_mut("n1").unwrap().exit_status().unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chain_stays_whole_over_an_upload_outage_and_a_restart_on_the_same_disk() {
    let mut cluster = fleet(1, 1).await;
    cluster.allow_in_logs("SELF-FENCE");
    cluster.allow_in_logs("db:");
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "db").await.unwrap();
    let mut acked_ids = Vec::new();
    for round in 0..3 {
        for number in 0..5 {
            let id = format!("{round}-{number}");
            if matches!(insert(&client, ingress, "db", &id).await, Outcome::Acked(..)) {
                acked_ids.push(id);
            }
        }
        // The outage outlives the lease: what is written now is in the local database and never gets to the bucket.
        cluster.faults("n1").cut_for(TTL + Duration::from_secs(2));
        for number in 0..3 {
            let id = format!("{round}-lost-{number}");
            let outcome = insert(&client, ingress, "db", &id).await;
            assert!(!matches!(outcome, Outcome::Acked(..)), "{outcome:?}");
        }
        let status = cluster.process_mut("n1").unwrap().wait_exit(SOON).await.unwrap();
        assert_eq!(status.code(), Some(3));
        cluster.faults("n1").clear();
        cluster.start_node("n1").await.unwrap();
        let found = ids(&client, ingress, "db").await.unwrap();
        for id in &acked_ids {
            assert_eq!(found.iter().filter(|other| *other == id).count(), 1, "{id} in {found:?}");
        }
    }
    let before = ids(&client, ingress, "db").await.unwrap();
    cluster.kill("n1").unwrap();
    cluster.start_node("n2").await.unwrap();
    assert_eq!(ids(&client, ingress, "db").await.unwrap(), before, "restored on an empty disk");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_commits_share_uploads_and_an_idle_cell_uploads_nothing() {
    let cluster = fleet(1, 1).await;
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "db").await.unwrap();
    cluster.faults("n1").add(Rule::new(Action::Hold { ms: 50 }).method(&Method::PUT).contains(".ltx"));
    let uploads = || {
        let trace = cluster.faults("n1").trace();
        let arrived = |seen: &&holdfast_tests::fault_proxy::Seen| {
            seen.method == Method::PUT
                && seen.target.contains(".ltx")
                && seen.stage == holdfast_tests::fault_proxy::Stage::Arrived
        };
        trace.iter().filter(arrived).count()
    };
    let before = uploads();
    let names: Vec<String> = (0..200).map(|number| format!("c-{number}")).collect();
    let writes = names.iter().map(|id| insert(&client, ingress, "db", id));
    for outcome in futures::future::join_all(writes).await {
        outcome.into_result().unwrap();
    }
    let objects = uploads() - before;
    println!("200 concurrent writes made {objects} objects");
    assert!(objects <= 100, "{objects} objects for 200 writes");
    assert_eq!(ids(&client, ingress, "db").await.unwrap().len(), 200);
    let settled = uploads();
    let expires_ms = cluster.lease("n1").await.unwrap().unwrap().expires_ms;
    wait::until("two renewals", SOON, async || {
        let lease = cluster.lease("n1").await?.unwrap();
        anyhow::ensure!(lease.expires_ms.since(expires_ms) >= 2_000, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(uploads(), settled, "an idle cell uploads nothing");
}
