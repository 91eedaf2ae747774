//! The primitives of the format, without any JavaScript: varints, doubles, strings.

use super::tags;

/// Why bytes are no value: with the offset at which that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Unable to deserialize cloned data (at byte {at}).")]
pub(super) struct Malformed {
    pub(super) at: usize,
}

/// Text as the format has it.
pub(super) enum Text {
    Valid(String),
    /// UTF-16 with surrogates that have no partner.
    Units(Vec<u16>),
}

/// Appends to a serialized value.
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
}

impl Output {
    pub(super) fn new() -> Self {
        let mut output = Self { bytes: vec![tags::VERSION] };
        output.varint(tags::LATEST_VERSION);
        output
    }

    pub(super) fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
    }

    pub(super) fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(super) fn len(&mut self, len: usize) {
        self.varint(u32::try_from(len).expect("CLONE_LEN_MAX bounds what is written"));
    }

    pub(super) fn int(&mut self, value: i32) {
        self.tag(tags::INT32);
        self.varint(((value << 1) ^ (value >> 31)) as u32);
    }

    pub(super) fn double(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A string with its tag: one byte for a character if all fit, else UTF-16.
    pub(super) fn text(&mut self, text: &str) {
        if text.is_ascii() {
            self.tag(tags::ONE_BYTE_STRING);
            self.len(text.len());
            self.raw(text.as_bytes());
        } else if text.chars().all(|character| u32::from(character) <= 0xff) {
            let latin1: Vec<u8> = text.chars().map(|character| character as u32 as u8).collect();
            self.tag(tags::ONE_BYTE_STRING);
            self.len(latin1.len());
            self.raw(&latin1);
        } else {
            let units: Vec<u16> = text.encode_utf16().collect();
            self.units(&units);
        }
    }

    pub(super) fn units(&mut self, units: &[u16]) {
        let len = units.len() * 2;
        let varint_len = match len {
            0..0x80 => 1,
            0x80..0x4000 => 2,
            0x4000..0x20_0000 => 3,
            0x20_0000..0x1000_0000 => 4,
            _ => 5,
        };
        // V8 reads the units in place, so they stand at an even offset.
        if (self.bytes.len() + 1 + varint_len) % 2 == 1 {
            self.tag(tags::PADDING);
        }
        self.tag(tags::TWO_BYTE_STRING);
        self.len(len);
        for unit in units {
            self.raw(&unit.to_le_bytes());
        }
    }

    /// A big integer from its hexadecimal digits. V8 counts whole words of eight bytes.
    pub(super) fn big_int(&mut self, is_negative: bool, hex: &str) {
        let mut bytes: Vec<u8> = Vec::with_capacity(hex.len() / 2 + 8);
        let digits: Vec<u8> = hex.bytes().rev().map(hex_digit).collect();
        for pair in digits.chunks(2) {
            bytes.push(pair[0] | pair.get(1).copied().unwrap_or(0) << 4);
        }
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let len = u32::try_from(bytes.len()).expect("a big integer of the engine is far below 2^31 bytes");
        self.varint(len << 1 | u32::from(is_negative && len > 0));
        self.raw(&bytes);
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => unreachable!("the engine writes hexadecimal digits"),
    }
}

/// Reads a serialized value.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn malformed(&self) -> Malformed {
        Malformed { at: self.at }
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(self.malformed())?;
        self.at += 1;
        Ok(byte)
    }

    /// The next tag, after padding.
    pub(super) fn tag(&mut self) -> Result<u8, Malformed> {
        loop {
            match self.byte()? {
                tags::PADDING => {}
                tag => return Ok(tag),
            }
        }
    }

    /// The next tag, which stays.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes[self.at..].iter().copied().find(|byte| *byte != tags::PADDING)
    }

    pub(super) fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.malformed())
    }

    pub(super) fn int(&mut self) -> Result<i32, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    pub(super) fn double(&mut self) -> Result<f64, Malformed> {
        let bytes = self.raw(8)?;
        Ok(f64::from_le_bytes(bytes.try_into().expect("it is eight bytes")))
    }

    pub(super) fn raw(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let bytes = self.bytes[self.at..].get(..len).ok_or(self.malformed())?;
        self.at += len;
        Ok(bytes)
    }

    /// A length, and as many bytes.
    pub(super) fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.varint()?;
        self.raw(usize::try_from(len).map_err(|_| self.malformed())?)
    }

    /// A string after its tag.
    pub(super) fn text(&mut self, tag: u8) -> Result<Text, Malformed> {
        match tag {
            tags::UTF8_STRING => Ok(Text::Valid(String::from_utf8_lossy(self.counted()?).into_owned())),
            tags::ONE_BYTE_STRING => {
                Ok(Text::Valid(self.counted()?.iter().map(|byte| char::from(*byte)).collect()))
            }
            tags::TWO_BYTE_STRING => {
                let bytes = self.counted()?;
                if bytes.len() % 2 == 1 {
                    return Err(self.malformed());
                }
                let units: Vec<u16> =
                    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
                Ok(String::from_utf16(&units).map_or(Text::Units(units), Text::Valid))
            }
            _ => Err(self.malformed()),
        }
    }

    /// The sign and the hexadecimal digits of a big integer.
    pub(super) fn big_int(&mut self) -> Result<(bool, String), Malformed> {
        let bits = self.varint()?;
        let bytes = self.raw(usize::try_from(bits >> 1).map_err(|_| self.malformed())?)?;
        let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        let digits = if digits.is_empty() { "0".to_owned() } else { digits };
        Ok((bits & 1 == 1, digits))
    }
}
