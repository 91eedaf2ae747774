//! Streams in a real isolate, behaviour by behaviour. The Web Platform Tests run outside of this repository; these hold
//! what handlers and bodies rely on.

use rquickjs::{Context, Function, Object, Runtime};

use super::{PART, TRANSFORMS_PART, WRITABLE_PART};
use crate::foreign::Bytecode;
use crate::prelude::Part;
use crate::testing::{fails, run};

mod bytes;
mod codecs;
mod platform;
mod transforms;

#[test]
fn a_default_stream_gives_its_chunks_in_order_and_ends() {
    let body = "
        const stream = new ReadableStream({ start(c) { c.enqueue('a'); c.enqueue('b'); c.close(); } });
        const reader = stream.getReader();
        return [await reader.read(), await reader.read(), await reader.read()];";
    assert_eq!(run(body), r#"[{"value":"a","done":false},{"value":"b","done":false},{"done":true}]"#);
}

#[test]
fn a_source_is_pulled_as_far_as_the_high_water_mark() {
    let body = "
        let pulls = 0;
        const stream = new ReadableStream({ pull(c) { c.enqueue(++pulls); } }, { highWaterMark: 3 });
        await new Promise((resolve) => { let n = 0; (function spin() { ++n > 50 ? resolve() : Promise.resolve().then(spin); })(); });
        return pulls;";
    assert_eq!(run(body), "3");
}

#[test]
fn a_locked_stream_refuses_a_second_reader() {
    let body = "const s = new ReadableStream(); s.getReader(); s.getReader();";
    assert_eq!(fails(body), "TypeError: This ReadableStream is currently locked to a reader.");
}

#[test]
fn an_error_of_the_source_reaches_the_reader() {
    assert_eq!(
        fails("await new ReadableStream({ pull() { throw new RangeError('broken'); } }).getReader().read();"),
        "RangeError: broken"
    );
}

#[test]
fn cancel_tells_the_source_why() {
    let body = "
        let seen;
        await new ReadableStream({ cancel(reason) { seen = reason; } }).cancel('enough');
        return seen;";
    assert_eq!(run(body), "enough");
}

#[test]
fn a_released_reader_rejects_its_pending_read() {
    let body = "
        const reader = new ReadableStream().getReader();
        const pending = reader.read();
        reader.releaseLock();
        await pending;";
    assert_eq!(fails(body), "TypeError: This ReadableStream reader has been released.");
}

#[test]
fn iteration_cancels_unless_it_is_asked_not_to() {
    let body = "
        const seen = [];
        for (const preventCancel of [false, true]) {
            const stream = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel() { seen.push('cancelled'); } });
            for await (const chunk of stream.values({ preventCancel })) { seen.push(chunk); break; }
            seen.push(stream.locked);
        }
        return seen;";
    assert_eq!(run(body), r#"[1,"cancelled",false,1,false]"#);
}

#[test]
fn from_takes_iterables_of_both_kinds() {
    let body = "
        async function* later() { yield 1; yield 2; }
        const seen = [];
        for (const iterable of [later(), [3, Promise.resolve(4)], 'ab']) {
            for await (const chunk of ReadableStream.from(iterable)) seen.push(chunk);
        }
        return seen;";
    assert_eq!(run(body), r#"[1,2,3,4,"a","b"]"#);
}

#[test]
fn both_branches_of_a_tee_see_every_chunk() {
    let body = "
        const [a, b] = ReadableStream.from([1, 2, 3]).tee();
        const all = async (stream) => { const seen = []; for await (const chunk of stream) seen.push(chunk); return seen; };
        return await Promise.all([all(a), all(b)]);";
    assert_eq!(run(body), "[[1,2,3],[1,2,3]]");
}

#[test]
fn a_pipe_carries_chunks_and_closes_the_destination() {
    let body = "
        const seen = [];
        const sink = new WritableStream({ write(c) { seen.push(c); }, close() { seen.push('closed'); } });
        await ReadableStream.from([1, 2]).pipeTo(sink);
        return seen;";
    assert_eq!(run(body), r#"[1,2,"closed"]"#);
}

#[test]
fn a_pipe_propagates_errors_unless_it_is_asked_not_to() {
    let body = "
        const seen = [];
        const broken = () => new ReadableStream({ start(c) { c.error('broken'); } });
        const sink = (name) => new WritableStream({ abort(reason) { seen.push(name + reason); } });
        await broken().pipeTo(sink('first ')).catch((e) => seen.push('rejected ' + e));
        await broken().pipeTo(sink('second '), { preventAbort: true }).catch((e) => seen.push('rejected ' + e));
        const source = new ReadableStream({ cancel(reason) { seen.push('cancelled ' + reason); } });
        await source.pipeTo(new WritableStream({ start(c) { c.error('full'); } })).catch((e) => seen.push('rejected ' + e));
        return seen;";
    assert_eq!(
        run(body),
        r#"["first broken","rejected broken","rejected broken","cancelled full","rejected full"]"#
    );
}

#[test]
fn back_pressure_of_the_destination_stops_the_source() {
    let body = "
        let pulls = 0;
        const source = new ReadableStream({ pull(c) { c.enqueue(++pulls); } }, { highWaterMark: 0 });
        source.pipeTo(new WritableStream({ write: () => new Promise(() => {}) }, { highWaterMark: 2 }));
        await new Promise((resolve) => { let n = 0; (function spin() { ++n > 100 ? resolve() : Promise.resolve().then(spin); })(); });
        return pulls;";
    assert_eq!(run(body), "2");
}

#[test]
fn writes_are_one_at_a_time_and_in_order() {
    let body = "
        const seen = [];
        const writer = new WritableStream({
            async write(chunk) { seen.push('begin ' + chunk); await undefined; seen.push('end ' + chunk); },
        }).getWriter();
        writer.write(1); writer.write(2);
        await writer.close();
        return seen;";
    assert_eq!(run(body), r#"["begin 1","end 1","begin 2","end 2"]"#);
}

#[test]
fn an_abort_rejects_the_writes_that_wait() {
    let body = "
        const writer = new WritableStream().getWriter();
        const waiting = writer.write(1);
        await writer.abort(new RangeError('stop'));
        await waiting;";
    assert_eq!(fails(body), "RangeError: stop");
}

#[test]
fn methods_check_what_they_are_called_on() {
    assert_eq!(fails("ReadableStream.prototype.getReader.call({})"), "TypeError: Illegal invocation");
    assert_eq!(fails("await WritableStream.prototype.close.call({})"), "TypeError: Illegal invocation");
    assert_eq!(fails("new ReadableStreamDefaultController()"), "TypeError: Illegal constructor");
}

#[test]
fn classes_look_as_web_idl_has_them() {
    let body = "
        const stream = new ReadableStream();
        return [String(stream), Object.keys(stream), Object.keys(ReadableStream.prototype).sort().join(),
            ReadableStream.prototype[Symbol.asyncIterator] === ReadableStream.prototype.values, ReadableStream.length,
            Object.keys(globalThis).includes('ReadableStream')];";
    assert_eq!(
        run(body),
        r#"["[object ReadableStream]",[],"cancel,getReader,locked,pipeThrough,pipeTo,tee,values",true,0,false]"#
    );
}

#[test]
fn a_patched_object_prototype_does_not_reach_inside() {
    let body = "
        for (const name of ['highWaterMark', 'size', 'pull', 'cancel', 'start', 'type', 'mode']) {
            Object.defineProperty(Object.prototype, name, { configurable: true, set() { throw new Error(name); } });
        }
        const [a] = ReadableStream.from([1]).tee();
        const value = (await a.pipeThrough(new TransformStream()).getReader().read()).value;
        for (const name of ['highWaterMark', 'size', 'pull', 'cancel', 'start', 'type', 'mode']) delete Object.prototype[name];
        return value;";
    assert_eq!(run(body), "1");
}

/// Bytes that an isolate's heap grows by when a part is loaded: a little above what is measured.
const LOADED_BYTES_MAX: [(Part, i64); 3] =
    [(PART, 164 * 1024), (WRITABLE_PART, 98 * 1024), (TRANSFORMS_PART, 50 * 1024)];

#[test]
fn parts_of_streams_take_little_memory() {
    let compiler = Runtime::new().unwrap();
    let compiled = Context::full(&compiler).unwrap().with(|ctx| {
        LOADED_BYTES_MAX.map(|(part, _)| Bytecode::compile(&ctx, part.name, part.source).unwrap())
    });
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    let used = || {
        runtime.run_gc();
        runtime.memory_usage().malloc_size
    };
    context.with(|ctx| ctx.eval::<(), _>("globalThis.internals = { load() {} };")).unwrap();
    for (bytecode, (part, max)) in compiled.iter().zip(LOADED_BYTES_MAX) {
        let before = used();
        context.with(|ctx| {
            let (module, evaluated) = bytecode.evaluate(&ctx).unwrap();
            evaluated.finish::<()>().unwrap();
            let main: Function<'_> = module.get("default").unwrap();
            let internals: Object<'_> = ctx.globals().get("internals").unwrap();
            let made: Object<'_> = main.call(((part.natives)(&ctx).unwrap(), internals)).unwrap();
            ctx.globals().set(part.name, made).unwrap();
        });
        let grown = used() - before;
        println!("{} {grown} bytes", part.name);
        assert!(grown > 0 && grown < max, "{} takes {grown} bytes", part.name);
    }
}

#[test]
fn isolates_may_be_dropped_with_streams_in_every_state() {
    let states = [
        "globalThis.kept = new ReadableStream({ pull: () => new Promise(() => {}) }).getReader(); kept.read();",
        "new ReadableStream({ type: 'bytes', pull() {} }).getReader({ mode: 'byob' }).read(new Uint8Array(8));",
        "globalThis.kept = new WritableStream({ write: () => new Promise(() => {}) }).getWriter(); kept.write(1); kept.write(2);",
        "globalThis.kept = ReadableStream.from([1]).pipeThrough(new TransformStream());",
        "globalThis.kept = new CompressionStream('gzip'); kept.writable.getWriter().write(new Uint8Array(100000));",
        "globalThis.kept = new crypto.DigestStream('SHA-256'); kept.getWriter().write(new Uint8Array(10));",
        "globalThis.kept = new ReadableStream({ start(c) { c.enqueue(1); } }).tee();",
    ];
    for jobs in 0..8 {
        for state in states {
            assert_eq!(
                run(&format!("{state} for (let n = 0; n < {jobs}; n++) await undefined; return 'dropped';")),
                "dropped"
            );
        }
    }
}
