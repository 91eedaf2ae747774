//! Natives and what JavaScript gives them. An application may change all that the parts of ours are written with, so a native
//! must take whatever comes: a panic would end the process with all of its cells.

use std::sync::Arc;

use bytes::Bytes;
use rquickjs::{CatchResultExt, Ctx, Function, Object};

use super::{ON_DEMAND, PARTS, load};
use crate::testing::world::World;
use crate::testing::{application, at, limits};
use crate::{Application, Isolate, IsolateKind, SourceKind, node};

const MODULE: &str = r#"(module
  (import "env" "f" (func $f (param i32) (result i32)))
  (import "env" "g" (global i32))
  (import "env" "m" (memory 1))
  (import "env" "t" (table 1 funcref))
  (export "f" (func $f)) (export "g" (global 0)) (export "m" (memory 0)) (export "t" (table 0)))"#;

/// Calls all functions many times, and those that they give, with values of all kinds and with what they give. Whenever an
/// error is made meanwhile, the same is called once more. Answers how many calls there were.
const CALL_ALL: &str = r#"(natives => {
  // What breaks the isolate on purpose.
  const skipped = ['abort', 'breakConstructor', 'breakGate', 'breakWaiting', 'watch'];
  const detached = new Uint8Array(4);
  detached.buffer.transfer();
  const given = [
    undefined, null, true, false, 0, -0, 1, 2, 7, -1, 1.5, NaN, Infinity, 255, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 53, 10n,
    '', 'x', 'utf-8', 'gzip', 'sha256', 'SHA-256', 'P-256', 'anyfunc', 'externref', 'i64', 'm.wasm', 'select 1, 2', '\ud800',
    'http://x/?a=b', 'import', 'memory', 'value', [], [1], ['a', 'b', 'c'], ['import', 99_999], ['memory', 99_999],
    [['value', 1], ['value', 1], ['table', 3], ['global', 9]], {}, Object.create(null), Symbol('s'), () => 1,
    () => { throw new Error('given'); }, new Proxy([], {}), { get length() { throw new Error('length'); } },
    { valueOf: () => 99_999, toString: () => 'x' }, new Uint8Array(), new Uint8Array([1, 2, 3, 0xff]), new Uint8Array(16),
    new Uint8Array(32), detached, new ArrayBuffer(8), new Map([[1, 2]]), Promise.resolve(1), new Error('e'), new Date(0),
    { imports: [() => 1], externs: [1], buffers: [new ArrayBuffer(1)], functions: [], functionNumbers: new Map() },
  ];
  const functions = [];
  const take = value => {
    if (typeof value === 'function') functions.push(value);
    else if (typeof value === 'object' && value !== null && given.length < 200) {
      given.push(value);
      if (Object.getPrototypeOf(value) === null) for (const member of Object.values(value)) take(member);
    }
  };
  let state = 12_345;
  const next = below => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  const call = (called, known) => {
    calls++;
    const handed = Array.from({ length: next(8) }, () => given[next(given.length)]);
    if (known !== undefined) handed[0] = known;
    const one = () => called(...handed);
    again = one;
    try { return one(); } catch { return undefined; } finally { again = undefined; }
  };
  let again;
  let calls = 0;
  Error.prepareStackTrace = () => {
    const once = again;
    again = undefined;
    try { once?.(); } catch {}
    return '';
  };
  for (const native of natives) {
    const group = native.group?.();
    if (group !== undefined) take(group);
    for (const name of Object.keys(native)) {
      if (typeof native[name] !== 'function' || skipped.includes(name)) continue;
      functions.length = 0;
      functions.push(native[name]);
      for (let index = 0; index < functions.length && index < 8; index++) {
        for (let turn = 0; turn < 300; turn++) {
          const made = call(functions[index], turn % 2 === 0 ? group : undefined);
          if (functions.length < 8) take(made);
        }
      }
    }
  }
  Error.prepareStackTrace = undefined;
  return calls;
})"#;

fn world() -> World {
    let main = "import { DurableObject } from 'cloudflare:workers';
        export class A extends DurableObject { }";
    let modules = [
        ("main.js".to_owned(), SourceKind::EsModule, Bytes::from(main)),
        ("m.wasm".to_owned(), SourceKind::Wasm, Bytes::from(wat::parse_str(MODULE).unwrap())),
    ];
    let code = Application::new("v1", "main.js", modules).unwrap();
    World::object(code, "A", "a")
}

/// The natives of all parts, and of all modules of Node.
fn natives<'js>(ctx: &Ctx<'js>) -> Vec<Object<'js>> {
    let parts = PARTS.iter().chain(ON_DEMAND).map(|part| part.natives);
    let all = parts.chain(node::NATIVES.iter().map(|(_, natives)| *natives));
    all.map(|natives| natives(ctx).catch(ctx).unwrap()).collect()
}

/// Where JavaScript has caught what a panic threw, the panic waits in the engine: the next error that comes to Rust brings it.
fn surface_panics(ctx: &Ctx<'_>) {
    let thrown = ctx.eval::<(), _>("throw new Error('seen')").catch(ctx).unwrap_err();
    assert!(thrown.to_string().contains("seen"), "{thrown}");
}

#[test]
fn a_native_takes_whatever_javascript_gives_it() {
    let world = world();
    let calls = world.isolate.context.with(|ctx| {
        for part in PARTS.iter().chain(ON_DEMAND) {
            load(&ctx, part.name).catch(&ctx).unwrap();
        }
        let call: Function<'_> = ctx.eval(CALL_ALL).catch(&ctx).unwrap();
        let calls = call.call::<_, u32>((natives(&ctx),)).catch(&ctx).unwrap();
        surface_panics(&ctx);
        calls
    });
    println!("{calls} calls");
    assert!(calls > 20_000, "{calls}");
}

#[test]
fn no_setter_of_an_application_is_given_a_native() {
    let world = world();
    world.isolate.context.with(|ctx| {
        let watch = "globalThis.stolen = [];
            (natives => {
              const names = new Set(natives.flatMap(native => Object.keys(native)));
              // Those of descriptors, which the engine itself reads.
              for (const name of ['get', 'set', 'value']) names.delete(name);
              for (const name of ['wasm', 'clone', 'connect', 'handle', 'call', 'number', 'entries', 'items', ...names]) {
                Object.defineProperty(Object.prototype, name, {
                  set() { stolen.push(name); }, get: () => undefined, configurable: true,
                });
              }
            })";
        let watch: Function<'_> = ctx.eval(watch).catch(&ctx).unwrap();
        watch.call::<_, ()>((natives(&ctx),)).catch(&ctx).unwrap();
        natives(&ctx);
        for part in PARTS.iter().chain(ON_DEMAND) {
            load(&ctx, part.name).catch(&ctx).unwrap();
        }
        let stolen: Vec<String> = ctx.globals().get("stolen").unwrap();
        assert_eq!(stolen, Vec::<String>::new());
    });
}

/// Calls `call` where it throws, with an `Error.prepareStackTrace` that calls it once more meanwhile.
fn throws_again(setup: &str, call: &str) {
    let body = format!(
        "{setup}
         let runs = 0;
         const call = () => {{ {call} }};
         Error.prepareStackTrace = () => {{
           if (runs++ === 0) try {{ call(); }} catch {{}}
           return '';
         }};
         try {{ await call(); }} catch {{}}
         Error.prepareStackTrace = undefined;
         return runs"
    );
    let code = Arc::new(application(""));
    let mut isolate = Isolate::new(&code, IsolateKind::Worker, limits(), at(0)).unwrap();
    isolate.probe(at(0), &body);
    let probed = isolate.probed();
    assert!(probed[0] == "ok" && probed[1] != "0", "{call} makes no error: {probed:?}");
    isolate.context.with(|ctx| surface_panics(&ctx));
}

#[test]
fn code_that_runs_while_an_error_is_made_may_call_the_same_again() {
    throws_again(
        "const decoder = new TextDecoder('utf-8', { fatal: true });",
        "return decoder.decode(new Uint8Array([0xff]), { stream: true });",
    );
    throws_again("for (let n = 0; n < 10_000; n++) setTimeout(() => {}, 1e9);", "setTimeout(() => {}, 1e9);");
    throws_again(
        "for (let n = 0; n < 1_000; n++) fetch('http://x/').catch(() => {});",
        "return fetch('http://x/');",
    );
}
