//! The Cache API's caches of a program: answers in memory, within one bound, those first to go that were used least recently. They
//! belong to the process, as Cloudflare's belong to a data centre: another process has others, and a restart has none. It must
//! never hold more than its bound, answers that are still coming included.

mod entries;
mod policy;
mod select;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream;
use holdfast_js::JsError;
use holdfast_rpc::{Body, whole_body};
use holdfast_telemetry::metrics;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde::Deserialize;
use serde_json::json;

use crate::body::Patient;
use crate::{BucketReply, Outbound};

use entries::{Entries, Kept, Name};
use policy::lifetime;
use select::{Wanted, select};

/// What an isolate asks of a cache.
#[derive(Debug, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase")]
enum Request {
    /// Keeps an answer, whose body comes beside.
    Put(Put),
    /// Looks for one.
    Match {
        #[serde(flatten)]
        name: Name,
        #[serde(flatten)]
        wanted: Wanted,
    },
    /// Forgets one.
    Delete {
        #[serde(flatten)]
        name: Name,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Put {
    #[serde(flatten)]
    name: Name,
    status: u16,
    status_text: String,
    /// Names and values.
    headers: Vec<(String, String)>,
    /// `Expires` less `Date`, or less now, in milliseconds; none where there is no `Expires`.
    expires_in: Option<i64>,
    /// `Last-Modified` in milliseconds since 1970.
    last_modified: Option<i64>,
}

/// All caches of a program.
#[derive(Debug)]
pub(crate) struct Caches {
    entries: Arc<Entries>,
}

impl Caches {
    /// With a bound in bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { entries: Arc::new(Entries::new(bytes_max)) }
    }

    /// Keeps an answer, unless it says that it is not to be kept, or is too large. Its body is not read where it is not kept.
    async fn put(&self, put: Put, mut body: Body) -> Result<bool, JsError> {
        let Put { name, status, status_text, headers, expires_in, last_modified } = put;
        let Some((lifetime, headers)) = lifetime(status, headers, expires_in) else { return Ok(false) };
        let mut filling = self.entries.begin();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| JsError::new(format!("the body broke: {error}")))?;
            // Trailers are not kept.
            let Ok(piece) = frame.into_data() else { continue };
            if !filling.add(piece) {
                return Ok(false);
            }
        }
        let stored = Instant::now();
        let kept = Kept { status, status_text, headers, last_modified, stored, lifetime };
        Ok(filling.keep(name, kept))
    }
}

impl Outbound {
    /// Does what an isolate asks of the caches of this program, as JSON; `body` is what is put.
    ///
    /// # Errors
    /// The body broke.
    pub async fn ask_cache(&self, request: &[u8], body: Body) -> Result<BucketReply, JsError> {
        let request: Request = serde_json::from_slice(request).map_err(|error| {
            JsError::type_error(format!("what is asked of a cache cannot be read: {error}"))
        })?;
        let caches = &self.inner.caches;
        let told = |head: serde_json::Value, body| BucketReply { head: head.to_string().into(), body };
        let nothing = || whole_body(Bytes::new());
        match request {
            Request::Put(put) => {
                let body = Patient::new(body, self.inner.options.idle_timeout).boxed_unsync();
                let is_kept = caches.put(put, body).await?;
                metrics().cache_put(is_kept);
                Ok(told(json!({}), nothing()))
            }
            Request::Match { name, wanted } => {
                let found = caches.entries.find(&name, Instant::now());
                metrics().cache_lookup(found.is_some());
                let Some((kept, pieces)) = found else { return Ok(told(json!(null), nothing())) };
                let chosen = select(&kept, &pieces, &wanted, Instant::now());
                let head = json!({
                    "status": chosen.status, "statusText": chosen.status_text, "headers": chosen.headers,
                    "hasBody": chosen.has_body,
                });
                Ok(told(head, body_of(chosen.pieces)))
            }
            Request::Delete { name } => {
                let deleted = caches.entries.remove(&name, Instant::now());
                Ok(told(json!({ "deleted": deleted }), nothing()))
            }
        }
    }
}

fn body_of(mut pieces: Vec<Bytes>) -> Body {
    if pieces.len() <= 1 {
        return whole_body(pieces.pop().unwrap_or_default());
    }
    StreamBody::new(stream::iter(pieces.into_iter().map(|piece| Ok(Frame::data(piece))))).boxed_unsync()
}
