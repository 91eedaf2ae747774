//! The project's configuration: found, parsed, checked key by key. No key is passed over in silence.

mod assets;
mod json;
mod keys;
mod read;
mod sections;
mod toml;
mod tree;

use std::path::{Path, PathBuf};

use holdfast_records::{BindingEntry, MigrationEntry};

use crate::rules::Rule;
use crate::{BundleError, ConfigFault};

pub(crate) use assets::AssetsUse;
pub use keys::{IGNORED_KEYS, LATER_KEYS, SUPPORTED_KEYS};
pub(crate) use read::Spot;
pub(crate) use sections::ClassUse;
use sections::ServiceUse;
pub(crate) use tree::ConfigText;

use read::Reader;
use tree::{Entry, Node};

/// Names of a configuration file, the first that exists counts, as in Wrangler.
const FILES: [&str; 3] = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];
/// Largest configuration file, in bytes.
const FILE_LEN_MAX: u64 = 1 << 20;

/// What a project says of itself.
#[derive(Debug)]
pub(crate) struct Config {
    /// The folder that paths are relative to; canonical.
    pub(crate) dir: PathBuf,
    /// The configuration file.
    pub(crate) file: PathBuf,
    pub(crate) text: ConfigText,
    pub(crate) name: String,
    /// None: it has static files and no Worker.
    pub(crate) main: Option<Spot>,
    pub(crate) compatibility_date: String,
    pub(crate) compatibility_flags: Vec<String>,
    pub(crate) bindings: Vec<BindingEntry>,
    pub(crate) classes: Vec<ClassUse>,
    pub(crate) migrations: Vec<MigrationEntry>,
    /// Cron expressions, sorted.
    pub(crate) crons: Vec<String>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) define: Vec<(Spot, String)>,
    pub(crate) tsconfig: Option<Spot>,
    pub(crate) assets: Option<AssetsUse>,
}

/// Finds and reads the configuration of a folder.
pub(crate) fn load(dir: &Path, file: Option<&Path>) -> Result<(Config, Vec<String>), BundleError> {
    let file = match file {
        Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
        None => FILES
            .iter()
            .map(|name| dir.join(name))
            .find(|file| file.is_file())
            .ok_or_else(|| BundleError::NoConfig { dir: dir.display().to_string() })?,
    };
    let read = |source| BundleError::Read { path: file.display().to_string(), source };
    let bytes = std::fs::metadata(&file).map_err(read)?.len();
    let name = file.strip_prefix(dir).unwrap_or(&file).display().to_string();
    if bytes > FILE_LEN_MAX {
        return Err(BundleError::FileTooLarge { file: name, bytes, max: FILE_LEN_MAX });
    }
    let text = ConfigText { name, text: std::fs::read_to_string(&file).map_err(read)? };
    // Paths in a configuration are relative to it, wherever it lies.
    let dir = file.parent().unwrap_or(dir);
    let dir = std::fs::canonicalize(dir)
        .map_err(|source| BundleError::Read { path: dir.display().to_string(), source })?;
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    let root = if is_toml { toml::parse(&text)? } else { json::parse(&text)? };
    let mut notes = Vec::new();
    let draft = Draft::read(&Reader { file: &text }, &root, &mut notes)?;
    Ok((draft.finish(dir, file, text)?, notes))
}

/// A configuration whose required keys may still be missing.
#[derive(Debug, Default)]
struct Draft {
    name: Option<Spot>,
    main: Option<Spot>,
    date: Option<Spot>,
    flags: Vec<String>,
    vars: Vec<(usize, BindingEntry)>,
    objects: Vec<(usize, BindingEntry, ClassUse)>,
    databases: Vec<(usize, BindingEntry)>,
    buckets: Vec<(usize, BindingEntry)>,
    services: Vec<(usize, ServiceUse)>,
    migrations: Vec<MigrationEntry>,
    crons: Vec<String>,
    rules: Vec<Rule>,
    define: Vec<(Spot, String)>,
    tsconfig: Option<Spot>,
    assets: Option<AssetsUse>,
}

impl Draft {
    fn read(reader: &Reader<'_>, root: &Node, notes: &mut Vec<String>) -> Result<Self, BundleError> {
        let mut draft = Self::default();
        for entry in reader.table("the configuration", root)? {
            draft.take(reader, entry, notes)?;
        }
        Ok(draft)
    }

    fn take(
        &mut self,
        reader: &Reader<'_>,
        entry: &Entry,
        notes: &mut Vec<String>,
    ) -> Result<(), BundleError> {
        let Entry { key, key_offset, node } = entry;
        match key.as_str() {
            "name" => self.name = Some(reader.text(key, node)?),
            "main" => self.main = Some(reader.text(key, node)?),
            "compatibility_date" => self.date = Some(reader.text(key, node)?),
            "compatibility_flags" => {
                self.flags = reader.texts(key, node)?.into_iter().map(|flag| flag.text).collect();
            }
            "assets" => self.assets = Some(assets::assets(reader, node)?),
            "vars" => self.vars = sections::vars(reader, node)?,
            "durable_objects" => self.objects = sections::durable_objects(reader, node)?,
            "d1_databases" => self.databases = sections::d1_databases(reader, node)?,
            "r2_buckets" => self.buckets = sections::r2_buckets(reader, node)?,
            "services" => self.services = sections::services(reader, node)?,
            "migrations" => self.migrations = sections::migrations(reader, node)?,
            "rules" => self.rules = sections::rules(reader, node)?,
            "triggers" => self.crons = sections::triggers(reader, node)?,
            "define" => self.define = sections::define(reader, node)?,
            "tsconfig" => self.tsconfig = Some(reader.text(key, node)?),
            _ => match IGNORED_KEYS.iter().find(|(ignored, _)| ignored == key) {
                Some((_, "")) => {}
                Some((_, why)) => {
                    notes.push(format!("{}: `{key}` is ignored: {why}", reader.file.place(*key_offset)));
                }
                None if LATER_KEYS.contains(&key.as_str()) => return Err(reader.not_yet("", entry)),
                None => {
                    let ignored = IGNORED_KEYS.iter().map(|(key, _)| *key);
                    let known: Vec<&str> =
                        SUPPORTED_KEYS.iter().chain(LATER_KEYS).copied().chain(ignored).collect();
                    return Err(reader.unknown("", entry, &known));
                }
            },
        }
        Ok(())
    }

    fn finish(self, dir: PathBuf, file: PathBuf, text: ConfigText) -> Result<Config, BundleError> {
        let Self {
            name,
            main,
            date,
            mut flags,
            vars,
            objects,
            databases,
            buckets,
            services,
            migrations,
            crons,
            rules,
            define,
            tsconfig,
            assets,
        } = self;
        let reader = Reader { file: &text };
        if main.is_none() && assets.is_none() {
            return Err(reader.missing(0, "main", "the file that the Worker begins in"));
        }
        if let Some(assets) = &assets {
            assets.check(&reader, main.is_some())?;
        }
        let date =
            date.ok_or_else(|| reader.missing(0, "compatibility_date", "for example \"2026-11-01\""))?;
        if !is_date(&date.text) {
            return Err(reader.wrong_value("compatibility_date", &date, "is not a date: write YYYY-MM-DD"));
        }
        let name = name.ok_or_else(|| reader.missing(0, "name", "what the application is called"))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.text.is_empty() || name.text.len() > 63 || !name.text.chars().all(is_name) {
            let problem = "is not 1 to 63 letters, digits, hyphens and underscores";
            return Err(reader.wrong_value("name", &name, problem));
        }
        let mut bindings: Vec<BindingEntry> = Vec::new();
        let mut classes = Vec::new();
        let objects = objects.into_iter().map(|(offset, binding, class)| (offset, binding, Some(class)));
        let services =
            services.into_iter().map(|(offset, service)| Ok((offset, service.of(&reader, &name.text)?)));
        let services = services.collect::<Result<Vec<_>, BundleError>>()?;
        let files = assets.as_ref().and_then(AssetsUse::binding_entry);
        let others = vars.into_iter().chain(databases).chain(buckets).chain(services).chain(files);
        for (offset, binding, class) in others.map(|(offset, binding)| (offset, binding, None)).chain(objects)
        {
            if bindings.iter().any(|earlier| earlier.name == binding.name) {
                let spot = Spot { text: binding.name, offset };
                return Err(reader.wrong_value("bindings", &spot, "is the name of another binding, too"));
            }
            bindings.push(binding);
            classes.extend(class);
        }
        bindings.sort_by(|left, right| left.name.cmp(&right.name));
        flags.sort();
        flags.dedup();
        Ok(Config {
            dir,
            file,
            name: name.text,
            main,
            compatibility_date: date.text,
            compatibility_flags: flags,
            bindings,
            classes,
            migrations,
            crons,
            rules,
            define,
            tsconfig,
            assets,
            text,
        })
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, len| {
        Some(text)
            .filter(|text| text.len() == len && text.bytes().all(|b| b.is_ascii_digit()))?
            .parse::<u32>()
            .ok()
    };
    number(year, 4).is_some()
        && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
        && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
}

impl Config {
    /// A value that is wrong for what was found on the disk.
    pub(crate) fn value_fault(&self, key: &str, spot: &Spot, problem: &str) -> BundleError {
        let (key, value, problem) = (key.to_owned(), spot.text.clone(), problem.to_owned());
        self.text.fault(spot.offset, ConfigFault::Value { key, value, problem })
    }

    /// Whether modules of Node may be imported, as `crates/js/src/node.rs` judges it.
    pub(crate) fn has_node_compat(&self) -> bool {
        let has = |name: &str| self.compatibility_flags.iter().any(|flag| flag == name);
        let is_default = self.compatibility_date.as_str() >= "2026-08-04";
        !has("no_nodejs_compat") && (has("nodejs_compat") || has("nodejs_compat_v2") || is_default)
    }
}

#[cfg(test)]
mod tests;
