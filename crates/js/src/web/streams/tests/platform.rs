//! Streams beside events and encodings: signals, decoders.

use crate::testing::run;

const ALL: &str = "const all = async (stream) => { const seen = []; for await (const chunk of stream) seen.push(chunk); return seen; };";

fn with_all(body: &str) -> String {
    run(&format!("{ALL}{body}"))
}

#[test]
fn a_signal_ends_a_pipe_on_both_sides() {
    let body = "
        const seen = [];
        const source = new ReadableStream({ cancel(reason) { seen.push('cancelled ' + reason); } });
        const sink = new WritableStream({ abort(reason) { seen.push('aborted ' + reason); } });
        const controller = new AbortController();
        const piped = source.pipeTo(sink, { signal: controller.signal });
        await undefined;
        controller.abort('enough');
        await piped.catch((error) => seen.push('rejected ' + error));
        return [...seen, source.locked, sink.locked];";
    assert_eq!(with_all(body), r#"["aborted enough","cancelled enough","rejected enough",false,false]"#);
}

#[test]
fn a_signal_that_is_aborted_already_moves_no_chunk() {
    let body = "
        const seen = [];
        const sink = new WritableStream({ write(chunk) { seen.push(chunk); } });
        const options = { signal: AbortSignal.abort(new RangeError('early')), preventCancel: true, preventAbort: true };
        const source = ReadableStream.from([1, 2]);
        await source.pipeTo(sink, options).catch((error) => seen.push(String(error)));
        return [...seen, (await source.getReader().read()).value];";
    assert_eq!(with_all(body), r#"["RangeError: early",1]"#);
}

#[test]
fn only_a_signal_is_taken_for_one() {
    let body = "
        const outcomes = [];
        for (const signal of [{}, null, Object.create(AbortSignal.prototype)]) {
            await new ReadableStream().pipeTo(new WritableStream(), { signal }).catch((error) => outcomes.push(error.name));
        }
        return outcomes;";
    assert_eq!(with_all(body), r#"["TypeError","TypeError","TypeError"]"#);
}

#[test]
fn a_sink_sees_by_its_signal_that_the_stream_is_aborted() {
    let body = "
        const seen = [];
        let signal;
        const stream = new WritableStream({
            start(controller) { signal = controller.signal; },
            write: () => new Promise((resolve) => signal.addEventListener('abort', () => { seen.push('seen ' + signal.reason); resolve(); })),
        });
        const writer = stream.getWriter();
        const written = writer.write(1).then(() => seen.push('written'), () => seen.push('failed'));
        await undefined;
        await undefined;
        await writer.abort('stop');
        await written;
        return seen;";
    assert_eq!(with_all(body), r#"["seen stop","written"]"#);
}

#[test]
fn text_is_decoded_across_chunks_that_share_a_character() {
    let body = "
        const stream = (...chunks) => ReadableStream.from(chunks.map((chunk) => new Uint8Array(chunk)));
        const decoder = new TextDecoderStream();
        const whole = await all(stream([0xe2, 0x82], [0xac, 0x61], [0xe2]).pipeThrough(decoder));
        const fatal = await all(stream([0xff]).pipeThrough(new TextDecoderStream('utf-8', { fatal: true }))).catch((e) => e.name);
        const text = await all(ReadableStream.from(['x']).pipeThrough(new TextDecoderStream())).catch((e) => e.name);
        return [whole.join(''), fatal, text, decoder.encoding, decoder.fatal, new TextDecoderStream('latin1').encoding];";
    assert_eq!(
        with_all(body),
        "[\"€a\u{fffd}\",\"TypeError\",\"TypeError\",\"utf-8\",false,\"windows-1252\"]"
    );
}
