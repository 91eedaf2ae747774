//! The applications of `examples/`, deployed by the real command and talked to as their READMEs say.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use holdfast_tests::client::{Outcome, SqlClient};
use holdfast_tests::cluster::Cluster;
use holdfast_tests::wait;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::sockets::Socket;
use crate::support::{SOON, fleet};

/// A plain HTTP client of one ingress.
#[derive(Clone)]
struct Browser {
    http: Client<HttpConnector, Full<Bytes>>,
    ingress: SocketAddr,
}

/// An answer that was read to its end.
#[derive(Debug)]
struct Page {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Page {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no `{name}`: {self:?}")).to_str().unwrap()
    }
}

impl Browser {
    fn of(cluster: &Cluster) -> Self {
        Self { http: Client::builder(TokioExecutor::new()).build_http(), ingress: cluster.ingress() }
    }

    async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<http::Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.ingress));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
        tokio::time::timeout(SOON, self.http.request(request)).await.context("no answer")?.map_err(Into::into)
    }

    async fn page(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Page> {
        let response = self.open(method, path, headers, body).await?;
        let (parts, body) = response.into_parts();
        let body = tokio::time::timeout(SOON, body.collect()).await.context("no end of the answer")??;
        let text = String::from_utf8(body.to_bytes().to_vec())?;
        Ok(Page { status: parts.status, headers: parts.headers, text })
    }

    async fn get(&self, path: &str) -> Page {
        self.page(Method::GET, path, &[], "").await.unwrap()
    }

    async fn post(&self, path: &str, body: &str) -> Page {
        self.page(Method::POST, path, &[], body).await.unwrap()
    }

    /// Asks until the answer has this status: programs take a new version, or cells of a dead node, up within seconds.
    async fn until(&self, path: &str, headers: &[(&str, &str)], status: u16) -> Page {
        let what = format!("{status} for `{path}`");
        let asked = wait::until(&what, SOON, async || {
            let page = self.page(Method::GET, path, headers, "").await?;
            ensure!(page.status == status, "{page:?}");
            Ok(page)
        });
        asked.await.unwrap()
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// A copy of an example whose configuration says something else.
fn changed(name: &str, from: &str, to: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("src")).unwrap();
    for file in ["wrangler.jsonc", "src/index.js", "src/index.ts"] {
        let Ok(text) = std::fs::read_to_string(example(name).join(file)) else { continue };
        assert!(file != "wrangler.jsonc" || text.contains(from), "{text}");
        std::fs::write(copy.path().join(file), text.replace(from, to)).unwrap();
    }
    copy
}

async fn deploy(cluster: &Cluster, project: &Path) {
    let deployed = cluster.tool(&["deploy", project.to_str().unwrap()]).await.unwrap();
    assert_eq!(deployed.code, 0, "{deployed:?}");
}

/// Every node dies at once and comes back.
async fn power_cut(cluster: &mut Cluster, nodes: &[&str]) {
    for node in nodes {
        cluster.kill(node).unwrap();
    }
    for node in nodes {
        cluster.start_node(node).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hello_greets_and_follows_its_deployments() {
    let cluster = fleet(1, 1).await;
    let browser = Browser::of(&cluster);
    deploy(&cluster, &example("hello")).await;
    let page = browser.until("/", &[], 200).await;
    assert_eq!(page.text, "Hello, world!\n");
    assert_eq!(browser.get("/Ada%20Lovelace").await.text, "Hello, Ada Lovelace!\n");
    let echo =
        browser.page(Method::POST, "/echo", &[("content-type", "text/plain")], "one\ntwo").await.unwrap();
    assert_eq!(echo.json(), json!({ "type": "text/plain", "text": "one\ntwo" }));
    let refused = browser.get("/echo").await;
    assert_eq!((refused.status.as_u16(), refused.header("allow")), (405, "POST"));

    let greets = async |text: &str| {
        let what = format!("`{text}`");
        let asked = wait::until(&what, SOON, async || {
            let page = browser.page(Method::GET, "/", &[], "").await?;
            // A deployment interrupts nobody.
            assert_eq!(page.status, 200, "{page:?}");
            ensure!(page.text == text, "{page:?}");
            Ok(())
        });
        asked.await.unwrap();
    };
    let other = changed("hello", "\"Hello\"", "\"Good morning\"");
    deploy(&cluster, other.path()).await;
    greets("Good morning, world!\n").await;
    let back = cluster.tool(&["deploy", "rollback"]).await.unwrap();
    assert_eq!(back.code, 0, "{back:?}");
    greets("Hello, world!\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_count_every_request_once_and_survive_the_death_of_every_node() {
    let mut cluster = fleet(2, 1).await;
    let browser = Browser::of(&cluster);
    deploy(&cluster, &example("counter")).await;
    let page = browser.until("/counters/visits", &[], 200).await;
    assert_eq!(page.json(), json!({ "name": "visits", "value": 0 }));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let browser = browser.clone();
        tasks.spawn(
            async move { browser.post("/counters/visits", "").await.json()["value"].as_u64().unwrap() },
        );
    }
    let mut values = tasks.join_all().await;
    values.sort_unstable();
    assert_eq!(values, (1..=20).collect::<Vec<u64>>());
    assert_eq!(browser.post("/counters/visits?by=-3", "").await.json()["value"], 17);
    assert_eq!(
        browser.post("/counters/other%2Fone", "").await.json(),
        json!({ "name": "other/one", "value": 1 })
    );
    assert_eq!(browser.post("/counters/visits?by=x", "").await.status, 400);
    assert_eq!(browser.get("/").await.status, 404);
    let history = browser.get("/counters/visits/history").await.json();
    assert_eq!((&history[0]["by"], history.as_array().unwrap().len()), (&json!(-3), 20));

    power_cut(&mut cluster, &["n1", "n2"]).await;
    assert_eq!(browser.until("/counters/visits", &[], 200).await.json()["value"], 17);
    assert_eq!(browser.post("/counters/visits", "").await.json()["value"], 18);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_holds_for_its_key_and_over_the_death_of_every_node() {
    let mut cluster = fleet(2, 1).await;
    let browser = Browser::of(&cluster);
    // So slow that nothing is filled while this runs.
    let project = changed("rate-limiter", "\"PERIOD_SECONDS\": 60", "\"PERIOD_SECONDS\": 360000");
    deploy(&cluster, project.path()).await;
    assert_eq!(browser.until("/", &[], 401).await.text, "who are you? send the header x-api-key\n");
    browser.until("/", &[("x-api-key", "first")], 200).await;
    let ask = async |key: &str| browser.page(Method::GET, "/", &[("x-api-key", key)], "").await.unwrap();
    for remaining in (0..5).rev() {
        let page = ask("alice").await;
        assert_eq!(
            (page.status.as_u16(), page.header("x-ratelimit-remaining")),
            (200, &*remaining.to_string())
        );
    }
    let refused = ask("alice").await;
    assert_eq!((refused.status.as_u16(), refused.header("x-ratelimit-remaining")), (429, "0"));
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=72_000).contains(&seconds), "{refused:?}");
    assert_eq!(ask("bob").await.header("x-ratelimit-remaining"), "4");

    power_cut(&mut cluster, &["n1", "n2"]).await;
    browser.until("/", &[("x-api-key", "alice")], 429).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tenant_has_a_database_and_sql_clients_see_it_too() {
    let mut cluster = fleet(2, 1).await;
    let browser = Browser::of(&cluster);
    deploy(&cluster, &example("tenants")).await;
    let acme = [("x-api-key", "acme-key")];
    assert_eq!(browser.until("/total", &acme, 200).await.json(), json!({ "invoices": 0, "cents": 0 }));
    assert_eq!(browser.get("/total").await.status, 401);
    let add = async |invoices: Value| {
        browser.page(Method::POST, "/invoices", &acme, &invoices.to_string()).await.unwrap()
    };
    let ada = json!({ "id": 1, "customer": "Ada", "cents": 1200 });
    let bob = json!({ "id": 2, "customer": "Bob", "cents": 300 });
    let added = add(json!([{ "customer": "Ada", "cents": 1200 }, { "customer": "Bob", "cents": 300 }])).await;
    assert_eq!((added.status.as_u16(), added.json()), (201, json!([ada, bob])));
    let refused = add(json!([{ "customer": "Eve", "cents": 5 }, { "customer": "Eve", "cents": -5 }])).await;
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.json()["error"],
        "D1_ERROR: CHECK constraint failed: cents > 0: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_CHECK)"
    );

    power_cut(&mut cluster, &["n1", "n2"]).await;
    let page = browser.until("/invoices", &acme, 200).await;
    assert_eq!(page.json(), json!([ada, bob]));
    assert_eq!(
        browser.page(Method::GET, "/total", &[("x-api-key", "globex-key")], "").await.unwrap().json(),
        json!({ "invoices": 0, "cents": 0 })
    );
    let client = SqlClient::new(SOON);
    let asked = client.query(cluster.ingress(), "tenant-acme", "SELECT sum(cents) FROM invoices", &[]).await;
    assert!(matches!(&asked, Outcome::Acked(rows, _) if *rows == [[json!(1500)]]), "{asked:?}");
}

/// An open stream of events.
struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    async fn open(browser: &Browser, path: &str, headers: &[(&str, &str)]) -> Self {
        let response = browser.open(Method::GET, path, headers, "").await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut events = Self { body: response.into_body(), text: String::new() };
        // It listens once this has come.
        events.upto(": welcome\n\n").await;
        events
    }

    /// Reads until this has come; what came before it.
    async fn upto(&mut self, end: &str) -> String {
        loop {
            if let Some((before, after)) = self.text.split_once(end) {
                let before = before.to_owned();
                self.text = after.to_owned();
                return before;
            }
            let frame = tokio::time::timeout(SOON, self.body.frame()).await;
            let Ok(Some(Ok(frame))) = frame else { panic!("no `{end}` after `{}`: {frame:?}", self.text) };
            if let Ok(data) = frame.into_data() {
                self.text.push_str(std::str::from_utf8(&data).unwrap());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_streams_to_everybody_and_whoever_comes_back_misses_nothing() {
    let cluster = fleet(2, 1).await;
    let browser = Browser::of(&cluster);
    deploy(&cluster, &example("sse-feed")).await;
    let page = browser.until("/", &[], 200).await;
    assert!(
        page.text.contains("new EventSource") && page.header("content-type").starts_with("text/html"),
        "{page:?}"
    );
    // Nodes may take the version up a moment after the ingress.
    wait::until("the first post", SOON, async || {
        let page = browser.page(Method::POST, "/feeds/warm-up", &[], "x").await?;
        ensure!(page.status == 200, "{page:?}");
        Ok(())
    })
    .await
    .unwrap();

    let mut one = Events::open(&browser, "/feeds/lobby", &[]).await;
    let mut two = Events::open(&browser, "/feeds/lobby", &[]).await;
    let mut elsewhere = Events::open(&browser, "/feeds/elsewhere", &[]).await;
    assert_eq!(browser.post("/feeds/lobby", "hello").await.json(), json!({ "id": 1 }));
    for events in [&mut one, &mut two] {
        assert_eq!(events.upto("id: 1\ndata: hello\n\n").await, "");
    }
    // One leaves; the others do not notice.
    drop(two);
    browser.post("/feeds/lobby", "two\nlines").await;
    assert_eq!(one.upto("id: 2\ndata: two\ndata: lines\n\n").await, "");
    browser.post("/feeds/elsewhere", "alone").await;
    assert_eq!(elsewhere.upto("id: 1\ndata: alone\n\n").await, "");

    let mut back = Events::open(&browser, "/feeds/lobby", &[("last-event-id", "1")]).await;
    assert_eq!(back.upto("id: 2\ndata: two\ndata: lines\n\n").await, "");
    browser.post("/feeds/lobby", "last").await;
    for events in [&mut one, &mut back] {
        assert_eq!(events.upto("id: 3\ndata: last\n\n").await, "");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reminders_are_delivered_when_they_are_due_and_over_the_death_of_every_node() {
    let mut cluster = fleet(2, 1).await;
    let browser = Browser::of(&cluster);
    deploy(&cluster, &example("reminder")).await;
    assert_eq!(browser.until("/reminders/kitchen", &[], 200).await.json(), json!([]));
    assert_eq!(browser.post("/reminders/kitchen", "no time").await.status, 400);
    let added = browser.post("/reminders/kitchen?in=0.2", "tea").await;
    assert_eq!((added.status.as_u16(), &added.json()["delivered"]), (201, &Value::Null));
    assert_eq!(browser.post("/reminders/kitchen?in=0.3", "cancelled").await.json()["id"], 2);
    let cancelled = browser.page(Method::DELETE, "/reminders/kitchen/2", &[], "").await.unwrap();
    assert_eq!(cancelled.status, 204);
    browser.post("/reminders/kitchen?in=4", "bread").await;
    browser.post("/reminders/kitchen?in=100000", "much later").await;
    /// The reminders of a list that are delivered, and the others.
    async fn delivered(browser: &Browser, wanted: &[&str]) -> Result<Vec<Value>> {
        let page = browser.page(Method::GET, "/reminders/kitchen", &[], "").await?;
        ensure!(page.status == 200, "{page:?}");
        let all: Vec<Value> = serde_json::from_str(&page.text)?;
        let is_delivered = |reminder: &&Value| !reminder["delivered"].is_null();
        let texts: Vec<&str> = all.iter().filter(is_delivered).filter_map(|of| of["text"].as_str()).collect();
        ensure!(texts == wanted, "{page:?}");
        Ok(all)
    }
    wait::until("the first reminder", SOON, async || delivered(&browser, &["tea"]).await).await.unwrap();

    power_cut(&mut cluster, &["n1", "n2"]).await;
    let all = wait::until("the second reminder", SOON, async || delivered(&browser, &["tea", "bread"]).await);
    let all = all.await.unwrap();
    assert_eq!((all.len(), &all[2]["text"]), (3, &json!("much later")));
    for reminder in &all[..2] {
        let (due, delivered) = (reminder["due"].as_f64().unwrap(), reminder["delivered"].as_f64().unwrap());
        assert!(delivered >= due.floor(), "{reminder} came early");
    }
}

/// Comes in to a room, and waits until it is told who is there.
async fn visit(browser: &Browser, name: &str, there: &[&str]) -> Socket {
    let mut socket = Socket::open_soon(browser.ingress, &format!("/rooms/lobby?name={name}")).await;
    visitors(&mut socket, there).await;
    socket
}

async fn told(socket: &mut Socket) -> Value {
    serde_json::from_str(&socket.hear().await).unwrap()
}

/// Reads until it is told that these are there; lines that come before are skipped.
async fn visitors(socket: &mut Socket, there: &[&str]) {
    while told(socket).await != json!({ "type": "visitors", "names": there }) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_room_tells_everybody_and_forgets_nothing_that_anybody_has_seen() {
    let mut cluster = fleet(2, 1).await;
    let browser = Browser::of(&cluster);
    deploy(&cluster, &example("chat")).await;
    let page = browser.until("/", &[], 200).await;
    assert!(page.text.contains("new WebSocket(") && page.header("content-type").starts_with("text/html"));
    assert_eq!(browser.get("/rooms/lobby").await.status, 426);

    let mut ada = visit(&browser, "Ada", &["Ada"]).await;
    let mut bob = visit(&browser, "Bob", &["Ada", "Bob"]).await;
    visitors(&mut ada, &["Ada", "Bob"]).await;
    let line =
        |id: u32, name: &str, text: &str| json!({ "type": "line", "id": id, "name": name, "text": text });
    ada.say("hello").await;
    bob.say("ping").await;
    assert_eq!(told(&mut ada).await, line(1, "Ada", "hello"));
    let mut heard = [bob.hear().await, bob.hear().await];
    heard.sort();
    assert_eq!(heard[0], "pong");
    assert_eq!(serde_json::from_str::<Value>(&heard[1]).unwrap(), line(1, "Ada", "hello"));
    bob.say(&"x".repeat(2_001)).await;
    assert_eq!(bob.closed().await, Some(1008));
    visitors(&mut ada, &["Ada"]).await;

    power_cut(&mut cluster, &["n1", "n2"]).await;
    assert_eq!(ada.closed().await, Some(1012));
    let mut back = Socket::open_soon(browser.ingress, "/rooms/lobby?name=Ada").await;
    assert_eq!(told(&mut back).await, line(1, "Ada", "hello"));
    visitors(&mut back, &["Ada"]).await;
    back.say("again").await;
    assert_eq!(told(&mut back).await, line(2, "Ada", "again"));
}

/// An edit as a page sends it.
fn edit(base: u32, at: u32, remove: u32, insert: &str) -> String {
    json!({ "base": base, "at": at, "remove": remove, "insert": insert }).to_string()
}

/// The document as somebody who opens it now is told it.
async fn document(browser: &Browser) -> (Socket, Value) {
    let mut socket = Socket::open_soon(browser.ingress, "/api/notes").await;
    let told = told(&mut socket).await;
    (socket, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_the_same_for_all_who_edit_it_and_its_page_is_a_static_file() {
    let mut cluster = fleet(2, 1).await;
    let browser = Browser::of(&cluster);
    deploy(&cluster, &example("document")).await;
    let page = browser.until("/", &[], 200).await;
    assert!(page.text.contains("/editor.js") && page.header("content-type").starts_with("text/html"));
    let script = browser.get("/editor.js").await;
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(browser.get("/index.html").await.status, 307);
    let named = browser.page(Method::GET, "/notes", &[("sec-fetch-mode", "navigate")], "").await.unwrap();
    assert_eq!((named.status.as_u16(), named.text), (200, page.text));
    assert_eq!(browser.get("/api/notes").await.status, 426);

    let (mut ada, empty) = document(&browser).await;
    assert_eq!(empty, json!({ "type": "document", "text": "", "revision": 0 }));
    ada.say(&edit(0, 0, 0, "the cat sat")).await;
    assert_eq!(told(&mut ada).await["revision"], 1);
    let (mut bob, text) = document(&browser).await;
    assert_eq!(text["text"], "the cat sat");

    // Both edit the first revision at once: one removes a word, the other adds to the end and to the beginning.
    ada.say(&edit(1, 4, 4, "")).await;
    assert_eq!(told(&mut bob).await["edit"], json!({ "at": 4, "remove": 4, "insert": "" }));
    bob.say(&edit(1, 11, 0, " down")).await;
    bob.say(&edit(1, 0, 3, "The")).await;
    for revision in 3..=4 {
        assert_eq!(told(&mut bob).await["revision"], revision);
    }
    assert_eq!(told(&mut ada).await["isYours"], true);
    let moved = told(&mut ada).await;
    assert_eq!(
        (&moved["edit"], &moved["isYours"]),
        (&json!({ "at": 7, "remove": 0, "insert": " down" }), &json!(false))
    );
    assert_eq!(document(&browser).await.1["text"], "The sat down");

    power_cut(&mut cluster, &["n1", "n2"]).await;
    let (mut back, text) = document(&browser).await;
    assert_eq!((&text["text"], &text["revision"]), (&json!("The sat down"), &json!(4)));
    back.say("nonsense").await;
    assert_eq!(back.closed().await, Some(1008));
}
