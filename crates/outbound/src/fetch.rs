//! `fetch`: exchanges with servers, and the redirects between them.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use holdfast_js::{Application, AssetServer, JsError, OutgoingRequest, Redirect};
use holdfast_rpc::{Body, whole_body};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, RANGE};
use http::{HeaderValue, Request, Response, request};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use url::Url;

use crate::body::{Patient, Upload};
use crate::connect::ConnectError;
use crate::{Inner, Outbound, decode, fields, redirect};

/// What `fetch` came to.
#[derive(Debug)]
pub struct Fetched {
    /// The answer; its body is decoded where its `Content-Encoding` was known, and then the field is gone.
    pub response: Response<Body>,
    /// The URL that answered, without its fragment.
    pub url: String,
    /// Whether there were redirects.
    pub redirected: bool,
}

/// Who answers a `fetch`.
#[derive(Clone, Debug)]
pub enum FetchFrom {
    /// The server that its URL names.
    Server,
    /// The application's static files.
    Assets(Arc<dyn AssetServer>),
}

/// Bytes of a static file that an isolate takes in at a time: a large one is not copied into its memory as a whole.
const PIECE_LEN: usize = 64 << 10;

fn in_pieces(bytes: Bytes) -> Body {
    if bytes.len() <= PIECE_LEN {
        return whole_body(bytes);
    }
    let starts = (0..bytes.len()).step_by(PIECE_LEN);
    let pieces = starts.map(move |start| bytes.slice(start..bytes.len().min(start + PIECE_LEN)));
    StreamBody::new(stream::iter(pieces.map(|piece| Ok(Frame::data(piece))))).boxed_unsync()
}

impl FetchFrom {
    /// Who answers a request of this application.
    ///
    /// # Errors
    /// It asks for static files, and there are none.
    pub fn of(request: &OutgoingRequest, code: &Application) -> Result<Self, JsError> {
        if !request.is_for_assets {
            return Ok(Self::Server);
        }
        let assets = code.assets().ok_or_else(|| JsError::new("the application has no static files"))?;
        Ok(Self::Assets(Arc::clone(assets)))
    }
}

impl Outbound {
    /// Sends a request to whoever is to answer it; the application's static files follow no redirect.
    ///
    /// # Errors
    /// As [`Outbound::fetch`].
    pub async fn fetch_from(
        &self,
        from: FetchFrom,
        request: Request<Body>,
        redirect: Redirect,
    ) -> Result<Fetched, JsError> {
        let FetchFrom::Assets(assets) = from else { return self.fetch(request, redirect).await };
        let url = request.uri().to_string();
        let response = assets.answer(request.map(drop)).await.map(in_pieces);
        Ok(Fetched { response, url, redirected: false })
    }

    /// Sends a request to the server that its URL names, and gives the answer once its head is there. Redirects are
    /// followed as asked, at most 20; each of them may lead to public or allowed addresses only, like the first URL.
    /// Dropping the future or the answer's body ends the exchange.
    ///
    /// # Errors
    /// A `TypeError` for what is not allowed, an `Error` for what did not work; `retryable` where no server saw the request.
    pub async fn fetch(&self, request: Request<Body>, redirect: Redirect) -> Result<Fetched, JsError> {
        let inner = &*self.inner;
        let timeout = inner.options.response_timeout;
        let (head, body) = request.into_parts();
        let url = head.uri.to_string();
        let answer = tokio::time::timeout(timeout, fetch(inner, head, body, redirect)).await;
        answer.unwrap_or_else(|_| {
            Err(JsError::new(format!("fetch of `{url}` failed: no answer came within {timeout:?}")))
        })
    }
}

async fn fetch(
    inner: &Inner,
    mut head: request::Parts,
    body: Body,
    redirect: Redirect,
) -> Result<Fetched, JsError> {
    let mut url = parse(&head.uri.to_string())?;
    fields::clean_request(&mut head.headers);
    let mut upload = match redirect {
        Redirect::Follow => Upload::of(body),
        Redirect::Error | Redirect::Manual => Upload::Stream(body),
    };
    let mut redirects = 0;
    loop {
        let (body, again) = upload.send();
        let response = exchange(inner, &head, &url, body).await?;
        let (answer, body) = response.into_parts();
        let target = match redirect {
            Redirect::Manual => None,
            Redirect::Follow | Redirect::Error => redirect::target(&url, &answer)?,
        };
        let Some(to) = target else {
            let response = Response::from_parts(answer, body);
            return Ok(Fetched { response, url: without_fragment(url), redirected: redirects > 0 });
        };
        if redirect == Redirect::Error {
            return Err(JsError::type_error(format!("fetch of `{url}` failed: it redirects to `{to}`")));
        }
        redirects += 1;
        if redirects > redirect::REDIRECTS_MAX {
            let max = redirect::REDIRECTS_MAX;
            return Err(JsError::type_error(format!(
                "fetch failed: more than {max} redirects, the last to `{to}`"
            )));
        }
        let to = parse(to.as_str())?;
        let keeps_body = redirect::follow(&mut head, answer.status, &url, &to);
        upload = Upload::Whole(if keeps_body { replay(again)? } else { Bytes::new() });
        url = to;
    }
}

fn replay(bytes: Option<Bytes>) -> Result<Bytes, JsError> {
    bytes.ok_or_else(|| {
        JsError::type_error(
            "a request with a streaming body was redirected, and the body cannot be sent a second time",
        )
    })
}

/// A URL that `fetch` goes to.
pub(crate) fn parse(text: &str) -> Result<Url, JsError> {
    let url = Url::parse(text)
        .map_err(|error| JsError::type_error(format!("fetch of `{text}` failed: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        let message = format!("fetch of `{text}` failed: it goes to http: and https:, not to {scheme}:");
        return Err(JsError::type_error(message));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let message = "fetch of a URL with credentials: send an Authorization header instead";
        return Err(JsError::type_error(message));
    }
    Ok(url)
}

pub(crate) fn without_fragment(mut url: Url) -> String {
    url.set_fragment(None);
    url.into()
}

async fn exchange(
    inner: &Inner,
    head: &request::Parts,
    url: &Url,
    body: Body,
) -> Result<Response<Body>, JsError> {
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = without_fragment(url.clone())
        .parse()
        .map_err(|error| JsError::type_error(format!("fetch of `{url}` failed: {error}")))?;
    request.headers_mut().clone_from(&head.headers);
    let length = request.body().size_hint().exact();
    if length.is_some() {
        // The body itself says how long it is.
        request.headers_mut().remove(CONTENT_LENGTH);
    }
    let headers = request.headers_mut();
    // A range of encoded bytes cannot be decoded.
    if !headers.contains_key(ACCEPT_ENCODING) && !headers.contains_key(RANGE) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(decode::ACCEPTED));
    }
    let response = inner.client.request(request).await.map_err(|error| failed(url, &error))?;
    let (mut answer, body) = response.into_parts();
    fields::strip_hop_by_hop(&mut answer.headers);
    let body = Patient::new(body, inner.options.idle_timeout).boxed_unsync();
    let body = decode::decoded(&head.method, answer.status, &mut answer.headers, body);
    Ok(Response::from_parts(answer, body))
}

/// What went wrong, in the words of whoever knows most about it.
fn failed(url: &Url, error: &hyper_util::client::legacy::Error) -> JsError {
    let mut deepest: &dyn std::error::Error = error;
    let mut is_refused = false;
    while let Some(source) = deepest.source() {
        deepest = source;
        if let Some(connect) = deepest.downcast_ref::<ConnectError>() {
            is_refused = matches!(connect, ConnectError::Refused { .. });
            break;
        }
    }
    told(url, deepest, is_refused, error.is_connect())
}

/// Why there is no connection.
pub(crate) fn not_connected(url: &Url, error: &ConnectError) -> JsError {
    told(url, error, matches!(error, ConnectError::Refused { .. }), true)
}

fn told(url: &Url, error: &dyn std::error::Error, is_refused: bool, is_retryable: bool) -> JsError {
    let message = format!("fetch of `{}` failed: {error}", without_query(url));
    if is_refused {
        return JsError::type_error(message);
    }
    JsError { retryable: is_retryable, ..JsError::new(message) }
}

/// A URL for texts: what stands in a query may be secret.
pub(crate) fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}
