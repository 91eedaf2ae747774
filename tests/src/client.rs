//! A SQL client for tests that never hides what a caller may conclude: acknowledged, certainly not run, or unknown.
//! It sends each request once.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use holdfast_types::{Epoch, Position, Txid};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// Says what a caller may conclude; `unknown` where nobody knows.
pub const OUTCOME_HEADER: &str = "holdfast-outcome";
/// The position that an answer reveals.
pub const POSITION_HEADER: &str = "holdfast-position";

/// Largest answer that a test reads.
const ANSWER_LEN_MAX: usize = 64 << 20;

/// An answer, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// When it is none.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("no JSON: {}", self.text()))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What `Holdfast-Position` says.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        parse_position(self.headers.get(POSITION_HEADER)?.to_str().ok()?)
    }
}

/// `<epoch>/<txid>` in decimal.
#[must_use]
pub fn parse_position(text: &str) -> Option<Position> {
    let (epoch, txid) = text.split_once('/')?;
    Some(Position { epoch: Epoch::new(epoch.parse().ok()?), txid: Txid::new(txid.parse().ok()?) })
}

/// What a caller may conclude.
#[derive(Clone, Debug)]
pub enum Outcome<T> {
    /// It ran, and its result survives.
    Acked(T, Option<Position>),
    /// It certainly did not run, or was certainly rolled back.
    Refused(String),
    /// It may have run, and may or may not survive.
    Unknown(String),
}

impl<T> Outcome<T> {
    /// The result, when acknowledged.
    pub fn acked(self) -> Option<T> {
        match self {
            Self::Acked(value, _) => Some(value),
            Self::Refused(_) | Self::Unknown(_) => None,
        }
    }

    /// The result, or an error with the other outcome's reason.
    ///
    /// # Errors
    /// When not acknowledged.
    pub fn into_result(self) -> Result<T> {
        match self {
            Self::Acked(value, _) => Ok(value),
            Self::Refused(reason) => anyhow::bail!("refused: {reason}"),
            Self::Unknown(reason) => anyhow::bail!("outcome unknown: {reason}"),
        }
    }

    fn and_then<U>(self, read: impl FnOnce(T, Option<Position>) -> Outcome<U>) -> Outcome<U> {
        match self {
            Self::Acked(value, position) => read(value, position),
            Self::Refused(reason) => Outcome::Refused(reason),
            Self::Unknown(reason) => Outcome::Unknown(reason),
        }
    }
}

/// Rows of one statement, their values as JSON.
pub type Rows = Vec<Vec<Value>>;

/// The client. Clones share connections.
#[derive(Clone, Debug)]
pub struct SqlClient {
    http: Client<HttpConnector, Full<Bytes>>,
    timeout: Duration,
}

impl SqlClient {
    /// A client that waits so long for each answer.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(Duration::from_secs(2)));
        let http = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(false)
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(5))
            .build(connector);
        Self { http, timeout }
    }

    /// One request, any answer.
    pub async fn send(
        &self,
        method: Method,
        ingress: SocketAddr,
        path: &str,
        body: Bytes,
    ) -> Outcome<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{ingress}{path}"))
            .header("content-type", "application/json")
            .body(Full::new(body));
        let request = match request {
            Ok(request) => request,
            Err(error) => return Outcome::Refused(format!("the request was never sent: {error}")),
        };
        let exchange = async {
            let response =
                self.http.request(request).await.map_err(|error| (error.is_connect(), error.to_string()))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_LEN_MAX).collect().await;
            let body = body.map_err(|error| (false, error.to_string()))?.to_bytes();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Err(_) => Outcome::Unknown(format!("no answer within {:?}", self.timeout)),
            Ok(Err((true, error))) => Outcome::Refused(format!("never connected: {error}")),
            Ok(Err((false, error))) => Outcome::Unknown(error),
            Ok(Ok(answer)) => Outcome::Acked(answer, None),
        }
    }

    /// One statement by `POST /-/db/<name>/query`.
    pub async fn query(&self, ingress: SocketAddr, db: &str, sql: &str, args: &[Value]) -> Outcome<Rows> {
        let body = json!({ "sql": sql, "args": args }).to_string();
        let answer = self.send(Method::POST, ingress, &db_path(db, "query"), body.into()).await;
        answer.and_then(|answer, _| judge(&answer)).and_then(|answer, position| match rows_of(&answer) {
            Ok(rows) => Outcome::Acked(rows, position),
            Err(error) => Outcome::Unknown(format!("{error:#}")),
        })
    }

    /// Several statements by `POST /-/db/<name>/v2/pipeline`, outside of a transaction.
    pub async fn sequence(&self, ingress: SocketAddr, db: &str, sql: &str) -> Outcome<()> {
        let requests = json!([{ "type": "sequence", "sql": sql }, { "type": "close" }]);
        self.pipeline(ingress, db, &requests).await.and_then(|results, position| {
            match results.get(0).map(|result| (&result["type"], &result["error"])) {
                Some((kind, _)) if kind == "ok" => Outcome::Acked((), position),
                // Statements before the one that failed may have been committed.
                other => Outcome::Unknown(format!("sequence failed: {other:?}")),
            }
        })
    }

    /// One transaction by a Hrana batch: BEGIN, the statements, COMMIT, each on the success of the one before, and
    /// ROLLBACK otherwise. The rows of each statement.
    pub async fn transaction(
        &self,
        ingress: SocketAddr,
        db: &str,
        statements: &[(&str, Vec<Value>)],
    ) -> Outcome<Vec<Rows>> {
        let commit = statements.len() + 1;
        let ok = |step: usize| json!({ "type": "ok", "step": step });
        let mut steps = vec![json!({ "stmt": { "sql": "BEGIN IMMEDIATE" } })];
        for (index, (sql, args)) in statements.iter().enumerate() {
            let args: Vec<Value> = args.iter().map(to_hrana).collect();
            steps.push(
                json!({ "condition": ok(index), "stmt": { "sql": sql, "args": args, "want_rows": true } }),
            );
        }
        steps.push(json!({ "condition": ok(commit - 1), "stmt": { "sql": "COMMIT" } }));
        let failed = json!({ "type": "not", "cond": ok(commit) });
        steps.push(json!({ "condition": failed, "stmt": { "sql": "ROLLBACK" } }));
        let requests = json!([{ "type": "batch", "batch": { "steps": steps } }, { "type": "close" }]);
        self.pipeline(ingress, db, &requests).await.and_then(|results, position| {
            match read_batch(&results, commit) {
                Ok(Ok(rows)) => Outcome::Acked(rows, position),
                Ok(Err(error)) => Outcome::Refused(format!("rolled back: {error}")),
                Err(error) => Outcome::Unknown(format!("{error:#}")),
            }
        })
    }

    /// The results of a Hrana pipeline.
    pub async fn pipeline(&self, ingress: SocketAddr, db: &str, requests: &Value) -> Outcome<Value> {
        let body = json!({ "baton": null, "requests": requests }).to_string();
        let answer = self.send(Method::POST, ingress, &db_path(db, "v2/pipeline"), body.into()).await;
        answer.and_then(|answer, _| judge(&answer)).and_then(|answer, position| match answer.json() {
            Ok(mut body) => Outcome::Acked(body["results"].take(), position),
            Err(error) => Outcome::Unknown(format!("{error:#}")),
        })
    }
}

/// The path of one endpoint of a database.
#[must_use]
pub fn db_path(db: &str, endpoint: &str) -> String {
    format!("/-/db/{}/{endpoint}", utf8_percent_encode(db, NON_ALPHANUMERIC))
}

/// What an answer of the ingress lets a caller conclude. 500, 502 and 504 without a word count as unknown.
fn judge(answer: &Answer) -> Outcome<Answer> {
    let said = answer.headers.get(OUTCOME_HEADER).and_then(|value| value.to_str().ok());
    let reason = || {
        let message = answer.json().ok().and_then(|body| Some(body["error"]["message"].as_str()?.to_owned()));
        let text: String = message.unwrap_or_else(|| answer.text()).chars().take(300).collect();
        format!("{} {}", answer.status.as_u16(), text.trim())
    };
    match (answer.status.as_u16(), said) {
        (_, Some("unknown")) => Outcome::Unknown(reason()),
        (200..=299, _) => Outcome::Acked(answer.clone(), answer.position()),
        (500 | 502 | 504, _) => Outcome::Unknown(reason()),
        _ => Outcome::Refused(reason()),
    }
}

/// Rows of a `/query` answer, whether its rows are arrays or objects by column.
fn rows_of(answer: &Answer) -> Result<Rows> {
    let body = answer.json()?;
    let columns: Vec<String> = body["columns"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| Some(c.as_str()?.to_owned()))
        .collect();
    let rows = body["rows"].as_array().with_context(|| format!("no `rows` in {body}"))?;
    rows.iter()
        .map(|row| match row {
            Value::Array(values) => Ok(values.clone()),
            Value::Object(values) => {
                Ok(columns.iter().map(|c| values.get(c).cloned().unwrap_or(Value::Null)).collect())
            }
            other => anyhow::bail!("a row is {other}"),
        })
        .collect()
}

/// Rows per statement, or the error that rolled the batch back.
fn read_batch(results: &Value, commit: usize) -> Result<Result<Vec<Rows>, String>> {
    let first = results.get(0).with_context(|| format!("no result in {results}"))?;
    if first["type"] != "ok" {
        // An error of the whole request says nothing of how far it came.
        anyhow::bail!("the batch failed: {first}");
    }
    let result = &first["response"]["result"];
    let steps = result["step_results"].as_array().with_context(|| format!("no `step_results` in {first}"))?;
    if steps.get(commit).is_none_or(Value::is_null) {
        return Ok(Err(result["step_errors"].to_string()));
    }
    let rows = |step: &Value| -> Rows {
        let rows = step["rows"].as_array().into_iter().flatten();
        rows.map(|row| row.as_array().into_iter().flatten().map(from_hrana).collect()).collect()
    };
    Ok(Ok(steps[1..commit].iter().map(rows).collect()))
}

fn to_hrana(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "type": "null" }),
        Value::Number(number) if number.is_f64() => json!({ "type": "float", "value": number }),
        Value::Number(number) => json!({ "type": "integer", "value": number.to_string() }),
        Value::String(text) => json!({ "type": "text", "value": text }),
        other => json!({ "type": "text", "value": other.to_string() }),
    }
}

fn from_hrana(value: &Value) -> Value {
    match value["type"].as_str() {
        Some("integer") => {
            value["value"].as_str().and_then(|text| text.parse::<i64>().ok()).map_or(Value::Null, Value::from)
        }
        Some("null") | None => Value::Null,
        _ => value["value"].clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, outcome: Option<&'static str>) -> Answer {
        let mut headers = HeaderMap::new();
        if let Some(outcome) = outcome {
            headers.insert(OUTCOME_HEADER, outcome.parse().unwrap());
        }
        headers.insert(POSITION_HEADER, "3/17".parse().unwrap());
        Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: Bytes::from_static(b"{}") }
    }

    #[test]
    fn answers_are_judged_by_what_a_caller_may_conclude() {
        let name = |outcome: Outcome<Answer>| match outcome {
            Outcome::Acked(_, position) => {
                assert_eq!(position.unwrap().to_string(), "3/17");
                "acked"
            }
            Outcome::Refused(_) => "refused",
            Outcome::Unknown(_) => "unknown",
        };
        assert_eq!(name(judge(&answer(200, None))), "acked");
        assert_eq!(name(judge(&answer(400, None))), "refused");
        assert_eq!(name(judge(&answer(503, None))), "refused");
        assert_eq!(name(judge(&answer(503, Some("unknown")))), "unknown");
        assert_eq!(name(judge(&answer(502, None))), "unknown");
    }

    #[test]
    fn a_batch_counts_only_when_its_commit_has_a_result() {
        let batch = |steps: Value| json!([{ "type": "ok", "response": { "result": { "step_results": steps, "step_errors": [null, "no"] } } }]);
        let row = json!({ "rows": [[{ "type": "integer", "value": "9007199254740993" }]] });
        let done = read_batch(&batch(json!([{}, row, {}, null])), 2).unwrap().unwrap();
        assert_eq!(done, vec![vec![vec![Value::from(9_007_199_254_740_993_i64)]]]);
        assert!(read_batch(&batch(json!([{}, null, null, {}])), 2).unwrap().is_err());
        assert!(read_batch(&json!([{ "type": "error" }]), 2).is_err());
    }
}
