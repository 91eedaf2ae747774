//! Byte streams: reads into memory of the reader, and what bodies use of streams from inside.

use crate::testing::{fails, inside, run};

#[test]
fn a_byob_read_fills_the_readers_memory_and_takes_it_over() {
    let body = "
        const stream = new ReadableStream({ type: 'bytes', start(c) { c.enqueue(new Uint8Array([1, 2, 3, 4, 5])); c.close(); } });
        const reader = stream.getReader({ mode: 'byob' });
        const mine = new Uint8Array(3);
        const first = await reader.read(mine);
        const second = await reader.read(new Uint8Array(3));
        const last = await reader.read(new Uint8Array(3));
        return [[...first.value], mine.length, [...second.value], last.done, last.value.length];";
    assert_eq!(run(body), "[[1,2,3],0,[4,5],true,0]");
}

#[test]
fn a_source_writes_into_the_request_of_the_reader() {
    let body = "
        const stream = new ReadableStream({ type: 'bytes', pull(c) { c.byobRequest.view[0] = 7; c.byobRequest.respond(1); } });
        const { value } = await stream.getReader({ mode: 'byob' }).read(new Uint8Array(4));
        return [[...value], value.buffer.byteLength];";
    assert_eq!(run(body), "[[7],4]");
}

#[test]
fn a_read_with_a_minimum_waits_for_it() {
    let body = "
        let next = 0;
        const make = () => new ReadableStream({ type: 'bytes', pull(c) { c.enqueue(new Uint8Array([++next])); } });
        const first = await make().getReader({ mode: 'byob' }).read(new Uint8Array(8), { min: 3 });
        const second = await make().getReader({ mode: 'byob' }).readAtLeast(2, new Uint8Array(8));
        return [[...first.value], [...second.value]];";
    assert_eq!(run(body), "[[1,2,3],[4,5]]");
}

#[test]
fn auto_allocation_lets_a_default_reader_use_a_source_that_fills_memory() {
    let body = "
        const stream = new ReadableStream({
            type: 'bytes', autoAllocateChunkSize: 16,
            pull(c) { c.byobRequest.view.set([1, 2]); c.byobRequest.respond(2); },
        });
        const { value } = await stream.getReader().read();
        return [[...value], value.buffer.byteLength];";
    assert_eq!(run(body), "[[1,2],16]");
}

#[test]
fn branches_of_a_byte_tee_share_no_memory() {
    let body = "
        const stream = new ReadableStream({ type: 'bytes', start(c) { c.enqueue(new Uint8Array([1, 2])); c.close(); } });
        const [a, b] = stream.tee();
        const first = (await a.getReader({ mode: 'byob' }).read(new Uint8Array(2))).value;
        first.fill(9);
        return [...(await b.getReader().read()).value];";
    assert_eq!(run(body), "[1,2]");
}

#[test]
fn a_default_stream_has_no_byob_reader() {
    assert_eq!(
        fails("new ReadableStream().getReader({ mode: 'byob' })"),
        "TypeError: This ReadableStream does not support BYOB reads."
    );
}

#[test]
fn a_pull_source_becomes_a_byte_stream_that_is_asked_when_someone_reads() {
    let body = "
        const { byteStream, readAll, isDisturbed, isLocked, expectedLength } = internals.streams;
        let asked = 0;
        const chunks = [new Uint8Array([1]), new Uint8Array([2, 3]), undefined];
        const stream = byteStream({ pull: async () => chunks[asked++] }, { length: 3 });
        await undefined;
        const before = [asked, isDisturbed(stream), isLocked(stream), expectedLength(stream)];
        return [before, [...await readAll(stream)], asked, isDisturbed(stream), isLocked(stream)];";
    assert_eq!(inside("streams", body), "[[0,false,false,3],[1,2,3],3,true,false]");
}

#[test]
fn a_byob_read_of_a_pull_source_ends_with_it() {
    let body = "
        const { byteStream, bytesStream } = internals.streams;
        const empty = await byteStream({ pull: async () => undefined }).getReader({ mode: 'byob' }).read(new Uint8Array(2));
        const reader = bytesStream(new Uint8Array([5, 6, 7])).getReader({ mode: 'byob' });
        const some = await reader.read(new Uint8Array(2));
        return [empty.done, empty.value.length, [...some.value], [...(await reader.read(new Uint8Array(2))).value]];";
    assert_eq!(inside("streams", body), "[true,0,[5,6],[7]]");
}

#[test]
fn reading_all_is_bounded_and_cancels_what_is_too_long() {
    let body = "
        let cancelled = false;
        const stream = new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(10)); }, cancel() { cancelled = true; } });
        const error = await internals.streams.readAll(stream, 25).catch((e) => e);
        return [String(error), cancelled];";
    assert_eq!(inside("streams", body), r#"["TypeError: The body is longer than 25 bytes",true]"#);
}

#[test]
fn a_chunk_that_is_no_bytes_fails_the_read_of_a_body() {
    let body = "
        let reason;
        const stream = new ReadableStream({ pull(c) { c.enqueue('text'); }, cancel(r) { reason = r; } });
        const error = await internals.streams.readAll(stream).catch((e) => e);
        return [String(error), reason === error];";
    assert_eq!(inside("streams", body), r#"["TypeError: This ReadableStream did not return bytes.",true]"#);
}

#[test]
fn a_failing_pull_source_fails_its_stream() {
    let body = "await internals.streams.byteStream({ pull: async () => { throw new RangeError('gone'); } }).getReader().read()
        .then(() => 'read', (error) => String(error))";
    assert_eq!(inside("streams", &format!("return {body};")), "RangeError: gone");
}
