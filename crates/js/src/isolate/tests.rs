//! How an isolate begins and goes on: modules, timers, console.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::testing::{application, at, fails, limits, logs, run};
use crate::{Application, Effect, Isolate, IsolateKind, Limits, SourceKind, StartError};

fn start(modules: &[(&str, SourceKind, &str)]) -> Result<Isolate, StartError> {
    let modules = modules
        .iter()
        .map(|(name, kind, text)| ((*name).to_owned(), *kind, Bytes::copy_from_slice(text.as_bytes())));
    let code = Application::new("v1", "main.js", modules).unwrap();
    Isolate::new(&Arc::new(code), IsolateKind::Worker, limits(), at(0))
}

/// The text of the first line that the modules log.
fn logged(modules: &[(&str, SourceKind, &str)]) -> String {
    let turn = start(modules).unwrap().wake(at(0));
    match turn.effects.first() {
        Some(Effect::Log { text, .. }) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn modules_import_each_other_by_name_and_relatively() {
    let modules = [
        (
            "main.js",
            SourceKind::EsModule,
            "import { a } from 'lib/a.js'; import { b } from './lib/b.js'; console.log(a + b);",
        ),
        ("lib/a.js", SourceKind::EsModule, "export const a = 'a';"),
        ("lib/b.js", SourceKind::EsModule, "import { a } from './../lib/a.js'; export const b = a + 'b';"),
    ];
    assert_eq!(logged(&modules), "aab");
}

#[test]
fn modules_of_text_json_and_bytes_have_a_default_export() {
    let modules = [
        (
            "main.js",
            SourceKind::EsModule,
            "import t from './t.txt'; import j from './j.json'; import d from './d.bin';
            console.log(t + JSON.stringify(j) + d.byteLength + (d instanceof ArrayBuffer));",
        ),
        ("t.txt", SourceKind::Text, "text\u{e4}"),
        ("j.json", SourceKind::Json, r#"{"__proto__":1,"a":[2]}"#),
        ("d.bin", SourceKind::Data, "abc"),
    ];
    assert_eq!(logged(&modules), "text\u{e4}{\"__proto__\":1,\"a\":[2]}3true");
}

#[test]
fn dynamic_import_and_top_level_await_work_as_the_modules_load() {
    let modules = [
        ("main.js", SourceKind::EsModule, "const { a } = await import('./a.js'); console.log(a);"),
        ("a.js", SourceKind::EsModule, "export const a = await Promise.resolve('later');"),
    ];
    assert_eq!(logged(&modules), "later");
}

#[test]
fn an_application_that_does_not_start_says_why() {
    let text = |modules: &[_]| start(modules).err().unwrap().to_string();
    let missing = text(&[("main.js", SourceKind::EsModule, "import 'x';")]);
    assert!(missing.contains("No such module \"x\".\n  imported from \"main.js\""), "{missing}");
    let builtin = text(&[("main.js", SourceKind::EsModule, "import 'node:fs';")]);
    assert!(builtin.contains("the module \"node:fs\" is not supported yet"), "{builtin}");
    let syntax = text(&[("main.js", SourceKind::EsModule, "let x = ;")]);
    assert!(syntax.contains("SyntaxError") && syntax.contains("main.js:1"), "{syntax}");
    let throws = text(&[("main.js", SourceKind::EsModule, "\nthrow new RangeError('no')")]);
    assert!(throws.contains("RangeError: no") && throws.contains("main.js:2"), "{throws}");
    assert_eq!(
        start(&[("main.js", SourceKind::EsModule, "await new Promise(() => {});")]).err(),
        Some(StartError::NeverEnds)
    );
    let code = Arc::new(application("for (;;);"));
    let limits = Limits { start: Duration::from_millis(200), ..limits() };
    let endless = Isolate::new(&code, IsolateKind::Worker, limits, at(0)).err().unwrap().to_string();
    assert!(endless.contains("exceeded its CPU time limit"), "{endless}");
}

#[test]
fn an_application_is_compiled_once_and_runs_in_every_isolate() {
    let code = Arc::new(application("console.log(typeof main, import.meta.main); function main() {}"));
    for _ in 0..3 {
        let turn = Isolate::new(&code, IsolateKind::Worker, limits(), at(0)).unwrap().wake(at(0));
        assert!(
            matches!(&turn.effects[..], [Effect::Log { text, .. }] if text.starts_with("function")),
            "{turn:?}"
        );
    }
}

#[test]
fn timers_fire_in_order_and_stop_when_cleared() {
    let order = run("const order = [];
        setTimeout(() => order.push('b'), 20);
        setTimeout((x, y) => order.push(x + y), 10, 'a', 1);
        const cleared = setTimeout(() => order.push('never'), 5);
        clearTimeout(cleared);
        let ticks = 0;
        await new Promise(resolve => {
          const id = setInterval(() => { order.push('tick'); if (++ticks === 2) { clearInterval(id); resolve(); } }, 15);
        });
        await scheduler.wait(5);
        return order.join();");
    assert_eq!(order, "a1,tick,b,tick");
}

#[test]
fn jobs_of_a_timer_run_before_the_next_timer() {
    assert_eq!(
        run("const order = [];
        setTimeout(() => { order.push(1); Promise.resolve().then(() => order.push(2)); }, 0);
        setTimeout(() => order.push(3), 0);
        await scheduler.wait(1);
        return order.join();"),
        "1,2,3"
    );
}

#[test]
fn the_clock_goes_on_with_the_timers() {
    assert_eq!(
        run(
            "const before = performance.now(); await scheduler.wait(1000); return performance.now() - before > 500;"
        ),
        "true"
    );
}

#[test]
fn too_many_timers_are_an_error() {
    assert_eq!(
        fails("for (;;) setTimeout(() => {}, 1000);"),
        "RangeError: too many timers: the limit is 10000"
    );
    assert_eq!(
        fails("setTimeout('code')"),
        "TypeError: Failed to execute 'setTimeout' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Function'."
    );
}

#[test]
fn what_a_timer_or_a_microtask_throws_is_logged_and_nothing_else_stops() {
    let lines = logs(
        "queueMicrotask(() => { throw new TypeError('micro') });
        setTimeout(() => { throw new RangeError('timer') }, 1);
        await scheduler.wait(2); console.log('on');",
    );
    assert!(lines[0].starts_with("Uncaught TypeError: micro\n"), "{lines:?}");
    assert!(lines[1].starts_with("Uncaught RangeError: timer\n"), "{lines:?}");
    assert_eq!(lines[2], "on");
}

#[test]
fn a_rejection_that_nothing_waits_for_is_logged_once() {
    let lines = logs(
        "Promise.reject(new Error('lost')); const kept = Promise.reject(1); kept.catch(() => {});
        await scheduler.wait(1); await scheduler.wait(1);",
    );
    assert!(lines.len() == 1 && lines[0].starts_with("Uncaught (in promise) Error: lost\n"), "{lines:?}");
}

#[test]
fn console_shows_values_as_node_does() {
    let lines = logs("console.log('a', 1, -0, 1n, null, undefined, Symbol('s'), true);
        console.log({ a: 1, 'b-c': 'x', f() {}, g: class A {}, n: { n: { n: { n: 1 } } } });
        console.log([1, 'x', [], {}], new Map([[1, { a: 2 }]]), new Set('ab'));
        console.log('%s is %d%% of %i: %j', 'x', 5, 7.9, { a: 1 }, 'rest');
        console.log(new Date(0), /x/g, new Uint8Array([1, 2]), Object.create(null), new (class Point { x = 1 })());
        const circle = {}; circle.self = circle; console.log(circle);
        console.group('g'); console.warn('in\\nside'); console.groupEnd(); console.error('out');
        console.count(); console.count(); console.assert(1 === 2, 'math');");
    assert_eq!(
        lines,
        [
            "a 1 -0 1n null undefined Symbol(s) true",
            "{\n  a: 1,\n  'b-c': 'x',\n  f: [Function: f],\n  g: [class A],\n  n: { n: { n: [Object] } }\n}",
            "[ 1, 'x', [], {} ] Map(1) { 1 => { a: 2 } } Set(2) { 'a', 'b' }",
            "x is 5% of 7: {\"a\":1} rest",
            "1970-01-01T00:00:00.000Z /x/g Uint8Array(2) [ 1, 2 ] [Object: null prototype] {} Point { x: 1 }",
            "<ref *1> { self: [Circular *1] }",
            "g",
            "  in\n  side",
            "out",
            "default: 1",
            "default: 2",
            "Assertion failed: math",
        ]
    );
}

#[test]
fn log_lines_are_bounded_in_length_and_number() {
    let lines = logs("console.log('x'.repeat(1e6)); for (let i = 0; i < 1000; i++) console.log(i);");
    assert_eq!(lines.len(), 257);
    assert_eq!(lines[0].len(), (16 << 10) + '…'.len_utf8());
    assert_eq!(lines[256], "745 more lines of one turn are not logged: the limit is 256");
}
