//! Codecs, in Rust: formats round trip, what is wrong is refused, and no output is longer than its bound.

use super::{Codec, CodecError, Decoder, Encoder, Format, OUTPUT_BYTES_MAX};

const FORMATS: [Format; 3] = [Format::Deflate, Format::DeflateRaw, Format::Gzip];

/// `hello` by `gzip --name`: a header with a name.
const GZIP_WITH_NAME: &[u8] = &[
    0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3, b'h', b'.', b't', b'x', b't', 0, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0,
    0x86, 0xa6, 0x10, 0x36, 5, 0, 0, 0,
];

fn drain(codec: &mut impl Codec, output: &mut Vec<u8>) -> Result<(), CodecError> {
    while let Some(piece) = codec.next()? {
        assert!(
            !piece.is_empty() && piece.len() <= OUTPUT_BYTES_MAX + 16,
            "a piece of {} bytes",
            piece.len()
        );
        output.extend_from_slice(&piece);
    }
    Ok(())
}

fn through(codec: &mut impl Codec, input: &[u8], chunk_bytes: usize) -> Result<Vec<u8>, CodecError> {
    let mut output = Vec::new();
    for chunk in input.chunks(chunk_bytes) {
        codec.push(chunk)?;
        drain(codec, &mut output)?;
    }
    codec.finish()?;
    drain(codec, &mut output)?;
    Ok(output)
}

fn compressed(format: Format, input: &[u8]) -> Vec<u8> {
    through(&mut Encoder::new(format), input, 1 << 20).unwrap()
}

fn decompressed(format: Format, input: &[u8], chunk_bytes: usize) -> Result<Vec<u8>, CodecError> {
    through(&mut Decoder::new(format), input, chunk_bytes)
}

/// Bytes that deflate can shorten a little.
fn sample(len: usize) -> Vec<u8> {
    (0..len).map(|index| u8::try_from((index * index / 7 + index) % 251).unwrap()).collect()
}

#[test]
fn every_format_gives_back_what_went_in_whatever_the_chunks() {
    for format in FORMATS {
        for len in [0, 1, 1000, 300_000] {
            let input = sample(len);
            let packed = through(&mut Encoder::new(format), &input, 777).unwrap();
            assert_eq!(decompressed(format, &packed, 1 << 20).unwrap(), input, "{format:?} {len}");
            assert_eq!(decompressed(format, &packed, 1).unwrap(), input, "{format:?} {len} byte by byte");
        }
    }
}

#[test]
fn a_small_input_that_grows_a_thousandfold_comes_in_bounded_pieces() {
    let zeros = vec![0; 8 << 20];
    for format in FORMATS {
        let packed = compressed(format, &zeros);
        assert!(packed.len() < 16 << 10);
        assert_eq!(decompressed(format, &packed, 1 << 20).unwrap().len(), zeros.len());
    }
}

#[test]
fn a_gzip_header_may_have_a_name_and_may_come_byte_by_byte() {
    assert_eq!(decompressed(Format::Gzip, GZIP_WITH_NAME, 1).unwrap(), b"hello");
    assert_eq!(decompressed(Format::Gzip, GZIP_WITH_NAME, 1000).unwrap(), b"hello");
}

#[test]
fn an_input_that_ends_early_is_truncated() {
    for format in FORMATS {
        let packed = compressed(format, &sample(5000));
        for cut in [0, 1, 5, packed.len() - 1] {
            assert_eq!(
                decompressed(format, &packed[..cut], 100),
                Err(CodecError::Truncated),
                "{format:?} {cut}"
            );
        }
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    for format in FORMATS {
        let mut packed = compressed(format, b"hello");
        packed.push(0);
        assert_eq!(decompressed(format, &packed, 1000), Err(CodecError::Trailing), "{format:?}");
        assert_eq!(decompressed(format, &packed, 1), Err(CodecError::Trailing), "{format:?}");
    }
}

#[test]
fn a_wrong_checksum_or_length_is_refused() {
    let packed = compressed(Format::Gzip, b"hello");
    for index in packed.len() - 8..packed.len() {
        let mut wrong = packed.clone();
        wrong[index] ^= 1;
        assert_eq!(decompressed(Format::Gzip, &wrong, 1000), Err(CodecError::Checksum), "byte {index}");
    }
    let packed = compressed(Format::Deflate, b"hello");
    for index in packed.len() - 4..packed.len() {
        let mut wrong = packed.clone();
        wrong[index] ^= 1;
        assert_eq!(decompressed(Format::Deflate, &wrong, 1000), Err(CodecError::Corrupt), "byte {index}");
    }
}

#[test]
fn a_wrong_header_is_refused_at_once() {
    assert_eq!(decompressed(Format::Gzip, b"x", 1), Err(CodecError::GzipHeader));
    let mut reserved = GZIP_WITH_NAME.to_vec();
    reserved[3] |= 0x80;
    assert_eq!(decompressed(Format::Gzip, &reserved, 1000), Err(CodecError::GzipHeader));
    assert_eq!(decompressed(Format::Deflate, b"hello", 1000), Err(CodecError::Corrupt));
    assert_eq!(decompressed(Format::DeflateRaw, &[0xff; 64], 1000), Err(CodecError::Corrupt));
}

#[test]
fn a_gzip_header_without_an_end_fills_no_memory() {
    let mut endless = GZIP_WITH_NAME[..10].to_vec();
    endless.extend(std::iter::repeat_n(b'x', 200 << 10));
    assert_eq!(decompressed(Format::Gzip, &endless, 4096), Err(CodecError::GzipHeader));
}
