//! AWS Signature Version 4 for tests that speak to a store by themselves, or that change a signed request on its way.
//! Independent of the SDK on purpose. Source: "Authenticating Requests (AWS Signature Version 4)", Amazon S3 API.

use std::fmt::Write as _;

use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use ring::{digest, hmac};
use time::OffsetDateTime;

/// What a request is signed with.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Access key id.
    pub access_key: String,
    /// Secret.
    pub secret_key: String,
    /// Region.
    pub region: String,
}

const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const DATE: HeaderName = HeaderName::from_static("x-amz-date");

/// Signs a request anew: the host, the date, the payload's hash and every `x-amz-` header, and nothing else. A payload hash that the
/// request already carries stays; otherwise the payload is declared unsigned.
///
/// # Panics
/// When the request has no Host header.
pub fn sign(parts: &mut Parts, credentials: &Credentials, now: OffsetDateTime) {
    let day = format!("{:04}{:02}{:02}", now.year(), u8::from(now.month()), now.day());
    let stamp = format!("{day}T{:02}{:02}{:02}Z", now.hour(), now.minute(), now.second());
    parts.headers.remove(header::AUTHORIZATION);
    parts.headers.insert(DATE, HeaderValue::try_from(&stamp).expect("digits"));
    parts.headers.entry(CONTENT_SHA256).or_insert(HeaderValue::from_static("UNSIGNED-PAYLOAD"));
    let mut signed: Vec<(String, String)> = parts
        .headers
        .iter()
        .filter(|(name, _)| **name == header::HOST || name.as_str().starts_with("x-amz-"))
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).trim().to_owned()))
        .collect();
    signed.sort();
    assert!(signed.iter().any(|(name, _)| name == "host"), "a request to sign needs a Host header");
    let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let payload = String::from_utf8_lossy(parts.headers[CONTENT_SHA256].as_bytes()).into_owned();
    let mut canonical = format!("{}\n{}\n{}\n", parts.method, parts.uri.path(), canonical_query(&parts.uri));
    for (name, value) in &signed {
        writeln!(canonical, "{name}:{value}").expect("writing to a String does not fail");
    }
    write!(canonical, "\n{names}\n{payload}").expect("writing to a String does not fail");
    let scope = format!("{day}/{}/s3/aws4_request", credentials.region);
    let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", sha256_hex(canonical.as_bytes()));
    let signature = hex(&mac(&signing_key(credentials, &day), to_sign.as_bytes()));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        credentials.access_key
    );
    parts.headers.insert(header::AUTHORIZATION, HeaderValue::try_from(authorization).expect("ASCII"));
}

/// The parameters in order, each with its `=`.
fn canonical_query(uri: &http::Uri) -> String {
    let mut pairs: Vec<String> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
        .collect();
    pairs.sort();
    pairs.join("&")
}

fn signing_key(credentials: &Credentials, day: &str) -> Vec<u8> {
    let seed = format!("AWS4{}", credentials.secret_key);
    [day, &credentials.region, "s3", "aws4_request"]
        .iter()
        .fold(seed.into_bytes(), |key, part| mac(&key, part.as_bytes()))
}

fn mac(key: &[u8], data: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data).as_ref().to_vec()
}

fn sha256_hex(data: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, data).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("writing to a String does not fail");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example "GET Bucket Lifecycle" of the S3 documentation.
    #[test]
    fn the_documented_example_signs_as_documented() {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            region: "us-east-1".into(),
        };
        let request = http::Request::get("/?lifecycle")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("x-amz-content-sha256", sha256_hex(b""))
            .body(())
            .unwrap();
        let (mut parts, ()) = request.into_parts();
        let date = time::Date::from_calendar_date(2013, time::Month::May, 24).unwrap();
        sign(&mut parts, &credentials, date.midnight().assume_utc());
        let authorization = parts.headers["authorization"].to_str().unwrap();
        assert!(
            authorization.ends_with(
                "SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
                 Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
            ),
            "{authorization}"
        );
    }
}
