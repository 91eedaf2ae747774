//! `/alarm`: the one alarm of a database. `POST {"at": MS, "sql": "...", "args": [...]}` has statements run at that time, in one
//! transaction with the end of the alarm; `POST {"at": MS, "url": "...", "body": ...}` has JSON posted there. `in_ms` in place of
//! `at` counts from now. `GET` says what is set, `DELETE` removes it. What is to be done is kept beside the database's tables.

use std::borrow::Cow;

use bytes::Bytes;
use holdfast_core::alarm::Armed;
use holdfast_types::{AlarmTime, CellName, Millis};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::d1::params;
use super::json::JsonOut;
use super::reply::malformed;
use super::{Outcome, SqlCall, SqlReply, SqlRuntime, describe, stream};
use crate::engine::{Engine, ExecLimits, SqlValue};
use crate::error::SqlFailure;

/// Where the action is kept, among keys that no caller reaches.
const ACTION_KEY: &str = "alarm";
/// Longest action, in bytes.
const ACTION_LEN_MAX: usize = 64 << 10;
/// Rows that the statements of an alarm may make before they are dropped, in bytes.
const ROWS_LEN_MAX: usize = 1 << 20;

/// What is to be done.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Action {
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    at: Option<i64>,
    in_ms: Option<u64>,
    #[serde(borrow)]
    sql: Option<Cow<'a, str>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Args(#[serde(deserialize_with = "params")] Vec<SqlValue>);

/// How a run of the alarm began.
#[derive(Debug)]
pub enum AlarmRun {
    /// Another caller's transaction is open; nothing was done.
    Blocked,
    /// The statements ran, and the alarm is consumed with them; or nothing of them is there.
    Ran(Result<(), SqlFailure>),
    /// This is to be posted, and [`SqlRuntime::end_alarm`] called once it was taken.
    Post {
        /// Where to.
        url: String,
        /// JSON.
        body: Bytes,
    },
}

fn refuse(text: impl Into<String>) -> SqlFailure {
    SqlFailure::new("BAD_ALARM", text.into())
}

impl Call<'_> {
    fn deadline(&self, now: Millis) -> Result<AlarmTime, SqlFailure> {
        let ms = match (self.at, self.in_ms) {
            (Some(at), None) => at,
            (None, Some(in_ms)) => i64::try_from(now.get().saturating_add(in_ms)).unwrap_or(i64::MAX),
            _ => return Err(refuse("write either `at` (milliseconds since 1970-01-01 UTC) or `in_ms`")),
        };
        if ms <= 0 {
            return Err(refuse("`at` must be a time after 1970-01-01 UTC, in milliseconds"));
        }
        Ok(AlarmTime::new(ms))
    }

    fn action(&self) -> Result<Action, SqlFailure> {
        match (&self.sql, &self.url) {
            (Some(sql), None) if self.body.is_none() => {
                if sql.trim().is_empty() {
                    return Err(refuse("`sql` has no statement"));
                }
                if let Some(args) = self.args {
                    values(args)?;
                }
                let args = self.args.map(ToOwned::to_owned);
                Ok(Action { sql: Some(sql.clone().into_owned()), args, ..Action::default() })
            }
            (None, Some(url)) if self.args.is_none() => {
                if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
                    return Err(refuse("`url` must begin with `https://` or `http://`"));
                }
                let body = self.body.map(ToOwned::to_owned);
                Ok(Action { url: Some(url.clone().into_owned()), body, ..Action::default() })
            }
            _ => Err(refuse(
                "write either `sql` (and `args`, an array) to have statements run, or `url` (and `body`) to have JSON posted",
            )),
        }
    }
}

fn values(args: &RawValue) -> Result<Vec<SqlValue>, SqlFailure> {
    let Args(values) =
        serde_json::from_str(args.get()).map_err(|error| refuse(format!("`args`: {error}")))?;
    Ok(values)
}

fn stored(engine: &mut Engine) -> Result<Action, SqlFailure> {
    let Some(text) = engine.kv_get(ACTION_KEY)? else { return Ok(Action::default()) };
    serde_json::from_slice(&text)
        .map_err(|error| refuse(format!("the alarm that is set cannot be read: {error}")))
}

/// Answers a call.
pub(super) fn run(
    runtime: &mut SqlRuntime,
    engine: &mut Engine,
    call: &SqlCall<'_>,
    method: &str,
) -> Outcome {
    if method != "GET" && call.is_read_only {
        let failure = SqlFailure::new("READ_ONLY", "this token may only read: it cannot change the alarm");
        return Outcome::Reply(SqlReply::failure(failure.status(), &failure));
    }
    if runtime.has_transaction() {
        return Outcome::Blocked;
    }
    let done = match method {
        "POST" => set(engine, call),
        "DELETE" => delete(engine),
        _ => Ok(()),
    };
    let done = done.and_then(|()| engine.object_commit());
    if done.is_err() {
        engine.object_roll_back();
    }
    if let Err(failure) = stream::end(engine) {
        return Outcome::Reply(SqlReply::failure(failure.status(), &failure));
    }
    match done.and_then(|()| shown(engine, call)) {
        Ok(text) => Outcome::Reply(SqlReply::json(200, text)),
        Err(failure) => Outcome::Reply(SqlReply::failure(failure.status(), &failure)),
    }
}

fn set(engine: &mut Engine, call: &SqlCall<'_>) -> Result<(), SqlFailure> {
    let body: Call<'_> = serde_json::from_slice(call.body).map_err(|error| malformed(&error))?;
    let deadline = body.deadline(call.now)?;
    let text = serde_json::to_vec(&body.action()?).expect("an action is text and JSON");
    if text.len() > ACTION_LEN_MAX {
        return Err(refuse(format!(
            "what is to be done has {} bytes; the limit is {ACTION_LEN_MAX}",
            text.len()
        )));
    }
    engine.alarm_set(deadline)?;
    engine.kv_put(ACTION_KEY, &text)
}

fn delete(engine: &mut Engine) -> Result<(), SqlFailure> {
    engine.alarm_delete()?;
    engine.kv_delete(ACTION_KEY).map(drop)
}

/// `{"alarm": null}` or `{"alarm": {"at", "next", "failures", ...action}}`, and the position.
fn shown(engine: &mut Engine, call: &SqlCall<'_>) -> Result<Vec<u8>, SqlFailure> {
    let mut out = JsonOut::unbounded();
    out.raw("{\"alarm\":");
    match engine.alarm_state()?.armed {
        None => out.raw("null"),
        Some(Armed { id: _, deadline, due, attempts: _, failures }) => {
            let (at, next) = (deadline.get(), due.get());
            out.display(format_args!("{{\"at\":{at},\"next\":{next},\"failures\":{failures}"));
            let action = serde_json::to_string(&stored(engine)?).expect("an action is text and JSON");
            // Without its outer braces. It is never empty: an alarm is set with what is to be done.
            out.raw(",");
            out.raw(&action[1..action.len() - 1]);
            out.raw("}");
        }
    }
    out.raw(",\"position\":");
    describe::write_position(&mut out, call.epoch, engine.ticket());
    out.raw("}");
    Ok(out.into_bytes())
}

impl SqlRuntime {
    /// Begins a run of the alarm, which the engine knows to be running.
    pub fn begin_alarm(
        &mut self,
        engine: &mut Engine,
        cell: &CellName,
        (deadline, retries): (AlarmTime, u32),
    ) -> AlarmRun {
        if self.has_transaction() {
            return AlarmRun::Blocked;
        }
        let action = match stored(engine) {
            Ok(action) => action,
            Err(failure) => return AlarmRun::Ran(Err(failure)),
        };
        if let Some(url) = action.url {
            let body = action.body.as_deref().map_or("null", RawValue::get);
            let cell = serde_json::to_string(cell.as_str()).expect("a name is text");
            let at = deadline.get();
            let body = format!("{{\"cell\":{cell},\"at\":{at},\"retries\":{retries},\"body\":{body}}}");
            return AlarmRun::Post { url, body: body.into() };
        }
        let ran = statements(engine, &action).and_then(|()| consume(engine));
        AlarmRun::Ran(close(engine, ran))
    }

    /// What was to be posted was taken: consumes the alarm, unless it was replaced meanwhile. None while another caller's
    /// transaction is open: try again.
    pub fn end_alarm(&mut self, engine: &mut Engine) -> Option<Result<(), SqlFailure>> {
        if self.has_transaction() {
            return None;
        }
        let consumed = consume(engine);
        Some(close(engine, consumed))
    }
}

fn statements(engine: &mut Engine, action: &Action) -> Result<(), SqlFailure> {
    let Some(sql) = &action.sql else { return Ok(()) };
    let values = action.args.as_deref().map(values).transpose()?.unwrap_or_default();
    let limits = ExecLimits { time: engine.options().call_budget, result_bytes: ROWS_LEN_MAX };
    engine.object_exec(sql, &values, limits)?;
    if engine.is_object_transaction_lost() {
        return Err(SqlFailure::new(
            "",
            "one of the statements rolled the transaction back; nothing was changed",
        ));
    }
    Ok(())
}

fn consume(engine: &mut Engine) -> Result<(), SqlFailure> {
    let before = engine.alarm_state()?.armed;
    engine.alarm_consume()?;
    // One that replaced it has put its own action there.
    if before.is_some() && engine.alarm_state()?.armed.is_none() {
        engine.kv_delete(ACTION_KEY)?;
    }
    Ok(())
}

/// Commits what went well, and undoes the rest.
fn close(engine: &mut Engine, ran: Result<(), SqlFailure>) -> Result<(), SqlFailure> {
    let ran = ran.and_then(|()| engine.object_commit());
    if ran.is_err() {
        engine.object_roll_back();
    }
    stream::end(engine)?;
    ran
}
