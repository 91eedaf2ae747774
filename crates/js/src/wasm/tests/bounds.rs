//! What WebAssembly must not do to its thread.

use std::time::{Duration, Instant};

use super::{MODULE, isolate, isolate_with, limits, run, run_in};
use bytes::Bytes;

use crate::effect::{BrokenCause, TurnEnd};
use crate::testing::at;
use crate::{Application, Limits, SourceKind};

/// More than the turn's limit, for a machine that is busy: CPU time is what is limited, this is elapsed time.
const PATIENCE: Duration = Duration::from_secs(30);

fn exceeds_its_time(body: &str) {
    let began = Instant::now();
    let mut isolate = isolate_with(MODULE, Limits { turn: Duration::from_millis(200), ..limits() });
    let turn = isolate.probe(at(0), body);
    assert_eq!(turn.end, TurnEnd::Broken(BrokenCause::CpuExceeded), "{body}");
    let caught: Option<bool> = isolate.context.with(|ctx| ctx.globals().get("caught").unwrap());
    assert_eq!(caught, None, "a handler went on after {body}");
    assert!(began.elapsed() < PATIENCE, "it held its thread for {:?}", began.elapsed());
    assert_eq!(run("return make().add(1, 1)"), "2");
}

#[test]
fn an_endless_loop_exceeds_its_time_and_nothing_catches_that() {
    exceeds_its_time("try { make().spin(); } catch { caught = true; } finally { caught = true; }");
    exceeds_its_time("try { make().spinFilling(); } catch { caught = true; }");
}

#[test]
fn an_endless_loop_that_calls_javascript_exceeds_its_time() {
    exceeds_its_time("try { make(() => 1).spinCalling(); } catch { caught = true; }");
    // A function that never runs the engine's own code, which would look at the time.
    exceeds_its_time("try { make(Number).spinCalling(); } catch { caught = true; }");
    exceeds_its_time(
        "const e = make((a, b, c) => e.add(a, 1)); try { e.spinCalling(); } catch { caught = true; }",
    );
}

#[test]
fn recursion_that_is_too_deep_is_a_range_error_and_the_isolate_goes_on() {
    let mut isolate = isolate();
    let deep = "RangeError: Maximum call stack size exceeded";
    assert_eq!(run_in(&mut isolate, "return fails(() => make().deep(10_000_000))"), deep);
    assert_eq!(run_in(&mut isolate, "return make().deep(5_000)"), "5000");
    let nested = "const e = make(left => e.call(left - 1)); return fails(() => e.call(1e9))";
    assert_eq!(run_in(&mut isolate, nested), deep);
    let both = "const e = make(left => { e.deep(9_000); return e.call(left - 1); }); return fails(() => e.call(1e9))";
    assert_eq!(run_in(&mut isolate, both), deep);
    assert_eq!(run_in(&mut isolate, "return make().add(1, 2)"), "3");
}

#[test]
fn memory_and_tables_count_in_the_isolates_limit() {
    let mut isolate = isolate_with(MODULE, Limits { memory_bytes: 32 << 20, ..limits() });
    let too_much = "return fails(() => new WebAssembly.Memory({ initial: 600 }))";
    assert_eq!(run_in(&mut isolate, too_much), "RangeError: WebAssembly.Memory(): could not allocate memory");
    // What the engine runs sees -1, and JavaScript an error.
    let growing = "const e = make(); let pages = 1; while (e.grow(1) !== -1) pages++;
        return [pages > 300 && pages < 512, fails(() => e.memory.grow(1))]";
    let full = r#"[true,"RangeError: WebAssembly.Memory.grow(): Maximum memory size exceeded"]"#;
    assert_eq!(run_in(&mut isolate, growing), full);
    assert!(isolate.memory_bytes() < 32 << 20);
    let table = "return fails(() => new WebAssembly.Table({ element: 'externref', initial: 5_000_000 }))";
    assert!(run_in(&mut isolate, table).starts_with("RangeError"));
}

/// How many instances of a module an isolate of 32 MiB holds, at most 40; and how the next fails.
fn held(text: &str) -> (usize, String) {
    let mut isolate = isolate_with(text, Limits { memory_bytes: 32 << 20, ..limits() });
    let body = "globalThis.kept = [];
        const failed = fails(() => { while (kept.length < 40) kept.push(new WebAssembly.Instance(module)); });
        return `${kept.length} ${failed}`";
    let answered = run_in(&mut isolate, body);
    let (count, failed) = answered.split_once(' ').unwrap();
    (count.parse().unwrap(), failed.to_owned())
}

#[test]
fn what_instances_hold_counts_in_the_isolates_limit() {
    let globals = "(global i32 (i32.const 0))".repeat(20_000);
    let items = format!("(func $f (export \"f\")) (elem func {})", "$f ".repeat(200_000));
    let exports = (0..10_000).map(|n| format!("(export \"{n}\" (global 0))")).collect::<String>();
    for text in [
        format!("(module {globals} (export \"g\" (global 0)))"),
        format!("(module {items})"),
        format!("(module (global i32 (i32.const 0)) {exports})"),
    ] {
        let (count, failed) = held(&text);
        assert!((2..=20).contains(&count), "{count}");
        assert!(failed.starts_with("RangeError: WebAssembly.Instance(): Out of memory"), "{failed}");
    }
    assert_eq!(held("(module (global (export \"g\") i32 (i32.const 0)))"), (40, "nothing".to_owned()));
}

#[test]
fn a_module_with_too_many_globals_or_items_is_refused() {
    for (text, expected) in [
        (format!("(module {})", "(global i32 (i32.const 0))".repeat(100_001)), "at most 100000 globals"),
        (format!("(module (func $f) (elem func {}))", "$f ".repeat(1_000_001)), "at most 1000000 items"),
    ] {
        let wasm = Bytes::from(wat::parse_str(&text).unwrap());
        let modules = [
            ("main.js".to_owned(), SourceKind::EsModule, Bytes::new()),
            ("m.wasm".to_owned(), SourceKind::Wasm, wasm),
        ];
        let code = Application::new("v1", "main.js", modules).unwrap();
        let error = code.compile().unwrap_err().message;
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn frames_of_nested_calls_count_in_the_isolates_limit_while_they_last() {
    let mut isolate = isolate_with(MODULE, Limits { memory_bytes: 16 << 20, ..limits() });
    let body = "let depth = 0; const e = make(() => { depth++; return e.call(1); });
        const failed = fails(() => e.call(1));
        return [depth > 2 && depth < 10, failed]";
    let expected = r#"[true,"RangeError: Maximum call stack size exceeded"]"#;
    for _ in 0..20 {
        assert_eq!(run_in(&mut isolate, body), expected);
        assert!(isolate.memory_bytes() < 8 << 20, "{}", isolate.memory_bytes());
    }
}

#[test]
fn the_heap_has_what_memories_leave_of_the_limit() {
    let fill =
        "const all = []; for (let i = 0; i < 20; i++) all.push(new ArrayBuffer(1 << 20)); return all.length";
    let small = Limits { memory_bytes: 32 << 20, ..limits() };
    assert_eq!(run_in(&mut isolate_with(MODULE, small), fill), "20");
    let mut isolate = isolate_with(MODULE, small);
    assert_eq!(
        run_in(&mut isolate, "globalThis.kept = new WebAssembly.Memory({ initial: 256 }); return 1"),
        "1"
    );
    isolate.probe(at(0), fill);
    assert!(isolate.probed().join(" ").contains("memory"), "{:?}", isolate.probed());
}

#[test]
fn instances_that_nobody_holds_go_also_where_they_are_in_cycles() {
    let mut isolate = isolate_with(MODULE, Limits { memory_bytes: 32 << 20, ..limits() });
    // Each turn makes one of 1 MiB, whose imports lead back to it.
    let body = "const e = make(left => e.add(left, 1)); e.memory.grow(15); new Uint8Array(e.memory.buffer)[9] = 1; return e.call(1)";
    for _ in 0..200 {
        assert_eq!(run_in(&mut isolate, body), "2");
    }
}

#[test]
fn an_instance_that_failed_half_way_runs_nothing() {
    let text = r#"(module
      (import "env" "table" (table 1 funcref))
      (memory 1)
      (elem (i32.const 0) $get)
      (data (i32.const 65535) "too long")
      (func $get (result i32) (i32.load (i32.const 0))))"#;
    let mut isolate = isolate_with(text, limits());
    let body = "const table = new WebAssembly.Table({ element: 'anyfunc', initial: 1 });
        const failed = fails(() => new WebAssembly.Instance(module, { env: { table } }));
        return [failed.split(':')[0], fails(() => table.get(0)()).split(':')[0]]";
    assert_eq!(run_in(&mut isolate, body), r#"["RuntimeError","RuntimeError"]"#);
}

#[test]
fn a_function_as_large_as_there_may_be_is_translated_without_holding_its_thread() {
    // 7.5 MB of code: the engine takes no larger body.
    let body = "i32.const 1 i32.const 2 i32.add drop ".repeat(1_250_000);
    let mut isolate = isolate_with(&format!("(module (func (export \"f\") {body}))"), limits());
    let began = Instant::now();
    assert_eq!(run_in(&mut isolate, "new WebAssembly.Instance(module).exports.f(); return 1"), "1");
    println!("translated and run in {:?}", began.elapsed());
    assert!(began.elapsed() < PATIENCE);
}
