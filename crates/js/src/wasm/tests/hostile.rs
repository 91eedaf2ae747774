//! Applications that change the language's own objects: WebAssembly works on, or throws. Nothing of that ends the process.

use rquickjs::CatchResultExt as _;

use super::{isolate, run, run_in};
use crate::Isolate;

/// Where JavaScript has caught what a panic threw, the panic waits in the engine: the next error that comes to Rust brings it.
fn surface_panics(isolate: &Isolate) {
    isolate.context.with(|ctx| {
        let thrown = ctx.eval::<(), _>("throw new Error('seen')").catch(&ctx).unwrap_err();
        assert!(thrown.to_string().contains("seen"), "{thrown}");
    });
}

/// Accessors in the place of elements and properties of everything.
const POLLUTED: &str =
    "for (const [index, got] of [[0, ['memory', 99_999]], [1, 99_999], [2, { kind: 'value' }]]) {
    Object.defineProperty(Array.prototype, index, { get: () => got, set() {}, configurable: true });
  }
  for (const name of ['i32', 'function', 'kind', 'number', 'then', 'module']) {
    Object.defineProperty(Object.prototype, name, { get: () => () => true, set() {}, configurable: true });
  }
  const clean = () => {
    for (const index of [0, 1, 2]) delete Array.prototype[index];
    for (const name of ['i32', 'function', 'kind', 'number', 'then', 'module']) delete Object.prototype[name];
  };";

#[test]
fn accessors_on_the_prototypes_of_arrays_and_objects_change_nothing() {
    let body = "const e = make();
        const memory = new WebAssembly.Memory({ initial: 1 });
        const table = new WebAssembly.Table({ element: 'externref', initial: 2 }, 'first');
        table.set(1, 'second');
        const got = [e.add(2, 3), e.call(4), e.at(0), table.get(1), table.get(0), e.ref('third'), memory.grow(1)];
        const wanted = WebAssembly.Module.imports(module);
        clean();
        return [got, wanted]";
    let expected = r#"[[5,9,7,"second","first","third",1],[{"module":"env","name":"f","kind":"function"}]]"#;
    assert_eq!(run(&format!("{POLLUTED} {body}")), expected);
}

#[test]
fn functions_of_the_language_that_lie_cause_errors_at_most() {
    let mut isolate = isolate();
    for lie in [
        "Map.prototype.get = () => 99_999",
        "WeakRef.prototype.deref = () => ({ handle: {} })",
        "Function.prototype.bind = function () { return this }",
        "Math.min = () => 4_294_967_295",
        "Math.trunc = value => ({ valueOf: () => (value === 2 ? 1 : 4_294_967_295) })",
        "Array.prototype.includes = () => true",
        "Array.prototype[Symbol.iterator] = function* () { yield 99_999; }",
    ] {
        let body = format!(
            "{lie};
             for (const use of [
               () => make().add(1, 2), () => make().function(make().add), () => make().at(1), () => make().memory.grow(1),
               () => new WebAssembly.Memory({{ initial: 2, maximum: 3 }}), () => new WebAssembly.Memory({{ initial: 0, maximum: 2 }}),
               () => new WebAssembly.Table({{ element: 'anyfunc', initial: 2, maximum: 3 }}).set(0, make().add),
               () => new WebAssembly.Global({{ value: 'v128' }}, 1), () => new WebAssembly.Instance(module, {{ env: {{ f: make().add }} }}),
             ]) {{ try {{ use(); }} catch {{}} }}
             return 'alive'"
        );
        assert_eq!(run_in(&mut isolate, &body), "alive", "{lie}");
        // Another isolate, in which WebAssembly is first touched after the lie.
        let mut another = super::isolate();
        assert_eq!(run_in(&mut another, &body), "alive", "{lie}");
        surface_panics(&another);
    }
    surface_panics(&isolate);
}
