//! Streams over several calls: batons, transactions, expiry.

use serde_json::{Value, json};

use super::{cell, cell_with, close, code, execute, rows};

#[test]
fn an_interactive_transaction_spans_calls_and_blocks_the_others() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a)");
    let (_, baton) = cell.pipeline(None, json!([execute("BEGIN"), execute("INSERT INTO t VALUES(1)")]));
    let baton = baton.unwrap();
    assert!(cell.runtime.has_transaction() && cell.engine.in_transaction());
    let count = json!({ "sql": "SELECT count(*) FROM t" });
    assert!(cell.is_blocked("/query", &count));
    assert!(cell.is_blocked("/v2/pipeline", &json!({ "requests": [execute("SELECT 1")] })));
    assert!(cell.is_blocked("/v3/cursor", &json!({ "batch": { "steps": [] } })));
    assert!(matches!(cell.send("GET", "/", b""), super::Outcome::Blocked));
    assert_eq!(cell.reply("GET", "/v3", b"").status, 200);
    // What is wrong in itself is answered at once.
    assert_eq!(cell.reply("POST", "/query", b"{").status, 400);
    assert_eq!(cell.post("/v2/pipeline", &json!({ "baton": "1.0", "requests": [] })).0, 400);
    assert_eq!(cell.engine.ticket().get(), 1, "only the committed table");
    let (results, next) = cell.pipeline(
        Some(&baton),
        json!([execute("SELECT count(*) FROM t"), { "type": "get_autocommit" }, execute("COMMIT"), { "type": "get_autocommit" }]),
    );
    assert_eq!(rows(&results[0])[0][0]["value"], "1");
    assert_eq!(results[1]["response"], json!({ "type": "get_autocommit", "is_autocommit": false }));
    assert_eq!(results[3]["response"]["is_autocommit"], true);
    assert_ne!(next.as_deref(), Some(baton.as_str()));
    assert_eq!(cell.query("SELECT count(*) FROM t")["rows"], json!([[1]]));
    let (_, closed) = cell.pipeline(next.as_deref(), json!([close()]));
    assert_eq!((closed, cell.runtime.stream_count()), (None, 0));
}

#[test]
fn a_transaction_that_was_begun_to_read_refuses_writes_until_it_ends() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a)");
    let (results, baton) = cell.pipeline(
        None,
        json!([
            execute("BEGIN TRANSACTION READONLY"),
            execute("SELECT count(*) FROM t"),
            execute("INSERT INTO t VALUES(1)"),
            execute("CREATE TABLE u(a)"),
        ]),
    );
    assert_eq!(rows(&results[1])[0][0]["value"], "0");
    for refused in &results[2..] {
        assert_eq!(code(refused), "SQLITE_READONLY");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("attempt to write a readonly database"), "{message}");
    }
    let (results, baton) = cell.pipeline(
        baton.as_deref(),
        json!([
            execute("DELETE FROM t"),
            execute("SELECT 1"),
            execute("COMMIT"),
            execute("INSERT INTO t VALUES(1)")
        ]),
    );
    assert_eq!(code(&results[0]), "SQLITE_READONLY");
    assert_eq!((results[1]["type"].as_str(), results[3]["type"].as_str()), (Some("ok"), Some("ok")));
    // To explain such a BEGIN changes nothing, and a rollback ends it as a commit does.
    let (results, _) = cell.pipeline(
        baton.as_deref(),
        json!([
            execute("BEGIN"),
            execute("EXPLAIN BEGIN TRANSACTION READONLY"),
            execute("INSERT INTO t VALUES(2)"),
            execute("ROLLBACK"),
            execute("BEGIN TRANSACTION READONLY"),
            execute("ROLLBACK"),
            execute("INSERT INTO t VALUES(3)"),
            close(),
        ]),
    );
    assert!(results.iter().all(|result| result["type"] == "ok"), "{results:?}");
    assert_eq!(cell.query("SELECT count(*) FROM t")["rows"], json!([[2]]));
}

#[test]
fn a_used_or_invented_baton_is_refused() {
    let mut cell = cell();
    let (_, first) = cell.pipeline(None, json!([execute("SELECT 1")]));
    let first = first.unwrap();
    let (_, second) = cell.pipeline(Some(&first), json!([execute("SELECT 1")]));
    for baton in [first.as_str(), "", "1", "1.", "1.00000000000000000000000000000000", "zz.zz", "😀"] {
        let (status, body) =
            cell.post("/v3/pipeline", &json!({ "baton": baton, "requests": [execute("SELECT 1")] }));
        assert_eq!((status, &body["code"]), (400, &json!("STREAM_EXPIRED")), "{baton}");
        assert!(body["message"].as_str().unwrap().contains("baton"), "{body}");
    }
    // The stream itself is unharmed.
    assert_eq!(cell.pipeline(second.as_deref(), json!([execute("SELECT 1")])).0[0]["type"], "ok");
    // Another residency knows nothing of it.
    let mut other = super::cell();
    let (status, _) = other.post("/v3/pipeline", &json!({ "baton": second, "requests": [] }));
    assert_eq!(status, 400);
}

#[test]
fn closing_rolls_back() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a)");
    let (_, baton) =
        cell.pipeline(None, json!([execute("BEGIN"), execute("INSERT INTO t VALUES(1)"), close()]));
    assert_eq!(baton, None);
    assert!(!cell.engine.in_transaction() && !cell.runtime.has_transaction());
    assert_eq!(cell.query("SELECT count(*) FROM t")["rows"], json!([[0]]));
    let (_, baton) = cell.pipeline(None, json!([execute("BEGIN"), execute("INSERT INTO t VALUES(1)")]));
    assert!(baton.is_some());
    cell.runtime.close(&mut cell.engine);
    assert!(!cell.engine.in_transaction());
    assert_eq!(cell.runtime.stream_count(), 0);
}

#[test]
fn a_silent_transaction_is_rolled_back_and_its_stream_closed() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a)");
    let (_, baton) = cell.pipeline(None, json!([execute("BEGIN"), execute("INSERT INTO t VALUES(1)")]));
    let deadline = cell.runtime.next_deadline().unwrap();
    assert_eq!(deadline, cell.now.plus(5_000));
    cell.now = deadline.minus(1);
    assert!(!cell.runtime.expire(&mut cell.engine, cell.now));
    assert!(cell.is_blocked("/query", &json!({ "sql": "SELECT 1" })));
    cell.now = deadline;
    assert!(cell.runtime.expire(&mut cell.engine, cell.now));
    assert_eq!(cell.query("SELECT count(*) FROM t")["rows"], json!([[0]]));
    // It must not go on in autocommit mode.
    let (status, body) = cell
        .post("/v3/pipeline", &json!({ "baton": baton, "requests": [execute("INSERT INTO t VALUES(2)")] }));
    assert_eq!((status, &body["code"]), (400, &json!("STREAM_EXPIRED")));
    assert_eq!(cell.runtime.next_deadline(), None);
}

#[test]
fn a_busy_transaction_ends_too() {
    let mut cell = cell();
    let (_, mut baton) = cell.pipeline(None, json!([execute("BEGIN")]));
    let started = cell.now;
    for _ in 0..9 {
        cell.now = cell.now.plus(3_000);
        baton = cell.pipeline(baton.as_deref(), json!([execute("SELECT 1")])).1;
    }
    assert_eq!(cell.runtime.next_deadline(), Some(started.plus(30_000)));
    cell.now = started.plus(30_000);
    assert_eq!(cell.query("SELECT 1")["rows"], json!([[1]]), "any call finds the cell free then");
}

#[test]
fn idle_streams_close_and_their_number_is_bounded() {
    let mut cell = cell_with(|_| {}, |options| options.streams_max = 3);
    let mut batons = Vec::new();
    for _ in 0..4 {
        cell.now = cell.now.plus(1);
        batons.push(cell.pipeline(None, json!([execute("SELECT 1")])).1.unwrap());
    }
    assert_eq!(cell.runtime.stream_count(), 3);
    assert_eq!(cell.post("/v3/pipeline", &json!({ "baton": batons[0], "requests": [] })).0, 400);
    let (_, newest) = cell.pipeline(Some(&batons[1]), json!([]));
    cell.now = cell.now.plus(9_999);
    assert!(cell.runtime.next_deadline().unwrap() <= cell.now);
    cell.runtime.expire(&mut cell.engine, cell.now);
    assert!(cell.runtime.stream_count() >= 1);
    cell.now = cell.now.plus(1);
    assert_eq!(cell.post("/v3/pipeline", &json!({ "baton": newest, "requests": [] })).0, 400);
    assert_eq!(cell.runtime.stream_count(), 0);
}

#[test]
fn settings_stay_with_their_stream() {
    let mut cell = cell();
    cell.query("CREATE TABLE p(id PRIMARY KEY); CREATE TABLE c(pid REFERENCES p(id))");
    let (_, off) = cell.pipeline(None, json!([execute("PRAGMA foreign_keys=OFF")]));
    assert_eq!(cell.refused("INSERT INTO c VALUES(1)").1, "SQLITE_CONSTRAINT");
    let (results, off) =
        cell.pipeline(off.as_deref(), json!([execute("INSERT INTO c VALUES(1)"), execute("BEGIN")]));
    assert_eq!(results[0]["type"], "ok");
    let (results, _) = cell.pipeline(
        off.as_deref(),
        json!([
            execute("INSERT INTO c VALUES(2)"),
            execute("COMMIT"),
            execute("PRAGMA foreign_keys"),
            close()
        ]),
    );
    assert_eq!(results[0]["type"], "ok");
    assert_eq!(rows(&results[2])[0][0]["value"], "0");
    assert_eq!(cell.query("PRAGMA foreign_keys")["rows"], json!([[1]]));
    cell.query("PRAGMA foreign_keys=OFF");
    assert_eq!(cell.query("PRAGMA foreign_keys")["rows"], json!([[1]]));
}

#[test]
fn an_expired_transaction_takes_its_settings_with_it() {
    let mut cell = cell();
    cell.pipeline(None, json!([execute("PRAGMA foreign_keys=OFF"), execute("BEGIN")]));
    cell.now = cell.now.plus(60_000);
    assert_eq!(cell.query("PRAGMA foreign_keys")["rows"], json!([[1]]));
}

#[test]
fn a_commit_that_fails_is_an_error_and_frees_the_cell() {
    let mut cell = cell();
    cell.query(
        "CREATE TABLE p(id PRIMARY KEY); CREATE TABLE c(pid REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TABLE d(pid REFERENCES p(id))",
    );
    let (_, baton) =
        cell.pipeline(None, json!([execute("BEGIN"), execute("INSERT INTO c VALUES('missing')")]));
    let (results, baton) = cell.pipeline(baton.as_deref(), json!([execute("COMMIT")]));
    assert_eq!(code(&results[0]), "SQLITE_CONSTRAINT");
    assert!(!cell.runtime.has_transaction() && baton.is_some());
    let (status, code, message) = cell.refused("INSERT INTO c VALUES('missing')");
    assert_eq!(
        (status, code.as_str(), message.as_str()),
        (400, "SQLITE_CONSTRAINT", "FOREIGN KEY constraint failed")
    );
    let deferred = "BEGIN; PRAGMA defer_foreign_keys=ON; INSERT INTO d VALUES('missing'); COMMIT";
    assert_eq!(cell.refused(deferred).1, "SQLITE_CONSTRAINT");
    cell.query("INSERT INTO p VALUES(1); INSERT INTO c VALUES(1)");
    assert_eq!(cell.query("SELECT count(*) FROM c, p")["rows"], json!([[1]]));
}

#[test]
fn cursors_are_never_left_open() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3)");
    for _ in 0..50 {
        let (_, baton) = cell.pipeline(
            None,
            json!([{ "type": "execute", "stmt": { "sql": "SELECT * FROM t", "want_rows": false } }]),
        );
        assert!(baton.is_some());
        cell.query("DROP TABLE IF EXISTS t; CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3)");
    }
    assert!(!cell.engine.connection().is_busy());
    cell.engine.capture(holdfast_types::Millis::new(1)).unwrap();
    assert!(cell.engine.checkpoint().unwrap());
}

#[test]
fn a_statement_over_its_budget_is_an_error_of_its_own() {
    let mut cell = cell_with(
        |options| {
            options.statement_budget = std::time::Duration::from_millis(30);
            options.call_budget = std::time::Duration::from_millis(80);
        },
        |_| {},
    );
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let started = std::time::Instant::now();
    let requests: Vec<Value> = (0..20).map(|_| execute(endless)).collect();
    let (results, baton) = cell.pipeline(None, Value::Array(requests));
    assert!(started.elapsed().as_millis() < 1_000, "the whole call is bounded");
    assert!(results.iter().all(|result| code(result) == "SQLITE_INTERRUPT"));
    assert_eq!(cell.pipeline(baton.as_deref(), json!([execute("SELECT 1")])).0[0]["type"], "ok");
    assert_eq!(cell.refused(endless).1, "SQLITE_INTERRUPT");
    cell.query("SELECT 1");
}
