//! Transform streams, and those of workerd.

use crate::testing::{fails, run};

const ALL: &str = "
    const all = async (stream) => { const seen = []; for await (const chunk of stream) seen.push(chunk); return seen; };
    const bytes = (...list) => new Uint8Array(list);";

fn with_all(body: &str) -> String {
    run(&format!("{ALL}{body}"))
}

#[test]
fn a_transform_may_give_any_number_of_chunks() {
    let body = "
        const twice = new TransformStream({
            transform(chunk, c) { c.enqueue(chunk); c.enqueue(chunk * 10); },
            flush(c) { c.enqueue('end'); },
        });
        return await all(ReadableStream.from([1, 2]).pipeThrough(twice));";
    assert_eq!(with_all(body), r#"[1,10,2,20,"end"]"#);
}

#[test]
fn an_error_of_a_transform_breaks_both_sides() {
    let body = "
        const broken = new TransformStream({ transform() { throw new RangeError('broken'); } });
        const writer = broken.writable.getWriter();
        const outcomes = await Promise.allSettled([broken.readable.getReader().read(), writer.write(1), writer.closed]);
        return outcomes.map((outcome) => String(outcome.reason));";
    assert_eq!(with_all(body), r#"["RangeError: broken","RangeError: broken","RangeError: broken"]"#);
}

#[test]
fn cancelling_the_readable_side_tells_the_transformer() {
    let body = "
        let seen;
        await new TransformStream({ cancel(reason) { seen = reason; } }).readable.cancel('enough');
        return seen;";
    assert_eq!(with_all(body), "enough");
}

#[test]
fn an_identity_stream_passes_bytes_and_can_be_read_into_memory() {
    let body = "
        const { readable, writable } = new IdentityTransformStream();
        const writer = writable.getWriter();
        const written = writer.write(bytes(1, 2, 3)).then(() => writer.close());
        const reader = readable.getReader({ mode: 'byob' });
        const first = await reader.read(new Uint8Array(2));
        const second = await reader.read(new Uint8Array(2));
        const last = await reader.read(new Uint8Array(2));
        await written;
        return [[...first.value], [...second.value], last.done];";
    assert_eq!(with_all(body), "[[1,2],[3],true]");
}

#[test]
fn an_identity_stream_takes_text_as_its_utf8_and_nothing_else() {
    let body = "
        const { readable, writable } = new IdentityTransformStream();
        const writer = writable.getWriter();
        writer.write('h\u{e9}'); writer.close();
        return (await all(readable)).map((chunk) => [...chunk]);";
    assert_eq!(with_all(body), "[[104,195,169]]");
    let body = "const { readable, writable } = new IdentityTransformStream(); readable.getReader().read().catch(() => {});
        await writable.getWriter().write(5);";
    assert!(fails(body).starts_with(
        "TypeError: This TransformStream is being used as a byte stream, but received an object"
    ));
}

#[test]
fn a_write_to_an_identity_stream_ends_when_all_of_it_has_been_read() {
    let body = "
        const { readable, writable } = new IdentityTransformStream();
        let isDone = false;
        writable.getWriter().write(bytes(1, 2, 3, 4)).then(() => { isDone = true; });
        const reader = readable.getReader({ mode: 'byob' });
        const settle = async () => { for (let n = 0; n < 50; n++) await undefined; };
        await reader.read(new Uint8Array(2));
        await settle();
        const half = isDone;
        await reader.read(new Uint8Array(2));
        await settle();
        return [half, isDone];";
    assert_eq!(with_all(body), "[false,true]");
}

#[test]
fn a_fixed_length_stream_wants_exactly_its_length() {
    let body = "
        const outcomes = [];
        for (const lengths of [[2, 1], [2], [2, 2]]) {
            const { readable, writable } = new FixedLengthStream(3);
            const writer = writable.getWriter();
            const read = all(readable).then((chunks) => chunks.map((chunk) => chunk.length).join(), (error) => String(error));
            for (const length of lengths) writer.write(new Uint8Array(length)).catch(() => {});
            writer.close().catch(() => {});
            outcomes.push(await read);
        }
        return outcomes;";
    assert_eq!(
        with_all(body),
        r#"["2,1","TypeError: FixedLengthStream did not see all expected bytes before close().","TypeError: Attempt to write too many bytes through a FixedLengthStream."]"#
    );
}

#[test]
fn text_is_encoded_across_a_pair_of_surrogates_that_two_chunks_share() {
    let body = r#"
        const chunks = await all(ReadableStream.from(["a\ud83d", "\ude00", "\ud83d"]).pipeThrough(new TextEncoderStream()));
        return chunks.flatMap((chunk) => [...chunk]);"#;
    assert_eq!(with_all(body), "[97,240,159,152,128,239,191,189]");
}

#[test]
fn queuing_strategies_measure_chunks() {
    let body = "
        const count = new CountQueuingStrategy({ highWaterMark: 2 });
        const length = new ByteLengthQueuingStrategy({ highWaterMark: 10 });
        return [count.highWaterMark, count.size(bytes(1, 2)), length.highWaterMark, length.size(bytes(1, 2))];";
    assert_eq!(with_all(body), "[2,1,10,2]");
}

#[test]
fn classes_of_the_platform_have_no_parent_that_a_handler_could_replace() {
    let body = "
        const classes = [CompressionStream, DecompressionStream, FixedLengthStream, IdentityTransformStream, TextEncoderStream];
        const stream = new CompressionStream('gzip');
        const { get } = Object.getOwnPropertyDescriptor(CompressionStream.prototype, 'readable');
        let error;
        try { get.call({}); } catch (thrown) { error = String(thrown); }
        return [classes.every((one) => Object.getPrototypeOf(one) === Function.prototype), String(stream),
            stream.readable === stream.readable, stream instanceof CompressionStream, error];";
    assert_eq!(run(body), r#"[true,"[object CompressionStream]",true,true,"TypeError: Illegal invocation"]"#);
}
