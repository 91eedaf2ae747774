//! Hrana's requests and results.

use serde_json::{Value, json};

use super::{cell, cell_with, close, code, execute, rows};

#[test]
fn a_statement_gives_its_whole_result() {
    let mut cell = cell();
    let (results, baton) = cell.pipeline(
        None,
        json!([
            execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, at REAL, data BLOB)"),
            { "type": "execute", "stmt": {
                "sql": "INSERT INTO t VALUES(?, ?, ?, ?), (10, NULL, NULL, NULL)",
                "args": [
                    { "type": "integer", "value": "7" }, { "type": "text", "value": "a" },
                    { "type": "float", "value": 0.5 }, { "type": "blob", "base64": "AQID/w" }
                ]
            } },
            execute("SELECT id, name, at, data, 1 + 1 AS two FROM t"),
            close(),
        ]),
    );
    assert_eq!(baton, None);
    let inserted = &results[1]["response"]["result"];
    assert_eq!(inserted["affected_row_count"], 2);
    assert_eq!(inserted["last_insert_rowid"], "10");
    assert_eq!(inserted["rows_written"], 2);
    assert_eq!((&inserted["cols"], &inserted["rows"]), (&json!([]), &json!([])));
    let mut selected = results[2].clone();
    assert!(selected["response"]["result"]["query_duration_ms"].is_f64());
    selected["response"]["result"]["query_duration_ms"] = json!(0);
    assert_eq!(
        selected,
        json!({ "type": "ok", "response": { "type": "execute", "result": {
            "cols": [
                { "name": "id", "decltype": "INTEGER" }, { "name": "name", "decltype": "TEXT" },
                { "name": "at", "decltype": "REAL" }, { "name": "data", "decltype": "BLOB" },
                { "name": "two", "decltype": null }
            ],
            "rows": [
                [
                    { "type": "integer", "value": "7" }, { "type": "text", "value": "a" },
                    { "type": "float", "value": 0.5 }, { "type": "blob", "base64": "AQID/w" },
                    { "type": "integer", "value": "2" }
                ],
                [
                    { "type": "integer", "value": "10" }, { "type": "null" }, { "type": "null" },
                    { "type": "null" }, { "type": "integer", "value": "2" }
                ]
            ],
            "affected_row_count": 0, "last_insert_rowid": null, "replication_index": null,
            "rows_read": 2, "rows_written": 0, "query_duration_ms": 0
        } } })
    );
    assert_eq!(results[3], json!({ "type": "ok", "response": { "type": "close" } }));
}

#[test]
fn integers_are_exact_through_both_doors() {
    let mut cell = cell();
    cell.query("CREATE TABLE n(v INTEGER)");
    for integer in [
        0,
        1_774_883_342_899,
        2_147_483_648,
        -2_147_483_649,
        9_007_199_254_740_992,
        9_007_199_254_740_993,
        -9_007_199_254_740_993,
        i64::MAX,
        i64::MIN,
    ] {
        let (results, _) = cell.pipeline(
            None,
            json!([
                { "type": "execute", "stmt": {
                    "sql": "INSERT INTO n VALUES(?)",
                    "args": [{ "type": "integer", "value": integer.to_string() }]
                } },
                execute("SELECT v, CAST(v AS TEXT) FROM n"),
            ]),
        );
        let row = &rows(&results[1])[0];
        assert_eq!(row[0]["value"], integer.to_string());
        assert_eq!(row[1]["value"], integer.to_string());
        let plain = cell.query("SELECT v, CAST(v AS TEXT) FROM n");
        let (value, text) = (&plain["rows"][0][0], &plain["rows"][0][1]);
        assert_eq!(text, &json!(integer.to_string()));
        let expected =
            if integer.unsigned_abs() <= 1 << 53 { json!(integer) } else { json!(integer.to_string()) };
        assert_eq!(value, &expected);
        let (_, body) =
            cell.post("/query", &json!({ "sql": "DELETE FROM n WHERE v = ?", "args": [integer] }));
        assert_eq!(body["rows_written"], 1);
    }
}

#[test]
fn arguments_are_bound_by_position_and_name_or_refused() {
    let mut cell = cell();
    let named =
        |name: &str, value: &str| json!({ "name": name, "value": { "type": "text", "value": value } });
    let text = |value: &str| json!({ "type": "text", "value": value });
    let (results, _) = cell.pipeline(
        None,
        json!([
            { "type": "execute", "stmt": { "sql": "SELECT :a, @b, $c", "named_args":
                [named("a", "1"), named("@b", "2"), named("c", "3")] } },
            { "type": "execute", "stmt": { "sql": "SELECT :a, ?2", "args": [text("p"), text("q")],
                "named_args": [named(":a", "n")] } },
            { "type": "execute", "stmt": { "sql": "SELECT ?, ?", "args": [text("1")] } },
            { "type": "execute", "stmt": { "sql": "SELECT ?", "args": [text("1"), text("2")] } },
            { "type": "execute", "stmt": { "sql": "SELECT :a", "named_args": [named("a", "1"), named("z", "2")] } },
            { "type": "execute", "stmt": { "sql": "SELECT :a" } },
        ]),
    );
    let values = |result: &Value| -> Vec<Value> {
        rows(result)[0].as_array().unwrap().iter().map(|value| value["value"].clone()).collect()
    };
    assert_eq!(values(&results[0]), ["1", "2", "3"]);
    assert_eq!(values(&results[1]), ["n", "q"]);
    for (result, says) in results[2..].iter().zip([
        "parameter 2 has no argument",
        "2 arguments for a statement with 1 parameters",
        "no parameter `z`",
        "parameter `:a` has no argument",
    ]) {
        assert_eq!(code(result), "ARGS_INVALID");
        assert!(result["error"]["message"].as_str().unwrap().contains(says), "{result}");
    }
}

#[test]
fn a_request_that_fails_does_not_stop_the_next() {
    let mut cell = cell();
    let (results, _) = cell.pipeline(
        None,
        json!([
            execute("CREATE TABLE t(a UNIQUE)"),
            execute("SELEC 1"),
            execute("INSERT INTO t VALUES(1)"),
            execute("INSERT INTO t VALUES(1)"),
            execute("SELECT 1; SELECT 2"),
            execute("-- nothing"),
            execute("ATTACH 'x' AS x"),
            { "type": "execute", "stmt": {} },
            { "type": "execute", "stmt": { "sql": "SELECT * FROM t; -- a comment\n ", "want_rows": false } },
            execute("SELECT * FROM t;"),
            close(),
            execute("SELECT 1"),
        ]),
    );
    assert_eq!(code(&results[1]), "SQLITE_ERROR");
    assert!(
        results[1]["error"]["message"].as_str().unwrap().contains("syntax error at offset 0"),
        "{}",
        results[1]
    );
    assert_eq!(code(&results[3]), "SQLITE_CONSTRAINT");
    assert_eq!(results[3]["error"]["message"], "UNIQUE constraint failed: t.a");
    assert_eq!(code(&results[4]), "SQL_MANY_STATEMENTS");
    assert_eq!(code(&results[5]), "SQL_NO_STATEMENT");
    assert_eq!(code(&results[6]), "SQLITE_AUTH");
    assert_eq!(code(&results[7]), "SQL_TEXT_INVALID");
    assert_eq!(rows(&results[8]), &json!([]));
    assert_eq!(results[8]["response"]["result"]["cols"][0]["name"], "a");
    assert_eq!(rows(&results[9]), &json!([[{ "type": "integer", "value": "1" }]]));
    assert_eq!(code(&results[11]), "STREAM_CLOSED");
}

#[test]
fn a_batch_runs_by_its_conditions() {
    let mut cell = cell();
    let step = |sql: &str, condition: Value| json!({ "stmt": { "sql": sql }, "condition": condition });
    let ok = |step: u32| json!({ "type": "ok", "step": step });
    let (results, _) = cell.pipeline(
        None,
        json!([{ "type": "batch", "batch": { "steps": [
            step("BEGIN", Value::Null),
            step("CREATE TABLE t(a NOT NULL)", ok(0)),
            step("INSERT INTO t VALUES(NULL)", ok(1)),
            step("INSERT INTO t VALUES(1)", ok(2)),
            step("SELECT 'failed'", json!({ "type": "error", "step": 2 })),
            step("SELECT 'skipped is no error'", json!({ "type": "error", "step": 3 })),
            step("SELECT 'and'", json!({ "type": "and", "conds": [ok(0), { "type": "not", "cond": ok(3) }] })),
            step("SELECT 'or'", json!({ "type": "or", "conds": [ok(3), ok(1)] })),
            step("COMMIT", json!({ "type": "and", "conds": [ok(3), { "type": "not", "cond": { "type": "is_autocommit" } }] })),
            step("ROLLBACK", json!({ "type": "not", "cond": ok(8) })),
            step("SELECT 'autocommit'", json!({ "type": "is_autocommit" })),
            step("SELECT 'all of none'", json!({ "type": "and", "conds": [] })),
            step("SELECT 'any of none'", json!({ "type": "or", "conds": [] })),
        ] } }]),
    );
    let result = &results[0]["response"]["result"];
    let did: Vec<&str> = (0..13)
        .map(|step| match (&result["step_results"][step], &result["step_errors"][step]) {
            (Value::Null, Value::Null) => "skipped",
            (Value::Null, _) => "failed",
            (_, Value::Null) => "ok",
            _ => "both",
        })
        .collect();
    assert_eq!(
        did,
        [
            "ok", "ok", "failed", "skipped", "ok", "skipped", "ok", "ok", "skipped", "ok", "ok", "ok",
            "skipped"
        ]
    );
    assert_eq!(result["step_errors"][2]["code"], "SQLITE_CONSTRAINT");
    assert!(!cell.engine.in_transaction());
    let (results, _) = cell.pipeline(
        None,
        json!([{ "type": "batch", "batch": { "steps": [step("SELECT 1", ok(0))] } }, execute("SELECT * FROM t")]),
    );
    assert_eq!(code(&results[0]), "BATCH_COND_BAD");
    assert_eq!(code(&results[1]), "SQLITE_ERROR");
}

#[test]
fn a_sequence_stops_at_its_first_error() {
    let mut cell = cell();
    let (results, _) = cell.pipeline(
        None,
        json!([
            { "type": "sequence", "sql": "CREATE TABLE t(a); INSERT INTO t VALUES(1); -- end" },
            { "type": "sequence", "sql": "INSERT INTO t VALUES(2); INSERT INTO absent VALUES(1); INSERT INTO t VALUES(3)" },
            { "type": "sequence", "sql": "" },
            execute("SELECT count(*) FROM t"),
        ]),
    );
    assert_eq!(results[0], json!({ "type": "ok", "response": { "type": "sequence" } }));
    assert_eq!(code(&results[1]), "SQLITE_ERROR");
    assert_eq!(results[2]["type"], "ok");
    assert_eq!(rows(&results[3])[0][0]["value"], "2");
}

#[test]
fn a_statement_is_described_without_running() {
    let mut cell = cell();
    let (results, _) = cell.pipeline(
        None,
        json!([
            execute("CREATE TABLE t(a INTEGER)"),
            { "type": "describe", "sql": "INSERT INTO t VALUES(?1), (:b), (?) RETURNING a, a + 1" },
            { "type": "describe", "sql": "EXPLAIN SELECT 1" },
            { "type": "describe", "sql": "SELECT nothing" },
            execute("SELECT count(*) FROM t"),
        ]),
    );
    assert_eq!(
        results[1],
        json!({ "type": "ok", "response": { "type": "describe", "result": {
            "params": [{ "name": "?1" }, { "name": ":b" }, { "name": null }],
            "cols": [{ "name": "a", "decltype": "INTEGER" }, { "name": "a + 1", "decltype": null }],
            "is_explain": false, "is_readonly": false
        } } })
    );
    let explained = &results[2]["response"]["result"];
    assert_eq!((&explained["is_explain"], &explained["is_readonly"]), (&json!(true), &json!(true)));
    assert_eq!(code(&results[3]), "SQLITE_ERROR");
    assert_eq!(rows(&results[4])[0][0]["value"], "0");
}

#[test]
fn stored_texts_belong_to_their_stream() {
    let mut cell = cell();
    let stored = json!({ "type": "execute", "stmt": { "sql_id": 1 } });
    let store = |id: i32| json!({ "type": "store_sql", "sql_id": id, "sql": "SELECT 42" });
    let (results, baton) =
        cell.pipeline(None, json!([store(1), store(1), stored, { "type": "describe", "sql_id": 1 }]));
    assert_eq!(results[0]["response"]["type"], "store_sql");
    assert_eq!(code(&results[1]), "SQL_STORE");
    assert_eq!(rows(&results[2])[0][0]["value"], "42");
    assert_eq!(results[3]["type"], "ok");
    let (others, _) = cell.pipeline(None, json!([stored]));
    assert_eq!(code(&others[0]), "SQL_TEXT_INVALID");
    let (results, _) = cell.pipeline(
        baton.as_deref(),
        json!([
            stored, { "type": "close_sql", "sql_id": 1 }, { "type": "close_sql", "sql_id": 9 }, stored, store(1),
            { "type": "store_sql", "sql_id": 2, "sql": "x".repeat(1 << 20) },
        ]),
    );
    assert_eq!(results[0]["type"], "ok");
    assert_eq!((&results[1]["type"], &results[2]["type"]), (&json!("ok"), &json!("ok")));
    assert_eq!(code(&results[3]), "SQL_TEXT_INVALID");
    assert_eq!(results[4]["type"], "ok");
    assert_eq!(code(&results[5]), "SQL_STORE");
}

#[test]
fn a_result_that_is_too_large_is_an_error_and_the_next_request_works() {
    let mut cell = cell_with(|_| {}, |options| options.result_bytes_max = 100_000);
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let (results, _) = cell.pipeline(
        None,
        json!([
            execute(many),
            execute("SELECT hex(zeroblob(1000000))"),
            execute("CREATE TABLE t(a)"),
            execute(&format!("INSERT INTO t {many} LIMIT 50000 RETURNING a")),
            execute("SELECT count(*) FROM t"),
        ]),
    );
    assert_eq!(code(&results[0]), "RESULT_TOO_LARGE");
    assert!(results[0]["error"]["message"].as_str().unwrap().contains("100000 bytes"), "{}", results[0]);
    assert_eq!(code(&results[1]), "RESULT_TOO_LARGE");
    assert_eq!(code(&results[3]), "RESULT_TOO_LARGE");
    assert_eq!(rows(&results[4])[0][0]["value"], "0");
}

#[test]
fn a_reader_reads_and_is_told_why_it_may_not_write() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    cell.is_read_only = true;
    let (results, _) = cell.pipeline(
        None,
        json!([
            execute("SELECT * FROM t"), execute("INSERT INTO t VALUES(2)"), execute("BEGIN"), execute("DROP TABLE t"),
            execute("COMMIT"), { "type": "sequence", "sql": "SELECT 1; DELETE FROM t" },
        ]),
    );
    assert_eq!(results[0]["type"], "ok");
    for index in [1, 3, 5] {
        assert_eq!(code(&results[index]), "READ_ONLY");
    }
    assert_eq!((&results[2]["type"], &results[4]["type"]), (&json!("ok"), &json!("ok")));
    let (status, code, _) = cell.refused("INSERT INTO t VALUES(2)");
    assert_eq!((status, code.as_str()), (403, "READ_ONLY"));
    assert_eq!(cell.query("SELECT count(*) FROM t")["rows"], json!([[1]]));
}

#[test]
fn odd_values_survive() {
    let mut cell = cell();
    let (results, _) = cell.pipeline(
        None,
        json!([execute(
            "SELECT x'', '', char(0) || 'a', CAST(x'ff41' AS TEXT), 'ü\u{1F980}\"\\', 0.1, 1e15"
        )]),
    );
    assert_eq!(
        rows(&results[0])[0],
        json!([
            { "type": "blob", "base64": "" }, { "type": "text", "value": "" }, { "type": "text", "value": "\0a" },
            { "type": "text", "value": "\u{fffd}A" }, { "type": "text", "value": "ü🦀\"\\" },
            { "type": "float", "value": 0.1 }, { "type": "float", "value": 1e15 }
        ])
    );
    // JSON has no infinity; readers of doubles take a number beyond their range for it.
    let body = json!({ "sql": "SELECT 9e999, -9e999" }).to_string();
    let reply = cell.reply("POST", "/query", body.as_bytes());
    assert!(String::from_utf8(reply.body.to_vec()).unwrap().contains("[[1e999,-1e999]]"));
}

#[test]
fn a_cursor_gives_the_batch_in_lines() {
    let mut cell = cell();
    let body = json!({ "baton": null, "batch": { "steps": [
        { "stmt": { "sql": "CREATE TABLE t(a UNIQUE)" } },
        { "stmt": { "sql": "INSERT INTO t VALUES(1), (2)" }, "condition": { "type": "ok", "step": 0 } },
        { "stmt": { "sql": "SELECT a FROM t" }, "condition": { "type": "ok", "step": 1 } },
        { "stmt": { "sql": "INSERT INTO t VALUES(1)" } },
        { "stmt": { "sql": "SELECT 1" }, "condition": { "type": "ok", "step": 3 } },
        { "stmt": { "sql": "SELEC" } },
    ] } });
    let reply = cell.reply("POST", "/v3/cursor", body.to_string().as_bytes());
    assert_eq!((reply.status, reply.content_type), (200, "application/x-ndjson"));
    let lines: Vec<Value> = reply
        .body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert!(lines[0]["baton"].is_string());
    let kinds: Vec<String> = lines[1..]
        .iter()
        .map(|line| format!("{} {}", line["type"].as_str().unwrap(), line["step"]).replace(" null", ""))
        .collect();
    assert_eq!(
        kinds,
        [
            "step_begin 0",
            "step_end",
            "step_begin 1",
            "step_end",
            "step_begin 2",
            "row",
            "row",
            "step_end",
            "step_begin 3",
            "step_error 3",
            "step_error 5"
        ]
    );
    assert_eq!(lines[4]["affected_row_count"], 2);
    assert_eq!(lines[6]["row"], json!([{ "type": "integer", "value": "1" }]));
    assert_eq!(lines[10]["error"]["code"], "SQLITE_CONSTRAINT");
    let baton = lines[0]["baton"].as_str().unwrap();
    let (results, _) = cell.pipeline(Some(baton), json!([execute("SELECT count(*) FROM t"), close()]));
    assert_eq!(rows(&results[0])[0][0]["value"], "2");
}

#[test]
fn version_one_has_no_streams() {
    let mut cell = cell();
    let stmt = |sql: &str| json!({ "sql": sql });
    let step = |sql: &str| json!({ "stmt": { "sql": sql } });
    let (status, _) = cell.post("/v1/execute", &json!({ "stmt": stmt("CREATE TABLE t(a UNIQUE)") }));
    assert_eq!(status, 200);
    let (_, body) = cell.post(
        "/v1/batch",
        &json!({ "batch": { "steps": [step("BEGIN"), step("INSERT INTO t VALUES(1)"), step("COMMIT"), step("SELECT a FROM t")] } }),
    );
    assert_eq!(body["result"]["step_results"][3]["rows"], json!([[{ "type": "integer", "value": "1" }]]));
    let (status, body) = cell.post("/v1/execute", &json!({ "stmt": stmt("INSERT INTO t VALUES(1)") }));
    assert_eq!((status, &body["code"]), (400, &json!("SQLITE_CONSTRAINT")));
    let (status, body) =
        cell.post("/v1/batch", &json!({ "batch": { "steps": [step("BEGIN"), step("DELETE FROM t")] } }));
    assert_eq!((status, &body["code"]), (400, &json!("TRANSACTION_OPEN")));
    assert!(!cell.engine.in_transaction());
    assert_eq!(cell.query("SELECT a FROM t")["rows"], json!([[1]]));
    assert_eq!(cell.runtime.stream_count(), 0);
}
