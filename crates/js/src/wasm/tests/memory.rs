//! The buffer of a memory: the same bytes on both sides, whatever happens to either.

use std::sync::Arc;
use std::time::Duration;

use super::{MODULE, application, isolate, isolate_with, limits, run, run_in};
use crate::testing::at;
use crate::{Isolate, IsolateKind, Limits};

#[test]
fn both_sides_see_the_same_bytes() {
    assert_eq!(run("const e = make(); new Int32Array(e.memory.buffer)[2] = 99; return e.load(8)"), "99");
    assert_eq!(run("const { memory } = make(); return memory.buffer === memory.buffer"), "true");
}

#[test]
fn growing_detaches_the_buffer_wherever_it_happens() {
    let seen = "[buffer.byteLength, view.length, e.memory.buffer.byteLength]";
    let begin = "const e = make(); const { buffer } = e.memory; const view = new Uint8Array(buffer);";
    assert_eq!(run(&format!("{begin} e.memory.grow(1); return {seen}")), "[0,0,131072]");
    assert_eq!(run(&format!("{begin} e.grow(1); return {seen}")), "[0,0,131072]");
    assert_eq!(run(&format!("{begin} e.memory.grow(0); return {seen}")), "[0,0,65536]");
    assert_eq!(run(&format!("{begin} e.grow(0); return {seen}")), "[65536,65536,65536]");
    // Within an import that the engine called.
    let body = "let view; const e = make(() => { view = new Uint8Array(e.memory.buffer); e.grow(1); view[0] = 1; return view.length; });
        return [e.call(1), e.memory.buffer.byteLength]";
    assert_eq!(run(body), "[0,131072]");
}

#[test]
fn what_grew_keeps_its_bytes_and_begins_with_zeros() {
    let body = "const e = make(); new Uint8Array(e.memory.buffer)[5] = 7; e.grow(3);
        const view = new Uint8Array(e.memory.buffer); return [view[5], view[65536], view[262143], view.length]";
    assert_eq!(run(body), "[7,0,0,262144]");
}

#[test]
fn nobody_takes_a_buffer_over() {
    assert_eq!(run("return fails(() => make().memory.buffer.transfer()).split(':')[0]"), "TypeError");
    assert_eq!(
        run(
            "const { buffer } = make().memory; return fails(() => structuredClone(buffer, { transfer: [buffer] })).split(':')[0]"
        ),
        "DataCloneError"
    );
    assert_eq!(run("return new ArrayBuffer(3).transfer(2).byteLength"), "2");
    assert_eq!(run("WebAssembly; return new ArrayBuffer(3).transfer(2).byteLength"), "2");
}

#[test]
fn a_buffer_that_was_taken_over_all_the_same_shows_the_memory_and_never_what_is_gone() {
    // The method as it was before WebAssembly was touched.
    let main = "const { transfer } = ArrayBuffer.prototype;
        globalThis.take = buffer => new Uint8Array(transfer.call(buffer));
        const { default: module } = await import('./m.wasm');
        globalThis.make = () => new WebAssembly.Instance(module, { env: { f() {} } }).exports;";
    let code = Arc::new(application(main, MODULE));
    let mut isolate = Isolate::new(&code, IsolateKind::Worker, limits(), at(0)).unwrap();
    let body = "const e = make(); globalThis.taken = take(e.memory.buffer); taken[1] = 4; e.grow(100);
        return [taken.length, taken[1], e.load(0), new Uint8Array(e.memory.buffer)[1], e.memory.buffer.byteLength]";
    assert_eq!(run_in(&mut isolate, body), "[65536,4,1024,4,6619136]");
    run_in(&mut isolate, "make(); return 1");
    isolate.runtime.run_gc();
    assert_eq!(run_in(&mut isolate, "taken[2] = 1; return [taken[1], taken[2]]"), "[4,1]");
}

#[test]
fn views_outlive_their_instance_and_their_isolate() {
    let mut isolate = isolate();
    run_in(&mut isolate, "globalThis.view = new Uint8Array(make().memory.buffer); view[3] = 8; return 1");
    // Another turn, so that the group of the first is held by its buffer alone.
    run_in(&mut isolate, "make(); return 1");
    isolate.runtime.run_gc();
    assert_eq!(run_in(&mut isolate, "view[4] = 1; return [view[3], view.length]"), "[8,65536]");
    drop(isolate);
}

#[test]
fn an_isolate_is_dropped_in_every_state() {
    for body in [
        "globalThis.kept = make(); kept.memory.grow(1); return 1",
        "globalThis.kept = new Uint8Array(make().memory.buffer); return 1",
        "const e = make(() => e); globalThis.kept = e.ref; e.ref(e); return 1",
        "const e = make(() => { throw e }); try { e.call(1) } catch (error) { globalThis.kept = error } return 1",
        "await new Promise(() => { globalThis.kept = make(); });",
        "make(() => { for (;;); }).call(1)",
    ] {
        let limits = Limits { turn: Duration::from_millis(100), ..limits() };
        let mut isolate = isolate_with(MODULE, limits);
        isolate.probe(at(0), body);
        drop(isolate);
    }
}
