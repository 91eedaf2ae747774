//! Acknowledgements on the word of followers: what they survive, and who may no longer give any (field cases 96 and 108).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use holdfast_rpc::follower::{AppendAnswer, AppendMessage, AppendRefusal, LogFrame, LogName};
use holdfast_rpc::{
    Access, AppendStream, CellCall, CellClient, CellReply, FollowerClient, ForwardError, Peer, Role,
};
use holdfast_tests::client::{Outcome, SqlClient};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::fault_proxy::{Action, Rule};
use holdfast_tests::wait;
use holdfast_types::{CellName, Epoch, LogOffset, SessionId, Txid};
use http::Method;
use http_body_util::{BodyExt, Full};
use serde_json::json;

use crate::support::{SOON, client, create, db_on, ids, insert, time_to_ack};
use crate::tier::{NO_PACE, follower_peer, identity, tier, uploads_since, wait_covered, wait_ensemble};

/// A caller in these tests.
const CALLER: SessionId = SessionId::from_bits(0x7e57);

fn rows(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_the_bucket_never_saw_survive_their_owner_and_its_disk() {
    let mut cluster = tier(2, 2, &[]).await;
    let (client, ingress) = (client(), cluster.ingress());
    let db = db_on(&cluster, &client, "n1").await;
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    wait_covered(&cluster, "n1").await;
    // Held for longer than the test: what is in the proxy's hands dies with it.
    let hold = Rule::new(Action::Hold { ms: 600_000 }).method(&Method::PUT).contains("/cells/");
    let held = cluster.faults("n1").add(hold);
    let began = Instant::now();
    let written = rows("row", 100);
    for id in &written {
        insert(&client, ingress, &db, id).await.into_result().unwrap();
    }
    wait::until("an upload to be held", SOON, async || {
        anyhow::ensure!(cluster.faults("n1").hits(held) > 0, "none yet");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(uploads_since(&cluster, "n1", began), 0, "nothing reached the bucket");
    let by_followers = "kind=\"ensemble\",outcome=\"covered\"";
    let proofs = cluster.metric("n1", "holdfast_cellnode_proofs_count_total", by_followers).await.unwrap();
    assert!(proofs > 0.0, "followers proved them");
    cluster.kill("n1").unwrap();
    cluster.wipe_node("n1").unwrap();
    let took = time_to_ack(&client, ingress, &db, "after").await.unwrap();
    println!("another node serves what only followers had after {took:?}");
    let found = ids(&client, ingress, &db).await.unwrap();
    assert_eq!(found[..written.len()], written, "every acknowledged row, in order");
    assert_eq!(found[written.len()..], ["after"]);
}

/// One write, sent to a session itself: unlike an ingress this caller waits for as long as it takes.
async fn write_at(caller: &CellClient, peer: &Peer, db: &str, id: &str) -> Result<CellReply, ForwardError> {
    let sql = json!({ "sql": "INSERT INTO t (id, n) VALUES (?, 1)", "args": [id] }).to_string();
    let body = Full::new(Bytes::from(sql)).map_err(|never| match never {}).boxed_unsync();
    let request =
        http::Request::post("/query").header("content-type", "application/json").body(body).unwrap();
    let call = CellCall {
        cell: CellName::new("db", db).unwrap(),
        access: Access::ReadWrite,
        request,
        object: holdfast_rpc::ObjectCall::default(),
        deadline: tokio::time::Instant::now() + Duration::from_secs(60),
    };
    caller.call(peer, call).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_wakes_after_its_takeover_acknowledges_nothing_though_its_followers_have() {
    let mut cluster = tier(2, 2, &["--proof-timeout", "60s"]).await;
    cluster.allow_in_logs("SELF-FENCE");
    let (client, ingress) = (client(), cluster.ingress());
    let db = db_on(&cluster, &client, "n1").await;
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    insert(&client, ingress, &db, "before").await.into_result().unwrap();
    wait_covered(&cluster, "n1").await;
    let lease = cluster.lease("n1").await.unwrap().unwrap();
    let peer = Peer { node: lease.node, session: lease.session, address: lease.address };
    let caller = CellClient::new(identity(&cluster, Role::Ingress, "patient", CALLER).await);
    write_at(&caller, &peer, &db, "direct").await.expect("this caller is answered while all is well");
    wait_covered(&cluster, "n1").await;

    // Neither door opens: the bucket holds uploads, the followers stand still.
    let hold = Rule::new(Action::Hold { ms: 8_000 }).method(&Method::PUT).contains(".ltx");
    cluster.faults("n1").add(hold);
    for follower in ["f1", "f2"] {
        cluster.process(follower).unwrap().pause().unwrap();
    }
    let late = ["late-0", "late-1", "late-2"].map(|id| write_at(&caller, &peer, &db, id));
    let late = futures::future::join_all(late);
    tokio::pin!(late);
    let waiting = wait::until("writes to wait for their proofs", SOON, async || {
        let bytes = cluster.metric("n1", "holdfast_cellnode_gate_waiting_bytes", "").await?;
        anyhow::ensure!(bytes > 0.0, "none waits");
        Ok(())
    });
    tokio::select! {
        answers = &mut late => panic!("nothing can be proved: {answers:?}"),
        waited = waiting => waited.unwrap(),
    }
    cluster.process("n1").unwrap().pause().unwrap();
    // Now they fsync what they were sent, and their word is on its way to an owner that sleeps.
    for follower in ["f1", "f2"] {
        cluster.process(follower).unwrap().resume().unwrap();
    }
    let takeover = time_to_ack(&client, ingress, &db, "taken-over");
    tokio::select! {
        answers = &mut late => panic!("a paused owner answered: {answers:?}"),
        took = takeover => { took.unwrap(); }
    }
    cluster.process("n1").unwrap().resume().unwrap();
    for answer in late.await {
        assert!(matches!(answer, Err(ForwardError::MayHaveRun { .. })), "{answer:?}");
    }
    let status = cluster.process_mut("n1").unwrap().wait_exit(SOON).await.unwrap();
    assert_eq!(status.code(), Some(3), "a session whose lease is over fences itself");
    let found = ids(&client, ingress, &db).await.unwrap();
    assert_eq!(found[..2], ["before", "direct"], "{found:?}");
    assert_eq!(found.iter().filter(|id| *id == "taken-over").count(), 1, "{found:?}");
    // What was unknown may be there, before the takeover's own rows and once.
    let taken_over = found.iter().position(|id| id == "taken-over").unwrap();
    assert!(found[2..taken_over].iter().all(|id| id.starts_with("late-")), "{found:?}");
    assert_eq!(found.len(), taken_over + 1, "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_was_killed_right_after_its_seal_refuses_the_old_log_epoch() {
    let mut cluster = tier(1, 2, &NO_PACE).await;
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "db").await.unwrap();
    let record = wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    for id in rows("row", 10) {
        insert(&client, ingress, "db", &id).await.into_result().unwrap();
    }
    // Nobody recovers the session: the record stays as it is, so that nothing but the seal can refuse.
    cluster.kill("n1").unwrap();
    let log = LogName { node: record.node.clone(), session: record.session };
    let recoverer = FollowerClient::new(identity(&cluster, Role::Tools, "holdfast", CALLER).await);
    let link = recoverer.connect(&follower_peer(&cluster, "f1").await).await.unwrap();
    let sealed = link.seal(&log).await.unwrap();
    cluster.kill("f1").unwrap();
    assert!(sealed.sealed && sealed.complete && sealed.end > LogOffset::new(10), "{sealed:?}");
    cluster.kill("f2").unwrap();
    cluster.start_follower("f1").await.unwrap();
    cluster.start_follower("f2").await.unwrap();

    // As the dead session: its name, its certificate, the log epoch that the record still names.
    let owner = identity(&cluster, Role::Cellnode, "n1", record.session).await;
    let owner = FollowerClient::new(owner);
    let frame = |offset| {
        let cell = CellName::new("db", "db").unwrap();
        let body = Bytes::from_static(b"late");
        LogFrame::new(record.session, offset, cell, Epoch::new(1), Txid::new(1_000), body)
    };
    for (follower, is_sealed) in [("f1", true), ("f2", false)] {
        let peer = follower_peer(&cluster, follower).await;
        let link = owner.connect(&peer).await.unwrap();
        let held = link.describe().await.unwrap().logs.into_iter().find(|(name, _)| *name == log).unwrap().1;
        assert_eq!((held.sealed, held.start, held.end), (is_sealed, sealed.start, sealed.end), "{follower}");
        let AppendStream { mut sender, receiver: mut answers, connection } =
            owner.append_stream(&peer).await.unwrap();
        tokio::spawn(connection);
        let log_epoch = record.ensemble.log_epoch;
        let adopt = AppendMessage::Adopt { log: log.clone(), log_epoch, start: held.start };
        sender.send(adopt).await.unwrap();
        // It may have refused already, and then takes no more.
        let _ = sender.send(AppendMessage::Frames { log_epoch, frames: vec![frame(held.end)] }).await;
        let first = answers.next().await.unwrap().expect("an answer");
        if is_sealed {
            assert!(
                matches!(first, AppendAnswer::Refused { reason: AppendRefusal::Sealed, .. }),
                "{first:?}"
            );
        } else {
            assert_eq!(first, AppendAnswer::Adopted { log_epoch, next: held.end }, "{follower}");
            let second = answers.next().await.unwrap().expect("an answer");
            assert_eq!(second, AppendAnswer::Durable { log_epoch, offset: held.end }, "{follower}");
        }
        let again = link.seal(&log).await.unwrap();
        let end = if is_sealed { held.end } else { held.end.next() };
        assert!(again.sealed && again.end == end, "{follower}: {again:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_must_leave_while_the_bucket_is_down_leaves_everything_with_its_followers() {
    let mut cluster = tier(2, 2, &["--drain-timeout", "2s"]).await;
    cluster.allow_in_logs("SELF-FENCE");
    let (client, ingress) = (client(), cluster.ingress());
    let mut node = "n1".to_owned();
    for (round, is_all_down) in [false, true].into_iter().enumerate() {
        let db = db_on(&cluster, &client, &node).await;
        wait_ensemble(&cluster, &node, &["f1", "f2"]).await;
        wait_covered(&cluster, &node).await;
        let down = Action::Status { status: 503, code: "SlowDown".into() };
        if is_all_down {
            cluster.faults(&node).add(Rule::new(down));
        } else {
            // The lease lives; only data cannot be written.
            cluster.faults(&node).add(Rule::new(down).method(&Method::PUT).contains("/cells/"));
        }
        let written = rows(&format!("round-{round}"), 20);
        for id in &written {
            insert(&client, ingress, &db, id).await.into_result().unwrap();
        }
        cluster.process(&node).unwrap().terminate().unwrap();
        let status = cluster.process_mut(&node).unwrap().wait_exit(Duration::from_secs(30)).await.unwrap();
        println!("with {} down: {status}", if is_all_down { "the bucket" } else { "writes of data" });
        assert!(matches!(status.code(), Some(0 | 1 | 3)), "{status}");
        cluster.faults(&node).clear();
        cluster.wipe_node(&node).unwrap();
        let found = ids(&client, ingress, &db).await.unwrap();
        assert!(found.ends_with(&written), "{found:?}");
        node = format!("n{}", round + 3);
        cluster.start_node(&node).await.unwrap();
    }
}

async fn must_have(client: &SqlClient, ingress: SocketAddr, db: &str, rows: &[&str]) -> Result<()> {
    let found = ids(client, ingress, db).await?;
    anyhow::ensure!(found == rows, "`{db}` has {found:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_of_fifty_cells_outlives_two_seconds_of_503_from_the_bucket() {
    // The recoverer's own lease must outlive the outage.
    let options = ClusterOptions {
        nodes: 1,
        followers: 2,
        node_args: NO_PACE.map(Into::into).to_vec(),
        lease_ttl: Duration::from_secs(6),
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    let dbs = rows("cell", 50);
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    for db in &dbs {
        create(&client, ingress, db).await.unwrap();
    }
    let began = Instant::now();
    for db in &dbs {
        for id in ["first", "second"] {
            insert(&client, ingress, db, id).await.into_result().unwrap();
        }
    }
    assert_eq!(uploads_since(&cluster, "n1", began), 0, "only followers have the rows");
    cluster.kill("n1").unwrap();
    cluster.wipe_node("n1").unwrap();
    cluster.start_node("n2").await.unwrap();
    // Rounds of uploads that take longer than the outage is away.
    let slow = Rule::new(Action::Hold { ms: 150 }).method(&Method::PUT).contains(".ltx");
    let slow = cluster.faults("n2").add(slow);
    let asks = dbs.iter().map(|db| must_have(&client, ingress, db, &["first", "second"]));
    let fault = async {
        wait::until("the recovery to begin", SOON, async || {
            let trace = cluster.faults("n2").trace();
            let began =
                trace.iter().any(|seen| seen.method == Method::PUT && seen.target.contains("/log/n1/"));
            anyhow::ensure!(began, "not yet");
            Ok(())
        })
        .await?;
        // Part of the fault, not a wait for anything: the outage begins in the middle of the work.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let down = Action::Status { status: 503, code: "SlowDown".into() };
        cluster.faults("n2").remove(slow);
        let down = cluster.faults("n2").add(Rule::new(down));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let hits = cluster.faults("n2").hits(down);
        cluster.faults("n2").remove(down);
        anyhow::Ok(hits)
    };
    let (answers, hits) = tokio::join!(futures::future::join_all(asks), fault);
    let hits = hits.unwrap();
    println!("the outage hit {hits} requests");
    assert!(hits > 0, "the recovery was over before its fault");
    let failed: Vec<String> =
        answers.into_iter().filter_map(|answer| Some(format!("{:#}", answer.err()?))).collect();
    assert!(failed.is_empty(), "{} of {}: {failed:?}", failed.len(), dbs.len());
    for db in &dbs {
        let outcome = insert(&client, ingress, db, "third").await;
        assert!(matches!(outcome, Outcome::Acked(..)), "`{db}`: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_whose_recoverer_is_killed_in_the_middle_is_ended_by_another() {
    let mut cluster = tier(1, 2, &NO_PACE).await;
    let (client, ingress) = (client(), cluster.ingress());
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    create(&client, ingress, "db").await.unwrap();
    let written = rows("row", 20);
    for id in &written {
        insert(&client, ingress, "db", id).await.into_result().unwrap();
    }
    cluster.kill("n1").unwrap();
    cluster.start_node("n2").await.unwrap();
    let hold = Rule::new(Action::Hold { ms: 600_000 }).method(&Method::PUT).contains(".ltx");
    let held = cluster.faults("n2").add(hold);
    wait::until("the recovery to upload", SOON, async || {
        // Asked for by a request that nobody answers.
        let ask = client.query(ingress, "db", "SELECT 1", &[]);
        let _ = tokio::time::timeout(Duration::from_millis(200), ask).await;
        anyhow::ensure!(cluster.faults("n2").hits(held) > 0, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    cluster.kill("n2").unwrap();
    let killed = Instant::now();
    cluster.start_node("n3").await.unwrap();
    // The dead recoverer is left alone for 30 s after its last sign of life.
    wait::until("the rows", Duration::from_secs(60), async || {
        must_have(&client, ingress, "db", &written.iter().map(String::as_str).collect::<Vec<_>>()).await
    })
    .await
    .unwrap();
    println!("served {:?} after the recoverer's death", killed.elapsed());
}
