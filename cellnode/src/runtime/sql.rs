//! Class `db`: the SQL API over the cell's own database. Every event is over in the turn that begins it.

use holdfast_rpc::Access;
use holdfast_sql::{Outcome, SqlCall, SqlReply, SqlRuntime, SqlRuntimeOptions};
use holdfast_types::Millis;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use super::{
    Begun, CellRuntime, EventCall, EventId, OpAnswer, OpId, RequestBody, RuntimeContext, SharedEngine, Turn,
};

/// The SQL handler of one resident cell.
pub(super) struct Sql {
    context: RuntimeContext,
    engine: SharedEngine,
    runtime: SqlRuntime,
}

impl Sql {
    pub(super) fn new(context: RuntimeContext, engine: SharedEngine) -> Self {
        Self { context, engine, runtime: SqlRuntime::new(SqlRuntimeOptions::default()) }
    }
}

impl CellRuntime for Sql {
    fn begin(&mut self, _: EventId, call: &mut EventCall, turn: &mut Turn) -> Begun {
        let request = &call.request;
        let RequestBody::Whole(body) = request.body() else {
            unreachable!("class `db` is given whole bodies");
        };
        let sql_call = SqlCall {
            method: request.method().as_str(),
            path: request.uri().path(),
            body,
            is_read_only: call.access == Access::ReadOnly,
            cell: &self.context.cell,
            epoch: self.context.epoch,
        };
        match self.runtime.handle(&mut self.engine.borrow_mut(), &sql_call, turn.now) {
            Outcome::Reply(reply) => Begun::Reply(response(reply)),
            Outcome::Blocked => Begun::Blocked,
        }
    }

    fn complete(&mut self, _: OpId, _: OpAnswer, _: &mut Turn) {
        unreachable!("SQL starts no operation");
    }

    fn cancel(&mut self, _: EventId, _: &mut Turn) {
        unreachable!("no event of SQL stays open");
    }

    fn next_deadline(&self) -> Option<Millis> {
        self.runtime.next_deadline()
    }

    fn wake(&mut self, turn: &mut Turn) {
        self.runtime.expire(&mut self.engine.borrow_mut(), turn.now);
    }

    fn stop(&mut self) {
        self.runtime.close(&mut self.engine.borrow_mut());
    }
}

/// Whether the SQL API speaks a version.
pub(super) fn version(method: &str, path: &str) -> Option<http::Response<bytes::Bytes>> {
    holdfast_sql::version(method, path).map(response)
}

fn response(reply: SqlReply) -> http::Response<bytes::Bytes> {
    let SqlReply { status, content_type, body, allow } = reply;
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("the SQL API answers with known statuses");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(allow) = allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}
