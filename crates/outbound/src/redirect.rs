//! Redirects (Fetch Standard, HTTP-redirect fetch): where to, and what of the request goes there.

use holdfast_js::JsError;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE,
    COOKIE, LOCATION, PROXY_AUTHORIZATION,
};
use http::{HeaderMap, HeaderName, Method, StatusCode, request, response};
use url::Url;

/// Redirects of one `fetch`.
pub(crate) const REDIRECTS_MAX: usize = 20;
/// Fields that say something of a body.
const OF_BODY: [HeaderName; 5] =
    [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, CONTENT_LENGTH];
/// Fields that are for the origin that they were sent to.
const SECRET: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];

/// Where an answer redirects to; none where it does not.
///
/// # Errors
/// A `TypeError` for a target that is not a URL.
pub(crate) fn target(from: &Url, answer: &response::Parts) -> Result<Option<Url>, JsError> {
    if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = answer.headers.get(LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let wrong = |error| JsError::type_error(format!("the redirect to `{location}` leads nowhere: {error}"));
    let mut to = from.join(&location).map_err(wrong)?;
    if to.fragment().is_none() {
        to.set_fragment(from.fragment());
    }
    Ok(Some(to))
}

/// Makes the head one of the request that follows the redirect. Answers whether its body goes with it.
pub(crate) fn follow(head: &mut request::Parts, status: StatusCode, from: &Url, to: &Url) -> bool {
    let rewrites = match status.as_u16() {
        303 => !matches!(head.method, Method::GET | Method::HEAD),
        301 | 302 => head.method == Method::POST,
        _ => false,
    };
    if rewrites {
        head.method = Method::GET;
        remove(&mut head.headers, &OF_BODY);
    }
    if from.origin() != to.origin() {
        remove(&mut head.headers, &SECRET);
    }
    !rewrites
}

fn remove(headers: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(method: Method, status: u16, to: &str) -> (Method, bool, bool, bool) {
        let request = http::Request::builder()
            .method(method)
            .header(AUTHORIZATION, "x")
            .header(CONTENT_TYPE, "y")
            .body(())
            .unwrap();
        let mut head = request.into_parts().0;
        let from = Url::parse("https://a.example/x").unwrap();
        let keeps = follow(&mut head, StatusCode::from_u16(status).unwrap(), &from, &from.join(to).unwrap());
        let has = |name| head.headers.contains_key(name);
        (head.method.clone(), keeps, has(AUTHORIZATION), has(CONTENT_TYPE))
    }

    #[test]
    fn a_redirect_rewrites_the_method_as_the_standard_says() {
        for status in [301, 302, 303] {
            assert_eq!(followed(Method::POST, status, "/y"), (Method::GET, false, true, false), "{status}");
        }
        assert_eq!(followed(Method::PUT, 303, "/y").0, Method::GET);
        assert_eq!(followed(Method::HEAD, 303, "/y"), (Method::HEAD, true, true, true));
        assert_eq!(followed(Method::PUT, 302, "/y"), (Method::PUT, true, true, true));
        assert_eq!(followed(Method::POST, 307, "/y"), (Method::POST, true, true, true));
    }

    #[test]
    fn another_origin_gets_no_secrets() {
        for to in ["https://b.example/", "http://a.example/", "https://a.example:8443/"] {
            assert!(!followed(Method::GET, 302, to).2, "{to}");
        }
        assert!(followed(Method::GET, 302, "https://a.example:443/").2);
    }
}
