//! The store as an operator's hands reach it: read, overwrite, delete and list objects without a condition and without
//! going through a fault proxy. For looking at what programs left, and for breaking it.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use time::OffsetDateTime;

use crate::sigv4::{Credentials, sign};

/// What SigV4 leaves unescaped, and the slash.
const KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');
const VALUE: &AsciiSet = &KEY.add(b'/');

/// One bucket of an S3 endpoint.
#[derive(Clone, Debug)]
pub struct RawStore {
    address: SocketAddr,
    bucket: String,
    credentials: Credentials,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl RawStore {
    /// Names the bucket; nothing is sent.
    #[must_use]
    pub fn new(address: SocketAddr, bucket: &str, credentials: Credentials) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { address, bucket: bucket.into(), credentials, client }
    }

    /// The object's bytes, or `None`.
    ///
    /// # Errors
    /// Any other answer than 200 or 404.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>> {
        match self.send(Method::GET, key, "", Bytes::new()).await? {
            (StatusCode::OK, body) => Ok(Some(body)),
            (StatusCode::NOT_FOUND, _) => Ok(None),
            (status, body) => bail!("GET `{key}` answered {status}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// Overwrites the object.
    ///
    /// # Errors
    /// Any other answer than 200.
    pub async fn put(&self, key: &str, body: impl Into<Bytes>) -> Result<()> {
        match self.send(Method::PUT, key, "", body.into()).await? {
            (StatusCode::OK, _) => Ok(()),
            (status, body) => bail!("PUT `{key}` answered {status}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// Deletes the object.
    ///
    /// # Errors
    /// Any answer that is no success.
    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.send(Method::DELETE, key, "", Bytes::new()).await? {
            (status, _) if status.is_success() => Ok(()),
            (status, body) => bail!("DELETE `{key}` answered {status}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// Every key below `prefix`, in order.
    ///
    /// # Errors
    /// Any other answer than 200.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let mut keys: Vec<String> = Vec::new();
        loop {
            let after = keys
                .last()
                .map_or(String::new(), |last| format!("&start-after={}", utf8_percent_encode(last, VALUE)));
            let prefix = utf8_percent_encode(prefix, VALUE);
            let query = format!("encoding-type=url&list-type=2&prefix={prefix}{after}");
            let (status, body) = self.send(Method::GET, "", &query, Bytes::new()).await?;
            let text = String::from_utf8_lossy(&body);
            if status != StatusCode::OK {
                bail!("listing `{prefix}` answered {status}: {text}");
            }
            let before = keys.len();
            for part in text.split("<Key>").skip(1) {
                let raw = part.split("</Key>").next().context("an unclosed Key element")?;
                keys.push(percent_decode_str(raw).decode_utf8()?.into_owned());
            }
            if !text.contains("<IsTruncated>true</IsTruncated>") || keys.len() == before {
                return Ok(keys);
            }
        }
    }

    async fn send(&self, method: Method, key: &str, query: &str, body: Bytes) -> Result<(StatusCode, Bytes)> {
        let key = utf8_percent_encode(key, KEY);
        let mark = if query.is_empty() { "" } else { "?" };
        let uri = format!("http://{}/{}/{key}{mark}{query}", self.address, self.bucket);
        let request =
            http::Request::builder().method(method).uri(uri).header("host", self.address.to_string());
        let (mut parts, body) = request.body(Full::new(body))?.into_parts();
        sign(&mut parts, &self.credentials, OffsetDateTime::now_utc());
        let response = self.client.request(http::Request::from_parts(parts, body)).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}
