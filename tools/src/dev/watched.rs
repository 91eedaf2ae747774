//! Whether files have changed since they were read. By their times, lengths and inodes: a look each second costs nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files of a project that its bundle does not name, and that decide what it is.
const BESIDE: [&str; 5] =
    ["wrangler.json", "wrangler.jsonc", "wrangler.toml", "tsconfig.json", "package.json"];
/// Two changes of a file within this time may have the same time of change.
const GRAIN: Duration = Duration::from_millis(20);

/// Files as they were.
#[derive(Debug, Default)]
pub struct Watched {
    /// None: it was not there.
    stamps: BTreeMap<PathBuf, Option<Stamp>>,
    /// Some file changed while it was being read, or right before: what was read of it is not certain.
    is_uncertain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    len: u64,
    inode: u64,
}

impl Watched {
    /// The files that were read from `begun` until now, and those beside them in the project's folder.
    pub fn since(begun: SystemTime, dir: &Path, files: &[PathBuf]) -> Self {
        let beside = BESIDE.iter().map(|name| dir.join(name));
        let stamps: BTreeMap<_, _> = files
            .iter()
            .cloned()
            .chain(beside)
            .map(|file| {
                let stamp = stamp(&file);
                (file, stamp)
            })
            .collect();
        let recent = begun - GRAIN..=SystemTime::now();
        let is_uncertain = stamps.values().flatten().any(|stamp| recent.contains(&stamp.modified));
        Self { stamps, is_uncertain }
    }

    /// The files that are others now; none where they need not be read again.
    pub fn changed(&self) -> Option<Vec<PathBuf>> {
        let changed = self.stamps.iter().filter(|(file, was)| stamp(file) != **was);
        let changed: Vec<PathBuf> = changed.map(|(file, _)| file.clone()).collect();
        (self.is_uncertain || !changed.is_empty()).then_some(changed)
    }
}

fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(file).ok()?;
    Some(Stamp { modified: metadata.modified().ok()?, len: metadata.len(), inode: metadata.ino() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_age(file: &Path, age: Duration) {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn a_file_that_changes_comes_or_goes_is_named_until_it_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("index.js");
        std::fs::write(&file, "1").unwrap();
        set_age(&file, Duration::from_secs(60));
        let read = || Watched::since(SystemTime::now(), dir.path(), std::slice::from_ref(&file));
        let watched = read();
        assert_eq!(watched.changed(), None);
        set_age(&file, Duration::from_secs(30));
        assert_eq!(watched.changed(), Some(vec![file.clone()]));
        let watched = read();
        assert_eq!(watched.changed(), None);
        let config = dir.path().join("tsconfig.json");
        std::fs::write(&config, "{}").unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(watched.changed(), Some(vec![file.clone(), config]));
    }

    #[test]
    fn a_file_that_changed_while_it_was_read_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("index.js");
        std::fs::write(&file, "1").unwrap();
        set_age(&file, Duration::from_secs(5));
        let begun = SystemTime::now() - Duration::from_secs(10);
        assert_eq!(Watched::since(begun, dir.path(), &[file]).changed(), Some(vec![]));
    }
}
