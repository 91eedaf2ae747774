//! The packager: a Wrangler-style project's folder becomes an application package. It resolves the module graph from
//! `main`, strips TypeScript and JSX, turns CommonJS into ES modules, and ships each module by itself. It reads files and
//! nothing else: no network, no Node, no running of the project's code. The same files give the same package.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod builtin;
mod code;
mod config;
mod error;
mod folder;
mod graph;
mod helpers;
mod limits;
mod package;
mod place;
mod resolve;
mod rules;

use std::path::{Path, PathBuf};

use holdfast_records::Package;

pub use builtin::NODE as NODE_MODULES;
pub use config::{IGNORED_KEYS, LATER_KEYS, SUPPORTED_KEYS};
pub use error::{BundleError, ConfigFault, ImportFault};
pub use limits::Limits;
pub use place::{Place, Position};

/// How to package.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The configuration file; the folder's own `wrangler.jsonc`, `wrangler.json` or `wrangler.toml` when absent.
    pub config: Option<PathBuf>,
    /// How large an application may be.
    pub limits: Limits,
}

/// A packaged project.
#[derive(Debug)]
pub struct Bundled {
    /// The application.
    pub package: Package,
    /// What a person should know, and what changed nothing: keys that were ignored, imports that cannot be followed.
    pub notes: Vec<String>,
    /// Everything that was read, for a watcher: configuration, modules, static files and their folders, absolute.
    pub files: Vec<PathBuf>,
}

/// Packages the project in a folder.
///
/// # Errors
/// [`BundleError`], with the file, the line and the column. Disposition: reject; the project is to be changed.
pub fn bundle(dir: &Path, options: &Options) -> Result<Bundled, BundleError> {
    let dir = std::fs::canonicalize(dir)
        .map_err(|source| BundleError::Read { path: dir.display().to_string(), source })?;
    let (config, mut notes) = config::load(&dir, options.config.as_deref())?;
    let mut files = vec![config.file.clone()];
    let folder = folder::read(&config, &options.limits)?;
    notes.extend(folder.notes.iter().cloned());
    files.extend(folder.watched.iter().cloned());
    let package = match &config.main {
        Some(main) => {
            let graph = graph::build(&config, main, &options.limits)?;
            notes.extend(graph.notes().map(ToOwned::to_owned));
            files.extend(graph.files());
            package::assemble(&config, &graph, folder, &options.limits)?
        }
        None => package::assemble_files(&config, folder),
    };
    Ok(Bundled { package, notes, files })
}
