//! `structuredClone`, value by value.

use crate::testing::{fails, run};

fn holds(snippets: &[&str]) {
    for snippet in snippets {
        let body =
            if snippet.contains("return ") { (*snippet).to_owned() } else { format!("return {snippet}") };
        assert_eq!(run(&body), "true", "{snippet}");
    }
}

#[test]
fn primitives_and_their_objects_are_cloned() {
    holds(&[
        "[1, -1, 0.5, 1e300, 2 ** 31, -(2 ** 31), NaN, Infinity, 'é', '€', '😀', '', true, false, null, undefined, 5n, -(2n ** 70n), 0n].every(v => Object.is(structuredClone([v])[0], v))",
        "Object.is(structuredClone([-0])[0], -0) && structuredClone(['\\ud800x'])[0] === '\\ud800x' && structuredClone('x') === 'x'",
        "structuredClone(Object(1n)).valueOf() === 1n && structuredClone(new Boolean(false)).valueOf() === false && typeof structuredClone(new Boolean(false)) === 'object'",
        "structuredClone(new String('s')) instanceof String && structuredClone(new String('s')).length === 1 && structuredClone(new Number(-0)) instanceof Number",
        "structuredClone(new Date(5)).getTime() === 5 && Number.isNaN(structuredClone(new Date(NaN)).getTime()) && structuredClone(new Date(0)) instanceof Date",
        "const r = structuredClone(/a(b)\\/c/giu); return r.source === 'a(b)\\\\/c' && r.flags === 'giu' && r.lastIndex === 0",
    ]);
}

#[test]
fn containers_keep_order_holes_identity_and_cycles() {
    holds(&[
        "JSON.stringify(structuredClone({ b: 1, a: [1, { c: 2 }], 5: 'x' })) === '{\"5\":\"x\",\"b\":1,\"a\":[1,{\"c\":2}]}'",
        "const a = structuredClone([1, , 3]); return a.length === 3 && !(1 in a) && a[2] === 3",
        "const a = [1, 2]; a.x = 5; const b = structuredClone(a); return b.x === 5 && b.length === 2",
        "const a = []; a.length = 1e9; a[5] = 1; const b = structuredClone(a); return b.length === 1e9 && b[5] === 1",
        "const m = structuredClone(new Map([['k', { v: 1 }], [{}, 2]])); return m instanceof Map && m.get('k').v === 1 && m.size === 2",
        "const s = structuredClone(new Set([1, 'a', 1])); return s instanceof Set && [...s].join() === '1,a'",
        "const o = {}; o.self = o; o.list = [o]; const c = structuredClone(o); return c !== o && c.self === c && c.list[0] === c",
        "const x = {}, c = structuredClone([x, x]); return c[0] === c[1] && c[0] !== x",
        "const m = new Map(); m.set(m, m); const c = structuredClone(m); return c.get(c) === c",
        "class A { constructor() { this.x = 1; } get y() { return 2; } } const c = structuredClone(new A()); return c.x === 1 && !('y' in c) && Object.getPrototypeOf(c) === Object.prototype",
        "const o = Object.create({ inherited: 1 }, { hidden: { value: 1 } }); o[Symbol('s')] = 1; return JSON.stringify(structuredClone(o)) === '{}'",
        "return structuredClone({ get x() { return 7; } }).x === 7",
        "const o = JSON.parse('{\"__proto__\": 5}'), c = structuredClone(o); return Object.keys(c).join() === '__proto__' && Object.getPrototypeOf(c) === Object.prototype",
        "structuredClone(Object.create(Date.prototype)) instanceof Date === false",
        "structuredClone(Object.create(null)).constructor === Object",
        "let deep = 1; for (let i = 0; i < 9000; i++) deep = [deep]; let c = structuredClone(deep), n = 0; while (Array.isArray(c)) { c = c[0]; n++; } return n === 9000",
    ]);
}

#[test]
fn buffers_are_copied_and_views_share_them() {
    holds(&[
        "const b = new Uint8Array([1, 2]).buffer, c = structuredClone(b); return c !== b && new Uint8Array(c)[1] === 2",
        "return [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array].every(C => { const c = structuredClone(new C([1, 2])); return c instanceof C && c.length === 2 && c[1] === 2; })",
        "const c = structuredClone(new BigInt64Array([-5n])); return c[0] === -5n && structuredClone(new BigUint64Array([5n]))[0] === 5n",
        "const b = new ArrayBuffer(8), c = structuredClone({ a: new Uint8Array(b, 2, 3), d: new DataView(b, 1), b }); return c.a.buffer === c.b && c.d.buffer === c.b && c.a.byteOffset === 2 && c.a.length === 3 && c.d.byteLength === 7",
        "const c = structuredClone(new ArrayBuffer(2, { maxByteLength: 8 })); return c.resizable && c.maxByteLength === 8 && c.byteLength === 2",
        "const b = new Uint8Array([7]).buffer, c = structuredClone(b, { transfer: [b] }); return b.byteLength === 0 && b.detached && new Uint8Array(c)[0] === 7",
        "const u = new Uint8Array([7, 8]), c = structuredClone({ u }, { transfer: [u.buffer] }); return u.length === 0 && c.u[1] === 8",
    ]);
    assert!(fails("structuredClone(1, { transfer: [{}] })").starts_with("DataCloneError: Value at index 0"));
    assert!(
        fails("const b = new ArrayBuffer(1); structuredClone(1, { transfer: [b, b] })").contains("duplicate")
    );
    assert!(
        fails("const b = new ArrayBuffer(1); b.transfer(); structuredClone(b)")
            .starts_with("DataCloneError: An ArrayBuffer is detached")
    );
    assert_eq!(
        run(
            "const b = new ArrayBuffer(1); try { structuredClone([b, () => {}], { transfer: [b] }); } catch { return b.detached; }"
        ),
        "false"
    );
}

#[test]
fn errors_keep_name_message_stack_and_cause() {
    holds(&[
        "const e = new TypeError('m', { cause: { a: 1 } }), c = structuredClone(e); return c instanceof TypeError && c.message === 'm' && c.stack === e.stack && c.cause.a === 1 && !Object.keys(c).length",
        "[Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].every(C => structuredClone(new C('x')).constructor === C)",
        "const e = new Error('x'); e.cause = e; const c = structuredClone(e); return c.cause === c",
        "const c = structuredClone(new Error()); return !Object.hasOwn(c, 'message') && !Object.hasOwn(c, 'cause')",
        "class Mine extends RangeError {} const c = structuredClone(new Mine('m')); return c instanceof RangeError && !(c instanceof Mine)",
        "const e = new Error('x'); e.extra = 1; return !('extra' in structuredClone(e))",
        "const c = structuredClone(new DOMException('m', 'AbortError')); return c instanceof DOMException && c.name === 'AbortError' && c.message === 'm'",
    ]);
}

#[test]
fn what_cannot_be_cloned_is_named_as_v8_names_it() {
    for (value, text) in [
        ("() => {}", None),
        ("Symbol('x')", Some("Symbol(x)")),
        ("{ a: Symbol('y') }", Some("Symbol(y)")),
        ("new WeakMap()", Some("#<WeakMap>")),
        ("Promise.resolve()", Some("#<Promise>")),
        ("new Proxy({}, {})", Some("#<Object>")),
        ("Object(Symbol('x'))", Some("[object Symbol]")),
        ("new WeakRef({})", Some("#<WeakRef>")),
        ("new Headers()", Some("#<Headers>")),
        ("new ReadableStream()", Some("#<ReadableStream>")),
        ("[new URL('http://a')]", Some("#<URL>")),
        ("new (class Mine extends EventTarget {})", Some("#<Mine>")),
        ("[].values()", None),
    ] {
        let error = fails(&format!("structuredClone({value})"));
        assert!(error.starts_with("DataCloneError: ") && error.ends_with(" could not be cloned."), "{error}");
        if let Some(text) = text {
            assert_eq!(error, format!("DataCloneError: {text} could not be cloned."));
        }
    }
    assert!(fails("structuredClone()").starts_with("TypeError"));
    assert_eq!(fails("structuredClone({ get x() { throw new RangeError('mine'); } })"), "RangeError: mine");
    assert!(
        fails("let deep = 1; for (let i = 0; i < 10001; i++) deep = [deep]; structuredClone(deep)")
            .contains("more than 10000")
    );
    assert!(
        fails("structuredClone(new ArrayBuffer(33 * 1024 * 1024))").contains("larger than 33554432 bytes")
    );
}

#[test]
fn a_handler_that_replaces_built_in_methods_changes_nothing() {
    assert_eq!(
        run(
            "structuredClone(1); const given = { x: 1, m: new Map([[1, 2]]), s: new Set([3]), d: new Date(4) }; Map.prototype.set = Map.prototype.forEach = Set.prototype.add = Date.prototype.getTime = () => { throw 1; }; Object.defineProperty(Object.prototype, 'x', { set() { throw 2; }, configurable: true }); const c = structuredClone(given); delete Object.prototype.x; return [c.x, c.m.get(1), c.s.has(3), +c.d]"
        ),
        "[1,2,true,4]"
    );
}
