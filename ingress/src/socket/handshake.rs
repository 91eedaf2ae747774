//! The request that asks for a WebSocket, and its answer: the Upgrade of HTTP/1.1 (RFC 6455, 4.2) and the extended CONNECT of
//! HTTP/2 (RFC 8441). No extension is agreed on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version, response};
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use sha1::{Digest as _, Sha1};

use crate::answer::Failure;

/// What every server adds to the key (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The only version.
const VERSION: HeaderValue = HeaderValue::from_static("13");
/// Bytes of a key.
const KEY_LEN: usize = 16;

/// A request for a WebSocket that is in order.
pub(crate) struct Handshake {
    upgrade: OnUpgrade,
    /// What proves that the key was read; none in HTTP/2.
    accept: Option<HeaderValue>,
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(token))
}

impl Handshake {
    /// Looks whether a request asks for a WebSocket, and makes it the GET that a handler expects. A request that asks for one
    /// in a wrong way is refused.
    pub(crate) fn of(request: &mut Request<Incoming>) -> Result<Option<Self>, Failure> {
        let accept = if request.version() < Version::HTTP_2 {
            let headers = request.headers();
            if !has_token(headers, &UPGRADE, "websocket") || !has_token(headers, &CONNECTION, "upgrade") {
                return Ok(None);
            }
            Some(accept(request.method(), headers)?)
        } else {
            let protocol = request.extensions().get::<Protocol>();
            if request.method() != Method::CONNECT || protocol.is_none_or(|name| name.as_str() != "websocket")
            {
                return Ok(None);
            }
            check_version(request.headers())?;
            None
        };
        let upgrade = hyper::upgrade::on(&mut *request);
        *request.method_mut() = Method::GET;
        // Nothing is agreed on, so nothing is offered any further.
        request.headers_mut().remove(SEC_WEBSOCKET_EXTENSIONS);
        Ok(Some(Self { upgrade, accept }))
    }

    /// Makes an answer the one that opens the connection; what becomes of it.
    pub(super) fn complete(self, answer: &mut response::Parts) -> OnUpgrade {
        for name in [CONTENT_LENGTH, TRANSFER_ENCODING, SEC_WEBSOCKET_EXTENSIONS] {
            answer.headers.remove(name);
        }
        match self.accept {
            Some(accept) => {
                answer.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                answer.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
                answer.headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
            }
            None => answer.status = StatusCode::OK,
        }
        self.upgrade
    }
}

/// The header that shows a handler that a socket is asked for; that of the connection ends at the edge.
pub(crate) fn show(headers: &mut HeaderMap) {
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

fn check_version(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.get(SEC_WEBSOCKET_VERSION) == Some(&VERSION) {
        return Ok(());
    }
    let text = "a WebSocket needs `Sec-WebSocket-Version: 13`";
    Err(Failure::new(StatusCode::UPGRADE_REQUIRED, "bad_handshake", text))
}

/// Checks a request of HTTP/1.1; gives the answer to its key.
fn accept(method: &Method, headers: &HeaderMap) -> Result<HeaderValue, Failure> {
    let bad = |text| Err(Failure::new(StatusCode::BAD_REQUEST, "bad_handshake", text));
    if method != Method::GET {
        return bad("a WebSocket is opened by GET");
    }
    check_version(headers)?;
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
        return bad("a WebSocket needs a `Sec-WebSocket-Key`");
    };
    if !STANDARD.decode(key.as_bytes()).is_ok_and(|key| key.len() == KEY_LEN) {
        return bad("`Sec-WebSocket-Key` is not 16 bytes in base64");
    }
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(GUID);
    Ok(HeaderValue::try_from(STANDARD.encode(hash.finalize())).expect("base64 is plain text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(rows: &[(&str, &str)]) -> HeaderMap {
        let row =
            |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        rows.iter().map(row).collect()
    }

    #[test]
    fn the_key_of_the_standard_has_the_answer_of_the_standard() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let version = ("sec-websocket-version", "13");
        assert_eq!(accept(&Method::GET, &headers(&[key, version])).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for (method, rows, status) in [
            (Method::POST, vec![key, version], 400),
            (Method::GET, vec![version], 400),
            (Method::GET, vec![version, ("sec-websocket-key", "c2hvcnQ=")], 400),
            (Method::GET, vec![key], 426),
            (Method::GET, vec![key, ("sec-websocket-version", "8")], 426),
        ] {
            assert_eq!(accept(&method, &headers(&rows)).unwrap_err().status, status, "{rows:?}");
        }
    }

    #[test]
    fn tokens_are_found_in_lists_in_any_case() {
        let headers = headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")]);
        assert!(has_token(&headers, &CONNECTION, "upgrade") && has_token(&headers, &UPGRADE, "websocket"));
        assert!(!has_token(&headers, &UPGRADE, "h2c"));
    }
}
