//! A server of the shape of Google Cloud Storage's XML API, as far as `object_store` asks it: objects with generations, the
//! generation precondition, ranges, listings by pages, multipart uploads. One lock, so that a check and its write are one
//! step. Keeps what was asked, and answers with a status of the test's choice where it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED, RANGE};
use http::{HeaderMap, Method, StatusCode};
use percent_encoding::percent_decode_str;

pub(crate) const BUCKET: &str = "holdfast-test";
const GENERATION: &str = "x-goog-generation";
const CONDITION: &str = "x-goog-if-generation-match";
/// As the service has it.
const PAGE_LEN_MAX: usize = 1000;
const BODY_LEN_MAX: usize = 64 << 20;

/// A request for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) key: String,
    /// The generation precondition.
    pub(crate) condition: Option<String>,
}

/// What comes of a request that is not served as it should be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Script {
    /// This status, and nothing is done.
    Refuse(StatusCode),
    /// It is done, and this status says otherwise.
    DoAndSay(StatusCode),
}

#[derive(Debug, Default)]
pub(crate) struct Store {
    objects: BTreeMap<String, (u64, Bytes)>,
    uploads: BTreeMap<String, BTreeMap<u32, Bytes>>,
    generation: u64,
    pub(crate) asked: Vec<Asked>,
    pub(crate) script: VecDeque<Script>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Server(Arc<Mutex<Store>>);

type Parameters = BTreeMap<String, String>;

impl Server {
    /// Serves on a free port for as long as the test runs.
    pub(crate) async fn start() -> (Self, SocketAddr) {
        let server = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, address)
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }
}

async fn serve(
    State(server): State<Server>,
    Query(parameters): Query<Parameters>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, BODY_LEN_MAX).await.unwrap();
    let path = percent_decode_str(head.uri.path()).decode_utf8().unwrap().into_owned();
    let (bucket, key) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let mut store = server.store();
    if !key.is_empty() {
        let condition = head.headers.get(CONDITION).map(|value| value.to_str().unwrap().to_owned());
        store.asked.push(Asked { method: head.method.clone(), key: key.to_owned(), condition });
    }
    if bucket != BUCKET {
        return failure(StatusCode::NOT_FOUND, "NoSuchBucket");
    }
    match store.script.pop_front() {
        Some(Script::Refuse(status)) => failure(status, "Scripted"),
        Some(Script::DoAndSay(status)) => {
            store.answer(&head.method, key, &head.headers, &parameters, body);
            failure(status, "Scripted")
        }
        None => store.answer(&head.method, key, &head.headers, &parameters, body),
    }
}

fn failure(status: StatusCode, code: &str) -> Response {
    let text = format!("<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code></Error>");
    Response::builder().status(status).body(Body::from(text)).unwrap()
}

fn xml(text: String) -> Response {
    Response::builder().header("content-type", "application/xml").body(Body::from(text)).unwrap()
}

fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&apos;".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

impl Store {
    fn answer(
        &mut self,
        method: &Method,
        key: &str,
        headers: &HeaderMap,
        parameters: &Parameters,
        body: Bytes,
    ) -> Response {
        let upload = parameters.get("uploadId");
        match (method.as_str(), upload) {
            ("GET", None) if key.is_empty() => self.list(parameters),
            ("GET" | "HEAD", None) => self.read(method, key, headers),
            ("PUT", None) => self.write(key, headers, body),
            ("DELETE", None) => match self.objects.remove(key) {
                Some(_) => Response::builder().status(StatusCode::NO_CONTENT).body(Body::empty()).unwrap(),
                None => failure(StatusCode::NOT_FOUND, "NoSuchKey"),
            },
            ("POST", None) if parameters.contains_key("uploads") => {
                self.generation += 1;
                let id = format!("upload-{}", self.generation);
                self.uploads.insert(id.clone(), BTreeMap::new());
                xml(format!(
                    "<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{}</Key><UploadId>{id}</UploadId>\
                     </InitiateMultipartUploadResult>",
                    escaped(key)
                ))
            }
            ("PUT", Some(id)) => self.part(id, parameters, body),
            ("POST", Some(id)) => self.complete(id, key),
            ("DELETE", Some(id)) => match self.uploads.remove(id) {
                Some(_) => Response::builder().status(StatusCode::NO_CONTENT).body(Body::empty()).unwrap(),
                None => failure(StatusCode::NOT_FOUND, "NoSuchUpload"),
            },
            _ => failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        }
    }

    fn store(&mut self, key: &str, body: Bytes) -> u64 {
        self.generation += 1;
        self.objects.insert(key.to_owned(), (self.generation, body));
        self.generation
    }

    fn write(&mut self, key: &str, headers: &HeaderMap, body: Bytes) -> Response {
        if let Some(wanted) = headers.get(CONDITION) {
            let wanted: u64 = wanted.to_str().unwrap().parse().unwrap();
            if self.objects.get(key).map_or(0, |(generation, _)| *generation) != wanted {
                return failure(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
            }
        }
        let generation = self.store(key, body);
        Response::builder()
            .header(GENERATION, generation)
            .header(ETAG, format!("\"{generation:x}\""))
            .body(Body::empty())
            .unwrap()
    }

    fn part(&mut self, id: &str, parameters: &Parameters, body: Bytes) -> Response {
        let Some(parts) = self.uploads.get_mut(id) else {
            return failure(StatusCode::NOT_FOUND, "NoSuchUpload");
        };
        let number = parameters["partNumber"].parse().unwrap();
        let tag = format!("\"part-{number}-{}\"", body.len());
        parts.insert(number, body);
        Response::builder().header(ETAG, tag).body(Body::empty()).unwrap()
    }

    fn complete(&mut self, id: &str, key: &str) -> Response {
        let Some(parts) = self.uploads.remove(id) else {
            return failure(StatusCode::NOT_FOUND, "NoSuchUpload");
        };
        let whole: Vec<u8> = parts.into_values().flatten().collect();
        let generation = self.store(key, whole.into());
        let mut answer = xml(format!(
            "<CompleteMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{}</Key><ETag>\"{generation:x}\"</ETag>\
             </CompleteMultipartUploadResult>",
            escaped(key)
        ));
        answer.headers_mut().insert(GENERATION, generation.into());
        answer
    }

    fn read(&self, method: &Method, key: &str, headers: &HeaderMap) -> Response {
        let Some((generation, body)) = self.objects.get(key) else {
            return failure(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        let mut response = Response::builder()
            .header(GENERATION, *generation)
            .header(ETAG, format!("\"{generation:x}\""))
            .header(LAST_MODIFIED, "Tue, 01 Dec 2026 00:00:00 GMT");
        let mut body = body.clone();
        if let Some(range) = headers.get(RANGE).map(|range| range.to_str().unwrap()) {
            let len = body.len();
            let Some((first, end)) = resolve(range, len) else {
                return failure(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
            };
            response = response.status(StatusCode::PARTIAL_CONTENT);
            response = response.header(CONTENT_RANGE, format!("bytes {first}-{}/{len}", end - 1));
            body = body.slice(first..end);
        }
        if method == Method::HEAD {
            return response.header(CONTENT_LENGTH, body.len()).body(Body::empty()).unwrap();
        }
        response.body(Body::from(body)).unwrap()
    }

    fn list(&self, parameters: &Parameters) -> Response {
        let text = |name: &str| parameters.get(name).map_or("", String::as_str);
        let max = parameters.get("max-keys").map_or(PAGE_LEN_MAX, |max| max.parse().unwrap());
        let after = text("start-after").max(text("continuation-token"));
        let mut rows = self.objects.iter().filter(|(key, _)| key.starts_with(text("prefix")));
        let mut page = format!("<ListBucketResult><Name>{BUCKET}</Name>");
        let mut last = None;
        for (key, (generation, body)) in
            rows.by_ref().filter(|(key, _)| key.as_str() > after).take(max.min(PAGE_LEN_MAX))
        {
            let (key_text, len) = (escaped(key), body.len());
            write!(
                page,
                "<Contents><Key>{key_text}</Key><LastModified>2026-12-01T00:00:00.000Z</LastModified>\
                 <ETag>\"{generation:x}\"</ETag><Size>{len}</Size></Contents>"
            )
            .unwrap();
            last = Some(key);
        }
        if let (Some(last), true) = (last, rows.next().is_some()) {
            write!(page, "<NextContinuationToken>{}</NextContinuationToken>", escaped(last)).unwrap();
        }
        xml(page + "</ListBucketResult>")
    }
}

/// First and end of `bytes=…`; none where nothing of the object is in it.
fn resolve(range: &str, len: usize) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, end) = match (first, last) {
        ("", suffix) => (len.saturating_sub(suffix.parse().ok()?), len),
        (first, "") => (first.parse().ok()?, len),
        (first, last) => (first.parse().ok()?, len.min(last.parse::<usize>().ok()? + 1)),
    };
    (first < end).then_some((first, end))
}
