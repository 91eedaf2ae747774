//! The module graph: every file that `main` leads to, what each asks for, and where that leads.

mod load;
mod provide;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use holdfast_records::ModuleKind;
use oxc_transformer_plugins::ReplaceGlobalDefinesConfig;

use crate::builtin::{self, Builtin};
use crate::code::{CommonJs, EsModule, Language, Request, RequestKind, Settings, Unit};
use crate::config::{Config, Spot};
use crate::resolve::{Resolve, Resolved};
use crate::{BundleError, ConfigFault, ImportFault, Limits, Place, helpers};

/// A module's number in its graph.
pub(crate) type Id = usize;

/// A module.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its name in the application: its path below the project, or a name of ours.
    pub(crate) name: String,
    /// Its file; none for modules of ours.
    pub(crate) path: Option<PathBuf>,
    pub(crate) body: Body,
    /// What each request leads to, by specifier and whether it is a `require`.
    pub(crate) targets: BTreeMap<(String, bool), Target>,
}

/// What a module is.
#[derive(Debug)]
pub(crate) enum Body {
    Program {
        program: Program,
        source: Source,
    },
    /// Bytes that are shipped as they are.
    File {
        kind: ModuleKind,
        bytes: Vec<u8>,
        names: BTreeSet<String>,
    },
}

/// A program's text, and how it is read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) language: Language,
    pub(crate) is_package_esm: bool,
    pub(crate) settings: Rc<Settings>,
}

/// A program, by its module system.
#[derive(Debug)]
pub(crate) enum Program {
    EsModule(EsModule),
    CommonJs {
        found: CommonJs,
        /// Names that ES modules import from it.
        asked: BTreeSet<String>,
    },
}

/// What a request leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Module(Id),
    /// A module of the runtime.
    Builtin(String),
    /// Nothing; the request is in a `try`.
    Missing,
}

/// The graph.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) modules: Vec<Module>,
    pub(crate) entry: Id,
    pub(crate) defines: ReplaceGlobalDefinesConfig,
    /// Imports in TypeScript, by importer, specifier and name, of what turned out to be a type.
    pub(crate) types: BTreeMap<Id, BTreeSet<(String, String)>>,
    notes: Vec<String>,
}

impl Module {
    pub(crate) fn requests(&self) -> &[Request] {
        match &self.body {
            Body::Program { program: Program::EsModule(module), .. } => &module.requests,
            Body::Program { program: Program::CommonJs { found, .. }, .. } => &found.requests,
            Body::File { .. } => &[],
        }
    }

    pub(crate) fn unit<'a>(
        &'a self,
        source: &'a Source,
        defines: &'a ReplaceGlobalDefinesConfig,
    ) -> Unit<'a> {
        let Source { text, language, is_package_esm, settings } = source;
        Unit {
            name: &self.name,
            text,
            language: *language,
            is_package_esm: *is_package_esm,
            settings,
            defines,
        }
    }

    /// The place of a request in the module's text.
    fn place(&self, offset: Option<usize>) -> Place {
        let text = match &self.body {
            Body::Program { source, .. } => source.text.as_str(),
            Body::File { .. } => "",
        };
        Place::at(&self.name, text, offset.unwrap_or(0))
    }
}

impl Graph {
    pub(crate) fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    /// Every file of it.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.modules.iter().filter_map(|module| module.path.clone())
    }
}

/// Follows every import from `main`.
pub(crate) fn build(config: &Config, entry: &Spot, limits: &Limits) -> Result<Graph, BundleError> {
    let defines = defines(config)?;
    let tsconfig = config.tsconfig.as_ref().map(|spot| Path::new(&spot.text));
    let resolve = Resolve::new(&config.dir, tsconfig);
    let mut builder = Builder {
        config,
        limits,
        resolve,
        defines,
        modules: Vec::new(),
        by_key: BTreeMap::new(),
        source_bytes: 0,
        notes: Vec::new(),
    };
    let main = config.dir.join(&entry.text);
    let main = std::fs::canonicalize(&main).ok().filter(|main| main.is_file()).ok_or_else(|| {
        config.value_fault("main", entry, "is not a file; the path is relative to the configuration")
    })?;
    let is_package_esm = match builder.resolve.resolve(&main, &main.display().to_string(), false) {
        Resolved::File { is_package_esm, .. } => is_package_esm,
        Resolved::Off | Resolved::Nowhere(_) => false,
    };
    let entry = builder.add_main(&main, is_package_esm)?;
    let mut queue = VecDeque::from([entry]);
    let mut seen = 1;
    while let Some(id) = queue.pop_front() {
        builder.follow(id)?;
        queue.extend(seen..builder.modules.len());
        seen = builder.modules.len();
    }
    let Builder { modules, defines, notes, .. } = builder;
    let mut graph = Graph { modules, entry, defines, types: BTreeMap::new(), notes };
    graph.settle_names()?;
    graph.check_entry(config)?;
    Ok(graph)
}

/// The module of Node that an `import()` names and that is not there: it fails when it is reached, which its module may be ready
/// for.
fn left_to_the_run(request: &Request, fault: &ImportFault) -> Option<String> {
    let is_absent =
        request.kind == RequestKind::Dynamic && matches!(fault, ImportFault::NoSuchBuiltin { .. });
    if is_absent { builtin::absent(&request.specifier) } else { None }
}

fn defines(config: &Config) -> Result<ReplaceGlobalDefinesConfig, BundleError> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (key, value) in &config.define {
        let pair = (key.text.clone(), value.clone());
        if let Err(errors) = ReplaceGlobalDefinesConfig::new(std::slice::from_ref(&pair)) {
            let problem = errors.first().map_or_else(String::new, |error| error.message.to_string());
            let problem = format!("is not a name and a JavaScript expression: {problem}");
            let fault =
                ConfigFault::Value { key: format!("define.{}", key.text), value: value.clone(), problem };
            return Err(config.text.fault(key.offset, fault));
        }
        pairs.push(pair);
    }
    // As Wrangler does; a definition of the project comes first, and the first counts.
    pairs.push(("process.env.NODE_ENV".into(), "\"production\"".into()));
    Ok(ReplaceGlobalDefinesConfig::new(&pairs).expect("each was checked by itself"))
}

struct Builder<'c> {
    config: &'c Config,
    limits: &'c Limits,
    resolve: Resolve,
    defines: ReplaceGlobalDefinesConfig,
    modules: Vec<Module>,
    /// Modules by file, or by specifier for those of ours.
    by_key: BTreeMap<PathBuf, Id>,
    source_bytes: u64,
    notes: Vec<String>,
}

impl Builder<'_> {
    /// Resolves everything that a module asks for.
    fn follow(&mut self, id: Id) -> Result<(), BundleError> {
        for request in self.modules[id].requests().to_vec() {
            let is_require = matches!(request.kind, RequestKind::Require { .. });
            let place = |builder: &Self| builder.modules[id].place(request.offset);
            if let Some(phase) = request.phase {
                return Err(BundleError::Import { place: place(self), fault: ImportFault::Phase { phase } });
            }
            let is_tried = request.kind == (RequestKind::Require { is_tried: true });
            let target = match self.target(id, &request, is_require)? {
                Ok(target) => target,
                Err(_) if is_tried => Target::Missing,
                Err(fault) => match left_to_the_run(&request, &fault) {
                    Some(name) => {
                        self.notes.push(format!("{}: {fault}", place(self)));
                        Target::Builtin(name)
                    }
                    None => return Err(BundleError::Import { place: place(self), fault }),
                },
            };
            if let (true, Target::Module(target)) = (is_require, &target)
                && let Body::File { kind: ModuleKind::Wasm, .. } = self.modules[*target].body
            {
                let (specifier, importer) = (request.specifier.clone(), self.modules[id].name.clone());
                let fault = ImportFault::NotRequirable { specifier, importer, kind: "WebAssembly" };
                return Err(BundleError::Import { place: place(self), fault });
            }
            if let (true, Target::Module(target)) = (is_require, &target)
                && let Body::Program { program: Program::EsModule(_), .. } = self.modules[*target].body
            {
                self.add_helper(helpers::NAMESPACE)?;
            }
            self.modules[id].targets.insert((request.specifier, is_require), target);
        }
        Ok(())
    }

    fn target(
        &mut self,
        id: Id,
        request: &Request,
        is_require: bool,
    ) -> Result<Result<Target, ImportFault>, BundleError> {
        let specifier = request.specifier.as_str();
        if specifier.starts_with(helpers::PACKAGE) {
            return Ok(Ok(Target::Module(self.add_helper(specifier)?)));
        }
        let importer = self.modules[id].name.clone();
        let judged = match builtin::judge(specifier, &importer, self.config.has_node_compat()) {
            Ok(Builtin::Name(name)) => return Ok(Ok(Target::Builtin(name))),
            Ok(judged) => judged,
            Err(fault) => return Ok(Err(fault)),
        };
        let from = self.modules[id].path.clone().unwrap_or_else(|| self.config.dir.join("package.json"));
        let (path, is_package_esm) = match self.resolve.resolve(&from, specifier, is_require) {
            Resolved::File { path, is_package_esm } => (path, is_package_esm),
            Resolved::Off => return Ok(Ok(Target::Module(self.add_empty()?))),
            Resolved::Nowhere(_) if judged == Builtin::Ambiguous => {
                return Ok(Err(builtin::refusal(specifier, &importer)));
            }
            Resolved::Nowhere(reason) => {
                return Ok(Err(ImportFault::NotFound { specifier: specifier.into(), importer, reason }));
            }
        };
        let Some(target) = self.add_file(&path, is_package_esm, Some((id, request)))? else {
            let file = load::name_of(&self.config.dir, &path);
            return Ok(Err(ImportFault::NoKind { specifier: specifier.into(), importer, file }));
        };
        Ok(Ok(Target::Module(target)))
    }
}
