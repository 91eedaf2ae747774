//! The project of `dev`: published at the start, and again whenever its files change. What does not bundle or compile is
//! told, and what ran before goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use holdfast_bucket::BucketArgs;
use holdfast_bundle::{BundleError, Bundled};
use holdfast_deploy::{Deployments, Published};

use super::watched::Watched;
use crate::deploy;
use crate::output::printable;
use crate::project::{ProjectError, bundled_text, prepare};

/// Between two looks at the files.
const PAUSE: Duration = Duration::from_secs(1);
/// What the versions' publisher says.
const MESSAGE: &str = "holdfast dev";

/// A project that is published as it changes.
#[derive(Debug)]
pub struct Reloader {
    dir: PathBuf,
    deployments: Deployments,
    watched: Arc<Watched>,
    /// Why the files as they are now do not run; told once.
    failure: Option<String>,
}

/// What runs of a project.
#[derive(Clone, Debug)]
pub struct Application {
    /// The project's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Reloader {
    /// Publishes the project; the application is none, and the reason is told, where its code is wrong.
    ///
    /// # Errors
    /// There is no project, or the bucket fails.
    pub async fn start(dir: &Path, bucket_url: &str) -> Result<(Self, Option<Application>)> {
        let Ok(canonical) = std::fs::canonicalize(dir) else {
            bail!("`{}` is not there: name the folder of a project", dir.display());
        };
        let deployments = deploy::deployments(&BucketArgs::at(bucket_url).open().await?);
        let mut reloader = Self { dir: canonical, deployments, watched: Arc::default(), failure: None };
        let application = match reloader.attempt().await? {
            Ok((bundled, published)) => {
                eprintln!("holdfast: {}", bundled_text(&bundled));
                Some(Application {
                    name: bundled.package.manifest().name.clone(),
                    version: published.id.to_string(),
                })
            }
            Err(Failure { is_no_project: true, text }) => bail!(text),
            Err(Failure { is_no_project: false, text }) => {
                reloader.fail(text);
                None
            }
        };
        Ok((reloader, application))
    }

    /// Publishes what changes, for ever. May be dropped at any point.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            if let Err(error) = self.look().await {
                self.fail(format!("{error:#}"));
            }
        }
    }

    async fn look(&mut self) -> Result<()> {
        let watched = Arc::clone(&self.watched);
        let changed = tokio::task::spawn_blocking(move || watched.changed()).await?;
        // What made the last attempt fail may be a file that is not watched, because no bundle named it yet.
        if changed.is_none() && self.failure.is_none() {
            return Ok(());
        }
        match self.attempt().await? {
            Ok((bundled, published)) => {
                let was_broken = self.failure.take().is_some();
                if published.changed || was_broken {
                    let files = self.names(&changed.unwrap_or_default());
                    let version = published.id;
                    let what = if published.changed { "reloaded" } else { "whole again" };
                    eprintln!("holdfast: {what}: version {version}{files}; {}", bundled_text(&bundled));
                }
            }
            Err(failure) => self.fail(failure.text),
        }
        Ok(())
    }

    async fn attempt(&mut self) -> Result<Result<(Bundled, Published), Failure>> {
        let begun = SystemTime::now();
        let bundled = match prepare(&self.dir, None).await? {
            Ok(bundled) => bundled,
            Err(error) => {
                let is_no_project = matches!(error, ProjectError::Bundle(BundleError::NoConfig { .. }));
                return Ok(Err(Failure { is_no_project, text: error.to_string() }));
            }
        };
        self.watched = Arc::new(Watched::since(begun, &self.dir, &bundled.files));
        match self.deployments.publish(&bundled.package, MESSAGE).await {
            Ok(published) => Ok(Ok((bundled, published))),
            Err(error) => Ok(Err(Failure { is_no_project: false, text: error.to_string() })),
        }
    }

    fn fail(&mut self, text: String) {
        if self.failure.as_ref() != Some(&text) {
            eprintln!("holdfast: {text}\nholdfast: what ran before goes on; waiting for the files to change");
            self.failure = Some(text);
        }
    }

    /// The first of some files, for a line.
    fn names(&self, files: &[PathBuf]) -> String {
        let Some(first) = files.first() else { return String::new() };
        let first = first.strip_prefix(&self.dir).unwrap_or(first).display().to_string();
        let more = match files.len() {
            1 => String::new(),
            len => format!(" and {} more", len - 1),
        };
        format!(" ({}{more} changed)", printable(&first))
    }
}

/// Why there is nothing new to run.
struct Failure {
    /// The folder is no project at all.
    is_no_project: bool,
    text: String,
}
