//! Many dirty cells: their writes reach the bucket in bundles, which are all that is left of them when their owner dies.

use std::time::Duration;

use anyhow::ensure;
use holdfast_tests::fault_proxy::{Action, Rule, Seen, Stage};
use holdfast_tests::wait;
use http::Method;

use crate::support::{SOON, client, create, ids, insert};
use crate::tier::{tier, uploads_since, wait_covered, wait_ensemble};

/// Enough for a round to be bundled, with some to spare.
const CELLS: usize = 72;
const WRITES: usize = 4;

fn is_stored_bundle(seen: &Seen) -> bool {
    seen.method == Method::PUT
        && seen.target.contains("/bundle/")
        && matches!(seen.stage, Stage::Answered(200))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_followers_dropped_for_a_bundle_survive_their_owner() {
    let mut cluster = tier(1, 2, &["--upload-pace", "500ms"]).await;
    let (client, ingress) = (client(), cluster.ingress());
    wait_ensemble(&cluster, "n1", &["f1", "f2"]).await;
    let dbs: Vec<String> = (0..CELLS).map(|number| format!("db-{number}")).collect();
    for some in dbs.chunks(8) {
        let made = some.iter().map(|db| create(&client, ingress, db));
        futures::future::try_join_all(made).await.unwrap();
    }
    wait_covered(&cluster, "n1").await;
    // No cell gets an object of its own any more. Held for longer than the test.
    let hold = Rule::new(Action::Hold { ms: 600_000 }).method(&Method::PUT).contains("/cells/");
    cluster.faults("n1").add(hold);
    let began = std::time::Instant::now();
    for number in 0..WRITES {
        let id = format!("row-{number}");
        let written = dbs.iter().map(|db| insert(&client, ingress, db, &id));
        for outcome in futures::future::join_all(written).await {
            outcome.into_result().unwrap();
        }
    }
    // The session and its followers retain nothing, though no cell's prefix has anything.
    wait_covered(&cluster, "n1").await;
    assert_eq!(uploads_since(&cluster, "n1", began), 0, "no cell's prefix has any of it");
    let bundles = cluster.faults("n1").trace().iter().filter(|seen| is_stored_bundle(seen)).count();
    assert!(bundles > 0, "bundles have");
    wait::until("followers to drop what bundles hold", SOON, async || {
        for follower in ["f1", "f2"] {
            let retained = cluster.metric(follower, "holdfast_follower_retained_bytes", "").await?;
            ensure!(retained == 0.0, "`{follower}` retains {retained} bytes");
        }
        Ok(())
    })
    .await
    .unwrap();

    cluster.kill("n1").unwrap();
    cluster.wipe_node("n1").unwrap();
    cluster.start_node("n2").await.unwrap();
    let expected: Vec<String> = (0..WRITES).map(|number| format!("row-{number}")).collect();
    for db in &dbs {
        assert_eq!(ids(&client, ingress, db).await.unwrap(), expected, "`{db}`");
    }
    tokio::time::timeout(Duration::from_secs(5), insert(&client, ingress, &dbs[0], "after"))
        .await
        .unwrap()
        .into_result()
        .unwrap();
}
