//! Decompression: strict about what surrounds the data (header, checksum, nothing after the end), as the Compression
//! Standard wants it.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{Codec, CodecError, Format, OUTPUT_BYTES_MAX};

/// RFC 1952, 2.3: magic, method, flags, time, extra flags, system.
const GZIP_HEADER_BYTES: usize = 10;
/// The longest gzip header that is taken: names and comments have no bound of their own.
const GZIP_HEADER_BYTES_MAX: usize = 128 * 1024;
/// CRC-32 and length, each four bytes.
const GZIP_TRAILER_BYTES: usize = 8;

const FLAG_HEADER_CRC: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
const FLAGS_RESERVED: u8 = 0b1110_0000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    GzipHeader,
    Data,
    GzipTrailer,
    Done,
}

pub(super) struct Decoder {
    format: Format,
    state: State,
    inflate: Decompress,
    crc: Crc,
    input: Vec<u8>,
    taken: usize,
}

impl Decoder {
    pub(super) fn new(format: Format) -> Self {
        let state = if format == Format::Gzip { State::GzipHeader } else { State::Data };
        let inflate = Decompress::new(format == Format::Deflate);
        Self { format, state, inflate, crc: Crc::new(), input: Vec::new(), taken: 0 }
    }

    fn rest(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// True when the header was whole and has been taken.
    fn take_gzip_header(&mut self) -> Result<bool, CodecError> {
        match gzip_header_len(self.rest())? {
            Some(len) => {
                self.taken += len;
                self.state = State::Data;
                Ok(true)
            }
            None if self.rest().len() > GZIP_HEADER_BYTES_MAX => Err(CodecError::GzipHeader),
            None => Ok(false),
        }
    }

    fn take_gzip_trailer(&mut self) -> Result<bool, CodecError> {
        let Some(trailer) = self.rest().first_chunk::<GZIP_TRAILER_BYTES>() else { return Ok(false) };
        let [c0, c1, c2, c3, l0, l1, l2, l3] = *trailer;
        let is_right = u32::from_le_bytes([c0, c1, c2, c3]) == self.crc.sum()
            && u32::from_le_bytes([l0, l1, l2, l3]) == self.crc.amount();
        if !is_right {
            return Err(CodecError::Checksum);
        }
        self.taken += GZIP_TRAILER_BYTES;
        self.state = State::Done;
        Ok(true)
    }

    /// The next piece of the data; `None` when it wants input or has ended.
    fn inflate_some(&mut self) -> Result<Option<Vec<u8>>, CodecError> {
        let mut output = Vec::with_capacity(OUTPUT_BYTES_MAX);
        while output.len() < OUTPUT_BYTES_MAX && self.state == State::Data {
            let (in_before, out_before) = (self.inflate.total_in(), output.len());
            let rest = &self.input[self.taken..];
            let status = self.inflate.decompress_vec(rest, &mut output, FlushDecompress::None);
            let status = status.map_err(|_| CodecError::Corrupt)?;
            let consumed = usize::try_from(self.inflate.total_in() - in_before).expect("it fits the input");
            self.taken += consumed;
            if status == Status::StreamEnd {
                self.state = if self.format == Format::Gzip { State::GzipTrailer } else { State::Done };
            } else if consumed == 0 && output.len() == out_before {
                break;
            }
        }
        self.crc.update(&output);
        output.shrink_to_fit();
        Ok((!output.is_empty()).then_some(output))
    }
}

impl Codec for Decoder {
    fn push(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        self.input.drain(..self.taken);
        self.taken = 0;
        self.input.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), CodecError> {
        if self.state == State::Done { Ok(()) } else { Err(CodecError::Truncated) }
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, CodecError> {
        if self.state == State::GzipHeader && !self.take_gzip_header()? {
            return Ok(None);
        }
        if self.state == State::Data
            && let Some(output) = self.inflate_some()?
        {
            return Ok(Some(output));
        }
        if self.state == State::GzipTrailer && !self.take_gzip_trailer()? {
            return Ok(None);
        }
        if self.state == State::Done && !self.rest().is_empty() {
            return Err(CodecError::Trailing);
        }
        Ok(None)
    }
}

/// The length of the gzip header at the start of `bytes`; `None` while it is not whole.
fn gzip_header_len(bytes: &[u8]) -> Result<Option<usize>, CodecError> {
    const MAGIC_AND_METHOD: [u8; 3] = [0x1f, 0x8b, 8];
    let seen = bytes.len().min(MAGIC_AND_METHOD.len());
    if bytes[..seen] != MAGIC_AND_METHOD[..seen] {
        return Err(CodecError::GzipHeader);
    }
    let Some(&flags) = bytes.get(3) else { return Ok(None) };
    if flags & FLAGS_RESERVED != 0 {
        return Err(CodecError::GzipHeader);
    }
    let mut at = GZIP_HEADER_BYTES;
    if flags & FLAG_EXTRA != 0 {
        let Some(&[low, high]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return Ok(None) };
        at += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(end) = rest.iter().position(|&byte| byte == 0) else { return Ok(None) };
            at += end + 1;
        }
    }
    if flags & FLAG_HEADER_CRC != 0 {
        let Some(&[low, high]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return Ok(None) };
        let mut crc = Crc::new();
        crc.update(&bytes[..at]);
        let low_half = u16::try_from(crc.sum() & 0xffff).expect("sixteen bits");
        if u16::from_le_bytes([low, high]) != low_half {
            return Err(CodecError::GzipHeader);
        }
        at += 2;
    }
    Ok((bytes.len() >= at).then_some(at))
}
