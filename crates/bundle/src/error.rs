//! Why a project cannot be packaged. Every kind is a refusal: nothing was published, the project is to be changed.

use std::io;

use crate::Place;

/// Why a project cannot be packaged. Disposition: reject.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The folder has no configuration.
    #[error(
        "`{dir}` holds no wrangler.jsonc, wrangler.json or wrangler.toml: make one, or name another folder"
    )]
    NoConfig {
        /// The folder.
        dir: String,
    },
    /// The configuration is wrong.
    #[error("{place}: {fault}{}", place.excerpt())]
    Config {
        /// Where.
        place: Place,
        /// What is wrong.
        fault: ConfigFault,
    },
    /// A module is not valid.
    #[error("{place}: {message}{}", place.excerpt())]
    Code {
        /// Where.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// An import leads nowhere.
    #[error("{place}: {fault}{}", place.excerpt())]
    Import {
        /// Where.
        place: Place,
        /// What is wrong.
        fault: ImportFault,
    },
    /// A text or JSON module is not what its kind says.
    #[error("{place}: it is a {kind} module and {detail}{}", place.excerpt())]
    Content {
        /// Where.
        place: Place,
        /// The kind of module.
        kind: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// The folder of static files cannot be shipped.
    #[error("static files: {0}")]
    Folder(String),
    /// There are too many static files.
    #[error("`{dir}` holds more than {max} files: write what is not to be shipped into `.assetsignore`")]
    TooManyFiles {
        /// The folder.
        dir: String,
        /// How many there may be.
        max: usize,
    },
    /// The entry does not export what it must.
    #[error("`{entry}` {what}; it exports {exports}")]
    Entry {
        /// The entry.
        entry: String,
        /// What is missing.
        what: String,
        /// The names that it exports.
        exports: String,
    },
    /// A class of the configuration is not exported by the entry.
    #[error("{place}: the class `{class}` is not exported by `{entry}`, which exports {exports}{}", place.excerpt())]
    Class {
        /// Where the configuration names it.
        place: Place,
        /// The class.
        class: String,
        /// The entry.
        entry: String,
        /// The names that it exports.
        exports: String,
    },
    /// More modules than a package may have.
    #[error("the application has more than {max} modules; the last was `{last}`")]
    TooManyModules {
        /// The bound.
        max: usize,
        /// Where the count ended.
        last: String,
    },
    /// A file is larger than a module may be.
    #[error("`{file}` has {bytes} bytes; a module may have {max}")]
    FileTooLarge {
        /// The file.
        file: String,
        /// Its size.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// The modules are larger than a package may be.
    #[error("the modules have {bytes} bytes together; an application may have {max}. The largest: {largest}")]
    TooLarge {
        /// Their size.
        bytes: u64,
        /// The bound.
        max: u64,
        /// The largest modules, for a person.
        largest: String,
    },
}

/// What is wrong in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFault {
    /// Not the syntax of its kind.
    #[error("{0}")]
    Syntax(String),
    /// A key that nobody knows.
    #[error("unknown key `{key}`{}", hint(nearest))]
    UnknownKey {
        /// The key, with those above it.
        key: String,
        /// A known key that looks like it.
        nearest: Option<String>,
    },
    /// A key of Wrangler that has no meaning here yet.
    #[error("`{key}` is not supported yet")]
    NotYet {
        /// The key, with those above it.
        key: String,
    },
    /// A key twice.
    #[error("`{key}` stands here for the second time")]
    Twice {
        /// The key.
        key: String,
    },
    /// A key that must be there.
    #[error("`{key}` is missing: {what}")]
    Missing {
        /// The key.
        key: String,
        /// What it is for.
        what: &'static str,
    },
    /// A value of another type.
    #[error("`{key}` must be {expected}, not {found}")]
    Type {
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A value that is not allowed.
    #[error("`{key}`: `{value}` {problem}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

/// What is wrong with an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportFault {
    /// Nothing is there.
    #[error("cannot find `{specifier}`, imported by `{importer}`: {reason}")]
    NotFound {
        /// What is imported.
        specifier: String,
        /// By which module.
        importer: String,
        /// What the resolver says.
        reason: String,
    },
    /// A module of Node that the runtime does not have.
    #[error("`{specifier}`, imported by `{importer}`, is a module of Node that Holdfast does not have")]
    NoSuchBuiltin {
        /// What is imported.
        specifier: String,
        /// By which module.
        importer: String,
    },
    /// A module of Node that needs a flag.
    #[error(
        "`{specifier}`, imported by `{importer}`, is a module of Node: add \"nodejs_compat\" to compatibility_flags"
    )]
    NeedsNodeCompat {
        /// What is imported.
        specifier: String,
        /// By which module.
        importer: String,
    },
    /// A `cloudflare:` module that the runtime does not have.
    #[error("`{specifier}`, imported by `{importer}`, is not supported yet")]
    NoSuchCloudflare {
        /// What is imported.
        specifier: String,
        /// By which module.
        importer: String,
    },
    /// A file of no kind that can be a module.
    #[error(
        "`{specifier}`, imported by `{importer}`, is the file `{file}`, which is no module: add a rule for it"
    )]
    NoKind {
        /// What is imported.
        specifier: String,
        /// By which module.
        importer: String,
        /// What it resolved to.
        file: String,
    },
    /// A syntax of imports that the engine lacks.
    #[error("`import {phase}` is not supported yet")]
    Phase {
        /// The phase.
        phase: &'static str,
    },
    /// A name that the module does not export.
    #[error("`{target}` has no export `{name}`, which `{importer}` imports")]
    NoExport {
        /// The name.
        name: String,
        /// The module without it.
        target: String,
        /// The module that wants it.
        importer: String,
    },
    /// `require` of a module whose evaluation waits.
    #[error("`require` of `{specifier}`, imported by `{importer}`: a {kind} module can only be imported")]
    NotRequirable {
        /// What is required.
        specifier: String,
        /// By which module.
        importer: String,
        /// Its kind.
        kind: &'static str,
    },
}
