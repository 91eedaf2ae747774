//! Heads of requests and responses between isolates and HTTP. Bodies are the caller's: every head made here has none.

use holdfast_js::{
    IncomingBody, IncomingRequest, IncomingResponse, JsError, OutgoingRequest, OutgoingResponse,
};
use http::header::HOST;
use http::{HeaderName, Request, Response, Uri, request, response};
use hyper::ext::ReasonPhrase;

use crate::fields;

/// The URL of a request from one program of the fleet to another, where the request line holds its path alone.
pub const URL: HeaderName = HeaderName::from_static("holdfast-url");

/// The request that an isolate makes: an absolute URL, and only the fields that a handler may set.
///
/// # Errors
/// A `TypeError` for a URL that no request line can hold.
pub fn outgoing_request(request: &OutgoingRequest) -> Result<Request<()>, JsError> {
    let without_fragment = request.url.split('#').next().unwrap_or_default();
    let uri: Uri = without_fragment
        .parse()
        .map_err(|error| JsError::type_error(format!("the URL `{}` cannot be sent: {error}", request.url)))?;
    let mut made = Request::new(());
    *made.method_mut() = request.method.clone();
    *made.uri_mut() = uri;
    made.headers_mut().clone_from(&request.headers);
    fields::clean_request(made.headers_mut());
    Ok(made)
}

/// A request of another program, as an isolate sees it. Its URL is what [`URL`] says, where that is there; otherwise
/// `scheme`, the host that the request names, and its path, byte for byte.
#[must_use]
pub fn incoming_request(parts: &request::Parts, scheme: &str) -> IncomingRequest {
    let mut headers = parts.headers.clone();
    let url = match headers.get(&URL).and_then(|url| url.to_str().ok()) {
        Some(url) => url.to_owned(),
        None => url_of(parts, scheme),
    };
    fields::strip_hop_by_hop(&mut headers);
    fields::strip_ours(&mut headers);
    IncomingRequest { method: parts.method.clone(), url, headers, body: IncomingBody::None, cf: None }
}

fn url_of(parts: &request::Parts, scheme: &str) -> String {
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    // In HTTP/2 the host stands in the request line.
    let host = authority.or(named).filter(|host| !host.is_empty()).unwrap_or("localhost");
    let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    format!("{scheme}://{host}{path}")
}

/// The answer of a server or an object, as an isolate sees it.
#[must_use]
pub fn incoming_response(parts: &response::Parts, url: String, redirected: bool) -> IncomingResponse {
    let reason = parts.extensions.get::<ReasonPhrase>();
    let status_text = match reason {
        Some(reason) => String::from_utf8_lossy(reason.as_bytes()).into_owned(),
        None if parts.version < http::Version::HTTP_2 => {
            parts.status.canonical_reason().unwrap_or_default().to_owned()
        }
        // HTTP/2 has none.
        None => String::new(),
    };
    let mut headers = parts.headers.clone();
    fields::strip_hop_by_hop(&mut headers);
    fields::strip_ours(&mut headers);
    let body = IncomingBody::None;
    let status = parts.status.as_u16();
    IncomingResponse { status, status_text, headers, body, url, redirected, is_socket: false }
}

/// The answer of an isolate to whoever asked.
///
/// # Errors
/// A `TypeError` for a status or a reason that HTTP cannot say.
pub fn outgoing_response(response: &OutgoingResponse) -> Result<Response<()>, JsError> {
    let mut made = Response::new(());
    *made.status_mut() = http::StatusCode::from_u16(response.status)
        .map_err(|error| JsError::type_error(format!("the status {}: {error}", response.status)))?;
    if !response.status_text.is_empty() {
        let reason = ReasonPhrase::try_from(response.status_text.as_bytes())
            .map_err(|error| JsError::type_error(format!("the status text cannot be sent: {error}")))?;
        made.extensions_mut().insert(reason);
    }
    made.headers_mut().clone_from(&response.headers);
    fields::strip_hop_by_hop(made.headers_mut());
    fields::strip_ours(made.headers_mut());
    Ok(made)
}

#[cfg(test)]
mod tests {
    use holdfast_js::{OutgoingBody, Redirect};
    use http::{HeaderMap, Method};

    use super::*;

    #[test]
    fn a_request_keeps_its_path_byte_for_byte_and_loses_its_fragment() {
        let request = OutgoingRequest {
            method: Method::PUT,
            url: "https://a.example:8443/x%2Fy?q=%20|^`#part".into(),
            headers: HeaderMap::new(),
            body: OutgoingBody::None,
            redirect: Redirect::Manual,
            socket: None,
            is_for_assets: false,
        };
        let made = outgoing_request(&request).unwrap();
        assert_eq!(made.uri().to_string(), "https://a.example:8443/x%2Fy?q=%20|^`");
        assert_eq!(made.method(), Method::PUT);
    }

    #[test]
    fn the_url_of_a_request_is_what_the_fleet_says_or_what_the_client_wrote() {
        let parts = |uri: &str, rows: &[(&str, &str)]| {
            let mut builder = Request::builder().uri(uri);
            for (name, value) in rows {
                builder = builder.header(*name, *value);
            }
            builder.body(()).unwrap().into_parts().0
        };
        let url = |uri: &str, rows: &[(&str, &str)]| incoming_request(&parts(uri, rows), "http").url;
        assert_eq!(url("/a%2f?b", &[("host", "h:1")]), "http://h:1/a%2f?b");
        assert_eq!(url("https://two.example/a", &[]), "http://two.example/a");
        assert_eq!(url("/a", &[]), "http://localhost/a");
        let rows = [("host", "h"), ("holdfast-url", "https://x.example/y")];
        assert_eq!(url("/y", &rows), "https://x.example/y");
        assert!(!incoming_request(&parts("/y", &rows), "http").headers.contains_key(URL));
    }

    #[test]
    fn a_status_text_crosses_both_ways() {
        let response = OutgoingResponse {
            status: 299,
            status_text: "Quite Fine".into(),
            headers: HeaderMap::new(),
            body: OutgoingBody::None,
            socket: None,
        };
        let (parts, ()) = outgoing_response(&response).unwrap().into_parts();
        let seen = incoming_response(&parts, "http://x/".into(), true);
        assert_eq!((seen.status, seen.status_text.as_str(), seen.redirected), (299, "Quite Fine", true));
        let (parts, ()) = Response::new(()).into_parts();
        assert_eq!(incoming_response(&parts, String::new(), false).status_text, "OK");
    }
}
