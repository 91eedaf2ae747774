//! A loaded version as isolates run it.

use std::sync::Arc;
use std::time::Duration;

use holdfast_assets::{Headers, Redirects, RuleError, Site};
use holdfast_js::{Application, AssetServer, Binding as Bound, CRON_CLASS, SourceKind};
use holdfast_records::{Binding, BlobEntry, Manifest, ModuleKind};
use tokio::sync::watch;

use crate::assets::Server;
use crate::{DeployError, Deployments, Loaded, Store, Watch, WatchOptions};

/// The cell class of the SQL API.
const DATABASES: &str = "db";
/// The compatibility date from which static files answer where a person goes.
const NAVIGATION_SINCE: &str = "2025-04-01";
/// Longest wait for what runs as a program starts. A bucket that is slower is asked again later.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// The application that runs, as it changes; none before the first one is loaded.
pub type Running = watch::Receiver<Option<Arc<Application>>>;

impl Loaded {
    /// The application, compiled.
    ///
    /// # Errors
    /// What this release cannot run, a syntax error, or WebAssembly that is not valid. Disposition: reject.
    pub fn application(&self) -> Result<Application, DeployError> {
        let manifest = self.package.manifest();
        let mut modules = Vec::with_capacity(manifest.modules.len());
        let mut source_maps = Vec::new();
        for module in &manifest.modules {
            let bytes = self.package.bytes(module.content).clone();
            modules.push((module.name.clone(), source_kind(module.kind), bytes));
            let map = module.source_map.map(|map| self.package.bytes(map).clone());
            source_maps.extend(map.map(|map| (module.name.clone(), map)));
        }
        for (name, whose) in [(DATABASES, "databases"), (CRON_CLASS, "cron triggers")] {
            if manifest.classes.iter().any(|class| class == name) {
                let reason = format!("a class cannot be named `{name}`: that is the class of {whose}");
                return Err(DeployError::NotRunnable(reason));
            }
        }
        let not_runnable = |error: &dyn std::fmt::Display| DeployError::NotRunnable(error.to_string());
        let application = Application::new(self.id.to_string(), &manifest.entry, modules)
            .map_err(|error| not_runnable(&error))?;
        let assets = self.asset_server()?;
        let application = bind(application, manifest, &self.secrets)
            .with_assets(assets)
            .with_source_maps(source_maps)
            .scheduled(manifest.crons.iter().cloned())
            .compatibility(&manifest.compatibility_date, manifest.compatibility_flags.iter().cloned());
        application.compile().map_err(|error| not_runnable(&error))?;
        Ok(application)
    }

    /// What answers requests for its static files, if it has any.
    fn asset_server(&self) -> Result<Option<Arc<dyn AssetServer>>, DeployError> {
        let manifest = self.package.manifest();
        let Some(assets) = &manifest.assets else { return Ok(None) };
        let text = |name: &str, blob: Option<BlobEntry>| {
            let bytes = blob.map(|blob| self.package.bytes(blob).to_vec()).unwrap_or_default();
            String::from_utf8(bytes).map_err(|_| DeployError::NotRunnable(format!("`{name}` is not UTF-8")))
        };
        let wrong = |name: &str, error: RuleError| DeployError::NotRunnable(format!("`{name}`, {error}"));
        let headers = Headers::parse(&text("_headers", assets.headers)?);
        let redirects = Redirects::parse(&text("_redirects", assets.redirects)?);
        let headers = headers.map_err(|error| wrong("_headers", error))?;
        let redirects = redirects.map_err(|error| wrong("_redirects", error))?;
        let site = Site::new(assets, (headers, redirects), takes_navigation(manifest));
        let server =
            |store: &Arc<Store>| -> Arc<dyn AssetServer> { Arc::new(Server::new(site, Arc::clone(store))) };
        Ok(self.assets.as_ref().map(server))
    }
}

/// Whether a page that a person goes to, and that is no file, is answered by the files and not by the Worker.
fn takes_navigation(manifest: &Manifest) -> bool {
    let has = |flag: &str| manifest.compatibility_flags.iter().any(|other| other == flag);
    has("assets_navigation_prefers_asset_serving")
        || (manifest.compatibility_date.as_str() >= NAVIGATION_SINCE
            && !has("assets_navigation_has_no_effect"))
}

/// Secrets first: a binding of the same name hides one.
fn bind(
    application: Application,
    manifest: &Manifest,
    secrets: &std::collections::BTreeMap<String, String>,
) -> Application {
    let secrets = secrets.iter().map(|(name, value)| (name.clone(), Bound::Text(value.clone())));
    let bindings = manifest.bindings.iter().map(|entry| {
        let bound = match entry.binding.clone() {
            Binding::Text { value } => Bound::Text(value),
            Binding::Json { value } => Bound::Json(value),
            Binding::DurableObject { class } => Bound::ObjectNamespace { class },
            Binding::D1Database { database } => Bound::Database { name: database },
            Binding::R2Bucket { bucket } => Bound::R2Bucket { name: bucket },
            Binding::Assets => Bound::Assets,
            Binding::SelfService { entrypoint } => Bound::SelfService { entrypoint },
        };
        (entry.name.clone(), bound)
    });
    secrets.chain(bindings).fold(application, |application, (name, bound)| application.bind(name, bound))
}

fn source_kind(kind: ModuleKind) -> SourceKind {
    match kind {
        ModuleKind::Esm => SourceKind::EsModule,
        ModuleKind::Text => SourceKind::Text,
        ModuleKind::Json => SourceKind::Json,
        ModuleKind::Data => SourceKind::Data,
        ModuleKind::Wasm => SourceKind::Wasm,
    }
}

impl Deployments {
    /// Follows which application runs, from a first look that may take `FIRST_LOOK`: a program that starts knows at once
    /// what it serves. What cannot run is told in the log; the one before it goes on. The second value does the work
    /// until every receiver is gone: run it on a task.
    pub async fn follow(
        &self,
        options: WatchOptions,
    ) -> (Running, impl Future<Output = ()> + Send + 'static + use<>) {
        let (sender, receiver) = watch::channel(None);
        let mut watch = Watch::new(self.clone(), options);
        if let Ok(Some(loaded)) = tokio::time::timeout(FIRST_LOOK, watch.look()).await {
            publish(&sender, loaded).await;
        }
        let work = async move {
            loop {
                let loaded = tokio::select! {
                    () = sender.closed() => return,
                    loaded = watch.next() => loaded,
                };
                publish(&sender, loaded).await;
            }
        };
        (receiver, work)
    }
}

async fn publish(sender: &watch::Sender<Option<Arc<Application>>>, loaded: Loaded) {
    let version = loaded.id;
    // Compiling a large application takes a while, and this thread serves others.
    match tokio::task::spawn_blocking(move || loaded.application()).await {
        Ok(Ok(application)) => drop(sender.send(Some(Arc::new(application)))),
        Ok(Err(error)) => {
            tracing::error!(%version, %error, "a version of the application cannot run; what ran before goes on");
        }
        Err(error) => tracing::error!(%version, %error, "loading a version of the application failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{bucket, package_with};

    #[tokio::test]
    async fn what_runs_is_followed_and_what_cannot_run_is_passed_over() {
        let (_, deployments) = bucket();
        let (mut running, work) = deployments.follow(WatchOptions { pause: Duration::from_millis(1) }).await;
        let work = tokio::spawn(work);
        assert!(running.borrow().is_none());

        deployments.put_secret("KEY", "first").await.unwrap();
        let first =
            deployments.publish(&package_with("export default {}", ModuleKind::Esm), "").await.unwrap();
        running.changed().await.unwrap();
        assert_eq!(running.borrow_and_update().as_ref().unwrap().version(), first.id.to_string());

        for (source, kind) in [("export default {", ModuleKind::Esm), ("\0asm", ModuleKind::Wasm)] {
            deployments.publish(&package_with(source, kind), "").await.unwrap();
        }
        let last =
            deployments.publish(&package_with("export default {};", ModuleKind::Esm), "").await.unwrap();
        running.changed().await.unwrap();
        assert_eq!(running.borrow_and_update().as_ref().unwrap().version(), last.id.to_string());

        // Another secret is another application of the same version.
        deployments.put_secret("KEY", "second").await.unwrap();
        running.changed().await.unwrap();
        assert_eq!(running.borrow_and_update().as_ref().unwrap().version(), last.id.to_string());

        drop(running);
        work.await.unwrap();
        let (running, _) = deployments.follow(WatchOptions::default()).await;
        assert!(running.borrow().is_some(), "the first look is over");
    }

    #[test]
    fn why_a_version_cannot_run_is_said_with_its_module() {
        let loaded = |source, kind| {
            let package = package_with(source, kind);
            Loaded::to_compile(package)
        };
        let error = loaded("export default {\n", ModuleKind::Esm).application().unwrap_err().to_string();
        assert!(error.contains("extra.bin:2"), "{error}");
        let error = loaded("/(?<a>)(?<a>)/;", ModuleKind::Esm).application().unwrap_err().to_string();
        assert!(error.contains("duplicate group") && error.contains("at extra.bin"), "{error}");
        let error = loaded("\0asm", ModuleKind::Wasm).application().unwrap_err().to_string();
        assert!(error.contains("`extra.bin` is not valid WebAssembly: "), "{error}");
        assert!(loaded("\0asm\u{1}\0\0\0", ModuleKind::Wasm).application().is_ok());
        assert!(loaded("\u{1}", ModuleKind::Data).application().is_ok());
    }
}
