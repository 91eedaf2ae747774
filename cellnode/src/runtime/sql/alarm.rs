//! Runs of a database's alarm: its statements in one turn, or one request to a server and the turn after its answer.

use bytes::Bytes;
use holdfast_js::Redirect;
use holdfast_outbound::FetchFrom;
use holdfast_sql::{AlarmRun, SqlFailure};
use holdfast_types::{AlarmTime, Millis};
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Full};

use super::Sql;
use crate::runtime::{AlarmBegun, AlarmEnd, Effect, EventId, OpAnswer, OpId, Operation, ServerRequest, Turn};

/// Longest wait for a server, in milliseconds.
const POST_MS_MAX: u64 = 60_000;
/// While another caller's transaction keeps a run from its end: when to look again, in milliseconds.
const LOOK_AGAIN_MS: u64 = 50;

/// A request that an alarm has posted.
#[derive(Debug)]
pub(super) struct Posting {
    event: EventId,
    state: State,
    /// When something is to be done about it, whatever comes.
    pub(super) look_at: Millis,
}

#[derive(Debug)]
enum State {
    /// The server has not answered.
    Sent(OpId),
    /// It has taken it; the alarm is to be consumed.
    Taken,
}

impl Sql {
    pub(super) fn begin_alarm(
        &mut self,
        event: EventId,
        alarm: (AlarmTime, u32),
        turn: &mut Turn,
    ) -> AlarmBegun {
        let run = self.runtime.begin_alarm(&mut self.engine.borrow_mut(), &self.context.cell, alarm);
        match run {
            AlarmRun::Blocked => return AlarmBegun::NotNow,
            AlarmRun::Ran(ran) => self.ended(event, ran, turn),
            AlarmRun::Post { url, body } => match self.request(&url, body) {
                Ok(operation) => {
                    self.ops_made += 1;
                    let op = OpId(self.ops_made);
                    let look_at = turn.now.plus(POST_MS_MAX);
                    self.posting = Some(Posting { event, state: State::Sent(op), look_at });
                    turn.effects.push(Effect::Start { op, operation });
                }
                Err(reason) => self.failed(event, &reason, turn),
            },
        }
        AlarmBegun::Open
    }

    fn request(&self, url: &str, body: Bytes) -> Result<Operation, String> {
        let outbound = self.outbound.clone().ok_or("this node sends no requests")?;
        let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
        let request = http::Request::post(url)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| format!("`{url}` is no URL: {error}"))?;
        Ok(Operation::Fetch(Box::new(ServerRequest {
            outbound,
            from: FetchFrom::Server,
            request,
            redirect: Redirect::Follow,
            is_socket: false,
        })))
    }

    /// The server has answered, or there is no answer.
    pub(super) fn posted(&mut self, op: OpId, answer: &OpAnswer, turn: &mut Turn) {
        let Some(posting) =
            self.posting.take_if(|posting| matches!(posting.state, State::Sent(sent) if sent == op))
        else {
            return;
        };
        let reason = match answer {
            OpAnswer::Response(answer) if answer.head.status.is_success() => {
                self.posting = Some(Posting { state: State::Taken, look_at: turn.now, ..posting });
                return self.look_at_posting(turn);
            }
            OpAnswer::Response(answer) => format!("{} answered {}", answer.url, answer.head.status),
            OpAnswer::Failed(error) => error.to_string(),
            OpAnswer::Refused(reason) => reason.clone(),
            OpAnswer::Chunk(_) | OpAnswer::Written(_) | OpAnswer::Returned(_) | OpAnswer::Object(..) => {
                unreachable!("a request is answered with a response")
            }
        };
        self.failed(posting.event, &reason, turn);
    }

    /// Ends a run whose server took too long, or one that another caller's transaction kept from its end.
    pub(super) fn look_at_posting(&mut self, turn: &mut Turn) {
        let Some(mut posting) = self.posting.take_if(|posting| posting.look_at <= turn.now) else { return };
        match posting.state {
            State::Sent(op) => {
                turn.effects.push(Effect::Cancel { op });
                self.failed(posting.event, "the server did not answer within 60 s", turn);
            }
            State::Taken => match self.runtime.end_alarm(&mut self.engine.borrow_mut()) {
                Some(ended) => self.ended(posting.event, ended, turn),
                None => {
                    posting.look_at = turn.now.plus(LOOK_AGAIN_MS);
                    self.posting = Some(posting);
                }
            },
        }
    }

    fn ended(&self, event: EventId, ran: Result<(), SqlFailure>, turn: &mut Turn) {
        match ran {
            Ok(()) => end(event, AlarmEnd::Succeeded, turn),
            Err(failure) => self.failed(event, &failure.to_string(), turn),
        }
    }

    fn failed(&self, event: EventId, reason: &str, turn: &mut Turn) {
        tracing::warn!(cell = %self.context.cell, reason, "the alarm of a database has failed; it is tried again");
        end(event, AlarmEnd::Failed, turn);
    }
}

fn end(event: EventId, end: AlarmEnd, turn: &mut Turn) {
    turn.effects.push(Effect::AlarmEnded { end });
    turn.effects.push(Effect::Done { event });
}
