//! Finds the programs under test: in `HOLDFAST_BIN_DIR`, or in the target directory that this test was built into.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The path of a program.
///
/// # Errors
/// When it has not been built; the text says how to.
pub fn binary(name: &str) -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("HOLDFAST_BIN_DIR") {
        return existing(&PathBuf::from(dir).join(name), name);
    }
    let test = std::env::current_exe()?;
    // Tests are in `<profile>/deps`, binaries in `<profile>`.
    let dir = test.parent().context("a test binary is in a directory")?;
    let dir = if dir.ends_with("deps") { dir.parent().context("`deps` has a parent")? } else { dir };
    existing(&dir.join(name), name)
}

fn existing(path: &Path, name: &str) -> Result<PathBuf> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let package = if name == "holdfast" { "holdfast".to_owned() } else { format!("holdfast-{name}") };
    bail!(
        "there is no `{}`: build it with `cargo build -p {package}`, or set HOLDFAST_BIN_DIR",
        path.display()
    )
}
