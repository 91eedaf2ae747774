//! Reads files into the graph.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use holdfast_records::ModuleKind;

use super::{Body, Builder, Id, Module, Program, Source};
use crate::code::{CommonJs, EsModule, Language, Request, Settings, Unit, with_program};
use crate::{BundleError, Place, helpers, rules};

/// How much source may be read for each byte that an application may have: types and comments go.
const SOURCE_FACTOR: u64 = 4;

/// A file's name in the application: its path from the project's folder, with slashes.
pub(super) fn name_of(dir: &Path, path: &Path) -> String {
    let mut up = String::new();
    let mut base = dir;
    loop {
        if let Ok(rest) = path.strip_prefix(base) {
            let parts = rest.components().filter_map(|part| match part {
                Component::Normal(part) => Some(part.to_string_lossy()),
                _ => None,
            });
            return format!("{up}{}", parts.collect::<Vec<_>>().join("/"));
        }
        match base.parent() {
            Some(parent) => base = parent,
            None => return path.display().to_string(),
        }
        up.push_str("../");
    }
}

impl Builder<'_> {
    /// Adds the file that `main` names.
    pub(super) fn add_main(&mut self, path: &Path, is_package_esm: bool) -> Result<Id, BundleError> {
        let name = name_of(&self.config.dir, path);
        self.add_file(path, is_package_esm, None)?.ok_or_else(|| BundleError::Code {
            place: Place::at(&name, "", 0),
            message: "the entry is no JavaScript or TypeScript file".into(),
        })
    }

    /// Adds a file, if its name says what kind of module it is.
    pub(super) fn add_file(
        &mut self,
        path: &Path,
        is_package_esm: bool,
        from: Option<(Id, &Request)>,
    ) -> Result<Option<Id>, BundleError> {
        if let Some(id) = self.by_key.get(path) {
            return Ok(Some(*id));
        }
        let name = name_of(&self.config.dir, path);
        let rule = rules::kind_of(&self.config.rules, &name);
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let language = Language::of(path);
        if rule.is_none() && !is_json && language.is_none() {
            return Ok(None);
        }
        let bytes = self.read(path, &name)?;
        let body = match (rule, language) {
            (Some(rule), _) => file_body(&name, rule.module_kind(), bytes)?,
            (None, Some(language)) => {
                let text = text_of(&name, "JavaScript", bytes)?;
                let settings = self.resolve.settings(path).map_err(|message| {
                    // The importer's place: of the project's settings no place is known.
                    let place = from.map_or_else(
                        || Place::at(&name, &text, 0),
                        |(id, request)| self.modules[id].place(request.offset),
                    );
                    BundleError::Code { place, message }
                })?;
                self.program(&name, Source { text, language, is_package_esm, settings })?
            }
            (None, None) => file_body(&name, ModuleKind::Json, bytes)?,
        };
        self.insert(path.to_owned(), name, Some(path.to_owned()), body).map(Some)
    }

    fn program(&self, name: &str, source: Source) -> Result<Body, BundleError> {
        let unit = Unit {
            name,
            text: &source.text,
            language: source.language,
            is_package_esm: source.is_package_esm,
            settings: &source.settings,
            defines: &self.defines,
        };
        let program = with_program(&unit, |ready| {
            if ready.is_commonjs {
                let found = CommonJs::of(ready.program, ready.scoping);
                Program::CommonJs { found, asked: BTreeSet::new() }
            } else {
                Program::EsModule(EsModule::of(ready.program))
            }
        })?;
        Ok(Body::Program { program, source })
    }

    /// A module of ours that generated code imports.
    pub(super) fn add_helper(&mut self, specifier: &str) -> Result<Id, BundleError> {
        let key = PathBuf::from(specifier);
        if let Some(id) = self.by_key.get(&key) {
            return Ok(*id);
        }
        let Some(text) = helpers::source(specifier) else {
            return Err(BundleError::Code {
                place: Place::at(specifier, "", 0),
                message: "the code needs a helper that there is not: write it in another way".into(),
            });
        };
        let settings = Rc::new(Settings::plain());
        let language = Language::own();
        let body =
            self.program(specifier, Source { text: text.into(), language, is_package_esm: true, settings })?;
        self.insert(key, specifier.to_owned(), None, body)
    }

    /// What stands for a module that a package switches off.
    pub(super) fn add_empty(&mut self) -> Result<Id, BundleError> {
        let key = PathBuf::from(helpers::EMPTY);
        if let Some(id) = self.by_key.get(&key) {
            return Ok(*id);
        }
        let body = file_body(helpers::EMPTY, ModuleKind::Json, b"{}".to_vec())?;
        self.insert(key, helpers::EMPTY.to_owned(), None, body)
    }

    fn insert(
        &mut self,
        key: PathBuf,
        name: String,
        path: Option<PathBuf>,
        body: Body,
    ) -> Result<Id, BundleError> {
        let max = self.limits.modules_max;
        if self.modules.len() >= max {
            return Err(BundleError::TooManyModules { max, last: name });
        }
        let id = self.modules.len();
        if let Body::Program { program, source } = &body {
            let computed = match program {
                Program::EsModule(module) => &module.computed,
                Program::CommonJs { found, .. } => &found.computed,
            };
            // Libraries have many that they never run.
            let is_own = !name.contains("node_modules/");
            self.notes.extend(computed.iter().filter(|_| is_own).map(|offset| {
                let place = Place::at(&name, &source.text, *offset);
                format!("{place}: the specifier is computed, so what it names is not packaged")
            }));
        }
        self.modules.push(Module { name, path, body, targets: Default::default() });
        self.by_key.insert(key, id);
        Ok(id)
    }

    fn read(&mut self, path: &Path, name: &str) -> Result<Vec<u8>, BundleError> {
        let failed = |source| BundleError::Read { path: name.to_owned(), source };
        let bytes = std::fs::metadata(path).map_err(failed)?.len();
        let max = self.limits.file_bytes_max;
        if bytes > max {
            return Err(BundleError::FileTooLarge { file: name.to_owned(), bytes, max });
        }
        self.source_bytes = self.source_bytes.saturating_add(bytes);
        let max = self.limits.total_bytes_max.saturating_mul(SOURCE_FACTOR);
        if self.source_bytes > max {
            let (bytes, largest) = (self.source_bytes, format!("the sources alone, up to `{name}`"));
            return Err(BundleError::TooLarge { bytes, max, largest });
        }
        std::fs::read(path).map_err(failed)
    }
}

fn text_of(name: &str, kind: &'static str, bytes: Vec<u8>) -> Result<String, BundleError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        let place = Place::at(name, &text, valid);
        BundleError::Content { place, kind, detail: "not UTF-8".into() }
    })?;
    // A mark at the beginning is no part of a text.
    Ok(text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text))
}

fn file_body(name: &str, kind: ModuleKind, bytes: Vec<u8>) -> Result<Body, BundleError> {
    let mut names = BTreeSet::new();
    let bytes = match kind {
        ModuleKind::Text => text_of(name, "text", bytes)?.into_bytes(),
        ModuleKind::Json => {
            let text = text_of(name, "JSON", bytes)?;
            let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
                let before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
                let offset = before.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
                let place = Place::at(name, &text, offset);
                BundleError::Content { place, kind: "JSON", detail: format!("not valid: {error}") }
            })?;
            names.extend(value.as_object().into_iter().flat_map(|object| object.keys().cloned()));
            text.into_bytes()
        }
        ModuleKind::Esm | ModuleKind::Data | ModuleKind::Wasm => bytes,
    };
    Ok(Body::File { kind, bytes, names })
}
