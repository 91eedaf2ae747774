//! What a handler must not do to its thread: each of these ends within about the turn's limit, and the thread goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::effect::{BrokenCause, Turn, TurnEnd};
use crate::testing::{application, at, run};
use crate::{Isolate, IsolateKind, Limits};

/// More than the turn's limit, for a machine that is busy: CPU time is what is limited, this is elapsed time.
const PATIENCE: Duration = Duration::from_secs(30);

fn isolate() -> Isolate {
    let limits = Limits { memory_bytes: 64 << 20, start: Duration::from_secs(20), ..Limits::default() };
    Isolate::new(&Arc::new(application("")), IsolateKind::Worker, limits, at(0)).unwrap()
}

/// Runs a snippet that ends neither well nor by itself, and looks whether another isolate still works.
fn run_wild(body: &str) -> (Isolate, Turn) {
    let began = Instant::now();
    let mut isolate = isolate();
    let turn = isolate.probe(at(0), body);
    assert!(began.elapsed() < PATIENCE, "it held its thread for {:?}", began.elapsed());
    assert_eq!(run("return 1 + 1"), "2");
    (isolate, turn)
}

fn exceeds_its_time(body: &str) {
    let (mut isolate, turn) = run_wild(body);
    assert_eq!(turn.end, TurnEnd::Broken(BrokenCause::CpuExceeded), "{body}");
    assert_eq!(
        isolate.wake(at(1)).end,
        TurnEnd::Broken(BrokenCause::CpuExceeded),
        "a broken isolate stays so"
    );
}

/// The error that the snippet throws, while the isolate goes on.
fn throws(body: &str) -> String {
    let (mut isolate, turn) = run_wild(body);
    assert_eq!(turn.end, TurnEnd::Ok, "{body}");
    let error = isolate.probed()[1].clone();
    assert_eq!(isolate.probe(at(1), "return 2").end, TurnEnd::Ok);
    assert_eq!(isolate.probed()[1], "2", "the isolate goes on after {error}");
    error
}

#[test]
fn an_infinite_loop_exceeds_its_time() {
    exceeds_its_time("for (;;);");
    exceeds_its_time("for (;;) { try { for (;;); } catch {} finally { for (;;); } }");
}

#[test]
fn a_regular_expression_that_backtracks_exceeds_its_time() {
    exceeds_its_time("/^(a+)+$/.test('a'.repeat(40) + 'b')");
}

#[test]
fn a_storm_of_microtasks_exceeds_its_time() {
    exceeds_its_time(
        "const again = () => { Promise.resolve().then(again); }; again(); await new Promise(() => {});",
    );
    exceeds_its_time("const again = () => queueMicrotask(again); again(); await new Promise(() => {});");
    exceeds_its_time("for (;;) await null;");
}

#[test]
fn a_generator_a_proxy_and_a_getter_that_never_end_exceed_their_time() {
    exceeds_its_time("function* g() { for (;;) yield 1; } for (const x of g());");
    exceeds_its_time("const p = new Proxy({}, { get: (t, k, r) => { for (;;); } }); p.x;");
    exceeds_its_time("[...{ *[Symbol.iterator]() { for (;;); } }];");
}

#[test]
fn timers_of_no_delay_leave_the_thread_to_others_between_turns() {
    let mut isolate = isolate();
    let storm = "const again = () => setTimeout(again, 0); again(); await new Promise(() => {});";
    assert_eq!(isolate.probe(at(0), storm).end, TurnEnd::Ok);
    for turn in 0..1000 {
        assert_eq!(
            isolate.next_deadline(),
            Some(at(0).monotonic),
            "one turn fires what was due, and no more"
        );
        assert_eq!(isolate.wake(at(0)).end, TurnEnd::Ok, "turn {turn}");
    }
}

#[test]
fn more_memory_than_the_limit_is_an_error_to_catch() {
    for body in [
        "new ArrayBuffer(1e9)",
        "'x'.repeat(5e8)",
        "const all = []; for (;;) all.push(new Array(1000).fill(0));",
        "let s = 'x'; for (;;) s += s;",
        "const m = new Map(); for (let i = 0;; i++) m.set(i, {});",
        "new Array(1e9).fill(0)",
    ] {
        let (isolate, turn) = run_wild(body);
        let (end, settled) = (turn.end, isolate.probed());
        let is_error = end == TurnEnd::Ok && settled.first().is_some_and(|kind| kind == "error");
        let is_broken =
            matches!(end, TurnEnd::Broken(BrokenCause::MemoryExceeded | BrokenCause::CpuExceeded));
        assert!(is_error || is_broken, "{body}: {end:?} {settled:?}");
    }
}

#[test]
fn deep_recursion_is_an_error_to_catch() {
    assert!(throws("const f = () => f() + 1; f();").contains("Maximum call stack size exceeded"));
    assert!(
        throws(
            "const a = []; a[0] = a; let n = []; for (let i = 0; i < 1e5; i++) n = [n]; JSON.stringify(n);"
        )
        .contains("RangeError")
    );
    throws("new Function('['.repeat(1e5))");
}
