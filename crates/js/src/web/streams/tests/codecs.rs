//! Compression and decompression as streams.

use crate::testing::{fails, run};

const HELPERS: &str = "
    const all = async (stream) => { const seen = []; for await (const chunk of stream) seen.push(chunk); return seen; };
    const packed = (format, ...chunks) => all(ReadableStream.from(chunks).pipeThrough(new CompressionStream(format)));
    const unpacked = (format, chunks) => all(ReadableStream.from(chunks).pipeThrough(new DecompressionStream(format)));
    const text = (chunks) => chunks.map((chunk) => String.fromCharCode(...chunk)).join('');";

#[test]
fn what_is_compressed_decompresses() {
    let body = "
        const seen = [];
        for (const format of ['gzip', 'deflate', 'deflate-raw']) {
            const chunks = await packed(format, new Uint8Array([104, 101]), new Uint8Array([108, 108, 111]).buffer);
            seen.push(text(await unpacked(format, chunks)));
        }
        return seen;";
    assert_eq!(run(&format!("{HELPERS}{body}")), r#"["hello","hello","hello"]"#);
}

#[test]
fn a_bomb_is_decompressed_only_as_far_as_somebody_reads() {
    let body = "
        const chunks = await packed('gzip', new Uint8Array(4 << 20));
        const stream = ReadableStream.from(chunks).pipeThrough(new DecompressionStream('gzip'));
        const reader = stream.getReader();
        const first = (await reader.read()).value.length;
        await reader.cancel();
        return [chunks.reduce((sum, chunk) => sum + chunk.length, 0) < 8192, first];";
    assert_eq!(run(&format!("{HELPERS}{body}")), "[true,65536]");
}

#[test]
fn wrong_data_is_a_type_error() {
    for (data, message) in [
        ("[1, 2, 3]", "Decompression failed."),
        ("[0x1f, 0x8b]", "Called close() on a decompression stream with incomplete data"),
        (
            "[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]",
            "Trailing bytes after end of compressed data",
        ),
    ] {
        let body = format!("{HELPERS} await unpacked('gzip', [new Uint8Array({data})]);");
        assert_eq!(fails(&body), format!("TypeError: {message}"));
    }
}

#[test]
fn only_the_formats_of_the_standard_and_only_bytes_and_text_are_taken() {
    assert_eq!(
        fails("new CompressionStream('br')"),
        "TypeError: The compression format must be either 'deflate', 'deflate-raw' or 'gzip'."
    );
    assert_eq!(
        fails(&format!("{HELPERS} await packed('gzip', 5);")),
        "TypeError: This TransformStream is being used as a byte stream, but received an object of non-ArrayBuffer/ArrayBufferView type on its writable side."
    );
}

#[test]
fn a_reader_that_goes_away_during_the_flush_does_not_hang_the_writer() {
    let body = "
        const { readable, writable } = new CompressionStream('gzip');
        const writer = writable.getWriter();
        const reader = readable.getReader();
        const first = reader.read();
        const noise = Uint8Array.from({ length: 1 << 20 }, (_, index) => (index * index * 31 + (index >> 3)) & 255);
        writer.write(noise);
        const closed = writer.close().then(() => 'closed', () => 'failed');
        await first;
        await reader.cancel('enough');
        return await closed;";
    assert!(["closed", "failed"].contains(&run(body).as_str()));
}
