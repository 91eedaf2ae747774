//! Input that a public edge gets, through a real ingress and node (issue point 8; field cases 4, 6, 15 and 49).

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use holdfast_tests::client::{Answer, Outcome, SqlClient, db_path};
use holdfast_tests::cluster::Cluster;
use http::Method;
use serde_json::{Value, json};

use crate::support::{acked, client, create, fleet, ids, insert};

struct Edge {
    cluster: Cluster,
    client: SqlClient,
    ingress: SocketAddr,
}

impl Edge {
    async fn new() -> Self {
        let cluster = fleet(1, 1).await;
        let (client, ingress) = (client(), cluster.ingress());
        create(&client, ingress, "db").await.unwrap();
        Self { cluster, client, ingress }
    }

    async fn send(&self, method: Method, path: &str, body: impl Into<bytes::Bytes>) -> Answer {
        self.client.send(method, self.ingress, path, body.into()).await.into_result().unwrap()
    }

    async fn query(&self, sql: &str) -> Answer {
        let body = json!({ "sql": sql }).to_string();
        self.send(Method::POST, &db_path("db", "query"), body).await
    }

    /// Refused with this status, a text that has these words, and nothing else broken.
    async fn refuses(&self, answer: &Answer, status: u16, words: &[&str]) {
        let text = answer.text();
        assert_eq!(answer.status.as_u16(), status, "{text}");
        for word in words {
            assert!(text.to_lowercase().contains(&word.to_lowercase()), "`{word}` is not in: {text}");
        }
        assert!(answer.headers.get("holdfast-outcome").is_none_or(|said| said != "unknown"), "{text}");
        let alive = self.query("SELECT 1").await;
        assert_eq!(alive.status, 200, "after `{text}`: {}", alive.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_none_are_refused_with_their_reason() {
    let edge = Edge::new().await;
    let query = db_path("db", "query");
    for body in ["{", "", "[]", "{\"sql\": 7}", "{\"args\": []}", "\u{0}"] {
        let answer = edge.send(Method::POST, &query, body).await;
        edge.refuses(&answer, 400, &[]).await;
        assert!(!answer.body.is_empty(), "a refusal says why: {body}");
    }
    let pipeline = db_path("db", "v2/pipeline");
    let answer = edge.send(Method::POST, &pipeline, "{\"requests\": 1}").await;
    edge.refuses(&answer, 400, &[]).await;
    let answer = edge.send(Method::POST, &pipeline, "{\"baton\": \"forged\", \"requests\": []}").await;
    edge.refuses(&answer, 400, &["baton"]).await;
    let deep = "[".repeat(100_000);
    let answer = edge.send(Method::POST, &query, format!("{{\"sql\": \"SELECT ?\", \"args\": {deep}")).await;
    edge.refuses(&answer, 400, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_none_reach_no_cell() {
    let edge = Edge::new().await;
    let body = "{\"sql\": \"SELECT 1\"}";
    let long = "x".repeat(300);
    for (path, status) in [
        (format!("/-/db/{long}/query"), 400),
        ("/-/db/a%00b/query".to_owned(), 400),
        ("/-/db/%FF/query".to_owned(), 400),
        ("/-/db//query".to_owned(), 400),
        ("/-/cells/Unknown/x/query".to_owned(), 404),
        ("/-/nothing".to_owned(), 404),
    ] {
        let answer = edge.send(Method::POST, &path, body).await;
        let got = answer.status.as_u16();
        assert!(got == status || (status == 400 && got == 404), "{path}: {got} {}", answer.text());
    }
    // A name with dots and slashes is a name like any other, and stays in its own place.
    for name in ["../../etc", "..", "a/b", "ü 🦀", "%41"] {
        create(&edge.client, edge.ingress, name).await.unwrap();
        insert(&edge.client, edge.ingress, name, name).await.into_result().unwrap();
        assert_eq!(ids(&edge.client, edge.ingress, name).await.unwrap(), [name]);
    }
    for key in edge.cluster.raw_store().list("").await.unwrap() {
        let known =
            ["cells/db:", "nodes/n1.json", "log/n1/", "wake/format.json", "fleet/identity.json", "probe/"];
        let leaves = key.split('/').any(|segment| segment == "..");
        assert!(known.iter().any(|prefix| key.starts_with(prefix)) && !leaves, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_would_break_the_engine_are_refused_by_name() {
    let edge = Edge::new().await;
    for (sql, word) in [
        ("SELEC 1", "syntax"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("ATTACH '/tmp/x.db' AS x", "ATTACH"),
        ("PRAGMA journal_mode = DELETE", "journal_mode"),
        ("PRAGMA wal_checkpoint(TRUNCATE)", "wal_checkpoint"),
        ("PRAGMA locking_mode = NORMAL", "locking_mode"),
        ("VACUUM INTO '/tmp/x.db'", ""),
        ("SELECT load_extension('x')", ""),
        ("", ""),
    ] {
        let answer = edge.query(sql).await;
        assert!((400..500).contains(&answer.status.as_u16()), "{sql}: {} {}", answer.status, answer.text());
        edge.refuses(&answer, answer.status.as_u16(), &[word]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_numbers_with_a_clear_error_and_cost_no_minutes() {
    let edge = Edge::new().await;
    let columns = vec!["1"; 2_500].join(",");
    let statement = format!("SELECT '{}'", "x".repeat(3 << 20));
    let big = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) \
               SELECT hex(randomblob(524288)) FROM c";
    let endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";
    let pattern = format!("SELECT '{}' LIKE '{}'", "a".repeat(50_000), "%a".repeat(60_000));
    for sql in [&*format!("SELECT {columns}"), &*statement, big, endless, &*pattern] {
        let started = Instant::now();
        let answer = edge.query(sql).await;
        let text: String = answer.text().chars().take(200).collect();
        assert!((400..500).contains(&answer.status.as_u16()), "{}: {text}", answer.status);
        assert!(started.elapsed() < Duration::from_secs(12), "{:?} for {text}", started.elapsed());
        edge.refuses(&answer, answer.status.as_u16(), &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_constraint_that_fails_at_commit_is_no_success_and_leaves_no_transaction_open() {
    let edge = Edge::new().await;
    let (client, ingress) = (&edge.client, edge.ingress);
    for sql in [
        "CREATE TABLE p (id TEXT PRIMARY KEY)",
        "CREATE TABLE c (pid TEXT REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED)",
    ] {
        acked(client, ingress, "db", sql, &[]).await.unwrap();
    }
    let answer = edge.query("INSERT INTO c VALUES ('missing')").await;
    edge.refuses(&answer, 400, &["FOREIGN KEY"]).await;
    let statements = [("INSERT INTO c VALUES ('missing')", Vec::new())];
    let outcome = client.transaction(ingress, "db", &statements).await;
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    let rows = acked(client, ingress, "db", "SELECT count(*) FROM c", &[]).await.unwrap();
    assert_eq!(rows, [[json!(0)]]);
    insert(client, ingress, "db", "next").await.into_result().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn integers_are_exact_through_both_doors() {
    let edge = Edge::new().await;
    let (client, ingress) = (&edge.client, edge.ingress);
    for number in [
        0,
        -1,
        1_774_883_342_899,
        2_147_483_648,
        -2_147_483_649,
        9_007_199_254_740_991,
        9_007_199_254_740_993,
        i64::MAX,
        i64::MIN,
    ] {
        let expected = [[Value::from(number), json!(number.to_string())]];
        let sql = "SELECT ?1, CAST(?1 AS TEXT)";
        let rows = client.query(ingress, "db", sql, &[json!(number)]).await.into_result().unwrap();
        // Beyond 2^53 plain JSON has the digits as text, since most readers of JSON would round a number.
        let is_exact_number = number.unsigned_abs() <= 1 << 53;
        let plain = if is_exact_number { json!(number) } else { json!(number.to_string()) };
        assert_eq!(rows, [[plain, json!(number.to_string())]], "plain");
        let rows =
            client.transaction(ingress, "db", &[(sql, vec![json!(number)])]).await.into_result().unwrap();
        assert_eq!(rows, [expected.to_vec()], "Hrana");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_disturbs_nobody() {
    let edge = Edge::new().await;
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"sql\": \"INS",
        db_path("db", "query"),
        edge.ingress
    );
    for _ in 0..50 {
        let mut socket = TcpStream::connect(edge.ingress).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        drop(socket);
    }
    let body = json!({ "sql": "INSERT INTO t (id) VALUES ('hung-up')" }).to_string();
    let whole = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        db_path("db", "query"),
        edge.ingress,
        body.len()
    );
    for _ in 0..50 {
        let mut socket = TcpStream::connect(edge.ingress).unwrap();
        socket.write_all(whole.as_bytes()).unwrap();
        drop(socket);
    }
    insert(&edge.client, edge.ingress, "db", "next").await.into_result().unwrap();
    let found = ids(&edge.client, edge.ingress, "db").await.unwrap();
    assert!(found.contains(&"next".into()) && found.len() <= 51, "{} rows", found.len());
}
