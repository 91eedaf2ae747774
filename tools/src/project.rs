//! A project's folder as a package that can run: bundled and compiled, before anything of it reaches a bucket.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use holdfast_bundle::{BundleError, Bundled, Options, bundle};
use holdfast_deploy::{DeployError, Loaded, Published};
use serde_json::{Value, json};

use crate::output::{bytes, count, printable};

/// Why a project does not run. Either names file and line, where there is one.
#[derive(Debug)]
pub enum ProjectError {
    /// It cannot be packaged.
    Bundle(BundleError),
    /// It can, and no isolate would run it.
    Code(DeployError),
}

impl std::fmt::Display for ProjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bundle(error) => error.fmt(f),
            Self::Code(error) => error.fmt(f),
        }
    }
}

// No `source`: the text of either has its causes in it.
impl std::error::Error for ProjectError {}

/// Bundles the project in a folder and compiles it as a node does. Nothing of it is run.
///
/// # Errors
/// Inside of the `Ok` of the work itself: [`ProjectError`].
pub async fn prepare(dir: &Path, config: Option<PathBuf>) -> Result<Result<Bundled, ProjectError>> {
    let dir = dir.to_owned();
    let prepared = tokio::task::spawn_blocking(move || {
        let bundled =
            bundle(&dir, &Options { config, ..Options::default() }).map_err(ProjectError::Bundle)?;
        Loaded::to_compile(bundled.package.clone()).application().map_err(ProjectError::Code)?;
        Ok(bundled)
    });
    prepared.await.context("bundling failed")
}

/// `3 modules, 4.1 KiB`.
pub fn size(modules: usize, module_bytes: u64) -> String {
    format!("{}, {}", count(u64::try_from(modules).unwrap_or(u64::MAX), "module"), bytes(module_bytes))
}

/// What was bundled.
pub fn bundled_text(bundled: &Bundled) -> String {
    let manifest = bundled.package.manifest();
    let mut text = format!(
        "bundled `{}`: {}",
        printable(&manifest.name),
        size(manifest.modules.len(), bundled.package.module_bytes())
    );
    if !manifest.classes.is_empty() {
        text += &format!("; Durable Objects: {}", manifest.classes.join(", "));
    }
    if let Some(assets) = &manifest.assets {
        let files = u64::try_from(assets.files.len()).unwrap_or(u64::MAX);
        let len = assets.files.iter().map(|file| file.content.bytes).sum();
        text += &format!("; {}, {}", count(files, "static file"), bytes(len));
    }
    for note in &bundled.notes {
        text += &format!("\nnote: {}", printable(note));
    }
    text
}

/// What was bundled and published, for programs.
pub fn published_json(bundled: &Bundled, published: &Published) -> Value {
    let manifest = bundled.package.manifest();
    let Published { id, previous, changed, new_blobs, new_bytes } = published;
    json!({
        "name": manifest.name, "version": id.to_string(),
        "previous": previous.map(|previous| previous.to_string()), "changed": changed,
        "modules": manifest.modules.len(), "bytes": bundled.package.module_bytes(), "classes": manifest.classes,
        "assets": manifest.assets.as_ref().map_or(0, |assets| assets.files.len()),
        "uploaded": { "blobs": new_blobs, "bytes": new_bytes }, "notes": bundled.notes,
    })
}

#[cfg(test)]
mod tests;
