//! Watches which version runs, and loads each new one before it is told of. A version that cannot be loaded is told in
//! the log and by a metric; the one before it goes on.

use std::time::Duration;

use holdfast_bucket::{BucketError, Version};
use holdfast_records::Key;
use holdfast_telemetry::{Outcome, metrics};
use holdfast_types::VersionId;

use crate::{DeployError, Deployments, Loaded};

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// Between two looks. 2 s: a deploy is adopted within seconds, for one small request a second and process.
    pub pause: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { pause: Duration::from_secs(2) }
    }
}

/// What the watched records were.
type Seen = (Option<Version>, Option<Version>);

/// A watch of what runs.
#[derive(Debug)]
pub struct Watch {
    deployments: Deployments,
    options: WatchOptions,
    seen: Option<Seen>,
    /// The version that could not be loaded last, so that it is told once.
    broken: Option<VersionId>,
}

impl Watch {
    /// Begins; what runs already is told first.
    #[must_use]
    pub fn new(deployments: Deployments, options: WatchOptions) -> Self {
        Self { deployments, options, seen: None, broken: None }
    }

    /// The next version that is to run, loaded: another one, or the same with other secrets. Waits for it for ever; a
    /// bucket that does not answer is asked again. May be dropped at any point and called again.
    pub async fn next(&mut self) -> Loaded {
        loop {
            if let Some(loaded) = self.look().await {
                return loaded;
            }
            tokio::time::sleep(self.options.pause).await;
        }
    }

    /// Looks once: what is new, if anything is.
    pub async fn look(&mut self) -> Option<Loaded> {
        let seen = match self.versions().await {
            Ok(seen) if self.seen.as_ref() == Some(&seen) => return None,
            Ok(seen) => seen,
            Err(error) => {
                tracing::debug!(%error, "which version runs is unknown");
                return None;
            }
        };
        let (id, result) = match self.deployments.current().await {
            Ok(Some(current)) => (Some(current.id), self.deployments.load(current.id).await),
            Ok(None) => {
                self.seen = Some(seen);
                return None;
            }
            Err(error) => (None, Err(error)),
        };
        match result {
            Ok(loaded) => {
                metrics().deployment_loaded(Outcome::Ok);
                self.seen = Some(seen);
                self.broken = None;
                tracing::info!(version = %loaded.id, "loaded a version of the application");
                Some(loaded)
            }
            Err(error) => {
                self.fail(id, &error);
                // Not marked as seen: what is missing may come, and then the version runs.
                None
            }
        }
    }

    fn fail(&mut self, id: Option<VersionId>, error: &DeployError) {
        metrics().deployment_loaded(Outcome::Failed);
        if id.is_none() || self.broken != id {
            let version = id.map_or_else(|| "?".to_owned(), |id| id.to_string());
            tracing::error!(version, %error, "a version of the application cannot be loaded; what ran before goes on");
        }
        self.broken = id;
    }

    async fn versions(&self) -> Result<Seen, BucketError> {
        let records = &self.deployments.records;
        let (current, secrets) = (Key::CurrentVersion.to_string(), Key::Secrets.to_string());
        let (current, secrets) = futures::try_join!(records.head(&current), records.head(&secrets))?;
        Ok((current.map(|head| head.version), secrets.map(|head| head.version)))
    }
}
