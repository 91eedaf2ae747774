//! The plain query.

use serde_json::json;

use super::{cell, cell_with};

#[test]
fn a_query_answers_columns_rows_and_position() {
    let mut cell = cell();
    let created = cell.query("CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT)");
    assert_eq!(
        created,
        json!({ "columns": [], "rows": [], "rows_written": 0, "last_insert_rowid": null, "position": { "epoch": 3, "txid": 1 } })
    );
    let (_, inserted) = cell
        .post("/query", &json!({ "sql": "INSERT INTO users(name) VALUES (?), (?)", "args": ["ada", null] }));
    assert_eq!((&inserted["rows_written"], &inserted["last_insert_rowid"]), (&json!(2), &json!(2)));
    cell.engine.capture(holdfast_types::Millis::new(1)).unwrap();
    let (_, named) = cell.post(
        "/query",
        &json!({ "sql": "INSERT INTO users VALUES ($id, :name) RETURNING id", "args": { "id": 9007199254740993_i64, ":name": "x" } }),
    );
    assert_eq!(named["rows"], json!([["9007199254740993"]]));
    assert_eq!(named["last_insert_rowid"], "9007199254740993");
    assert_eq!(named["position"], json!({ "epoch": 3, "txid": 2 }));
    let read = cell.query("SELECT name, x'0102ff', 1.5 AS f FROM users ORDER BY id LIMIT 2");
    assert_eq!(read["columns"], json!(["name", "x'0102ff'", "f"]));
    assert_eq!(read["rows"], json!([["ada", { "base64": "AQL/" }, 1.5], [null, { "base64": "AQL/" }, 1.5]]));
    assert_eq!((&read["rows_written"], &read["last_insert_rowid"]), (&json!(0), &json!(null)));
}

#[test]
fn several_statements_run_and_the_last_one_answers() {
    let mut cell = cell();
    let body = cell.query(
        "CREATE TABLE t(a); INSERT INTO t VALUES(1); SELECT 'first'; INSERT INTO t VALUES(2);
         SELECT a FROM t; -- done",
    );
    assert_eq!(body["rows"], json!([[1], [2]]));
    assert_eq!((&body["rows_written"], &body["last_insert_rowid"]), (&json!(2), &json!(2)));
    // Each write is noticed, wherever it stands.
    cell.engine.capture(holdfast_types::Millis::new(1)).unwrap();
    assert_eq!(cell.query("SELECT 1; INSERT INTO t VALUES(3);")["position"]["txid"], 2);
    cell.engine.capture(holdfast_types::Millis::new(1)).unwrap();
    assert_eq!(cell.query("INSERT INTO t VALUES(4); SELECT 1")["position"]["txid"], 3);
    let (status, body) = cell.post("/query", &json!({ "sql": "SELECT ?; SELECT 2", "args": [1] }));
    assert_eq!((status, &body["error"]["code"]), (400, &json!("SQL_MANY_STATEMENTS")));
    let (_, code, message) = cell.refused("INSERT INTO t VALUES(5); INSERT INTO absent VALUES(1)");
    assert_eq!(code, "SQLITE_ERROR");
    assert!(message.starts_with("statement 2 of the text: no such table: absent"), "{message}");
    assert_eq!(cell.query("SELECT max(a) FROM t")["rows"], json!([[5]]));
    assert_eq!(cell.refused(" -- nothing").1, "SQL_NO_STATEMENT");
}

#[test]
fn a_transaction_begins_and_ends_in_one_query() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a UNIQUE)");
    cell.query("BEGIN; INSERT INTO t VALUES(1); COMMIT");
    let (status, code, message) = cell.refused("BEGIN; INSERT INTO t VALUES(2)");
    assert_eq!((status, code.as_str()), (400, "TRANSACTION_OPEN"));
    assert!(message.contains("rolled back"), "{message}");
    assert_eq!(
        cell.refused("BEGIN; INSERT INTO t VALUES(3); INSERT INTO t VALUES(1); COMMIT").1,
        "SQLITE_CONSTRAINT"
    );
    assert!(!cell.engine.in_transaction());
    assert_eq!(cell.query("SELECT a FROM t")["rows"], json!([[1]]));
    assert_eq!(cell.refused("SAVEPOINT s").1, "TRANSACTION_OPEN");
}

#[test]
fn refusals_have_their_status() {
    let mut cell = cell_with(
        |options| options.db_bytes_max = Some(20 * 4096),
        |options| options.result_bytes_max = 50_000,
    );
    cell.query("CREATE TABLE t(a)");
    let (status, code, message) = cell.refused("INSERT INTO t VALUES(randomblob(200000))");
    assert_eq!((status, code.as_str()), (507, "SQLITE_FULL"));
    assert!(message.contains("81920 bytes"), "{message}");
    for (sql, expected) in [
        ("SELECT * FROM nothing", "SQLITE_ERROR"),
        ("PRAGMA journal_mode=DELETE", "SQLITE_AUTH"),
        ("ATTACH ':memory:' AS x", "SQLITE_AUTH"),
        ("SELECT hex(zeroblob(30000))", "RESULT_TOO_LARGE"),
        ("SELECT zeroblob(100000000)", "SQLITE_TOOBIG"),
        ("SELECT ?", "ARGS_INVALID"),
    ] {
        let (status, code, _) = cell.refused(sql);
        assert_eq!((status, code.as_str()), (400, expected), "{sql}");
    }
    cell.query("INSERT INTO t VALUES(1)");
    assert_eq!(cell.query("SELECT count(*) FROM t")["rows"], json!([[1]]));
}

#[test]
fn the_page_size_may_be_chosen_first() {
    let mut cell = cell();
    cell.query("PRAGMA page_size=1024");
    cell.query("CREATE TABLE t(a)");
    assert_eq!(cell.query("PRAGMA page_size")["rows"], json!([[1024]]));
    assert_eq!(cell.refused("PRAGMA page_size=4096").1, "SQLITE_AUTH");
}
