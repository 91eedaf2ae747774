//! A request for a static file, answered: validators, ranges, fields.

use bytes::Bytes;
use holdfast_records::AssetFile;
use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HOST, HeaderName,
    IF_NONE_MATCH, IF_RANGE, LOCATION, RANGE, RETRY_AFTER,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};

use crate::Site;
use crate::range::{Wanted, wanted};
use crate::site::{Asked, Meant};

/// What a person's browser says when it goes to a page.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// Files are named by people: what a client has may be old at once.
const CACHEABLE: HeaderValue = HeaderValue::from_static("public, max-age=0, must-revalidate");

impl Site {
    /// Whether the Worker is to answer a request, and not the files.
    #[must_use]
    pub fn is_for_worker(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        self.leaves(asked(uri, headers))
    }
}

fn asked<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Asked<'a> {
    let named = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = uri.host().or(named).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let is_navigation = headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
    Asked { host, path: uri.path(), query: uri.query(), is_navigation }
}

fn bare(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// What a request comes to.
#[derive(Debug)]
pub enum Answer {
    /// This.
    Done(Response<Bytes>),
    /// A file, whose bytes are to be given.
    Read(Reading),
}

/// An answer that waits for the bytes of its file.
#[derive(Debug)]
pub struct Reading {
    file: AssetFile,
    status: StatusCode,
    headers: HeaderMap,
    /// `Range` and `If-Range`.
    range: Option<(HeaderValue, Option<HeaderValue>)>,
    is_head: bool,
}

/// Answers a request, as far as that can be done without reading.
#[must_use]
pub fn answer(site: &Site, request: &Parts) -> Answer {
    let asked = asked(&request.uri, &request.headers);
    let done = |mut response: Response<Bytes>| {
        site.headers.apply(asked.host, asked.path, response.headers_mut());
        Answer::Done(response)
    };
    let (file, status) = match site.meant(asked) {
        Meant::Nothing => return done(bare(StatusCode::NOT_FOUND)),
        Meant::Moved(status, to) => return done(moved(status, &to)),
        Meant::File(file, status) => (file, status),
    };
    if !matches!(request.method, Method::GET | Method::HEAD) {
        let mut response = bare(StatusCode::METHOD_NOT_ALLOWED);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return done(response);
    }
    let mut headers = fields(file);
    let is_known = status == StatusCode::OK && is_known(&request.headers, &headers[ETAG]);
    site.headers.apply(asked.host, asked.path, &mut headers);
    if is_known {
        let mut response = bare(StatusCode::NOT_MODIFIED);
        headers.remove(CONTENT_TYPE);
        *response.headers_mut() = headers;
        return Answer::Done(response);
    }
    let range = request
        .headers
        .get(RANGE)
        .filter(|_| status == StatusCode::OK && request.method == Method::GET)
        .cloned();
    Answer::Read(Reading {
        file: file.clone(),
        status,
        headers,
        range: range.map(|range| (range, request.headers.get(IF_RANGE).cloned())),
        is_head: request.method == Method::HEAD,
    })
}

impl Reading {
    /// Whose bytes are wanted.
    #[must_use]
    pub fn file(&self) -> &AssetFile {
        &self.file
    }

    /// The answer, with the file's bytes.
    #[must_use]
    pub fn with(self, bytes: Bytes) -> Response<Bytes> {
        let mut response = Response::new(bytes);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        if let Some((range, known)) = &self.range {
            part(&mut response, range, known.as_ref());
        }
        if self.is_head {
            let len = response.body().len();
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(len));
            *response.body_mut() = Bytes::new();
        }
        response
    }

    /// The answer where they cannot be read now.
    #[must_use]
    pub fn failed(self) -> Response<Bytes> {
        let mut response = bare(StatusCode::SERVICE_UNAVAILABLE);
        *response.body_mut() = Bytes::from_static(b"the file cannot be read from the bucket now\n");
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }
}

fn moved(status: StatusCode, to: &str) -> Response<Bytes> {
    match HeaderValue::from_str(to) {
        Ok(to) => {
            let mut response = bare(status);
            response.headers_mut().insert(LOCATION, to);
            response
        }
        // What a placeholder stood for cannot stand in a field.
        Err(_) => bare(StatusCode::NOT_FOUND),
    }
}

fn fields(file: &AssetFile) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let etag = format!("\"{}\"", file.content.sha256);
    headers.insert(ETAG, HeaderValue::try_from(etag).expect("digits"));
    headers.insert(CACHE_CONTROL, CACHEABLE);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(kind) = mime_guess::from_path(&file.path).first() {
        let charset = if kind.type_() == "text" && kind.get_param("charset").is_none() {
            "; charset=utf-8"
        } else {
            ""
        };
        if let Ok(kind) = HeaderValue::try_from(format!("{kind}{charset}")) {
            headers.insert(CONTENT_TYPE, kind);
        }
    }
    headers
}

/// Whether the client has the file.
fn is_known(request: &HeaderMap, etag: &HeaderValue) -> bool {
    let Ok(etag) = etag.to_str() else { return false };
    let fields = request.get_all(IF_NONE_MATCH).into_iter().filter_map(|field| field.to_str().ok());
    fields.flat_map(|field| field.split(',')).map(str::trim).any(|known| {
        // Compared weakly, as for every `If-None-Match`.
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag
    })
}

/// Leaves the part of the body that is asked for, where the client's file is this one.
fn part(response: &mut Response<Bytes>, range: &HeaderValue, known: Option<&HeaderValue>) {
    let Ok(range) = range.to_str() else { return };
    if known.is_some_and(|known| response.headers().get(ETAG) != Some(known)) {
        return;
    }
    let len = response.body().len();
    let (status, shown) = match wanted(range, len) {
        Wanted::Whole => return,
        Wanted::Part(range) => {
            let shown = format!("bytes {}-{}/{len}", range.start, range.end - 1);
            *response.body_mut() = response.body().slice(range);
            (StatusCode::PARTIAL_CONTENT, shown)
        }
        Wanted::Nothing => {
            *response.body_mut() = Bytes::new();
            (StatusCode::RANGE_NOT_SATISFIABLE, format!("bytes */{len}"))
        }
    };
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_RANGE, HeaderValue::try_from(shown).expect("digits"));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use holdfast_records::{Assets, Blobs, HtmlHandling, NotFoundHandling};
    use http::Request;

    use super::*;
    use crate::{Headers, Redirects};

    struct Files {
        site: Site,
        bytes: BTreeMap<String, &'static str>,
    }

    fn files(headers: &str) -> Files {
        let mut blobs = Blobs::default();
        let file = |(path, text): &(&str, &'static str)| AssetFile {
            path: (*path).to_owned(),
            content: blobs.add(text.as_bytes().to_vec()),
        };
        let assets = Assets {
            files: FILES.iter().map(file).collect(),
            html_handling: HtmlHandling::default(),
            not_found_handling: NotFoundHandling::Page,
            run_worker_first: vec![],
            is_alone: true,
            headers: None,
            redirects: None,
        };
        let rules = (Headers::parse(headers).unwrap(), Redirects::parse("/old /new 301").unwrap());
        let bytes = FILES.iter().map(|(path, text)| ((*path).to_owned(), *text)).collect();
        Files { site: Site::new(&assets, rules, true), bytes }
    }

    fn ask(files: &Files, method: Method, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
        let mut request = Request::builder().method(method).uri(format!("http://h{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (request, ()) = request.body(()).unwrap().into_parts();
        match answer(&files.site, &request) {
            Answer::Done(response) => response,
            Answer::Read(reading) => match files.bytes.get(&reading.file().path) {
                Some(text) => reading.with(Bytes::from_static(text.as_bytes())),
                None => reading.failed(),
            },
        }
    }

    const FILES: &[(&str, &str)] =
        &[("/index.html", "<p>ü"), ("/404.html", "none"), ("/a.js", "0123456789"), ("/noext", "x")];

    #[test]
    fn a_file_has_its_type_and_its_validator() {
        let files = files("/a.js\n  X-Rule: yes");
        let page = ask(&files, Method::GET, "/", &[]);
        assert_eq!((page.status().as_u16(), &page.body()[..]), (200, "<p>ü".as_bytes()));
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(page.headers()[CACHE_CONTROL], "public, max-age=0, must-revalidate");
        let script = ask(&files, Method::GET, "/a.js", &[]);
        assert_eq!(script.headers()[CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert_eq!(script.headers()["x-rule"], "yes");
        assert!(!ask(&files, Method::GET, "/noext", &[]).headers().contains_key(CONTENT_TYPE));
        let etag = script.headers()[ETAG].to_str().unwrap();
        for known in [etag.to_owned(), format!("\"x\", W/{etag}"), "*".into()] {
            let again = ask(&files, Method::GET, "/a.js", &[("if-none-match", &known)]);
            assert_eq!((again.status().as_u16(), again.body().len()), (304, 0), "{known}");
            assert_eq!(again.headers()[ETAG], etag);
        }
        assert_eq!(ask(&files, Method::GET, "/a.js", &[("if-none-match", "\"x\"")]).status(), 200);
    }

    #[test]
    fn what_is_no_file_says_so() {
        let files = files("/*\n  X-All: yes");
        let none = ask(&files, Method::GET, "/none", &[]);
        assert_eq!((none.status().as_u16(), &none.body()[..]), (404, &b"none"[..]));
        let moved = ask(&files, Method::GET, "/old?q", &[]);
        assert_eq!((moved.status().as_u16(), moved.headers()[LOCATION].to_str().unwrap()), (301, "/new?q"));
        assert_eq!(moved.headers()["x-all"], "yes", "`_headers` is for every answer");
        let post = ask(&files, Method::POST, "/a.js", &[]);
        assert_eq!((post.status().as_u16(), post.headers()[ALLOW].to_str().unwrap()), (405, "GET, HEAD"));
        let head = ask(&files, Method::HEAD, "/a.js", &[]);
        assert_eq!((head.status().as_u16(), head.body().len()), (200, 0));
        assert_eq!(head.headers()[CONTENT_LENGTH], "10");
    }

    #[test]
    fn a_part_of_a_file_is_given() {
        let files = files("");
        let part = ask(&files, Method::GET, "/a.js", &[("range", "bytes=2-4")]);
        assert_eq!((part.status().as_u16(), &part.body()[..]), (206, &b"234"[..]));
        assert_eq!(part.headers()[CONTENT_RANGE], "bytes 2-4/10");
        let beyond = ask(&files, Method::GET, "/a.js", &[("range", "bytes=10-")]);
        assert_eq!(
            (beyond.status().as_u16(), beyond.headers()[CONTENT_RANGE].to_str().unwrap()),
            (416, "bytes */10")
        );
        let old = ask(&files, Method::GET, "/a.js", &[("range", "bytes=2-4"), ("if-range", "\"old\"")]);
        assert_eq!((old.status().as_u16(), old.body().len()), (200, 10));
    }

    #[test]
    fn a_file_that_is_lost_is_an_error_that_may_pass() {
        let files = files("");
        let lost = Files { bytes: BTreeMap::new(), ..files };
        let answer = ask(&lost, Method::GET, "/a.js", &[]);
        assert_eq!((answer.status().as_u16(), answer.headers()[RETRY_AFTER].to_str().unwrap()), (503, "1"));
    }
}
