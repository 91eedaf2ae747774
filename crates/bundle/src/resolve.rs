//! From a specifier to a file: packages, their `exports` and conditions, tsconfig paths. Wrangler's choices, so that the
//! same files are found.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use oxc_resolver::{
    PackageType, ResolveError, ResolveOptions, Resolver, TsconfigDiscovery, TsconfigOptions,
    TsconfigReferences,
};

use crate::code::Settings;

/// Where a specifier leads.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// A file.
    File {
        path: PathBuf,
        /// Whether its package says that `.js` is an ES module.
        is_package_esm: bool,
    },
    /// The package switches it off for the edge.
    Off,
    /// Nowhere, and why.
    Nowhere(String),
}

/// Resolves for one project.
pub(crate) struct Resolve {
    import: Resolver,
    require: Resolver,
    settings: HashMap<Option<PathBuf>, Rc<Settings>>,
}

impl Resolve {
    /// For the project in a folder, with the tsconfig.json that each file is under, or one for all.
    pub(crate) fn new(dir: &Path, tsconfig: Option<&Path>) -> Self {
        let strings = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<String>>();
        let tsconfig = match tsconfig {
            Some(file) => TsconfigDiscovery::Manual(TsconfigOptions {
                config_file: dir.join(file),
                references: TsconfigReferences::Auto,
            }),
            None => TsconfigDiscovery::Auto,
        };
        let alias = |from: &str, to: &[&str]| (from.to_owned(), strings(to));
        let options = |system: &str| ResolveOptions {
            cwd: Some(dir.to_owned()),
            tsconfig: Some(tsconfig.clone()),
            condition_names: strings(&["workerd", "worker", "browser", system]),
            main_fields: strings(&["browser", "module", "main"]),
            alias_fields: vec![strings(&["browser"])],
            extensions: strings(&[".tsx", ".ts", ".mts", ".jsx", ".js", ".mjs", ".cts", ".cjs", ".json"]),
            // TypeScript names the file that it will write; what is there already goes first.
            extension_alias: vec![
                alias(".js", &[".js", ".ts", ".tsx"]),
                alias(".jsx", &[".jsx", ".tsx"]),
                alias(".mjs", &[".mjs", ".mts"]),
                alias(".cjs", &[".cjs", ".cts"]),
            ],
            // The environment of whoever deploys must not change what is deployed.
            node_path: false,
            ..ResolveOptions::default()
        };
        let import = Resolver::new(options("import"));
        let require = import.clone_with_options(options("require"));
        Self { import, require, settings: HashMap::new() }
    }

    /// Resolves what a file imports or requires.
    pub(crate) fn resolve(&self, importer: &Path, specifier: &str, is_require: bool) -> Resolved {
        let resolver = if is_require { &self.require } else { &self.import };
        // Wrangler's spelling of a WebAssembly import.
        let specifier = specifier.strip_suffix("?module").unwrap_or(specifier);
        match resolver.resolve_file(importer, specifier) {
            Ok(found) => Resolved::File {
                is_package_esm: found
                    .package_json()
                    .is_some_and(|package| package.r#type() == Some(PackageType::Module)),
                path: found.into_path_buf(),
            },
            Err(ResolveError::Ignored(_)) => Resolved::Off,
            Err(ResolveError::NotFound(_) | ResolveError::ExtensionAlias(..)) => {
                let is_path = specifier.starts_with(['.', '/']);
                Resolved::Nowhere(if is_path {
                    "there is no such file".into()
                } else {
                    "there is no such package; is it installed?".into()
                })
            }
            Err(error) => Resolved::Nowhere(error.to_string()),
        }
    }

    /// How a file's types and JSX are taken out.
    ///
    /// # Errors
    /// What is wrong with the tsconfig.json.
    pub(crate) fn settings(&mut self, path: &Path) -> Result<Rc<Settings>, String> {
        let found = self.import.find_tsconfig(path).map_err(|error| error.to_string())?;
        let key = found.as_ref().map(|tsconfig| tsconfig.path.clone());
        if let Some(known) = self.settings.get(&key) {
            return Ok(Rc::clone(known));
        }
        let settings = match &found {
            Some(tsconfig) => Settings::of(&tsconfig.compiler_options),
            None => Settings::plain(),
        };
        let settings = Rc::new(settings);
        self.settings.insert(key, Rc::clone(&settings));
        Ok(settings)
    }
}
