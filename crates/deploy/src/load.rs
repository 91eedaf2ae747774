//! A version with its bytes and secrets, verified: what a node runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_records::Package;
use holdfast_types::VersionId;

use crate::{DeployError, Deployments, Store};

/// A version that is ready to run.
#[derive(Clone)]
pub struct Loaded {
    /// Its name.
    pub id: VersionId,
    /// Its manifest and bytes.
    pub package: Package,
    /// Its secrets, as strings of `env`. A binding of the same name hides one.
    pub secrets: BTreeMap<String, String>,
    /// Where its static files are read; none where it is only compiled.
    pub assets: Option<Arc<Store>>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.secrets.keys().collect();
        f.debug_struct("Loaded").field("id", &self.id).field("secrets", &names).finish_non_exhaustive()
    }
}

impl Loaded {
    /// A package that is to be compiled and not to run.
    #[must_use]
    pub fn to_compile(package: Package) -> Self {
        Self { id: package.manifest().id(), package, secrets: BTreeMap::new(), assets: None }
    }
}

impl Deployments {
    /// Loads a version's code: every byte has the hash that its manifest says, and the manifest the id.
    ///
    /// # Errors
    /// Whatever of it is missing or damaged.
    pub async fn load(&self, id: VersionId) -> Result<Loaded, DeployError> {
        let record = self.version(id).await?;
        let blobs = self.download(record.manifest.code()).await?;
        let package = Package::new(record.manifest, blobs)?;
        let secrets = self.read_secrets().await?;
        Ok(Loaded { id, package, secrets, assets: Some(Arc::clone(&self.assets)) })
    }
}
