//! Class `db`: the SQL API over the cell's own database. Every event is over in the turn that begins it, but the run of an
//! alarm that posts something.

mod alarm;

use holdfast_outbound::Outbound;
use holdfast_rpc::Access;
use holdfast_sql::{Outcome, SqlCall, SqlReply, SqlRuntime, SqlRuntimeOptions};
use holdfast_types::{AlarmTime, Millis};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use self::alarm::Posting;
use super::{
    AlarmBegun, Begun, CellRuntime, EventCall, EventId, OpAnswer, OpId, RequestBody, RuntimeContext,
    SharedEngine, Turn,
};
use crate::clock;

/// The SQL handler of one resident cell.
pub(super) struct Sql {
    context: RuntimeContext,
    engine: SharedEngine,
    runtime: SqlRuntime,
    /// Sends what an alarm posts.
    outbound: Option<Outbound>,
    /// What the alarm that runs has posted.
    posting: Option<Posting>,
    ops_made: u64,
}

impl Sql {
    pub(super) fn new(context: RuntimeContext, engine: SharedEngine, outbound: Option<Outbound>) -> Self {
        let runtime = SqlRuntime::new(SqlRuntimeOptions::default());
        Self { context, engine, runtime, outbound, posting: None, ops_made: 0 }
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
            now: clock::wall(),
            epoch: self.context.epoch,
        };
        match self.runtime.handle(&mut self.engine.borrow_mut(), &sql_call, turn.now) {
            Outcome::Reply(reply) => Begun::Reply(response(reply)),
            Outcome::Blocked => Begun::Blocked,
        }
    }

    fn alarm(&mut self, event: EventId, alarm: (AlarmTime, u32), turn: &mut Turn) -> AlarmBegun {
        self.begin_alarm(event, alarm, turn)
    }

    fn complete(&mut self, op: OpId, answer: OpAnswer, turn: &mut Turn) {
        self.posted(op, &answer, turn);
    }

    fn cancel(&mut self, _: EventId, _: &mut Turn) {
        unreachable!("no event of SQL stays open");
    }

    fn next_deadline(&self) -> Option<Millis> {
        let posting = self.posting.as_ref().map(|posting| posting.look_at);
        [self.runtime.next_deadline(), posting].into_iter().flatten().min()
    }

    fn wake(&mut self, turn: &mut Turn) {
        self.runtime.expire(&mut self.engine.borrow_mut(), turn.now);
        self.look_at_posting(turn);
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
