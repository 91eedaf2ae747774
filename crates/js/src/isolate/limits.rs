//! What an isolate may use.

use std::time::Duration;

/// What an isolate may use. The defaults suit a node with thousands of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of its heap. 128 MiB, as on Cloudflare.
    pub memory_bytes: usize,
    /// Bytes of stack below the frame that made the isolate: the thread must have them, and some 256 KiB more for Rust.
    /// 1 MiB.
    pub stack_bytes: usize,
    /// CPU time of one turn, during which nothing else runs on the thread. 1 s.
    pub turn: Duration,
    /// CPU time of all turns of one event. 30 s, as on Cloudflare.
    pub event: Duration,
    /// CPU time to load the application. 1 s, as on Cloudflare.
    pub start: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 128 << 20,
            stack_bytes: 1 << 20,
            turn: Duration::from_secs(1),
            event: Duration::from_secs(30),
            start: Duration::from_secs(1),
        }
    }
}
