//! An application as isolates load it: the modules, what stands in `env`, and its identity. Shared by all isolates of
//! a process; the bytecode of its modules is compiled by the first isolate that needs it and never leaves the process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};

use crate::effect::JsError;
use crate::foreign::Bytecode;
use crate::isolate::{CRON_CLASS, modules};
use crate::source_maps::SourceMaps;
use crate::wasm;

/// What a module's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An ECMAScript module.
    EsModule,
    /// UTF-8; the default export is a string.
    Text,
    /// JSON; the default export is its value.
    Json,
    /// Bytes; the default export is an `ArrayBuffer`.
    Data,
    /// WebAssembly; the default export is a `WebAssembly.Module`.
    Wasm,
}

/// One module.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) kind: SourceKind,
    pub(crate) bytes: Bytes,
}

/// What a property of `env` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// A string: a variable or a secret.
    Text(String),
    /// Any other value, as JSON text.
    Json(String),
    /// A namespace of Durable Objects of this application.
    ObjectNamespace {
        /// Their class.
        class: String,
    },
    /// A D1 database: the cell `db:<name>`.
    Database {
        /// Its name.
        name: String,
    },
    /// An R2 bucket.
    R2Bucket {
        /// Its name.
        name: String,
    },
    /// The application's static files.
    Assets,
    /// The Worker of this application.
    SelfService {
        /// The exported `WorkerEntrypoint`; none: the default export.
        entrypoint: Option<String>,
    },
}

/// The answer of static files.
pub type AssetAnswer = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// The static files of an application. Isolates only carry it to whoever does their I/O.
pub trait AssetServer: fmt::Debug + Send + Sync {
    /// Whether the Worker is to answer a request of a client, and not the files.
    fn is_for_worker(&self, uri: &Uri, headers: &HeaderMap) -> bool;

    /// Answers a request, whose URL may be absolute, with a file, a redirect, or that there is none.
    fn answer(&self, request: Request<()>) -> AssetAnswer;
}

/// Why an application cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplicationError {
    /// The entry is not an ECMAScript module of the application.
    #[error("the entry `{0}` is not one of the application's ECMAScript modules")]
    NoEntry(String),
    /// Two modules have one name.
    #[error("two modules have the name `{0}`")]
    SameName(String),
    /// A module's name cannot be written in an import.
    #[error(
        "the module name `{0}` holds a NUL or is of a built-in scheme (`cloudflare:`, `node:`, `holdfast:`)"
    )]
    BadName(String),
    /// Code, text or JSON that is not UTF-8.
    #[error("the module `{0}` is not UTF-8")]
    NotUtf8(String),
}

/// An application.
#[derive(Debug)]
pub struct Application {
    sources: BTreeMap<String, Source>,
    entry: String,
    bindings: BTreeMap<String, Binding>,
    compatibility_date: String,
    compatibility_flags: BTreeSet<String>,
    version: String,
    crons: BTreeSet<String>,
    assets: Option<Arc<dyn AssetServer>>,
    source_maps: SourceMaps,
    /// The bytecode of its ECMAScript modules, or why there is none.
    compiled: OnceLock<Result<BTreeMap<String, Bytecode>, JsError>>,
    /// Its modules of WebAssembly, or which of them is wrong.
    wasm: OnceLock<Result<BTreeMap<String, Arc<wasm::Compiled>>, JsError>>,
    wasm_engine: OnceLock<wasmi::Engine>,
}

impl Application {
    /// An application of these modules, which begins with `entry`. `version` is its identity in logs and metadata.
    ///
    /// # Errors
    /// [`ApplicationError`] names the module that is wrong. Disposition: reject.
    pub fn new(
        version: impl Into<String>,
        entry: impl Into<String>,
        modules: impl IntoIterator<Item = (String, SourceKind, Bytes)>,
    ) -> Result<Self, ApplicationError> {
        let mut sources = BTreeMap::new();
        for (name, kind, bytes) in modules {
            let built_in =
                ["cloudflare:", "node:", "holdfast:"].iter().any(|scheme| name.starts_with(scheme));
            if built_in || name.contains('\0') {
                return Err(ApplicationError::BadName(name));
            }
            let is_text = !matches!(kind, SourceKind::Data | SourceKind::Wasm);
            if is_text && std::str::from_utf8(&bytes).is_err() {
                return Err(ApplicationError::NotUtf8(name));
            }
            if sources.insert(name.clone(), Source { kind, bytes }).is_some() {
                return Err(ApplicationError::SameName(name));
            }
        }
        let entry = entry.into();
        if sources.get(&entry).is_none_or(|source: &Source| source.kind != SourceKind::EsModule) {
            return Err(ApplicationError::NoEntry(entry));
        }
        Ok(Self {
            sources,
            entry,
            bindings: BTreeMap::new(),
            compatibility_date: String::new(),
            compatibility_flags: BTreeSet::new(),
            version: version.into(),
            crons: BTreeSet::new(),
            assets: None,
            source_maps: SourceMaps::default(),
            compiled: OnceLock::new(),
            wasm: OnceLock::new(),
            wasm_engine: OnceLock::new(),
        })
    }

    /// With a property of `env`. The last one of a name counts, so that secrets may replace variables.
    #[must_use]
    pub fn bind(mut self, name: impl Into<String>, binding: Binding) -> Self {
        self.bindings.insert(name.into(), binding);
        self
    }

    /// With expressions whose times call the `scheduled` handler. One that cannot be read never comes.
    #[must_use]
    pub fn scheduled(mut self, crons: impl IntoIterator<Item = String>) -> Self {
        self.crons.extend(crons);
        self
    }

    /// With its static files.
    #[must_use]
    pub fn with_assets(self, assets: Option<Arc<dyn AssetServer>>) -> Self {
        Self { assets, ..self }
    }

    /// With the source maps of modules, by name: stacks in logs then name the files that the modules were made from.
    #[must_use]
    pub fn with_source_maps(self, maps: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        Self { source_maps: SourceMaps::new(maps), ..self }
    }

    /// A text for a log, whose stacks name places of the project's files where there are maps.
    pub(crate) fn map_stacks(&self, text: String) -> String {
        self.source_maps.map(text, |name| Some(&self.source(name)?.bytes[..]))
    }

    /// An error for a log, likewise.
    pub(crate) fn map_stack(&self, error: JsError) -> JsError {
        JsError { stack: error.stack.map(|stack| self.map_stacks(stack)), ..error }
    }

    /// Its static files.
    #[must_use]
    pub fn assets(&self) -> Option<&Arc<dyn AssetServer>> {
        self.assets.as_ref()
    }

    /// The cron expressions, in byte order.
    pub fn crons(&self) -> impl Iterator<Item = &str> {
        self.crons.iter().map(String::as_str)
    }

    /// With the behaviour that the project was written for.
    #[must_use]
    pub fn compatibility(mut self, date: &str, flags: impl IntoIterator<Item = String>) -> Self {
        date.clone_into(&mut self.compatibility_date);
        self.compatibility_flags.extend(flags);
        self
    }

    /// Its identity.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The behaviour that the project was written for, `YYYY-MM-DD`.
    #[must_use]
    pub fn compatibility_date(&self) -> &str {
        &self.compatibility_date
    }

    /// Whether a behaviour is switched on by name.
    #[must_use]
    pub fn has_compatibility_flag(&self, flag: &str) -> bool {
        self.compatibility_flags.contains(flag)
    }

    /// Whether a binding names this Durable Object class, or the fleet has it for every application.
    #[must_use]
    pub fn has_class(&self, class: &str) -> bool {
        if class == CRON_CLASS {
            return true;
        }
        self.bindings
            .values()
            .any(|binding| matches!(binding, Binding::ObjectNamespace { class: named } if named == class))
    }

    pub(crate) fn entry(&self) -> &str {
        &self.entry
    }

    pub(crate) fn source(&self, name: &str) -> Option<&Source> {
        self.sources.get(name)
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources.iter().map(|(name, source)| (name.as_str(), source))
    }

    /// Compiles the modules, once. [`crate::Isolate::new`] does so too; a call before keeps the wait out of its way.
    ///
    /// # Errors
    /// The syntax error of a module, or a module of WebAssembly that is not valid. Disposition: reject.
    pub fn compile(&self) -> Result<(), JsError> {
        self.compiled.get_or_init(|| modules::compile(self)).as_ref().map(|_| ()).map_err(Clone::clone)?;
        self.wasm.get_or_init(|| self.compile_wasm()).as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn compile_wasm(&self) -> Result<BTreeMap<String, Arc<wasm::Compiled>>, JsError> {
        let modules = self.sources.iter().filter(|(_, source)| source.kind == SourceKind::Wasm);
        let compile = |(name, source): (&String, &Source)| {
            let compiled = wasm::Compiled::new(self.wasm_engine(), &source.bytes);
            let compiled = compiled.map_err(|reason| JsError {
                name: "CompileError".to_owned(),
                ..JsError::new(format!("`{name}` is not valid WebAssembly: {reason}"))
            });
            Ok((name.clone(), Arc::new(compiled?)))
        };
        modules.map(compile).collect()
    }

    /// What its WebAssembly runs on.
    pub(crate) fn wasm_engine(&self) -> &wasmi::Engine {
        self.wasm_engine.get_or_init(wasm::engine)
    }

    /// A module of WebAssembly.
    pub(crate) fn wasm(&self, name: &str) -> Option<Arc<wasm::Compiled>> {
        self.wasm.get()?.as_ref().ok()?.get(name).cloned()
    }

    /// The bytecode of an ECMAScript module.
    pub(crate) fn bytecode(&self, name: &str) -> Option<&Bytecode> {
        self.compiled.get()?.as_ref().ok()?.get(name)
    }

    pub(crate) fn bindings(&self) -> impl Iterator<Item = (&str, &Binding)> {
        self.bindings.iter().map(|(name, binding)| (name.as_str(), binding))
    }
}
