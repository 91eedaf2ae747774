//! Which module provides which name: what ES modules want of CommonJS, what is missing, and what was only a type.

use std::collections::BTreeSet;

use holdfast_records::ModuleKind;

use super::{Body, Graph, Id, Program, Target};
use crate::code::{NAMESPACE_MEMBER, RequestKind};
use crate::config::Config;
use crate::{BundleError, ImportFault};

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provided {
    /// The module has it.
    Yes,
    No,
    /// A CommonJS module may have it when it runs.
    MaybeBy(Id),
}

impl Graph {
    /// Gives every import its name: what CommonJS must export, and what there is not.
    pub(super) fn settle_names(&mut self) -> Result<(), BundleError> {
        for id in 0..self.modules.len() {
            for request in self.modules[id].requests().to_vec() {
                let is_require = matches!(request.kind, RequestKind::Require { .. });
                let target = self.modules[id].targets.get(&(request.specifier.clone(), is_require));
                let Some(&Target::Module(target)) = target else { continue };
                for (name, offset) in &request.names {
                    let (name, is_member) = match name.strip_prefix(NAMESPACE_MEMBER) {
                        Some(name) => (name, true),
                        None => (name.as_str(), false),
                    };
                    match self.provided(target, name, &mut BTreeSet::new()) {
                        Provided::Yes => {}
                        Provided::MaybeBy(by) => self.ask(by, name),
                        Provided::No if is_member => {}
                        Provided::No => self.miss(id, &request.specifier, target, name, *offset)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// A name that is not there: in TypeScript it was a type.
    fn miss(
        &mut self,
        id: Id,
        specifier: &str,
        target: Id,
        name: &str,
        offset: usize,
    ) -> Result<(), BundleError> {
        let module = &self.modules[id];
        if let Body::Program { source, .. } = &module.body
            && source.language.is_typescript
        {
            self.types.entry(id).or_default().insert((specifier.to_owned(), name.to_owned()));
            return Ok(());
        }
        let fault = ImportFault::NoExport {
            name: name.to_owned(),
            target: self.modules[target].name.clone(),
            importer: module.name.clone(),
        };
        Err(BundleError::Import { place: module.place(Some(offset)), fault })
    }

    fn ask(&mut self, id: Id, name: &str) {
        if let Body::Program { program: Program::CommonJs { asked, .. }, .. } = &mut self.modules[id].body {
            asked.insert(name.to_owned());
        }
    }

    fn provided(&self, id: Id, name: &str, seen: &mut BTreeSet<Id>) -> Provided {
        if !seen.insert(id) {
            return Provided::No;
        }
        match &self.modules[id].body {
            Body::File { kind: ModuleKind::Json, names, .. } if names.contains(name) => Provided::Yes,
            Body::File { .. } if name == "default" => Provided::Yes,
            Body::File { .. } => Provided::No,
            Body::Program { program: Program::CommonJs { .. }, .. } => Provided::MaybeBy(id),
            Body::Program { program: Program::EsModule(module), .. } => {
                if module.exports.contains(name) {
                    return Provided::Yes;
                }
                // `export *` leaves the default out.
                if name == "default" {
                    return Provided::No;
                }
                let mut best = Provided::No;
                for star in &module.stars {
                    match self.modules[id].targets.get(&(star.clone(), false)) {
                        Some(Target::Module(target)) => match self.provided(*target, name, seen) {
                            Provided::Yes => return Provided::Yes,
                            found @ Provided::MaybeBy(_) => best = found,
                            Provided::No => {}
                        },
                        Some(Target::Builtin(_)) => return Provided::Yes,
                        Some(Target::Missing) | None => {}
                    }
                }
                best
            }
        }
    }

    /// The names that a module exports, as far as its text and what ES modules ask of it show; `default` among them.
    pub(crate) fn exports_of(&self, id: Id) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.collect(id, true, &mut names, &mut BTreeSet::new());
        names
    }

    fn collect(&self, id: Id, with_default: bool, names: &mut BTreeSet<String>, seen: &mut BTreeSet<Id>) {
        if !seen.insert(id) {
            return;
        }
        let mut take = |more: &BTreeSet<String>| {
            names.extend(more.iter().filter(|name| with_default || *name != "default").cloned());
        };
        let (links, is_require) = match &self.modules[id].body {
            Body::File { names: more, .. } => {
                take(more);
                take(&BTreeSet::from(["default".to_owned()]));
                return;
            }
            Body::Program { program: Program::EsModule(module), .. } => {
                take(&module.exports);
                (&module.stars, false)
            }
            Body::Program { program: Program::CommonJs { found, asked }, .. } => {
                take(&found.exports);
                take(asked);
                take(&BTreeSet::from(["default".to_owned()]));
                (&found.reexports, true)
            }
        };
        for link in links {
            if let Some(Target::Module(target)) = self.modules[id].targets.get(&(link.clone(), is_require)) {
                self.collect(*target, false, names, seen);
            }
        }
    }

    /// The entry exports a Worker and the classes that the configuration binds.
    pub(super) fn check_entry(&self, config: &Config) -> Result<(), BundleError> {
        let entry = self.modules[self.entry].name.clone();
        let names = self.exports_of(self.entry);
        let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let exports = if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") };
        if !names.contains("default") {
            let what = "has no default export, which is the Worker".to_owned();
            return Err(BundleError::Entry { entry, what, exports });
        }
        match config.classes.iter().find(|class| !names.contains(&class.class.text)) {
            None => Ok(()),
            Some(missing) => {
                let place = config.text.place(missing.class.offset);
                Err(BundleError::Class { place, class: missing.class.text.clone(), entry, exports })
            }
        }
    }
}
