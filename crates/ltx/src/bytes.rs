//! Fixed-width integers at fixed places of a buffer whose length the caller has fixed.

/// Reads a big-endian `u32`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("the range is four bytes long"))
}

/// Reads a big-endian `u64`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("the range is eight bytes long"))
}

/// Appends an unsigned LEB128 varint, at most 10 bytes.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_is_spelled_as_in_go() {
        let spelled = |number| {
            let mut out = Vec::new();
            push_varint(&mut out, number);
            out
        };
        assert_eq!(spelled(0), [0]);
        assert_eq!(spelled(127), [127]);
        assert_eq!(spelled(128), [0x80, 1]);
        assert_eq!(spelled(300), [0xac, 2]);
        assert_eq!(spelled(u64::MAX), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }
}
