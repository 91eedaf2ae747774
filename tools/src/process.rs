//! This process: what a second Ctrl-C does, its memory, its open files.

use std::future::Future;
use std::path::Path;

use anyhow::{Context as _, Result};
pub use holdfast_telemetry::program::{Signals, raise_file_limit, write_ready};

/// The exit code of a process that a second Ctrl-C ended.
pub const INTERRUPTED: i32 = 130;

/// Takes the signals over from their default, for a command that ends in order.
pub fn take_signals() -> Result<Signals> {
    Signals::take().context("signals cannot be handled")
}

/// Does `work`, which follows the first signal; the next one ends the process at once.
pub async fn unless_again<T>(signals: &mut Signals, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        () = signals.next() => {
            eprintln!("holdfast: stopped at once");
            std::process::exit(INTERRUPTED)
        }
        done = work => done,
    }
}

/// Resident memory of this process, in bytes.
pub fn resident_bytes() -> Result<u64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("/proc is not there: this needs Linux")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("no VmRSS in /proc/self/status")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("VmRSS is no number")?;
    Ok(kib * 1024)
}

/// Open files of this process below a directory.
pub fn open_files_below(directory: &Path) -> Result<u64> {
    let directory = directory.canonicalize().with_context(|| format!("`{}`", directory.display()))?;
    let entries = std::fs::read_dir("/proc/self/fd").context("/proc is not there: this needs Linux")?;
    // A file that is closed meanwhile has no name any more.
    let names = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    Ok(u64::try_from(names.filter(|name| name.starts_with(&directory)).count()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_knows_its_own_size() {
        assert!(resident_bytes().unwrap() > 1 << 20);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open_files_below(dir.path()).unwrap(), 0);
        let _file = std::fs::File::create(dir.path().join("file")).unwrap();
        assert_eq!(open_files_below(dir.path()).unwrap(), 1);
        assert!(open_files_below(&dir.path().join("absent")).is_err());
    }
}
