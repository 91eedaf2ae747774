//! The takeover of a large cell: it answers before its database is here.

use anyhow::{Result, ensure};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use serde_json::{Value, json};

use crate::support::{SOON, TTL, acked, client, create, db_on, insert, owner};

const BATCHES: u64 = 30;
const BATCH_ROWS: u64 = 10_000;
const SUMS: &str = "SELECT count(*), sum(n), sum(length(b)), min(length(b)) FROM large";

/// Bytes of objects that a node has read before and for what its statements waited for; the background not counted.
async fn bytes_waited_for(cluster: &Cluster, node: &str) -> Result<f64> {
    let restored = cluster.metric(node, "holdfast_cellnode_restores_bytes_total", "").await?;
    let fetched = cluster.metric(node, "holdfast_cellnode_paged_bytes_total", "use=\"demand\"").await?;
    Ok(restored + fetched)
}

/// Seconds that restores took before the cells were opened, all of them together.
async fn restore_seconds(cluster: &Cluster, node: &str) -> Result<f64> {
    let name = "holdfast_cellnode_activations_stage_seconds_sum";
    cluster.metric(node, name, "stage=\"restore\"").await
}

async fn unfinished(cluster: &Cluster, node: &str) -> Result<f64> {
    cluster.metric(node, "holdfast_cellnode_paged_unfinished_count", "").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_of_300_mb_is_taken_over_by_reading_a_few_pages_of_it() {
    // The background reads 16 MiB a second for the cell: some twenty seconds for all of it.
    let rate = ["--paged-fill-rate", "33554432"].map(Into::into).to_vec();
    let options = ClusterOptions { nodes: 1, lease_ttl: TTL, node_args: rate, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    let db = db_on(&cluster, &client, "n1").await;
    insert(&client, ingress, &db, "before").await.into_result().unwrap();
    let small = "small";
    create(&client, ingress, small).await.unwrap();
    acked(&client, ingress, &db, "CREATE TABLE large (n INTEGER PRIMARY KEY, b BLOB)", &[]).await.unwrap();
    for batch in 0..BATCHES {
        // Written again where nobody knows whether it was: the same numbers, other bytes.
        let sql = "WITH c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < ?1 - 1)
                   INSERT OR REPLACE INTO large SELECT ?2 + i, randomblob(1000) FROM c";
        acked(&client, ingress, &db, sql, &[json!(BATCH_ROWS), json!(batch * BATCH_ROWS)]).await.unwrap();
    }
    let sums = acked(&client, ingress, &db, SUMS, &[]).await.unwrap();
    assert_eq!(sums[0][0], json!(BATCHES * BATCH_ROWS));
    let sample = "SELECT n, hex(b) FROM large WHERE n % 5003 = 11 ORDER BY n";
    let rows = acked(&client, ingress, &db, sample, &[]).await.unwrap();
    assert_eq!(rows.len(), 60);

    cluster.start_node("n2").await.unwrap();
    cluster.kill("n1").unwrap();
    let one = |n: &Value| format!("SELECT n, hex(b) FROM large WHERE n = {n}");
    let first = acked(&client, ingress, &db, &one(&rows[40][0]), &[]).await.unwrap();
    let bytes = bytes_waited_for(&cluster, "n2").await.unwrap();
    let chain = 300e6;
    let seconds = restore_seconds(&cluster, "n2").await.unwrap();
    assert_eq!(first[0], rows[40]);
    assert!(bytes < chain / 50.0, "{bytes} bytes were read before the first answer");
    assert_eq!(owner(&cluster, &db).await, "n2");
    assert!(unfinished(&cluster, "n2").await.unwrap() >= 1.0, "the rest comes later");
    // Written and read over holes, while the small cell is served as ever.
    insert(&client, ingress, &db, "after").await.into_result().unwrap();
    insert(&client, ingress, small, "after").await.into_result().unwrap();
    for row in &rows {
        let found = acked(&client, ingress, &db, &one(&row[0]), &[]).await.unwrap();
        assert_eq!(found[0], *row);
    }
    wait::until("the file to be whole", SOON * 6, async || {
        ensure!(unfinished(&cluster, "n2").await? == 0.0, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(acked(&client, ingress, &db, SUMS, &[]).await.unwrap(), sums);
    assert_eq!(acked(&client, ingress, &db, sample, &[]).await.unwrap(), rows);

    // The same once more, restored whole: the same content, and what it costs.
    cluster.spawn_node("n3", &["--paged-from", "1000000000000000"]).await.unwrap();
    cluster.wait_ready("n3").await.unwrap();
    cluster.kill("n2").unwrap();
    let found = acked(&client, ingress, &db, sample, &[]).await.unwrap();
    assert_eq!(found, rows);
    assert_eq!(acked(&client, ingress, &db, SUMS, &[]).await.unwrap(), sums);
    let whole = bytes_waited_for(&cluster, "n3").await.unwrap();
    let whole_seconds = restore_seconds(&cluster, "n3").await.unwrap();
    println!(
        "before the first answer: paged {bytes} bytes, {seconds:.3} s; whole {whole} bytes, {whole_seconds:.3} s"
    );
    assert!(whole > chain);
    cluster.finish().unwrap();
}
