//! An isolate that is dropped in whatever state leaves nothing behind: the engine ends the process where a value is
//! still alive.

use std::sync::Arc;

use crate::effect::Effect;
use crate::testing::{application, at, limits};
use crate::{Isolate, IsolateKind};

/// In every state: a promise that waits, a timer, an operation, a stream, a gate that is closed, a log line, a cycle.
const STATES: [&str; 8] = [
    "await new Promise(() => {});",
    "setInterval(() => {}, 10); await scheduler.wait(1000);",
    "await internals.readBody(1);",
    "const stream = new ReadableStream({ pull() { return new Promise(() => {}); } }); await stream.getReader().read();",
    "internals.holdGate({}); await internals.readBody(1);",
    "console.log({ a: new Map([[1, 2]]) }); throw new Error('thrown');",
    "const a = {}; const b = { a }; a.b = b; globalThis.kept = a; return 1;",
    "for (const at of [1, 2, 3]) queueMicrotask(() => Promise.reject(new Error('unhandled')));",
];

#[test]
fn ten_thousand_isolates_are_dropped_in_every_state() {
    let code = Arc::new(application("export default { async fetch() { return new Response(); } };"));
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    let mut after_warming = 0;
    for round in 0..10_000 / STATES.len() {
        for body in STATES {
            let mut isolate = Isolate::new(&code, IsolateKind::Worker, limits(), at(0)).unwrap();
            isolate.context.with(|ctx| {
                ctx.globals().set("internals", crate::prelude::internals(&ctx)).unwrap();
            });
            let turn = isolate.probe(at(0), body);
            assert!(turn.effects.len() <= 3, "{turn:?}");
            drop(isolate);
            assert!(turn.effects.iter().all(|effect| !matches!(effect, Effect::Done { .. })));
        }
        if round == 100 {
            after_warming = resident();
        }
    }
    let grown = resident().saturating_sub(after_warming);
    assert!(grown < 16 << 20, "9,000 isolates left {grown} bytes behind");
}
