//! An application with its bytes: what the packager makes, what a deployment publishes, and what a node loads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use holdfast_types::ContentHash;

use crate::{BlobEntry, Manifest};

/// The SHA-256 of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> ContentHash {
    let mut digest = Sha256::new();
    digest.update(bytes);
    digest.finish()
}

/// SHA-256 of bytes that come piece by piece.
pub struct Sha256(ring::digest::Context);

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sha256").finish_non_exhaustive()
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl Sha256 {
    /// Of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(ring::digest::Context::new(&ring::digest::SHA256))
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all of them.
    ///
    /// # Panics
    /// Never: SHA-256 has 32 bytes.
    #[must_use]
    pub fn finish(self) -> ContentHash {
        let digest = self.0.finish();
        ContentHash::from_digest(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

/// Blobs by their hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blobs(BTreeMap<ContentHash, Bytes>);

impl Blobs {
    /// Adds bytes and tells how a manifest names them.
    pub fn add(&mut self, bytes: impl Into<Bytes>) -> BlobEntry {
        let bytes = bytes.into();
        let entry = BlobEntry { sha256: sha256(&bytes), bytes: bytes.len() as u64 };
        self.0.insert(entry.sha256, bytes);
        entry
    }

    /// The bytes of a hash.
    #[must_use]
    pub fn get(&self, hash: ContentHash) -> Option<&Bytes> {
        self.0.get(&hash)
    }

    /// All of them, by hash.
    pub fn iter(&self) -> impl Iterator<Item = (ContentHash, &Bytes)> {
        self.0.iter().map(|(hash, bytes)| (*hash, bytes))
    }
}

/// What a package lacks. Disposition: corrupt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// A blob of the manifest is not there.
    #[error("module `{module}` has no bytes: blob {hash} is missing")]
    MissingBlob {
        /// The module.
        module: String,
        /// The blob.
        hash: ContentHash,
    },
    /// The entry is not a module.
    #[error("the entry `{0}` is not one of the modules")]
    NoEntry(String),
}

/// A manifest and the bytes of every blob of its code. Each blob has the hash that it is under. Static files are not held in
/// memory: where it was packaged here, they are on this machine's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    manifest: Manifest,
    blobs: Blobs,
    files: BTreeMap<ContentHash, PathBuf>,
}

impl Package {
    /// Joins the two.
    ///
    /// # Errors
    /// [`PackageError`] when they do not belong together.
    pub fn new(manifest: Manifest, blobs: Blobs) -> Result<Self, PackageError> {
        if !manifest.modules.iter().any(|module| module.name == manifest.entry) {
            return Err(PackageError::NoEntry(manifest.entry));
        }
        for module in &manifest.modules {
            for blob in std::iter::once(module.content).chain(module.source_map) {
                if blobs.get(blob.sha256).is_none_or(|bytes| bytes.len() as u64 != blob.bytes) {
                    let module = module.name.clone();
                    return Err(PackageError::MissingBlob { module, hash: blob.sha256 });
                }
            }
        }
        for (name, blob) in manifest
            .assets
            .iter()
            .flat_map(|assets| [("_headers", assets.headers), ("_redirects", assets.redirects)])
        {
            if let Some(blob) = blob.filter(|blob| blobs.get(blob.sha256).is_none()) {
                return Err(PackageError::MissingBlob { module: name.to_owned(), hash: blob.sha256 });
            }
        }
        Ok(Self { manifest, blobs, files: BTreeMap::new() })
    }

    /// With the places of its static files, by their hashes.
    #[must_use]
    pub fn with_files(self, files: BTreeMap<ContentHash, PathBuf>) -> Self {
        Self { files, ..self }
    }

    /// The places of its static files.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<ContentHash, PathBuf> {
        &self.files
    }

    /// What it is made of.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its bytes.
    #[must_use]
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The bytes of one of its blobs.
    ///
    /// # Panics
    /// When the entry is not of this package's manifest.
    #[must_use]
    pub fn bytes(&self, blob: BlobEntry) -> &Bytes {
        self.blobs.get(blob.sha256).expect("`new` found every blob of the manifest")
    }

    /// Bytes of all modules together, source maps aside.
    #[must_use]
    pub fn module_bytes(&self) -> u64 {
        self.manifest.modules.iter().map(|module| module.content.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModuleEntry, ModuleKind};

    fn manifest(content: BlobEntry, entry: &str) -> Manifest {
        let module = ModuleEntry { name: "a.js".into(), kind: ModuleKind::Esm, content, source_map: None };
        Manifest {
            name: "app".into(),
            entry: entry.into(),
            compatibility_date: "2026-01-01".into(),
            compatibility_flags: vec![],
            modules: vec![module],
            bindings: vec![],
            classes: vec![],
            migrations: vec![],
            crons: vec![],
            assets: None,
        }
    }

    #[test]
    fn a_package_has_every_byte_that_its_manifest_names() {
        let mut blobs = Blobs::default();
        let content = blobs.add("export default {}");
        let package = Package::new(manifest(content, "a.js"), blobs.clone()).expect("whole");
        assert_eq!(package.bytes(content), "export default {}");
        assert_eq!(
            Package::new(manifest(content, "b.js"), blobs.clone()),
            Err(PackageError::NoEntry("b.js".into()))
        );
        let longer = BlobEntry { bytes: content.bytes + 1, ..content };
        assert!(Package::new(manifest(longer, "a.js"), blobs).is_err());
        assert!(Package::new(manifest(content, "a.js"), Blobs::default()).is_err());
    }

    #[test]
    fn a_version_is_named_by_its_content_alone() {
        let content = Blobs::default().add("1");
        let first = manifest(content, "a.js");
        assert_eq!(first.id(), first.clone().id());
        assert_ne!(first.id(), Manifest { name: "other".into(), ..first }.id());
    }
}
