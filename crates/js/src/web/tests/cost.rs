//! What the Web platform costs an isolate that does not touch it, and one that answers requests.

use std::sync::Arc;
use std::time::Instant;

use rquickjs::{Context, Runtime};

use crate::testing::{application, at, limits};
use crate::{Isolate, IsolateKind};

/// Bytes of an isolate whose module is `source`, beyond those of the engine alone.
fn cost_of(source: &str) -> u64 {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    let bare = u64::try_from(runtime.memory_usage().malloc_size).unwrap();
    drop(context);
    let isolate = Isolate::new(&Arc::new(application(source)), IsolateKind::Worker, limits(), at(0)).unwrap();
    isolate.memory_bytes() - bare
}

/// Starts that are measured; the time is shown and not judged, because machines differ.
const STARTS: u32 = 100;

#[test]
fn parts_that_nobody_touches_cost_little_and_answering_costs_a_bound() {
    let idle = cost_of("");
    let answering = cost_of("new Response('x', { headers: { a: 'b' } }); new Request('http://a');");
    let begun = Instant::now();
    for _ in 0..STARTS {
        drop(Isolate::new(&Arc::new(application("")), IsolateKind::Worker, limits(), at(0)).unwrap());
    }
    let start = begun.elapsed() / STARTS;
    println!(
        "bytes of an isolate: idle {idle}, with Request and Response {answering}; it starts in {start:?}"
    );
    // All eager parts of the prelude, whoever owns them.
    assert!(idle < 250 * 1024, "{idle}");
    assert!(answering - idle < 112 * 1024, "{answering}");
}
