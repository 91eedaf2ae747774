//! Content codings of HTTP (RFC 9110, 8.4.1), for embedders that decode what a server answers.

use super::decode::Decoder;
use super::{Codec as _, CodecError, Format};

/// Why an encoded body cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// It is not what its `Content-Encoding` says, or is damaged.
    #[error("the body is not what its `Content-Encoding` says, or is damaged")]
    Corrupt,
    /// It ends in the middle.
    #[error("the encoded body ends in the middle")]
    Truncated,
}

impl From<CodecError> for ContentError {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Truncated => Self::Truncated,
            CodecError::Corrupt | CodecError::GzipHeader | CodecError::Checksum | CodecError::Trailing => {
                Self::Corrupt
            }
        }
    }
}

/// Decodes one body.
pub struct ContentDecoder {
    is_gzip: bool,
    /// Made when the first byte is there: `deflate` is a zlib stream, and some servers send a bare one.
    decoder: Option<Decoder>,
}

impl std::fmt::Debug for ContentDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentDecoder").field("is_gzip", &self.is_gzip).finish_non_exhaustive()
    }
}

impl ContentDecoder {
    /// A decoder for a value of `Content-Encoding`; none where the coding is not one of `gzip` and `deflate`.
    #[must_use]
    pub fn new(coding: &str) -> Option<Self> {
        let coding = coding.trim().to_ascii_lowercase();
        let is_gzip = match coding.as_str() {
            "gzip" | "x-gzip" => true,
            "deflate" => false,
            _ => return None,
        };
        Some(Self { is_gzip, decoder: None })
    }

    /// Takes the next bytes of the body; call [`ContentDecoder::next`] until it has nothing more.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(&first) = bytes.first() else { return };
        let decoder = self.decoder.get_or_insert_with(|| {
            // RFC 1950: the low half of the first byte is 8, and its high half at most 7.
            let is_zlib = first & 0x0f == 8 && first >> 4 <= 7;
            Decoder::new(match (self.is_gzip, is_zlib) {
                (true, _) => Format::Gzip,
                (false, true) => Format::Deflate,
                (false, false) => Format::DeflateRaw,
            })
        });
        decoder.push(bytes).expect("a decoder takes whatever comes");
    }

    /// The next decoded bytes, at most 64 KiB and never empty; `None` until more is pushed.
    ///
    /// # Errors
    /// [`ContentError::Corrupt`].
    #[expect(clippy::should_implement_trait, reason = "it fails, and goes on after None")]
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, ContentError> {
        match &mut self.decoder {
            Some(decoder) => Ok(decoder.next()?),
            None => Ok(None),
        }
    }

    /// The body has ended. One without any byte is an empty one.
    ///
    /// # Errors
    /// [`ContentError::Truncated`].
    pub fn finish(&mut self) -> Result<(), ContentError> {
        match &mut self.decoder {
            Some(decoder) => Ok(decoder.finish()?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn decode(coding: &str, bytes: &[u8], piece: usize) -> Result<Vec<u8>, ContentError> {
        let mut decoder = ContentDecoder::new(coding).unwrap();
        let mut out = Vec::new();
        for piece in bytes.chunks(piece) {
            decoder.push(piece);
            while let Some(more) = decoder.next()? {
                out.extend(more);
            }
        }
        decoder.finish().map(|()| out)
    }

    #[test]
    fn each_coding_is_decoded_in_pieces_of_any_size_and_a_cut_one_is_an_error() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let level = Compression::default();
        let mut gzip = GzEncoder::new(Vec::new(), level);
        let mut zlib = ZlibEncoder::new(Vec::new(), level);
        let mut raw = DeflateEncoder::new(Vec::new(), level);
        gzip.write_all(&text).unwrap();
        zlib.write_all(&text).unwrap();
        raw.write_all(&text).unwrap();
        let all = [("gzip", gzip.finish()), ("deflate", zlib.finish()), ("Deflate", raw.finish())];
        for (coding, encoded) in all {
            let encoded = encoded.unwrap();
            for piece in [1, 1000, encoded.len()] {
                assert!(decode(coding, &encoded, piece).unwrap() == text, "{coding} {piece}");
            }
            let cut = &encoded[..encoded.len() - 1];
            assert_eq!(decode(coding, cut, cut.len()), Err(ContentError::Truncated), "{coding}");
        }
        assert_eq!(decode("gzip", b"not gzip at all", 3), Err(ContentError::Corrupt));
        assert_eq!(decode("gzip", b"", 1), Ok(Vec::new()));
        assert!(ContentDecoder::new("br").is_none() && ContentDecoder::new("gzip, gzip").is_none());
    }
}
