//! Finds the programs under test: in `HOLDFAST_BIN_DIR`, or in the target directory that this test was built into. Those of
//! the release before are in `HOLDFAST_PREVIOUS_BIN_DIR`, or where `scripts/previous` puts them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where `scripts/previous` puts the programs of the release before, below the directory of this one's.
const PREVIOUS_DIR: &str = "previous";

/// Of which release a program is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// Built from the sources that these tests were built from.
    #[default]
    This,
    /// Built by `scripts/previous` from the commit that `tests/previous-release` names.
    Previous,
}

/// The path of a program of this release.
///
/// # Errors
/// When it has not been built; the text says how to.
pub fn binary(name: &str) -> Result<PathBuf> {
    binary_of(Release::This, name)
}

/// The path of a program.
///
/// # Errors
/// When it has not been built; the text says how to.
pub(super) fn binary_of(release: Release, name: &str) -> Result<PathBuf> {
    let dir = match (release, std::env::var_os("HOLDFAST_BIN_DIR")) {
        (Release::This, Some(dir)) => PathBuf::from(dir),
        (Release::This, None) => own_dir()?,
        (Release::Previous, own) => match (std::env::var_os("HOLDFAST_PREVIOUS_BIN_DIR"), own) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(own)) => PathBuf::from(own).join(PREVIOUS_DIR),
            (None, None) => own_dir()?.join(PREVIOUS_DIR),
        },
    };
    existing(release, &dir.join(name), name)
}

/// The directory that the programs beside this test were built into.
fn own_dir() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    // Tests are in `<profile>/deps`, binaries in `<profile>`.
    let dir = test.parent().context("a test binary is in a directory")?;
    let dir = if dir.ends_with("deps") { dir.parent().context("`deps` has a parent")? } else { dir };
    Ok(dir.to_owned())
}

fn existing(release: Release, path: &Path, name: &str) -> Result<PathBuf> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if release == Release::Previous {
        bail!("there is no `{}`: run `scripts/previous`, or set HOLDFAST_PREVIOUS_BIN_DIR", path.display());
    }
    let package = if name == "holdfast" { "holdfast".to_owned() } else { format!("holdfast-{name}") };
    bail!(
        "there is no `{}`: build it with `cargo build -p {package}`, or set HOLDFAST_BIN_DIR",
        path.display()
    )
}
