//! Which headers pass the edge. Those of one connection end here; those that only this program may set are removed.

use holdfast_outbound::strip_hop_by_hop;
use holdfast_types::Position;
use http::header::{AUTHORIZATION, EXPECT, FORWARDED};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The position that an answer may reveal, `epoch/txid`.
pub(crate) const POSITION: HeaderName = HeaderName::from_static("holdfast-position");

/// What a handler gets to see of a request's headers. The caller's token is for this program alone.
pub(crate) fn clean_request(headers: &mut HeaderMap, trust_forwarded: bool) {
    strip_hop_by_hop(headers);
    headers.remove(EXPECT);
    headers.remove(AUTHORIZATION);
    let is_foreign = |name: &HeaderName| {
        name.as_str().starts_with("holdfast-")
            || (!trust_forwarded && (*name == FORWARDED || name.as_str().starts_with("x-forwarded-")))
    };
    let foreign: Vec<HeaderName> = headers.keys().filter(|name| is_foreign(name)).cloned().collect();
    for name in foreign {
        headers.remove(name);
    }
}

/// What a caller gets to see of an answer's headers.
pub(crate) fn clean_response(headers: &mut HeaderMap, position: Position) {
    strip_hop_by_hop(headers);
    let position = HeaderValue::try_from(position.to_string()).expect("digits and a slash");
    headers.insert(POSITION, position);
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{Epoch, Txid};

    fn headers(rows: &[(&str, &str)]) -> HeaderMap {
        let row = |(name, value): &(&str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        rows.iter().map(row).collect::<Vec<(HeaderName, HeaderValue)>>().into_iter().collect()
    }

    #[test]
    fn headers_of_the_connection_end_here() {
        let mut request = headers(&[
            ("connection", "keep-alive, X-Mine"),
            ("x-mine", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("authorization", "Bearer x"),
            ("holdfast-position", "9/9"),
            ("x-forwarded-for", "1.2.3.4"),
            ("forwarded", "for=1.2.3.4"),
            ("content-type", "application/json"),
            ("traceparent", "00-a-b-01"),
        ]);
        let mut trusted = request.clone();
        clean_request(&mut request, false);
        let mut left: Vec<&str> = request.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-type", "traceparent"]);
        clean_request(&mut trusted, true);
        assert!(trusted.contains_key("x-forwarded-for") && trusted.contains_key("forwarded"));
    }

    #[test]
    fn an_answer_shows_its_position_and_no_other() {
        let mut answer = headers(&[("holdfast-position", "9/9"), ("keep-alive", "timeout=5"), ("etag", "x")]);
        clean_response(&mut answer, Position { epoch: Epoch::new(3), txid: Txid::new(14) });
        assert_eq!(answer[&POSITION], "3/14");
        assert!(!answer.contains_key("keep-alive") && answer.contains_key("etag"));
    }
}
