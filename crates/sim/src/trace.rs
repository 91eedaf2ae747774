//! What happened in a run, as text that is hashed and, when asked for, printed. Two runs of one seed give one hash.

use std::fmt::{self, Write};

/// A hash over the lines of a run (FNV-1a, 64 bits).
#[derive(Clone, Debug)]
pub struct Trace {
    hash: u64,
    prints: bool,
}

impl Trace {
    /// An empty trace; `prints` sends each line to standard output as well.
    #[must_use]
    pub const fn new(prints: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, prints }
    }

    /// Adds a line.
    pub fn line(&mut self, true_ms: u64, text: fmt::Arguments<'_>) {
        if self.prints {
            println!("{true_ms:>8} {text}");
        }
        writeln!(self, "{true_ms} {text}").expect("hashing does not fail");
    }

    /// The hash so far.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}
