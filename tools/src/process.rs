//! This process: its signals, its limits, its ready file, its memory.

use std::future::Future;
use std::io;
use std::path::Path;

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a process that a second Ctrl-C ended.
pub const INTERRUPTED: i32 = 130;

/// SIGINT and SIGTERM, also as process 1 of a container.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes both signals over from their default, which ends the process.
    pub fn take() -> Result<Self> {
        let take = |kind| signal(kind).context("signals cannot be handled");
        Ok(Self { interrupt: take(SignalKind::interrupt())?, terminate: take(SignalKind::terminate())? })
    }

    /// Resolves at the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Does `work`, which follows the first signal; the next one ends the process at once.
    pub async fn unless_again<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            () = self.next() => {
                eprintln!("holdfast: stopped at once");
                std::process::exit(INTERRUPTED)
            }
            done = work => done,
        }
    }
}

/// Allows as many open files as the system lets us: each resident cell needs a few, and the usual limit is 1024.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        tracing::debug!("the limit of open files stays as it is");
    }
}

/// Writes a ready file: whoever reads it sees all of it or none.
pub fn write_ready(path: &Path, ready: &serde_json::Value) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let write = || -> io::Result<()> {
        std::fs::write(&temporary, ready.to_string())?;
        std::fs::rename(&temporary, path)
    };
    write().with_context(|| format!("the ready file `{}` cannot be written", path.display()))
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
    fn a_ready_file_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ready");
        write_ready(&path, &serde_json::json!({ "s3": "127.0.0.1:9" })).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"s3":"127.0.0.1:9"}"#);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let error = write_ready(&dir.path().join("no/ready"), &serde_json::Value::Null).unwrap_err();
        assert!(error.to_string().contains("no/ready"), "{error}");
    }

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
