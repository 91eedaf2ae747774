//! The tables of a configuration: Durable Objects, migrations, module rules, variables, definitions.

use holdfast_cron::Schedule;
use holdfast_records::{Binding, BindingEntry, MigrationEntry};
use holdfast_types::{CellName, R2BucketName};

use super::read::{Reader, Spot};
use super::tree::{Node, Value};
use crate::BundleError;
use crate::rules::{Rule, RuleKind};

/// Longest name of a binding, a class or a migration, in bytes.
const NAME_LEN_MAX: usize = 128;
/// Cron expressions of one application.
const CRONS_MAX: usize = 64;

/// A Durable Object class that a binding names.
#[derive(Clone, Debug)]
pub(crate) struct ClassUse {
    pub(crate) class: Spot,
}

pub(super) fn identifier(reader: &Reader<'_>, key: &str, spot: Spot) -> Result<Spot, BundleError> {
    let is_start = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    let is_valid = spot.text.starts_with(is_start)
        && spot.text.chars().all(|c| is_start(c) || c.is_ascii_digit())
        && spot.text.len() <= NAME_LEN_MAX;
    if is_valid {
        return Ok(spot);
    }
    Err(reader.wrong_value(key, &spot, "is not a name of a JavaScript variable of at most 128 letters"))
}

/// `vars`.
pub(super) fn vars(reader: &Reader<'_>, node: &Node) -> Result<Vec<(usize, BindingEntry)>, BundleError> {
    let mut bindings = Vec::new();
    for entry in reader.table("vars", node)? {
        let name = Spot { text: entry.key.clone(), offset: entry.key_offset };
        let name = identifier(reader, "vars", name)?;
        let binding = match &entry.node.value {
            Value::Text(value) => Binding::Text { value: value.clone() },
            _ => Binding::Json { value: entry.node.to_json() },
        };
        bindings.push((entry.key_offset, BindingEntry { name: name.text, binding }));
    }
    Ok(bindings)
}

/// `durable_objects`.
pub(super) fn durable_objects(
    reader: &Reader<'_>,
    node: &Node,
) -> Result<Vec<(usize, BindingEntry, ClassUse)>, BundleError> {
    const KEY: &str = "durable_objects";
    const BINDINGS: &str = "durable_objects.bindings";
    let mut found = Vec::new();
    for entry in reader.table(KEY, node)? {
        if entry.key != "bindings" {
            return Err(reader.unknown(KEY, entry, &["bindings"]));
        }
        for item in reader.list(BINDINGS, &entry.node)? {
            found.push(object_binding(reader, BINDINGS, item)?);
        }
    }
    Ok(found)
}

fn object_binding(
    reader: &Reader<'_>,
    above: &str,
    item: &Node,
) -> Result<(usize, BindingEntry, ClassUse), BundleError> {
    let (mut name, mut class) = (None, None);
    for entry in reader.table(above, item)? {
        match entry.key.as_str() {
            "name" => name = Some(reader.text("durable_objects.bindings.name", &entry.node)?),
            "class_name" => class = Some(reader.text("durable_objects.bindings.class_name", &entry.node)?),
            // The class of another application.
            "script_name" | "environment" => return Err(reader.not_yet(above, entry)),
            _ => return Err(reader.unknown(above, entry, &["name", "class_name", "script_name"])),
        }
    }
    let missing = |key: &str, what| reader.missing(item.offset, &format!("{above}.{key}"), what);
    let name = name.ok_or_else(|| missing("name", "the property of `env`"))?;
    let class = class.ok_or_else(|| missing("class_name", "the exported class"))?;
    let name = identifier(reader, "durable_objects.bindings.name", name)?;
    let class = identifier(reader, "durable_objects.bindings.class_name", class)?;
    let binding = Binding::DurableObject { class: class.text.clone() };
    Ok((name.offset, BindingEntry { name: name.text, binding }, ClassUse { class }))
}

/// `d1_databases`. A database is the cell `db:<database_name>`, which SQL clients reach by the same name.
pub(super) fn d1_databases(
    reader: &Reader<'_>,
    node: &Node,
) -> Result<Vec<(usize, BindingEntry)>, BundleError> {
    const KEY: &str = "d1_databases";
    let mut found = Vec::new();
    for item in reader.list(KEY, node)? {
        let (mut name, mut database, mut id) = (None, None, None);
        for entry in reader.table(KEY, item)? {
            match entry.key.as_str() {
                "binding" => name = Some(reader.text("d1_databases.binding", &entry.node)?),
                "database_name" => database = Some(reader.text("d1_databases.database_name", &entry.node)?),
                "database_id" => id = Some(reader.text("d1_databases.database_id", &entry.node)?),
                // Of Wrangler's own commands and server.
                "preview_database_id"
                | "migrations_dir"
                | "migrations_table"
                | "migrations_pattern"
                | "database_internal_env"
                | "remote"
                | "experimental_remote" => {}
                _ => return Err(reader.unknown(KEY, entry, &["binding", "database_name", "database_id"])),
            }
        }
        let missing = |key: &str, what| reader.missing(item.offset, &format!("{KEY}.{key}"), what);
        let name = name.ok_or_else(|| missing("binding", "the property of `env`"))?;
        let name = identifier(reader, "d1_databases.binding", name)?;
        let database = database.or(id).ok_or_else(|| missing("database_name", "which database"))?;
        if let Err(error) = CellName::new("db", &database.text) {
            return Err(reader.wrong_value(
                "d1_databases.database_name",
                &database,
                format!("names no cell: {error}"),
            ));
        }
        let binding = Binding::D1Database { database: database.text };
        found.push((name.offset, BindingEntry { name: name.text, binding }));
    }
    Ok(found)
}

/// `r2_buckets`. A bucket is a part of the fleet's own; applications that name the same one share it.
pub(super) fn r2_buckets(
    reader: &Reader<'_>,
    node: &Node,
) -> Result<Vec<(usize, BindingEntry)>, BundleError> {
    const KEY: &str = "r2_buckets";
    let mut found = Vec::new();
    for item in reader.list(KEY, node)? {
        let (mut name, mut bucket) = (None, None);
        for entry in reader.table(KEY, item)? {
            match entry.key.as_str() {
                "binding" => name = Some(reader.text("r2_buckets.binding", &entry.node)?),
                "bucket_name" => bucket = Some(reader.text("r2_buckets.bucket_name", &entry.node)?),
                // Of Wrangler's own server; and the fleet's bucket is where it was put.
                "preview_bucket_name" | "jurisdiction" | "remote" | "experimental_remote" => {}
                _ => {
                    return Err(reader.unknown(
                        KEY,
                        entry,
                        &["binding", "bucket_name", "preview_bucket_name"],
                    ));
                }
            }
        }
        let missing = |key: &str, what| reader.missing(item.offset, &format!("{KEY}.{key}"), what);
        let name = name.ok_or_else(|| missing("binding", "the property of `env`"))?;
        let name = identifier(reader, "r2_buckets.binding", name)?;
        let bucket = bucket.ok_or_else(|| missing("bucket_name", "which bucket"))?;
        if R2BucketName::parse(&bucket.text).is_err() {
            let problem = "is not 3 to 63 of `a-z 0-9 -`, starting and ending with a letter or a digit";
            return Err(reader.wrong_value("r2_buckets.bucket_name", &bucket, problem));
        }
        let binding = Binding::R2Bucket { bucket: bucket.text };
        found.push((name.offset, BindingEntry { name: name.text, binding }));
    }
    Ok(found)
}

/// `triggers`: cron expressions.
pub(super) fn triggers(reader: &Reader<'_>, node: &Node) -> Result<Vec<String>, BundleError> {
    const KEY: &str = "triggers.crons";
    let mut crons = Vec::new();
    for entry in reader.table("triggers", node)? {
        if entry.key != "crons" {
            return Err(reader.unknown("triggers", entry, &["crons"]));
        }
        for cron in reader.texts(KEY, &entry.node)? {
            if let Err(error) = Schedule::parse(&cron.text) {
                return Err(reader.wrong_value(KEY, &cron, error.to_string()));
            }
            if crons.len() == CRONS_MAX {
                return Err(reader.wrong_value(
                    KEY,
                    &cron,
                    format!("is one more than the limit of {CRONS_MAX}"),
                ));
            }
            crons.push(cron.text);
        }
    }
    crons.sort();
    crons.dedup();
    Ok(crons)
}

/// A Worker that a binding names.
#[derive(Debug)]
pub(crate) struct ServiceUse {
    name: String,
    service: Spot,
    entrypoint: Option<String>,
}

impl ServiceUse {
    /// The binding, where the Worker is that of this application, `own`.
    pub(super) fn of(self, reader: &Reader<'_>, own: &str) -> Result<BindingEntry, BundleError> {
        if self.service.text != own {
            let problem = "is another application: a fleet runs one, so a service can only be the application's own Worker";
            return Err(reader.wrong_value("services.service", &self.service, problem));
        }
        let binding = Binding::SelfService { entrypoint: self.entrypoint };
        Ok(BindingEntry { name: self.name, binding })
    }
}

/// `services`.
pub(super) fn services(reader: &Reader<'_>, node: &Node) -> Result<Vec<(usize, ServiceUse)>, BundleError> {
    const KEY: &str = "services";
    let mut found = Vec::new();
    for item in reader.list(KEY, node)? {
        let (mut name, mut service, mut entrypoint) = (None, None, None);
        for entry in reader.table(KEY, item)? {
            match entry.key.as_str() {
                "binding" => name = Some(reader.text("services.binding", &entry.node)?),
                "service" => service = Some(reader.text("services.service", &entry.node)?),
                "entrypoint" => entrypoint = Some(reader.text("services.entrypoint", &entry.node)?),
                "environment" | "props" => return Err(reader.not_yet(KEY, entry)),
                _ => return Err(reader.unknown(KEY, entry, &["binding", "service", "entrypoint"])),
            }
        }
        let missing = |key: &str, what| reader.missing(item.offset, &format!("{KEY}.{key}"), what);
        let name = name.ok_or_else(|| missing("binding", "the property of `env`"))?;
        let name = identifier(reader, "services.binding", name)?;
        let service = service.ok_or_else(|| missing("service", "the name of the application"))?;
        let entrypoint =
            entrypoint.map(|spot| identifier(reader, "services.entrypoint", spot)).transpose()?;
        let entrypoint = entrypoint.map(|spot| spot.text).filter(|name| name != "default");
        found.push((name.offset, ServiceUse { name: name.text, service, entrypoint }));
    }
    Ok(found)
}

/// `migrations`.
pub(super) fn migrations(reader: &Reader<'_>, node: &Node) -> Result<Vec<MigrationEntry>, BundleError> {
    const KEY: &str = "migrations";
    const KNOWN: &[&str] =
        &["tag", "new_sqlite_classes", "new_classes", "renamed_classes", "deleted_classes"];
    let mut migrations: Vec<MigrationEntry> = Vec::new();
    for item in reader.list(KEY, node)? {
        let mut migration = MigrationEntry::default();
        let mut tag = None;
        for entry in reader.table(KEY, item)? {
            let classes = || {
                let spots = reader.texts(&format!("{KEY}.{}", entry.key), &entry.node)?;
                let names = spots.into_iter().map(|spot| identifier(reader, KEY, spot));
                names.map(|name| name.map(|name| name.text)).collect::<Result<Vec<String>, BundleError>>()
            };
            match entry.key.as_str() {
                "tag" => tag = Some(reader.text("migrations.tag", &entry.node)?),
                "new_sqlite_classes" => migration.new_sqlite_classes = classes()?,
                "new_classes" => migration.new_classes = classes()?,
                "deleted_classes" => migration.deleted_classes = classes()?,
                "renamed_classes" => migration.renamed_classes = renames(reader, &entry.node)?,
                "transferred_classes" => return Err(reader.not_yet(KEY, entry)),
                _ => return Err(reader.unknown(KEY, entry, KNOWN)),
            }
        }
        let tag = tag.ok_or_else(|| reader.missing(item.offset, "migrations.tag", "the migration's name"))?;
        if migrations.iter().any(|earlier| earlier.tag == tag.text) {
            return Err(reader.wrong_value(
                "migrations.tag",
                &tag,
                "is the tag of an earlier migration, too",
            ));
        }
        if tag.text.is_empty() || tag.text.len() > NAME_LEN_MAX {
            return Err(reader.wrong_value("migrations.tag", &tag, "must have 1 to 128 bytes"));
        }
        migration.tag = tag.text;
        migrations.push(migration);
    }
    Ok(migrations)
}

fn renames(reader: &Reader<'_>, node: &Node) -> Result<Vec<(String, String)>, BundleError> {
    const KEY: &str = "migrations.renamed_classes";
    let mut renames = Vec::new();
    for item in reader.list(KEY, node)? {
        let (mut from, mut to) = (None, None);
        for entry in reader.table(KEY, item)? {
            match entry.key.as_str() {
                "from" => from = Some(identifier(reader, KEY, reader.text(KEY, &entry.node)?)?.text),
                "to" => to = Some(identifier(reader, KEY, reader.text(KEY, &entry.node)?)?.text),
                _ => return Err(reader.unknown(KEY, entry, &["from", "to"])),
            }
        }
        let from = from.ok_or_else(|| reader.missing(item.offset, KEY, "`from`, the old name"))?;
        let to = to.ok_or_else(|| reader.missing(item.offset, KEY, "`to`, the new name"))?;
        renames.push((from, to));
    }
    Ok(renames)
}

/// `rules`.
pub(super) fn rules(reader: &Reader<'_>, node: &Node) -> Result<Vec<Rule>, BundleError> {
    const KEY: &str = "rules";
    let mut rules = Vec::new();
    for item in reader.list(KEY, node)? {
        let (mut kind, mut globs, mut falls_through) = (None, None, false);
        for entry in reader.table(KEY, item)? {
            match entry.key.as_str() {
                "type" => kind = Some(rule_kind(reader, &reader.text("rules.type", &entry.node)?)?),
                "globs" => globs = Some(reader.texts("rules.globs", &entry.node)?),
                "fallthrough" => falls_through = reader.flag("rules.fallthrough", &entry.node)?,
                _ => return Err(reader.unknown(KEY, entry, &["type", "globs", "fallthrough"])),
            }
        }
        let kind = kind.ok_or_else(|| reader.missing(item.offset, "rules.type", "`Text` or `Data`"))?;
        let globs = globs.ok_or_else(|| reader.missing(item.offset, "rules.globs", "which files"))?;
        let globs = globs.into_iter().map(|glob| glob.text).collect();
        rules.push(Rule { kind, globs, falls_through });
    }
    Ok(rules)
}

fn rule_kind(reader: &Reader<'_>, spot: &Spot) -> Result<RuleKind, BundleError> {
    match spot.text.as_str() {
        "Text" => Ok(RuleKind::Text),
        "Data" => Ok(RuleKind::Data),
        "CompiledWasm" => Ok(RuleKind::Wasm),
        "ESModule" | "CommonJS" => Err(reader.wrong_value(
            "rules.type",
            spot,
            "is not supported yet: modules are found by their imports",
        )),
        _ => Err(reader.wrong_value("rules.type", spot, "is not one of Text, Data, CompiledWasm")),
    }
}

/// `define`.
pub(super) fn define(reader: &Reader<'_>, node: &Node) -> Result<Vec<(Spot, String)>, BundleError> {
    let mut defines = Vec::new();
    for entry in reader.table("define", node)? {
        let key = Spot { text: entry.key.clone(), offset: entry.key_offset };
        defines.push((key, reader.text("define", &entry.node)?.text));
    }
    Ok(defines)
}
