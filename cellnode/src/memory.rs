//! How much memory the process has, and how much it may have. Measured are the pages that the kernel has given it: only that holds
//! for SQLite, the JavaScript engine and this program alike, whatever each of them counts, and only that is what a machine runs out
//! of. So that memory that was freed is not measured any more, the allocator gives it back first.

use std::sync::atomic::{AtomicU64, Ordering};

/// This part of what the machine, or its container, has is the default cap, in percent: the rest is for the page cache, bursts and
/// others.
const DEFAULT_PERCENT: u64 = 75;

/// What was measured last, and the cap.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicU64,
    /// Most bytes; the largest number where nobody knows.
    pub(crate) max: u64,
}

impl Memory {
    /// With this cap, or one that the machine suggests.
    pub(crate) fn new(max: Option<u64>) -> Self {
        let max = max.or_else(|| Some(available()? / 100 * DEFAULT_PERCENT)).unwrap_or(u64::MAX);
        let memory = Self { used: AtomicU64::new(0), max };
        memory.measure();
        memory
    }

    /// What was measured last.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Measures: some microseconds.
    pub(crate) fn measure(&self) -> u64 {
        let used = resident().unwrap_or(0);
        self.used.store(used, Ordering::Relaxed);
        used
    }

    /// Has the allocator give back what it keeps for later, and measures. Takes milliseconds for each GiB.
    pub(crate) fn give_back(&self) -> u64 {
        holdfast_sql::give_memory_back();
        self.measure()
    }
}

/// The resident pages of this process, in bytes.
fn resident() -> Option<u64> {
    read_statm(&std::fs::read_to_string("/proc/self/statm").ok()?)
        .map(|pages| pages.saturating_mul(u64::try_from(rustix::param::page_size()).unwrap_or(4_096)))
}

/// Pages that are resident: the second field.
fn read_statm(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What the machine has, or the control group lets it have: the smaller.
fn available() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let of_group = |text: String| text.trim().parse::<u64>().ok();
    let own = read("/proc/self/cgroup").and_then(|text| {
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        read(&format!("/sys/fs/cgroup{path}/memory.max")).and_then(of_group)
    });
    let inside = read("/sys/fs/cgroup/memory.max").and_then(of_group);
    let first_version = read("/sys/fs/cgroup/memory/memory.limit_in_bytes").and_then(of_group);
    let machine = read("/proc/meminfo").and_then(|text| read_meminfo(&text));
    [own, inside, first_version, machine].into_iter().flatten().min()
}

fn read_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        assert_eq!(read_statm("4096 1200 200 10 0 500 0\n"), Some(1_200));
        assert_eq!(read_statm(""), None);
        assert_eq!(read_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(read_meminfo("MemTotal:       24607196 kB\nMemFree: 1 kB\n"), Some(24_607_196 * 1_024));
    }

    #[test]
    fn memory_that_is_used_is_measured_and_memory_that_was_freed_is_not() {
        let memory = Memory::new(None);
        let before = memory.give_back();
        assert!(before > 0 && memory.max > before, "{memory:?}");
        // Small pieces, which an allocator keeps.
        let pieces: Vec<Vec<u8>> = (0..64 << 10).map(|_| vec![7; 1_024]).collect();
        let with = memory.measure();
        assert!(with >= before + (48 << 20), "{before} {with}");
        drop(pieces);
        let after = memory.give_back();
        assert!(after + (32 << 20) <= with, "{with} {after}");
    }
}
