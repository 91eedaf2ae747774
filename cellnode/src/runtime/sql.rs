//! Class `db`: the SQL API over the cell's own database.

use bytes::Bytes;
use holdfast_rpc::Access;
use holdfast_sql::{Engine, Outcome, SqlCall, SqlReply, SqlRuntime, SqlRuntimeOptions};
use holdfast_types::Millis;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use super::{CellRuntime, RuntimeContext, RuntimeOutcome};

/// The SQL handler of one resident cell.
pub(super) struct Sql {
    context: RuntimeContext,
    runtime: SqlRuntime,
}

impl Sql {
    pub(super) fn new(context: RuntimeContext) -> Self {
        Self { context, runtime: SqlRuntime::new(SqlRuntimeOptions::default()) }
    }
}

impl CellRuntime for Sql {
    fn handle(
        &mut self,
        engine: &mut Engine,
        request: &http::Request<Bytes>,
        access: Access,
        now: Millis,
    ) -> RuntimeOutcome {
        let call = SqlCall {
            method: request.method().as_str(),
            path: request.uri().path(),
            body: request.body(),
            is_read_only: access == Access::ReadOnly,
            cell: &self.context.cell,
            epoch: self.context.epoch,
        };
        match self.runtime.handle(engine, &call, now) {
            Outcome::Reply(reply) => RuntimeOutcome::Reply(response(reply)),
            Outcome::Blocked => RuntimeOutcome::Blocked,
        }
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.runtime.next_deadline()
    }

    fn expire(&mut self, engine: &mut Engine, now: Millis) {
        self.runtime.expire(engine, now);
    }

    fn stop(&mut self, engine: &mut Engine) {
        self.runtime.close(engine);
    }
}

/// See [`super::without_cell`].
pub(super) fn version(method: &str, path: &str) -> Option<http::Response<Bytes>> {
    holdfast_sql::version(method, path).map(response)
}

fn response(reply: SqlReply) -> http::Response<Bytes> {
    let SqlReply { status, content_type, body, allow } = reply;
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("the SQL API answers with known statuses");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(allow) = allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}
