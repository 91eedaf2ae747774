//! A disk that fills up and gets room again (field case 94).

use holdfast_tests::client::Outcome;
use serde_json::json;

use crate::support::{SOON, acked, client, create, fleet, ids, insert};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_fails_writes_by_name_and_heals_without_a_restart() {
    let mut cluster = fleet(0, 1).await;
    cluster.allow_in_logs("full");
    cluster.allow_in_logs("No space left");
    cluster.spawn_node_on_disk("n1", "size=16m").await.unwrap();
    cluster.wait_ready("n1").await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    create(&client, ingress, "grows").await.unwrap();
    create(&client, ingress, "other").await.unwrap();
    insert(&client, ingress, "grows", "before").await.into_result().unwrap();
    let ballast = cluster.disk_dir("n1").unwrap().join("ballast");
    let full = std::io::copy(&mut std::io::repeat(0), &mut std::fs::File::create(&ballast).unwrap());
    assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);

    let sql = "INSERT INTO t (id, n) VALUES (?, 1)";
    let large = "x".repeat(400_000);
    let outcome = client.query(ingress, "grows", sql, &[json!(large)]).await;
    let reason = match outcome {
        Outcome::Refused(reason) | Outcome::Unknown(reason) => reason,
        Outcome::Acked(..) => panic!("a write that the disk cannot hold was acknowledged"),
    };
    assert!(reason.contains("full") || reason.contains("space"), "{reason}");
    assert!(cluster.process_mut("n1").unwrap().exit_status().unwrap().is_none(), "the node lives");

    std::fs::remove_file(&ballast).unwrap();
    holdfast_tests::wait::until("a write after there is room again", SOON, async || {
        client.query(ingress, "grows", sql, &[json!(large)]).await.into_result()
    })
    .await
    .unwrap();
    acked(&client, ingress, "other", "INSERT INTO t (id) VALUES ('after')", &[]).await.unwrap();
    let found = ids(&client, ingress, "grows").await.unwrap();
    assert!(found.len() == 2 && found[0] == "before", "{} rows", found.len());
    assert!(cluster.process_mut("n1").unwrap().exit_status().unwrap().is_none(), "the node lives");
}
