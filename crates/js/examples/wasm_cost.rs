//! What WebAssembly costs: `cargo run --release -p holdfast-js --example wasm_cost` prints what one loop
//! takes in JavaScript and in WebAssembly, what a call across the border takes, and an instance.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_js::{
    Application, Effect, EventCall, EventId, IncomingBody, IncomingRequest, Isolate, IsolateKind, Limits,
    Now, SourceKind,
};
use holdfast_types::Millis;

const MODULE: &str = r#"(module
  (import "env" "f" (func $f (param i32 i32) (result i32)))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "loop") (param $n i32) (result i32) (local $x i32) (local $i i32)
    (local.set $x (i32.const 1))
    (loop $more
      (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 31)) (local.get $i)))
      (br_if $more (i32.lt_s (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $x))
  (func (export "call") (param $n i32)
    (loop $more
      (drop (call $f (local.get $n) (i32.const 1)))
      (br_if $more (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))"#;

const SOURCE: &str = "import module from './m.wasm';
const { exports } = new WebAssembly.Instance(module, { env: { f: (a, b) => a + b } });
const loop = n => { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 31) + i) | 0; return x; };
const add = (a, b) => a + b;
const ms = (run, n) => { const began = performance.now(); run(n); return performance.now() - began; };
const calls = n => { for (let i = 0; i < n; i++) exports.add(i, 1); };
const own = n => { for (let i = 0; i < n; i++) add(i, 1); };
export default { fetch() {
  const n = 10_000_000;
  if (loop(1000) !== exports.loop(1000)) throw new Error('they differ');
  const [js, wasm] = [ms(loop, n), ms(exports.loop, n)];
  console.log(`loop of ${n}: JavaScript ${js.toFixed(0)} ms, WebAssembly ${wasm.toFixed(0)} ms, ratio ${(js / wasm).toFixed(2)}`);
  console.log(`JavaScript calls JavaScript ${ms(own, 1e6).toFixed(0)} ns, WebAssembly ${ms(calls, 1e6).toFixed(0)} ns; WebAssembly calls JavaScript ${ms(exports.call, 1e6).toFixed(0)} ns`);
  const began = performance.now();
  for (let i = 0; i < 1000; i++) new WebAssembly.Instance(module, { env: { f: add } });
  console.log(`an instance ${((performance.now() - began)).toFixed(1)} us`);
  return new Response();
} };";

fn main() {
    let modules = [
        ("main.js".to_owned(), SourceKind::EsModule, Bytes::from_static(SOURCE.as_bytes())),
        ("m.wasm".to_owned(), SourceKind::Wasm, Bytes::from(wat::parse_str(MODULE).unwrap())),
    ];
    let code = Arc::new(Application::new("v1", "main.js", modules).unwrap());
    let now = Now { monotonic: Millis::ZERO, wall: Millis::ZERO };
    let limits =
        Limits { turn: Duration::from_secs(60), event: Duration::from_secs(60), ..Limits::default() };
    let mut isolate = Isolate::new(&code, IsolateKind::Worker, limits, now).unwrap();
    let request = IncomingRequest {
        method: http::Method::GET,
        url: "https://host/path".to_owned(),
        headers: http::HeaderMap::new(),
        body: IncomingBody::None,
        cf: None,
    };
    let turn = isolate.dispatch(now, EventId::new(1), EventCall::Fetch(request));
    for effect in turn.effects {
        if let Effect::Log { text, .. } = effect {
            println!("{text}");
        }
    }
    println!("{:?}", turn.end);
}
