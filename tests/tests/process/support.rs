//! What scenarios share: fleets of a size, databases with a ledger, and reading everything back through another node.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use holdfast_tests::client::{Outcome, Rows, SqlClient};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use serde_json::{Value, json};

/// The fleet's lease TTL.
pub(crate) const TTL: Duration = Duration::from_secs(3);
/// How long a scenario waits for what must come soon.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Whether scenarios of size run in full, for their figures: `just fleet`.
pub(crate) fn is_in_full() -> bool {
    std::env::var_os("HOLDFAST_IN_FULL").is_some()
}

pub(crate) async fn fleet(nodes: usize, ingresses: usize) -> Cluster {
    Cluster::start(ClusterOptions { nodes, ingresses, lease_ttl: TTL, ..ClusterOptions::default() })
        .await
        .unwrap()
}

pub(crate) fn client() -> SqlClient {
    SqlClient::new(Duration::from_secs(15))
}

/// Makes a table `t (id TEXT, n INTEGER)`, again and again until it is acknowledged.
pub(crate) async fn create(client: &SqlClient, ingress: SocketAddr, db: &str) -> Result<()> {
    let sql = "CREATE TABLE IF NOT EXISTS t (id TEXT NOT NULL, n INTEGER)";
    acked(client, ingress, db, sql, &[]).await.map(|_| ())
}

/// Asks until acknowledged; for statements that may run twice.
pub(crate) async fn acked(
    client: &SqlClient,
    ingress: SocketAddr,
    db: &str,
    sql: &str,
    args: &[Value],
) -> Result<Rows> {
    let what = format!("an acknowledgement of `{sql}` by `{db}`");
    wait::until(&what, SOON, async || client.query(ingress, db, sql, args).await.into_result()).await
}

/// One insert, sent once.
pub(crate) async fn insert(client: &SqlClient, ingress: SocketAddr, db: &str, id: &str) -> Outcome<Rows> {
    client.query(ingress, db, "INSERT INTO t (id, n) VALUES (?, 1)", &[json!(id)]).await
}

/// The ids in the table, in order of insertion.
pub(crate) async fn ids(client: &SqlClient, ingress: SocketAddr, db: &str) -> Result<Vec<String>> {
    let rows = acked(client, ingress, db, "SELECT id FROM t ORDER BY rowid", &[]).await?;
    rows.into_iter().map(|row| Ok(row[0].as_str().context("an id is text")?.to_owned())).collect()
}

/// The node that owns a database.
pub(crate) async fn owner(cluster: &Cluster, db: &str) -> String {
    cluster.owner(db).await.unwrap().expect("the database has an owner record").node.to_string()
}

/// A database owned by `node`, made by asking for one after the other. A node that has just come gets its first one when
/// the ingress lists the leases again.
pub(crate) async fn db_on(cluster: &Cluster, client: &SqlClient, node: &str) -> String {
    let until = Instant::now() + SOON;
    for number in 0.. {
        let db = format!("cell-{number}");
        create(client, cluster.ingress(), &db).await.unwrap();
        if owner(cluster, &db).await == node {
            return db;
        }
        assert!(Instant::now() < until, "none of {} databases was placed on `{node}`", number + 1);
    }
    unreachable!("the range has no end")
}

/// How long until a database acknowledges again.
pub(crate) async fn time_to_ack(
    client: &SqlClient,
    ingress: SocketAddr,
    db: &str,
    id: &str,
) -> Result<Duration> {
    let started = Instant::now();
    let what = format!("an acknowledgement by `{db}`");
    wait::until(&what, SOON, async || insert(client, ingress, db, id).await.into_result()).await?;
    Ok(started.elapsed())
}
