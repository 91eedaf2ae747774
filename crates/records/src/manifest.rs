//! What an application is made of, without its bytes: modules, bindings, classes. Its encoding is canonical, so equal
//! applications have equal version ids, whoever deploys them and whenever.

use holdfast_types::{ContentHash, VersionId};
use serde::{Deserialize, Serialize};

use crate::hex;

/// An application. Lists are in byte order of their names, except migrations, which are in the order of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The project's name.
    pub name: String,
    /// The module that exports the Worker and the classes; one of `modules`.
    pub entry: String,
    /// `YYYY-MM-DD`: which behaviour the project was written for.
    pub compatibility_date: String,
    /// Behaviours switched by name.
    pub compatibility_flags: Vec<String>,
    /// Every module, whatever reaches it.
    pub modules: Vec<ModuleEntry>,
    /// What stands in `env`.
    pub bindings: Vec<BindingEntry>,
    /// The Durable Object classes that the bindings name.
    pub classes: Vec<String>,
    /// How the project's classes came to be, as the project tells it.
    pub migrations: Vec<MigrationEntry>,
    /// Cron expressions whose times call the Worker's `scheduled` handler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crons: Vec<String>,
    /// Its static files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assets: Option<Assets>,
}

/// Static files, and how paths lead to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assets {
    /// In byte order of their paths.
    pub files: Vec<AssetFile>,
    /// How paths of HTML pages look.
    pub html_handling: HtmlHandling,
    /// What a path without a file is answered with.
    pub not_found_handling: NotFoundHandling,
    /// Paths that the Worker is asked for first: `/api/*`, or `!/api/docs/*` for what it is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_worker_first: Vec<String>,
    /// The project has no Worker: nothing else answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_alone: bool,
    /// The file `_headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BlobEntry>,
    /// The file `_redirects`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<BlobEntry>,
}

/// One static file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetFile {
    /// Its path below the folder, from `/`, not encoded.
    pub path: String,
    /// Its bytes.
    #[serde(flatten)]
    pub content: BlobEntry,
}

/// How paths of HTML pages look, as in Wrangler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HtmlHandling {
    /// `/a` for `a.html`, `/a/` for `a/index.html`.
    #[default]
    AutoTrailingSlash,
    /// `/a/` for both.
    ForceTrailingSlash,
    /// `/a` for both.
    DropTrailingSlash,
    /// Files under their own paths alone.
    None,
}

/// What a path without a file is answered with, as in Wrangler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotFoundHandling {
    /// 404.
    #[default]
    None,
    /// The nearest `404.html` above the path, with status 404.
    #[serde(rename = "404-page")]
    Page,
    /// `/index.html`, with status 200.
    SinglePageApplication,
}

/// One module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleEntry {
    /// Its name: what an import of another module says, byte for byte.
    pub name: String,
    /// What its bytes are.
    pub kind: ModuleKind,
    /// Its bytes.
    #[serde(flatten)]
    pub content: BlobEntry,
    /// The source map (version 3) of generated code, for stack traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_map: Option<BlobEntry>,
}

/// What a module's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// An ECMAScript module. Its import specifiers are names of modules of this manifest, `cloudflare:…` or `node:…`.
    Esm,
    /// UTF-8; the default export is a string.
    Text,
    /// JSON; the default export is its value.
    Json,
    /// Bytes; the default export is an `ArrayBuffer`.
    Data,
    /// WebAssembly; the default export is a `WebAssembly.Module`.
    Wasm,
}

impl ModuleKind {
    /// In a word, as in the manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Esm => "esm",
            Self::Text => "text",
            Self::Json => "json",
            Self::Data => "data",
            Self::Wasm => "wasm",
        }
    }
}

/// Bytes by their hash, at `deploy-blobs/sha256/<hash>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobEntry {
    /// SHA-256 of the bytes.
    #[serde(with = "hex::content_hash")]
    pub sha256: ContentHash,
    /// How many bytes.
    pub bytes: u64,
}

/// One property of `env`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingEntry {
    /// The property.
    pub name: String,
    /// What it holds.
    #[serde(flatten)]
    pub binding: Binding,
}

/// What a property of `env` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Binding {
    /// A string of the project.
    Text {
        /// The string.
        value: String,
    },
    /// Any other value of the project.
    Json {
        /// The value, as JSON text: its members stay in the project's order, whatever decodes the manifest.
        value: String,
    },
    /// A namespace of Durable Objects of this application.
    DurableObject {
        /// Their class.
        class: String,
    },
    /// A D1 database: the cell `db:<name>`.
    D1Database {
        /// Its name.
        database: String,
    },
    /// An R2 bucket: the part `r2/<bucket>/` of the fleet's bucket.
    R2Bucket {
        /// Its name.
        bucket: String,
    },
    /// The application's static files.
    Assets,
    /// The Worker of this application.
    SelfService {
        /// The exported `WorkerEntrypoint`; none: the default export.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entrypoint: Option<String>,
    },
}

/// One step in the life of the project's classes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationEntry {
    /// Its name.
    pub tag: String,
    /// Classes that began with it, asking for SQLite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_sqlite_classes: Vec<String>,
    /// Classes that began with it, asking for key-value storage alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_classes: Vec<String>,
    /// Classes that got another name, as (from, to).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed_classes: Vec<(String, String)>,
    /// Classes that ended with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted_classes: Vec<String>,
}

impl Manifest {
    /// The canonical encoding: what [`Manifest::id`] hashes.
    ///
    /// # Panics
    /// Never: a manifest holds nothing that JSON cannot say.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a manifest holds only strings, numbers and lists of them")
    }

    /// The version that this application is.
    #[must_use]
    pub fn id(&self) -> VersionId {
        let digest = crate::sha256(&self.encode());
        let (first, _) = digest.digest().split_first_chunk::<16>().expect("a digest has 32 bytes");
        VersionId::from_bits(u128::from_be_bytes(*first))
    }

    /// The blobs that a process needs to run the application, in no order that matters; some may be named twice.
    pub fn code(&self) -> impl Iterator<Item = BlobEntry> {
        let modules =
            self.modules.iter().flat_map(|module| std::iter::once(module.content).chain(module.source_map));
        modules
            .chain(self.assets.iter().flat_map(|assets| assets.headers.into_iter().chain(assets.redirects)))
    }

    /// Every blob that the application needs, its static files among them.
    pub fn blobs(&self) -> impl Iterator<Item = BlobEntry> {
        let files = self.assets.iter().flat_map(|assets| &assets.files);
        self.code().chain(files.map(|file| file.content))
    }
}
