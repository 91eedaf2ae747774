//! What an isolate costs: `cargo run --release -p holdfast-js --example isolate_cost [count]` prints the time to make
//! one, its heap, and the resident memory of the process per isolate, idle and after a first event.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use holdfast_js::{
    Application, EventCall, EventId, IncomingBody, IncomingRequest, Isolate, IsolateKind, Limits, Now,
    SourceKind,
};
use holdfast_types::Millis;

const SOURCE: &str = "let count = 0;
export default { async fetch(request) { count += 1; return Response.json({ count, url: new URL(request.url).pathname }); } };";

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn main() {
    let count = std::env::args().nth(1).map_or(500, |text| text.parse().expect("the count is a number"));
    let now = Now { monotonic: Millis::ZERO, wall: Millis::ZERO };
    let module = ("main.js".to_owned(), SourceKind::EsModule, Bytes::from_static(SOURCE.as_bytes()));
    let code = Arc::new(Application::new("v1", "main.js", [module]).unwrap());
    let make = || Isolate::new(&code, IsolateKind::Worker, Limits::default(), now).unwrap();
    drop(make());

    let before = resident_bytes();
    let began = Instant::now();
    let mut isolates: Vec<Isolate> = (0..count).map(|_| make()).collect();
    report("new", count, began, before, &isolates);

    let began = Instant::now();
    for isolate in &mut isolates {
        let request = IncomingRequest {
            method: http::Method::GET,
            url: "https://host/path".to_owned(),
            headers: http::HeaderMap::new(),
            body: IncomingBody::None,
            cf: None,
        };
        let turn = isolate.dispatch(now, EventId::new(1), EventCall::Fetch(request));
        assert!(isolate.is_idle(), "{turn:?}");
    }
    report("first event", count, began, before, &isolates);
    let began = Instant::now();
    drop(isolates);
    println!("dropped: {:.3} ms each", began.elapsed().as_secs_f64() * 1000.0 / count as f64);
}

fn report(what: &str, count: usize, began: Instant, before: u64, isolates: &[Isolate]) {
    let ms = began.elapsed().as_secs_f64() * 1000.0 / count as f64;
    let heap = isolates[0].memory_bytes() / 1024;
    let resident = resident_bytes().saturating_sub(before) / count as u64 / 1024;
    println!("{what}: {ms:.3} ms, heap {heap} KiB, resident {resident} KiB each");
}
