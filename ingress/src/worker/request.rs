//! A public request as the application sees it.

use std::net::IpAddr;

use holdfast_js::IncomingRequest;
use http::header::{EXPECT, FORWARDED};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, request};

/// The client's address, by the name that code written for Cloudflare reads.
const CLIENT: HeaderName = HeaderName::from_static("cf-connecting-ip");

/// The head of a request. The scheme, the host and the client are those of the connection; where a proxy in front is
/// trusted, those that it says.
pub(crate) fn incoming(
    parts: &request::Parts,
    client: IpAddr,
    is_tls: bool,
    trust_forwarded: bool,
) -> IncomingRequest {
    let said = trust_forwarded.then(|| first(&parts.headers, "x-forwarded-for")).flatten();
    let client = said.and_then(|text| text.parse().ok()).unwrap_or(client);
    let mut request = holdfast_outbound::incoming_request(parts, "http");
    // `Holdfast-Url` is for programs of the fleet: here the request line and `Host` decide.
    let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    request.url = format!("{}{path}", origin(parts, is_tls, trust_forwarded));
    let headers = &mut request.headers;
    headers.remove(EXPECT);
    if !trust_forwarded {
        let forwarded = |name: &&HeaderName| **name == FORWARDED || name.as_str().starts_with("x-forwarded-");
        for name in headers.keys().filter(forwarded).cloned().collect::<Vec<HeaderName>>() {
            headers.remove(name);
        }
    }
    let client = HeaderValue::try_from(client.to_canonical().to_string()).expect("an address is plain text");
    headers.insert(CLIENT, client);
    request
}

/// The first value of a list that proxies append to.
fn first<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let text = headers.get(name)?.to_str().ok()?;
    Some(text.split(',').next().unwrap_or_default().trim()).filter(|text| !text.is_empty())
}

/// The scheme and the host that the client asked, as `https://shop.example`.
pub(crate) fn origin(parts: &request::Parts, is_tls: bool, trust_forwarded: bool) -> String {
    let said = |name| trust_forwarded.then(|| first(&parts.headers, name)).flatten();
    let scheme = match said("x-forwarded-proto") {
        Some("https") => Scheme::HTTPS,
        Some("http") => Scheme::HTTP,
        _ if is_tls => Scheme::HTTPS,
        _ => Scheme::HTTP,
    };
    let named = parts.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    // In HTTP/2 the host stands in the request line.
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    let host = said("x-forwarded-host").or(authority).or(named);
    format!("{scheme}://{}", host.filter(|host| is_host(host)).unwrap_or("localhost"))
}

/// Whether the text can stand between `://` and the path without being part of either.
fn is_host(text: &str) -> bool {
    text.parse::<http::uri::Authority>().is_ok_and(|authority| !authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(uri: &str, rows: &[(&str, &str)], trust: bool) -> IncomingRequest {
        let mut builder = http::Request::builder().uri(uri);
        for (name, value) in rows {
            builder = builder.header(*name, *value);
        }
        let parts = builder.body(()).unwrap().into_parts().0;
        incoming(&parts, "192.0.2.7".parse().unwrap(), false, trust)
    }

    #[test]
    fn a_request_shows_what_the_client_asked_for_byte_for_byte() {
        let request =
            head("/a%2f?b=%20", &[("host", "shop.example:81"), ("authorization", "Bearer mine")], false);
        assert_eq!(request.url, "http://shop.example:81/a%2f?b=%20");
        assert_eq!(request.headers["authorization"], "Bearer mine");
        assert_eq!(head("http://two.example/x", &[], false).url, "http://two.example/x");
        for host in ["", "a/b", "user@x", "a b"] {
            assert_eq!(head("/x", &[("host", host)], false).url, "http://localhost/x", "{host}");
        }
    }

    #[test]
    fn a_client_cannot_say_what_only_a_trusted_proxy_may() {
        let rows = [
            ("host", "inner"),
            ("x-forwarded-host", "shop.example"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-for", "198.51.100.4, 10.0.0.1"),
            ("cf-connecting-ip", "8.8.8.8"),
            ("forwarded", "for=8.8.8.8"),
            ("holdfast-url", "https://evil/"),
            ("connection", "x-mine"),
            ("x-mine", "1"),
        ];
        let request = head("/x", &rows, false);
        assert_eq!(request.url, "http://inner/x");
        let mut left: Vec<String> = request.headers.keys().map(ToString::to_string).collect();
        left.sort_unstable();
        assert_eq!(left, ["cf-connecting-ip", "host"]);
        assert_eq!(request.headers[CLIENT], "192.0.2.7");
        let trusted = head("/x", &rows, true);
        assert_eq!(trusted.url, "https://shop.example/x");
        assert_eq!(trusted.headers[CLIENT], "198.51.100.4");
        assert!(trusted.headers.contains_key("x-forwarded-for"));
    }
}
