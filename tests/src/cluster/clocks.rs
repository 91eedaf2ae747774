//! Wall clocks of single programs that are wrong, or are set anew while the program runs: Debian's `libfaketime` stands before
//! the system's answers, and looks at a file every second. Monotonic clocks and files' times stay true.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Cluster;

/// After so long a program sees the clock that was set.
pub const CLOCK_SEEN: Duration = Duration::from_millis(1_500);

impl Cluster {
    /// Sets a program's wall clock, so many seconds off the true one. Before its start, at the latest with
    /// [`super::ClusterOptions::clocks`], for its later lives too; while it runs it sees it within [`CLOCK_SEEN`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_clock(&self, name: &str, ahead_secs: i64) -> Result<()> {
        let (path, new) = (path(self.dir(), name), self.dir().join(format!("clock-{name}.new")));
        std::fs::write(&new, format!("{ahead_secs:+}\n"))?;
        std::fs::rename(&new, &path).with_context(|| format!("setting the clock of `{name}`"))
    }
}

fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("clock-{name}"))
}

/// What has a program see the clock that was set for it; nothing where none was.
///
/// # Errors
/// When the library is not installed.
pub(super) fn environment(dir: &Path, name: &str) -> Result<Vec<(&'static str, OsString)>> {
    let path = path(dir, name);
    if !path.exists() {
        return Ok(Vec::new());
    }
    Ok(vec![
        ("LD_PRELOAD", library()?.into()),
        ("FAKETIME_TIMESTAMP_FILE", path.into()),
        ("FAKETIME_CACHE_DURATION", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ("NO_FAKE_STAT", "1".into()),
    ])
}

/// `/usr/lib/<machine>/faketime/libfaketimeMT.so.1`.
fn library() -> Result<PathBuf> {
    let candidates = std::fs::read_dir("/usr/lib")?.filter_map(|entry| {
        let library = entry.ok()?.path().join("faketime/libfaketimeMT.so.1");
        library.exists().then_some(library)
    });
    candidates.min().context("`libfaketime` is missing: install Debian's package of that name")
}
