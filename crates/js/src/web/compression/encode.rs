//! Compression: deflate at zlib's default level, with the header and trailer of the format around it.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use super::{Codec, CodecError, Format, OUTPUT_BYTES_MAX};

/// RFC 1952, 2.3: deflate, no flags, no time, an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

pub(super) struct Encoder {
    format: Format,
    deflate: Compress,
    crc: Crc,
    input: Vec<u8>,
    taken: usize,
    is_finishing: bool,
    has_header: bool,
    is_done: bool,
}

impl Encoder {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            deflate: Compress::new(Compression::default(), format == Format::Deflate),
            crc: Crc::new(),
            input: Vec::new(),
            taken: 0,
            is_finishing: false,
            has_header: format == Format::Gzip,
            is_done: false,
        }
    }

    /// Runs deflate until it gives bytes, wants input or ends.
    fn deflate_some(&mut self, output: &mut Vec<u8>) -> Result<(), CodecError> {
        let flush = if self.is_finishing { FlushCompress::Finish } else { FlushCompress::None };
        while output.len() < OUTPUT_BYTES_MAX && !self.is_done {
            let (in_before, out_before) = (self.deflate.total_in(), output.len());
            let rest = &self.input[self.taken..];
            let status = self.deflate.compress_vec(rest, output, flush).map_err(|_| CodecError::Corrupt)?;
            let consumed = usize::try_from(self.deflate.total_in() - in_before).expect("it fits the input");
            self.crc.update(&rest[..consumed]);
            self.taken += consumed;
            if status == Status::StreamEnd {
                self.is_done = true;
                self.end(output);
            } else if consumed == 0 && output.len() == out_before {
                break;
            }
        }
        Ok(())
    }

    fn end(&self, output: &mut Vec<u8>) {
        if self.format == Format::Gzip {
            output.extend_from_slice(&self.crc.sum().to_le_bytes());
            output.extend_from_slice(&self.crc.amount().to_le_bytes());
        }
    }
}

/// Room for a trailer beside the bytes of deflate.
const TRAILER_BYTES: usize = 8;

impl Codec for Encoder {
    fn push(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        self.input.clear();
        self.input.extend_from_slice(bytes);
        self.taken = 0;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CodecError> {
        self.is_finishing = true;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, CodecError> {
        let mut output = Vec::with_capacity(OUTPUT_BYTES_MAX + TRAILER_BYTES);
        if std::mem::take(&mut self.has_header) {
            output.extend_from_slice(&GZIP_HEADER);
        }
        self.deflate_some(&mut output)?;
        output.shrink_to_fit();
        Ok((!output.is_empty()).then_some(output))
    }
}
