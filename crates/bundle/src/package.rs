//! From a graph to an application package: every module written, generated modules between the two module systems, the
//! manifest.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_records::{Assets, Blobs, Manifest, ModuleEntry, ModuleKind, Package};

use crate::code::{Required, Rewrites, emit, quoted, with_program, wrap};
use crate::config::Config;
use crate::folder::Folder;
use crate::graph::{Body, Graph, Id, Module, Program, Source, Target};
use crate::{BundleError, Limits};

/// How many of the largest modules an error names.
const LARGEST_SHOWN: usize = 5;
/// The entry where there is no Worker: nothing asks it.
const NO_WORKER: (&str, &str) = ("no-worker.js", "export default {};\n");

/// Writes the package.
pub(crate) fn assemble(
    config: &Config,
    graph: &Graph,
    folder: Folder,
    limits: &Limits,
) -> Result<Package, BundleError> {
    let Folder { assets, blobs, files, .. } = folder;
    let mut writer = Writer { graph, blobs, entries: BTreeMap::new(), facades: BTreeSet::new() };
    let entry = writer.import_name(graph.entry, false);
    for module in &graph.modules {
        writer.write(module)?;
    }
    // Every import is written by now, so it is known which facades are wanted.
    for (id, is_node_mode) in std::mem::take(&mut writer.facades) {
        writer.facade(id, is_node_mode);
    }
    let Writer { blobs, entries, .. } = writer;
    let modules: Vec<ModuleEntry> = entries.into_values().collect();
    check(&modules, limits)?;
    Ok(package(config, (entry, modules), assets, blobs).with_files(files))
}

/// The package of a project that has static files and no Worker.
pub(crate) fn assemble_files(config: &Config, folder: Folder) -> Package {
    let Folder { assets, mut blobs, files, .. } = folder;
    let content = blobs.add(NO_WORKER.1);
    let entry = NO_WORKER.0.to_owned();
    let module = ModuleEntry { name: entry.clone(), kind: ModuleKind::Esm, content, source_map: None };
    package(config, (entry, vec![module]), assets, blobs).with_files(files)
}

fn package(
    config: &Config,
    (entry, modules): (String, Vec<ModuleEntry>),
    assets: Option<Assets>,
    blobs: Blobs,
) -> Package {
    let classes: BTreeSet<String> = config.classes.iter().map(|class| class.class.text.clone()).collect();
    let manifest = Manifest {
        name: config.name.clone(),
        entry,
        compatibility_date: config.compatibility_date.clone(),
        compatibility_flags: config.compatibility_flags.clone(),
        modules,
        bindings: config.bindings.clone(),
        classes: classes.into_iter().collect(),
        migrations: config.migrations.clone(),
        crons: config.crons.clone(),
        assets,
    };
    Package::new(manifest, blobs).expect("every blob of the manifest was added to these blobs")
}

fn check(modules: &[ModuleEntry], limits: &Limits) -> Result<(), BundleError> {
    let max = limits.modules_max;
    if let Some(over) = modules.get(max) {
        return Err(BundleError::TooManyModules { max, last: over.name.clone() });
    }
    let bytes: u64 = modules.iter().map(|module| module.content.bytes).sum();
    let max = limits.total_bytes_max;
    if bytes <= max {
        return Ok(());
    }
    let mut by_size: Vec<&ModuleEntry> = modules.iter().collect();
    by_size.sort_by_key(|module| std::cmp::Reverse(module.content.bytes));
    let shown = by_size.iter().take(LARGEST_SHOWN);
    let largest = shown.map(|module| format!("`{}` ({} bytes)", module.name, module.content.bytes));
    Err(BundleError::TooLarge { bytes, max, largest: largest.collect::<Vec<_>>().join(", ") })
}

struct Writer<'g> {
    graph: &'g Graph,
    blobs: Blobs,
    entries: BTreeMap<String, ModuleEntry>,
    /// Modules that ES modules import by a generated module, and whether `default` is as in Node.
    facades: BTreeSet<(Id, bool)>,
}

impl Writer<'_> {
    fn add(&mut self, name: &str, kind: ModuleKind, bytes: Vec<u8>, source_map: Option<String>) {
        let content = self.blobs.add(bytes);
        let source_map = source_map.map(|map| self.blobs.add(map.into_bytes()));
        let entry = ModuleEntry { name: name.to_owned(), kind, content, source_map };
        let replaced = self.entries.insert(name.to_owned(), entry);
        assert!(replaced.is_none(), "files and generated modules have names of their own");
    }

    /// What an ES module's import of a module says.
    fn import_name(&mut self, id: Id, is_node_mode: bool) -> String {
        let module = &self.graph.modules[id];
        let (suffix, is_node_mode) = match &module.body {
            Body::Program { program: Program::CommonJs { .. }, .. } if is_node_mode => ("?import=node", true),
            Body::Program { program: Program::CommonJs { .. }, .. } => ("?import", false),
            // The engine knows JSON by its default export alone.
            Body::File { kind: ModuleKind::Json, names, .. } if !names.is_empty() => ("?import", false),
            Body::Program { .. } | Body::File { .. } => return module.name.clone(),
        };
        self.facades.insert((id, is_node_mode));
        format!("{}{suffix}", module.name)
    }

    fn write(&mut self, module: &Module) -> Result<(), BundleError> {
        match &module.body {
            Body::File { kind, bytes, .. } => self.add(&module.name, *kind, bytes.clone(), None),
            Body::Program { program: Program::EsModule(_), source } => {
                let emitted = self.emit(module, source, 0)?;
                self.add(&module.name, ModuleKind::Esm, emitted.0.into_bytes(), Some(emitted.1));
            }
            Body::Program { program: Program::CommonJs { .. }, source } => {
                let requires = self.requires(module);
                let (code, map) = self.emit(module, source, 1)?;
                let code = wrap(&module.name, &code, &requires);
                self.add(&module.name, ModuleKind::Esm, code.into_bytes(), Some(map));
            }
        }
        Ok(())
    }

    fn emit(
        &mut self,
        module: &Module,
        source: &Source,
        lines: usize,
    ) -> Result<(String, String), BundleError> {
        let is_node_mode = source.language.is_node_mode(source.is_package_esm);
        let mut rewrites = Rewrites::default();
        for ((specifier, is_require), target) in &module.targets {
            let name = match target {
                _ if *is_require => continue,
                Target::Module(id) => self.import_name(*id, is_node_mode),
                Target::Builtin(name) => name.clone(),
                Target::Missing => continue,
            };
            rewrites.specifiers.insert(specifier.clone(), name);
        }
        let id = self.graph.modules.iter().position(|other| std::ptr::eq(other, module));
        rewrites.types = id.and_then(|id| self.graph.types.get(&id)).cloned().unwrap_or_default();
        let unit = module.unit(source, &self.graph.defines);
        let emitted = with_program(&unit, |ready| emit(&unit, ready, &rewrites, lines))?;
        Ok((emitted.code, emitted.source_map))
    }

    fn requires(&self, module: &Module) -> BTreeMap<String, Required> {
        let requires = module.targets.iter().filter(|((_, is_require), _)| *is_require);
        let required = |target: &Target| match target {
            Target::Builtin(name) => Required::Builtin(name.clone()),
            Target::Missing => Required::Missing,
            Target::Module(id) => {
                let target = &self.graph.modules[*id];
                let name = target.name.clone();
                match &target.body {
                    Body::Program { program: Program::CommonJs { .. }, .. } => Required::CommonJs(name),
                    Body::Program { program: Program::EsModule(_), .. } => Required::EsModule(name),
                    Body::File { .. } => Required::Value(name),
                }
            }
        };
        requires.map(|((specifier, _), target)| (specifier.clone(), required(target))).collect()
    }

    /// The module by which ES modules import a CommonJS or a JSON module: its names, one by one.
    fn facade(&mut self, id: Id, is_node_mode: bool) {
        let module = &self.graph.modules[id];
        let names = self.graph.exports_of(id);
        let from = quoted(&module.name);
        let is_json = matches!(module.body, Body::File { .. });
        let mut code = if is_json {
            format!("import $exports from {from};\nexport default $exports;\n")
        } else {
            let default = if is_node_mode {
                "$exports"
            } else {
                "$exports !== null && $exports !== undefined && $exports.__esModule ? $exports.default : $exports"
            };
            format!(
                "import {{ $require }} from {from};\nconst $exports = $require();\nexport default {default};\n"
            )
        };
        code.push_str("const $names = $exports ?? {};\n");
        for (index, name) in names.iter().filter(|name| *name != "default").enumerate() {
            let name = quoted(name);
            code.push_str(&format!("const ${index} = $names[{name}];\nexport {{ ${index} as {name} }};\n"));
        }
        let suffix = if is_node_mode { "?import=node" } else { "?import" };
        let name = format!("{}{suffix}", module.name);
        self.add(&name, ModuleKind::Esm, code.into_bytes(), None);
    }
}
