//! The alarm of a database.

use holdfast_core::alarm::Armed;
use holdfast_types::{AlarmTime, CellName, Epoch};
use serde_json::{Value, json};

use super::{Cell, cell};
use crate::api::AlarmRun;
use crate::error::SqlFailure;

impl Cell {
    fn alarm(&mut self, method: &str, body: &Value) -> (u16, Value) {
        let reply = self.reply(method, "/alarm", body.to_string().as_bytes());
        (reply.status, serde_json::from_slice(&reply.body).unwrap())
    }

    /// Sets an alarm; what it then says is set.
    fn set(&mut self, body: &Value) -> Value {
        self.engine.set_alarm_epoch(Epoch::new(3));
        let (status, body) = self.alarm("POST", body);
        assert_eq!(status, 200, "{body}");
        body["alarm"].clone()
    }

    /// Why an alarm is not set.
    fn not_set(&mut self, body: &Value) -> String {
        let (status, answer) = self.alarm("POST", body);
        assert_eq!(status, 400, "{body}: {answer}");
        answer["message"].as_str().unwrap().to_owned()
    }

    fn armed(&mut self) -> Option<Armed> {
        self.engine.alarm_state().unwrap().armed
    }

    /// Begins a run of what is armed, as the cell does.
    fn begin(&mut self) -> AlarmRun {
        let armed = self.armed().expect("an alarm is set");
        self.engine.set_alarm_running(Some(armed.id));
        let name = CellName::new("db", "users").unwrap();
        self.runtime.begin_alarm(&mut self.engine, &name, (armed.deadline, armed.attempts))
    }

    fn ran(&mut self) -> Result<(), SqlFailure> {
        match self.begin() {
            AlarmRun::Ran(ran) => ran,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn statements_run_and_the_alarm_is_over_in_one_commit() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a, b); INSERT INTO t VALUES(0, 'old')");
    let alarm = cell
        .set(&json!({ "at": 5_000, "sql": "DELETE FROM t; INSERT INTO t VALUES(?, ?)", "args": [1, "x"] }));
    assert_eq!(
        alarm,
        json!({ "at": 5_000, "next": 5_000, "failures": 0, "sql": "DELETE FROM t; INSERT INTO t VALUES(?, ?)", "args": [1, "x"] })
    );
    assert_eq!(cell.alarm("GET", &json!({})).1["alarm"], alarm);
    assert_eq!(cell.armed().unwrap().deadline, AlarmTime::new(5_000));
    cell.ran().unwrap();
    assert_eq!(cell.query("SELECT a, b FROM t")["rows"], json!([[1, "x"]]));
    assert_eq!(cell.armed(), None);
    assert_eq!(cell.alarm("GET", &json!({})).1["alarm"], Value::Null);
}

#[test]
fn a_statement_that_fails_leaves_nothing_and_the_alarm_stays() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a)");
    cell.set(&json!({ "at": 5_000, "sql": "INSERT INTO t VALUES(1); INSERT INTO nowhere VALUES(1)" }));
    let failure = cell.ran().unwrap_err().to_string();
    assert!(failure.contains("no such table: nowhere"), "{failure}");
    assert_eq!(cell.query("SELECT * FROM t")["rows"], json!([]));
    assert!(cell.armed().is_some());
    // What is missing comes, and it is run again.
    cell.query("CREATE TABLE nowhere(a)");
    cell.ran().unwrap();
    assert_eq!(cell.query("SELECT a FROM t UNION ALL SELECT a FROM nowhere")["rows"], json!([[1], [1]]));
    assert_eq!(cell.armed(), None);
}

#[test]
fn what_is_posted_tells_whose_it_is_and_ends_when_it_was_taken() {
    let mut cell = cell();
    cell.set(
        &json!({ "in_ms": 4_000, "url": "https://example.com/hook", "body": { "order": [1, { "a": "}" }] } }),
    );
    let AlarmRun::Post { url, body } = cell.begin() else { panic!("something is posted") };
    assert_eq!(url, "https://example.com/hook");
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        body,
        json!({ "cell": "db:users", "at": 5_000, "retries": 0, "body": { "order": [1, { "a": "}" }] } })
    );
    // Another one was set meanwhile: that stays.
    let alarm = cell.set(&json!({ "at": 9_000, "url": "https://example.com/other" }));
    cell.runtime.end_alarm(&mut cell.engine).unwrap().unwrap();
    assert_eq!(cell.alarm("GET", &json!({})).1["alarm"], alarm);
    let AlarmRun::Post { url, body } = cell.begin() else { panic!("something is posted") };
    assert_eq!(
        (url.as_str(), &body[..]),
        ("https://example.com/other", &br#"{"cell":"db:users","at":9000,"retries":0,"body":null}"#[..])
    );
    cell.runtime.end_alarm(&mut cell.engine).unwrap().unwrap();
    assert_eq!(cell.armed(), None);
}

#[test]
fn another_ones_transaction_is_waited_for() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a)");
    cell.set(&json!({ "at": 5_000, "sql": "INSERT INTO t VALUES(1)" }));
    let (status, body) = cell
        .post("/v2/pipeline", &json!({ "requests": [{ "type": "execute", "stmt": { "sql": "BEGIN" } }] }));
    assert_eq!(status, 200, "{body}");
    assert!(matches!(cell.begin(), AlarmRun::Blocked));
    assert!(cell.runtime.end_alarm(&mut cell.engine).is_none());
    assert!(matches!(cell.send("GET", "/alarm", b""), crate::api::Outcome::Blocked));
    cell.post(
        "/v2/pipeline",
        &json!({ "baton": body["baton"], "requests": [{ "type": "execute", "stmt": { "sql": "ROLLBACK" } }, { "type": "close" }] }),
    );
    cell.ran().unwrap();
    assert_eq!(cell.query("SELECT a FROM t")["rows"], json!([[1]]));
}

#[test]
fn an_alarm_is_replaced_and_removed() {
    let mut cell = cell();
    cell.set(&json!({ "at": 5_000, "sql": "SELECT 1" }));
    let alarm = cell.set(&json!({ "at": 6_000, "url": "http://example.com/" }));
    assert_eq!(alarm, json!({ "at": 6_000, "next": 6_000, "failures": 0, "url": "http://example.com/" }));
    let (status, body) = cell.alarm("DELETE", &json!({}));
    assert_eq!((status, &body["alarm"]), (200, &Value::Null));
    assert_eq!(cell.armed(), None);
    assert_eq!(cell.alarm("DELETE", &json!({})).0, 200, "once more");
}

#[test]
fn what_is_wrong_is_said_and_changes_nothing() {
    let mut cell = cell();
    let alarm = cell.set(&json!({ "at": 5_000, "sql": "SELECT 1" }));
    for (body, expected) in [
        (json!({ "sql": "SELECT 1" }), "write either `at` (milliseconds since 1970-01-01 UTC) or `in_ms`"),
        (json!({ "at": 1, "in_ms": 1, "sql": "SELECT 1" }), "write either `at`"),
        (json!({ "at": 0, "sql": "SELECT 1" }), "`at` must be a time after 1970-01-01 UTC"),
        (json!({ "at": 1 }), "write either `sql` (and `args`, an array)"),
        (json!({ "at": 1, "sql": "SELECT 1", "url": "https://a" }), "write either `sql`"),
        (json!({ "at": 1, "sql": "SELECT 1", "body": 1 }), "write either `sql`"),
        (json!({ "at": 1, "sql": " " }), "`sql` has no statement"),
        (json!({ "at": 1, "sql": "SELECT ?", "args": { "a": 1 } }), "`args`: "),
        (json!({ "at": 1, "url": "ftp://a" }), "`url` must begin with `https://` or `http://`"),
        (json!({ "at": 1, "sql": "x".repeat(65_536) }), "the limit is 65536"),
        (json!({ "at": "soon", "sql": "SELECT 1" }), "the body is not acceptable: "),
        (json!({ "when": 1 }), "unknown field `when`"),
    ] {
        let message = cell.not_set(&body);
        assert!(message.contains(expected), "{body}: {message}");
    }
    cell.is_read_only = true;
    for method in ["POST", "DELETE"] {
        let (status, body) = cell.alarm(method, &json!({ "at": 1, "sql": "SELECT 1" }));
        assert_eq!(status, 403, "{body}");
    }
    assert_eq!(cell.alarm("GET", &json!({})).1["alarm"], alarm);
    assert_eq!(cell.reply("PUT", "/alarm", b"").status, 405);
}

#[test]
fn the_same_time_set_again_after_a_counted_run_begins_at_zero() {
    let mut cell = cell();
    let call = json!({ "at": 5_000, "sql": "SELECT 1" });
    cell.set(&call);
    let first = cell.armed().unwrap();
    assert_eq!(cell.set(&call)["failures"], 0);
    assert_eq!(cell.armed(), Some(first), "once more is no installation");
    let counted = Armed { failures: 1, ..first };
    cell.engine.alarm_record(&counted).unwrap();
    assert_eq!(cell.armed(), Some(counted));
    assert_eq!(cell.set(&call)["failures"], 0);
    assert_ne!(cell.armed().unwrap().id, first.id);
}
