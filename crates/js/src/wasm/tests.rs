//! What WebAssembly does in an isolate. What it answers as on workerd, `process::differential` shows.

use std::sync::Arc;

use bytes::Bytes;

use crate::effect::{BrokenCause, StartError, TurnEnd};
use crate::testing::{at, limits};
use crate::{Application, Isolate, IsolateKind, Limits, SourceKind};

mod bounds;
mod hostile;
mod memory;

/// What most of the tests need of a module.
const MODULE: &str = r#"(module
  (import "env" "f" (func $f (param i32 i64 f64) (result i32)))
  (type $none (func (result i32)))
  (memory (export "memory") 1)
  (table (export "table") 4 funcref)
  (elem (i32.const 0) $seven $add)
  (global (export "counter") (mut i32) (i32.const 3))
  (func $seven (result i32) i32.const 7)
  (func $add (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)
  (func (export "inc64") (param i64) (result i64) local.get 0 i64.const 1 i64.add)
  (func (export "two") (param i32 f32) (result f32 i32) local.get 1 local.get 0)
  (func (export "trap") unreachable)
  (func (export "load") (param i32) (result i32) local.get 0 i32.load)
  (func (export "at") (param i32) (result i32) local.get 0 call_indirect (type $none))
  (func (export "call") (param i32) (result i32) local.get 0 i64.const 2 f64.const 3.5 call $f)
  (func (export "grow") (param i32) (result i32) local.get 0 memory.grow)
  (func (export "ref") (param externref) (result externref) local.get 0)
  (func (export "function") (param funcref) (result funcref) local.get 0)
  (export "again" (func $f))
  (func (export "sum") (param $n i64) (result i64) (local $sum i64)
    (loop $more
      (local.set $sum (i64.add (local.get $sum) (local.get $n)))
      (local.set $n (i64.sub (local.get $n) (i64.const 1)))
      (br_if $more (i64.ne (local.get $n) (i64.const 0))))
    local.get $sum)
  (func $deep (export "deep") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0))
      (then (i32.const 0))
      (else (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))))
  (func (export "spin") (loop $more (br $more)))
  (func (export "spinCalling")
    (loop $more (drop (call $f (i32.const 1) (i64.const 2) (f64.const 3))) (br $more)))
  (func (export "spinFilling")
    (loop $more (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $more))))"#;

const MAIN: &str = "
import module from './m.wasm';
globalThis.module = module;
globalThis.make = (f = (...given) => given.reduce((sum, value) => sum + Number(value), 0)) =>
  new WebAssembly.Instance(module, { env: { f } }).exports;
globalThis.fails = run => { try { run(); } catch (error) { return String(error); } return 'nothing'; };";

/// An application of a main module and the WebAssembly of `text`, as `m.wasm`.
fn application(main: &str, text: &str) -> Application {
    let wasm = wat::parse_str(text).unwrap();
    let modules = [
        ("main.js".to_owned(), SourceKind::EsModule, Bytes::copy_from_slice(main.as_bytes())),
        ("m.wasm".to_owned(), SourceKind::Wasm, Bytes::from(wasm)),
    ];
    Application::new("v1", "main.js", modules).unwrap()
}

fn isolate_with(text: &str, limits: Limits) -> Isolate {
    Isolate::new(&Arc::new(application(MAIN, text)), IsolateKind::Worker, limits, at(0)).unwrap()
}

fn isolate() -> Isolate {
    isolate_with(MODULE, limits())
}

/// What a snippet comes to: a string as it is, anything else as JSON.
fn run_in(isolate: &mut Isolate, body: &str) -> String {
    let turn = isolate.probe(at(0), body);
    assert_eq!(turn.end, TurnEnd::Ok, "{body}");
    match isolate.probed().as_slice() {
        [kind, value] if kind == "ok" => value.clone(),
        other => panic!("{}", other.join("\n")),
    }
}

fn run(body: &str) -> String {
    run_in(&mut isolate(), body)
}

#[test]
fn an_imported_module_is_instantiated_and_called() {
    assert_eq!(run("return make().add(40, 2)"), "42");
    assert_eq!(
        run("return [module instanceof WebAssembly.Module, String(module)]"),
        r#"[true,"[object WebAssembly.Module]"]"#
    );
    assert_eq!(
        run(
            "const { exports } = await WebAssembly.instantiate(module, { env: { f() {} } }); return exports.add('1', 2)"
        ),
        "3"
    );
}

#[test]
fn values_are_converted_both_ways() {
    assert_eq!(
        run("return [String(make().inc64(2n ** 63n - 1n)), make().two(1, 0.5)]"),
        r#"["-9223372036854775808",[0.5,1]]"#
    );
    assert_eq!(run("return fails(() => make().inc64(1)).split(':')[0]"), "TypeError");
    assert_eq!(run("return make().call(5)"), "10");
    assert_eq!(
        run(
            "const o = {}; const e = make(); return [e.ref(o) === o, e.ref(null), e.ref(undefined) === undefined]"
        ),
        "[true,null,true]"
    );
    assert_eq!(
        run("const e = make(); return [e.function(e.add) === e.add, e.function(null)]"),
        "[true,null]"
    );
    assert_eq!(run("return fails(() => make().function(() => 1)).split(':')[0]"), "TypeError");
}

#[test]
fn functions_have_the_name_and_length_that_the_standard_gives_them() {
    assert_eq!(
        run("const { add } = make(); return [add.name, add.length, 'prototype' in add]"),
        r#"["2",2,false]"#
    );
    assert_eq!(
        run("const e = make(); return [e.table.get(1) === e.add, e.table.get(0)(), e.table.get(3)]"),
        "[true,7,null]"
    );
    assert_eq!(run("return fails(() => new (make().add)()).split(':')[0]"), "TypeError");
}

#[test]
fn exceptions_of_imports_pass_through_unchanged_and_traps_are_runtime_errors() {
    assert_eq!(
        run(
            "const mine = new Error('mine'); let same; try { make(() => { throw mine }).call(1) } catch (e) { same = e === mine } return same"
        ),
        "true"
    );
    assert_eq!(run("return fails(() => make().trap())"), "RuntimeError: unreachable");
    assert_eq!(run("return fails(() => make().load(1e9))"), "RuntimeError: memory access out of bounds");
    assert_eq!(run("return fails(() => make().at(3))"), "RuntimeError: null function");
    assert_eq!(run("return fails(() => make().at(1))"), "RuntimeError: function signature mismatch");
    assert_eq!(
        run("let e; try { make().trap() } catch (x) { e = x } return e instanceof WebAssembly.RuntimeError"),
        "true"
    );
}

#[test]
fn an_import_that_is_exported_again_calls_what_was_imported() {
    assert_eq!(run("return make((a, b) => a + Number(b)).again(1, 2n, 0)"), "3");
    assert_eq!(
        run("return fails(() => make(() => { throw new RangeError('mine') }).again(1, 2n, 0))"),
        "RangeError: mine"
    );
}

#[test]
fn a_loop_of_many_slices_comes_to_the_right_sum() {
    assert_eq!(run("return String(make().sum(10_000_000n))"), "50000005000000");
}

#[test]
fn calls_nest_and_each_sees_what_the_inner_ones_did() {
    let body = "const e = make(left => { e.counter.value++; return left ? e.call(left - 1) + 1 : 0; });
        return [e.call(20), e.counter.value]";
    assert_eq!(run(body), "[20,24]");
}

#[test]
fn an_instance_is_linked_with_what_another_exports() {
    let text = r#"(module
      (import "env" "add" (func $add (param i32 i32) (result i32)))
      (import "env" "memory" (memory 1))
      (import "env" "table" (table 1 funcref))
      (import "env" "counter" (global $counter (mut i32)))
      (elem (i32.const 2) $get)
      (func $get (export "get") (result i32) (call $add (global.get $counter) (i32.load (i32.const 0))))
      (memory 1)
      (func $begin (global.set $counter (i32.const 30)))
      (start $begin))"#;
    let main = "
        import module from './m.wasm';
        globalThis.kinds = WebAssembly.Module.imports(module).map(({ kind }) => kind).join();
        const env = {
          add: (a, b) => a + b, memory: new WebAssembly.Memory({ initial: 1 }),
          table: new WebAssembly.Table({ element: 'anyfunc', initial: 3 }), counter: new WebAssembly.Global({ value: 'i32', mutable: true }, 1),
        };
        new Uint8Array(env.memory.buffer)[0] = 4;
        globalThis.first = new WebAssembly.Instance(module, { env });
        globalThis.second = () => new WebAssembly.Instance(module, { env });
        globalThis.env = env;
        globalThis.fails = run => { try { run(); } catch (error) { return String(error); } };";
    let mut isolate =
        Isolate::new(&Arc::new(application(main, text)), IsolateKind::Worker, limits(), at(0)).unwrap();
    assert_eq!(
        run_in(
            &mut isolate,
            "return [first.exports.get(), env.table.get(2) === first.exports.get, env.counter.value]"
        ),
        "[34,true,30]"
    );
    assert_eq!(
        run_in(&mut isolate, "return kinds"),
        "function,memory,table,global",
        "in the module's own order"
    );
    // In a later turn, with objects of the first.
    assert_eq!(
        run_in(&mut isolate, "env.counter.value = 5; return [second().exports.get(), env.counter.value]"),
        "[34,30]"
    );
    // With objects of two turns.
    run_in(&mut isolate, "env.memory = new WebAssembly.Memory({ initial: 1 }); return 1");
    assert!(run_in(&mut isolate, "return fails(second)").starts_with("LinkError: "));
}

#[test]
fn what_is_no_webassembly_is_refused_with_its_name() {
    let modules = [
        ("main.js".to_owned(), SourceKind::EsModule, Bytes::new()),
        ("lib/broken.wasm".to_owned(), SourceKind::Wasm, Bytes::from_static(b"\0asm\x01\0\0\0\x01\x7f")),
    ];
    let error = Application::new("v1", "main.js", modules).unwrap().compile().unwrap_err();
    assert_eq!(error.name, "CompileError");
    assert!(error.message.starts_with("`lib/broken.wasm` is not valid WebAssembly: "), "{error}");
}

#[test]
fn code_from_bytes_is_refused_as_on_cloudflare() {
    let refused = "Wasm code generation disallowed by embedder";
    assert_eq!(
        run("return fails(() => new WebAssembly.Module(new Uint8Array(8)))"),
        format!("CompileError: WebAssembly.Module(): {refused}")
    );
    let body = "try { await WebAssembly.instantiate(new Uint8Array(8)) } catch (e) { return String(e) }";
    assert_eq!(run(body), format!("CompileError: WebAssembly.instantiate(): {refused}"));
    assert_eq!(
        run(
            "return [WebAssembly.validate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])), WebAssembly.validate(new Uint8Array(8))]"
        ),
        "[true,false]"
    );
}

#[test]
fn a_module_that_does_not_start_names_what_it_lacks() {
    let main = "import module from './m.wasm'; new WebAssembly.Instance(module, { env: {} });";
    let error = Isolate::new(&Arc::new(application(main, MODULE)), IsolateKind::Worker, limits(), at(0));
    let Err(StartError::Threw(error)) = error else { panic!("it starts") };
    assert_eq!(error.name, "LinkError");
    assert!(error.message.contains("Import #0 \"env\" \"f\""), "{error}");
}

#[test]
fn an_endless_start_function_ends_the_start() {
    let text = "(module (func $spin (loop $more (br $more))) (start $spin))";
    let main = "import module from './m.wasm'; try { new WebAssembly.Instance(module); } catch {}";
    let limits = Limits { start: std::time::Duration::from_millis(200), ..limits() };
    let error = Isolate::new(&Arc::new(application(main, text)), IsolateKind::Worker, limits, at(0)).err();
    assert_eq!(error, Some(StartError::Exceeded(BrokenCause::CpuExceeded)));
}
