//! The SQL API of a cell: which call means what, and who may run while a transaction is open. One connection serves all
//! callers, so a stream that leaves a transaction open has the cell for itself until it ends it, or until it expires.
//! A reply is made only when every statement of the call has ended; whoever sends it waits for [`Engine::ticket`] first.

mod alarm;
mod args;
mod cursor;
mod d1;
mod describe;
mod hrana;
mod json;
mod pipeline;
mod query;
mod reply;
mod statement;
mod stream;
mod v1;
mod value;

use holdfast_types::{CellName, Epoch, Millis};

pub use alarm::AlarmRun;
pub use reply::SqlReply;

use crate::engine::Engine;
use stream::Streams;

/// Bounds of the SQL API.
#[derive(Clone, Copy, Debug)]
pub struct SqlRuntimeOptions {
    /// A stream without a call for so long is closed. 10,000 ms.
    pub stream_idle_ms: u64,
    /// A stream with an open transaction and without a call for so long is closed and rolled back. 5,000 ms: other
    /// callers wait meanwhile.
    pub transaction_idle_ms: u64,
    /// A transaction is rolled back after so long, however busy its stream is. 30,000 ms.
    pub transaction_ms_max: u64,
    /// Most open streams of a cell; beyond it the one that was silent longest is closed. 128.
    pub streams_max: usize,
    /// Most bytes of results in one reply. 10 MiB.
    pub result_bytes_max: usize,
}

impl Default for SqlRuntimeOptions {
    fn default() -> Self {
        Self {
            stream_idle_ms: 10_000,
            transaction_idle_ms: 5_000,
            transaction_ms_max: 30_000,
            streams_max: 128,
            result_bytes_max: 10 << 20,
        }
    }
}

/// One HTTP request to the SQL API of a cell.
#[derive(Clone, Copy, Debug)]
pub struct SqlCall<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path below the cell: `/v2`, `/v2/pipeline`, `/v3`, `/v3/pipeline`, `/v3/cursor`, `/v1/execute`,
    /// `/v1/batch`, `/query`, `/alarm`, `/` or, from within the fleet, `/d1`.
    pub path: &'a str,
    /// The whole body. Its type is not asked: all bodies are JSON, and curl sends another name for it.
    pub body: &'a [u8],
    /// Statements that write are refused.
    pub is_read_only: bool,
    /// The cell, for its description.
    pub cell: &'a CellName,
    /// The time, since 1970-01-01 UTC.
    pub now: Millis,
    /// The epoch in which it is resident; with the engine's txid it makes the position that replies name.
    pub epoch: Epoch,
}

/// What became of a call.
#[derive(Debug)]
pub enum Outcome {
    /// Answer this, once the gate lets it.
    Reply(SqlReply),
    /// Nothing ran: another stream holds an open transaction. Call again when a call of that stream has ended the
    /// transaction, or at [`SqlRuntime::next_deadline`].
    Blocked,
}

/// The open streams of one resident cell. Batons are valid for the life of this value alone.
#[derive(Debug)]
pub struct SqlRuntime {
    options: SqlRuntimeOptions,
    streams: Streams,
}

impl SqlRuntime {
    /// A runtime without streams.
    #[must_use]
    pub fn new(options: SqlRuntimeOptions) -> Self {
        Self { options, streams: Streams::new(options) }
    }

    /// Runs a call. `now` is monotonic.
    pub fn handle(&mut self, engine: &mut Engine, call: &SqlCall<'_>, now: Millis) -> Outcome {
        self.expire(engine, now);
        let path = call.path.split('?').next().unwrap_or("").trim_end_matches('/');
        let method = if call.method == "HEAD" { "GET" } else { call.method };
        if let Some(reply) = version(method, path) {
            return Outcome::Reply(reply);
        }
        match (method, path) {
            ("POST", "/v2/pipeline" | "/v3/pipeline") => pipeline::run(self, engine, call, now),
            ("POST", "/v3/cursor") => cursor::run(self, engine, call, now),
            ("POST", "/v1/execute") => v1::execute(self, engine, call),
            ("POST", "/v1/batch") => v1::batch(self, engine, call),
            ("POST", "/query") => query::run(self, engine, call),
            ("POST", "/d1") => d1::run(self, engine, call),
            ("GET" | "POST" | "DELETE", "/alarm") => alarm::run(self, engine, call, method),
            ("GET", "") => describe::run(self, engine, call),
            (_, "/v1/execute" | "/v1/batch" | "/v2/pipeline" | "/v3/pipeline" | "/v3/cursor" | "/query") => {
                Outcome::Reply(SqlReply::wrong_method(call, "POST"))
            }
            (_, "/alarm") => Outcome::Reply(SqlReply::wrong_method(call, "GET, HEAD, POST, DELETE")),
            (_, "/v2" | "/v3" | "") => Outcome::Reply(SqlReply::wrong_method(call, "GET, HEAD")),
            _ => Outcome::Reply(SqlReply::unknown_path(call)),
        }
    }

    /// Whether a stream holds an open transaction, so that other calls are blocked.
    #[must_use]
    pub fn has_transaction(&self) -> bool {
        self.streams.has_transaction()
    }

    /// How many streams are open.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// When [`SqlRuntime::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        self.streams.next_deadline()
    }

    /// Closes streams whose time is over, and rolls back the transaction of such a one. Answers whether a transaction
    /// ended, so that blocked calls may be tried again.
    pub fn expire(&mut self, engine: &mut Engine, now: Millis) -> bool {
        self.streams.expire(engine, now)
    }

    /// Closes all streams and rolls back, before the cell is closed.
    pub fn close(&mut self, engine: &mut Engine) {
        self.streams.close(engine);
    }
}

/// The answer to a client that asks which versions of Hrana there are. It is the same for every cell, one that does not
/// exist included; none where something else is asked.
#[must_use]
pub fn version(method: &str, path: &str) -> Option<SqlReply> {
    let path = path.trim_end_matches('/');
    (matches!(method, "GET" | "HEAD") && matches!(path, "/v2" | "/v3"))
        .then(|| SqlReply::json(200, b"{}".to_vec()))
}

#[cfg(test)]
mod tests;
