//! The memory of answers that wait at gates for their proof, all cells of a node together. What has run is never thrown
//! away for want of memory: where too much waits, nothing new begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_telemetry::metrics;

/// A node's answers that wait.
#[derive(Debug)]
pub(crate) struct Answers {
    bytes_max: usize,
    bytes: AtomicUsize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    answers: Arc<Answers>,
    len: usize,
}

impl Answers {
    /// Up to `bytes_max`, and beyond by what runs when that is reached.
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, bytes: AtomicUsize::new(0) })
    }

    /// How many bytes wait, where that is too many for another event to begin.
    pub(crate) fn is_full(&self) -> Option<usize> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        (bytes >= self.bytes_max).then_some(bytes)
    }

    /// Counts an answer in.
    pub(crate) fn hold(self: &Arc<Self>, len: usize) -> Held {
        self.bytes.fetch_add(len, Ordering::Relaxed);
        metrics().gate_waiting_changed(i64::try_from(len).unwrap_or(i64::MAX));
        Held { answers: Arc::clone(self), len }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.answers.bytes.fetch_sub(self.len, Ordering::Relaxed);
        metrics().gate_waiting_changed(-i64::try_from(self.len).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_given_back() {
        let answers = Answers::new(10);
        let first = answers.hold(9);
        assert_eq!(answers.is_full(), None);
        let second = answers.hold(4);
        assert_eq!(answers.is_full(), Some(13));
        drop(first);
        assert_eq!(answers.is_full(), None);
        drop(second);
        assert_eq!(answers.bytes.load(Ordering::Relaxed), 0);
    }
}
