//! A server that gives the answers of a script, byte for byte, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use holdfast_bucket::{S3Bucket, S3Credentials, S3Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One answer.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// The end of the connection.
    Cut,
    /// Nothing, for ever.
    Hold,
}

impl Answer {
    /// A whole HTTP answer.
    pub(crate) fn http(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut text = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "content-length") && status != 304 {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        Self::Bytes([text.as_bytes(), body].concat())
    }

    /// An S3 error with its XML.
    pub(crate) fn error(status: u16, code: &str) -> Self {
        let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>");
        Self::http(status, &[("content-type", "application/xml")], body)
    }

    /// A status without a body.
    pub(crate) fn bare(status: u16) -> Self {
        Self::http(status, &[], "")
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// The server. Once the script is at its end, its last answer is given for ever.
#[derive(Clone)]
pub(crate) struct Script {
    endpoint: String,
    seen: Arc<Mutex<Vec<Request>>>,
    arrived: Arc<Notify>,
}

impl Script {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let script = Self { endpoint, seen: Arc::default(), arrived: Arc::default() };
        let (seen, arrived) = (Arc::clone(&script.seen), Arc::clone(&script.arrived));
        let mut answers: VecDeque<Answer> = answers.into_iter().collect();
        tokio::spawn(async move {
            let mut held = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(request) = read(&mut stream).await else { continue };
                seen.lock().unwrap().push(request);
                arrived.notify_one();
                let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
                match answer {
                    Some(Answer::Bytes(bytes)) => {
                        let _ = stream.write_all(&bytes).await;
                        let _ = stream.shutdown().await;
                    }
                    Some(Answer::Hold) => held.push(stream),
                    Some(Answer::Cut) | None => {}
                }
            }
        });
        script
    }

    /// A bucket behind this server.
    pub(crate) async fn bucket(&self) -> S3Bucket {
        let credentials = S3Credentials { access_key: "id".into(), secret_key: "secret".into() };
        let options = S3Options {
            endpoint: Some(self.endpoint.clone()),
            region: Some("eu-west-1".into()),
            path_style: None,
            credentials: Some(credentials),
        };
        S3Bucket::open("//bucket/prefix", &options).await.unwrap()
    }

    /// Waits for a request whose first line begins with `line`.
    pub(crate) async fn until(&self, line: &str) {
        while !self.seen().iter().any(|request| request.line.starts_with(line)) {
            self.arrived.notified().await;
        }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_len = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_len].to_vec()).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { line, headers, body: bytes[head_len..].to_vec() };
    let len = request.header("content-length").map_or(0, |text| text.parse().unwrap());
    if request.header("expect").is_some() {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.ok()?;
    }
    while request.body.len() < len {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(request)
}
