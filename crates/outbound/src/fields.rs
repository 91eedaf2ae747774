//! Header fields that no application sends or sees: those of a connection, and those of this product.

use http::header::{
    CONNECTION, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderName};

/// Fields of one connection (RFC 9110, 7.6.1), with those that older peers still send.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

fn is_ours(name: &HeaderName) -> bool {
    name.as_str().starts_with("holdfast-")
}

/// Removes what belongs to a connection and not to the message.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // What `Connection` names belongs to the connection as well.
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Removes what only programs of the fleet may say.
pub(crate) fn strip_ours(headers: &mut HeaderMap) {
    let ours: Vec<HeaderName> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Removes what a handler cannot say of a request: the connection's part, and the server, which the URL names.
pub(crate) fn clean_request(headers: &mut HeaderMap) {
    strip_hop_by_hop(headers);
    strip_ours(headers);
    headers.remove(EXPECT);
    headers.remove(HOST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_speaks_for_itself_alone() {
        let rows = [
            ("connection", "close, x-mine"),
            ("x-mine", "1"),
            ("host", "other"),
            ("holdfast-url", "https://other/"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("authorization", "Bearer x"),
        ];
        let row = |(name, value): (&str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        let mut headers: HeaderMap = rows.map(row).into_iter().collect();
        clean_request(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["authorization"]);
    }
}
