//! Tests of the SQL API: JSON in, JSON out.

mod alarm;
mod http;
mod pipeline;
mod query;
mod streams;

use holdfast_types::{CellName, Epoch, Millis, Txid};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Outcome, SqlCall, SqlReply, SqlRuntime, SqlRuntimeOptions};
use crate::engine::Engine;
use crate::options::EngineOptions;

/// A resident cell as its node would run it.
struct Cell {
    engine: Engine,
    runtime: SqlRuntime,
    now: Millis,
    is_read_only: bool,
    // Dropped last: the engine's files are in it.
    _dir: TempDir,
}

fn cell() -> Cell {
    cell_with(|_| {}, |_| {})
}

fn cell_with(engine: impl FnOnce(&mut EngineOptions), runtime: impl FnOnce(&mut SqlRuntimeOptions)) -> Cell {
    let dir = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(dir.path());
    engine(&mut options);
    let mut runtime_options = SqlRuntimeOptions::default();
    runtime(&mut runtime_options);
    Cell {
        engine: Engine::open(&dir.path().join("cell.db"), Txid::ZERO, &options).unwrap(),
        runtime: SqlRuntime::new(runtime_options),
        now: Millis::new(1_000),
        is_read_only: false,
        _dir: dir,
    }
}

impl Cell {
    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Outcome {
        let cell = CellName::new("db", "users").unwrap();
        let call = SqlCall {
            method,
            path,
            body,
            is_read_only: self.is_read_only,
            cell: &cell,
            now: self.now,
            epoch: Epoch::new(3),
        };
        self.runtime.handle(&mut self.engine, &call, self.now)
    }

    fn reply(&mut self, method: &str, path: &str, body: &[u8]) -> SqlReply {
        match self.send(method, path, body) {
            Outcome::Reply(reply) => reply,
            Outcome::Blocked => panic!("blocked"),
        }
    }

    fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let reply = self.reply("POST", path, body.to_string().as_bytes());
        assert_eq!(reply.content_type, "application/json");
        (reply.status, serde_json::from_slice(&reply.body).unwrap())
    }

    /// A plain query that must succeed.
    fn query(&mut self, sql: &str) -> Value {
        let (status, body) = self.post("/query", &json!({ "sql": sql }));
        assert_eq!(status, 200, "{sql}: {body}");
        body
    }

    /// A plain query that must fail: status, code, message.
    fn refused(&mut self, sql: &str) -> (u16, String, String) {
        let (status, body) = self.post("/query", &json!({ "sql": sql }));
        assert_ne!(status, 200, "{sql}: {body}");
        let text = |key: &str| body["error"][key].as_str().unwrap().to_owned();
        (status, text("code"), text("message"))
    }

    /// Requests on a stream; answers the results and the next baton.
    fn pipeline(&mut self, baton: Option<&str>, requests: Value) -> (Vec<Value>, Option<String>) {
        let (status, body) = self.post("/v3/pipeline", &json!({ "baton": baton, "requests": requests }));
        assert_eq!(status, 200, "{body}");
        assert_eq!(body["base_url"], Value::Null);
        let baton = body["baton"].as_str().map(str::to_owned);
        (body["results"].as_array().unwrap().clone(), baton)
    }

    fn is_blocked(&mut self, path: &str, body: &Value) -> bool {
        matches!(self.send("POST", path, body.to_string().as_bytes()), Outcome::Blocked)
    }
}

fn execute(sql: &str) -> Value {
    json!({ "type": "execute", "stmt": { "sql": sql } })
}

fn close() -> Value {
    json!({ "type": "close" })
}

/// The rows of an `execute` result.
fn rows(result: &Value) -> &Value {
    assert_eq!(result["type"], "ok", "{result}");
    &result["response"]["result"]["rows"]
}

/// The code of a failed result.
fn code(result: &Value) -> &str {
    assert_eq!(result["type"], "error", "{result}");
    result["error"]["code"].as_str().unwrap()
}
