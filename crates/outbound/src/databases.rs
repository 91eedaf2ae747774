//! Statements for D1 databases: the cells of the SQL API, reached by the router like any other.

use bytes::Bytes;
use holdfast_js::JsError;
use holdfast_rpc::{Access, CellCall, ObjectCall, whole_body};
use holdfast_types::CellName;
use http::{Request, StatusCode};
use tokio::time::Instant;

use crate::objects::not_answered;
use crate::{Outbound, read_whole};

/// Longest answer: the SQL API bounds its results below that.
const ANSWER_LEN_MAX: usize = 32 << 20;
/// Where the SQL API takes them.
const PATH: &str = "/d1";

impl Outbound {
    /// Sends statements to the database `name`, as JSON, and gives its answer, which says what they came to. The call is
    /// over at the deadline. Dropping the future cancels it.
    ///
    /// # Errors
    /// Why the database was not reached, or did not read the request. `retryable` where nothing certainly ran.
    pub async fn query_database(
        &self,
        name: &str,
        statements: Bytes,
        deadline: Instant,
    ) -> Result<Bytes, JsError> {
        let cell = CellName::new("db", name).map_err(|error| JsError::new(error.to_string()))?;
        let request = Request::post(PATH)
            .body(whole_body(statements))
            .map_err(|error| JsError::new(format!("the statements cannot be sent: {error}")))?;
        let object = ObjectCall::default();
        let call = CellCall { cell, access: Access::ReadWrite, request, object, deadline };
        let forwarded = self.inner.router.forward(call).await;
        let reply = forwarded.map_err(|error| not_answered("database", &error))?;
        let status = reply.response.status();
        let answer = read_whole(reply.response.into_body(), ANSWER_LEN_MAX).await?;
        if status != StatusCode::OK {
            let text = String::from_utf8_lossy(&answer);
            return Err(JsError::new(format!("the database refused the statements: {}", text.trim_end())));
        }
        Ok(answer)
    }
}
