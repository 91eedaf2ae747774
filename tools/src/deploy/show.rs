//! `deploy show`: what a version consists of.

use anyhow::Result;
use holdfast_deploy::{DeployError, Deployments, VersionName};
use holdfast_records::{Assets, Binding, BindingEntry, Manifest, VersionRecord};
use holdfast_types::VersionId;
use serde_json::{Value, json};

use super::list::state;
use crate::output::{Output, Table, bytes, count, printable, span};
use crate::peers;

/// Longest value of a variable that is shown, in characters.
const VALUE_LEN_MAX: usize = 60;

/// Shows.
pub async fn show(deployments: &Deployments, version: Option<VersionName>, output: Output) -> Result<()> {
    let current = deployments.current().await?;
    let id = match version {
        Some(name) => deployments.find(&name).await?,
        None => current.ok_or(DeployError::NothingDeployed)?.id,
    };
    let record = deployments.version(id).await?;
    let state = state(id, current);
    output.print(&to_json(id, state, &record), || to_text(id, state, &record))
}

fn to_json(id: VersionId, state: &str, record: &VersionRecord) -> Value {
    let manifest = &record.manifest;
    let modules = manifest.modules.iter().map(|module| {
        json!({
            "name": module.name, "kind": module.kind.as_str(), "bytes": module.content.bytes,
            "sha256": module.content.sha256.to_string(),
        })
    });
    let bindings = manifest.bindings.iter().map(|BindingEntry { name, binding }| match binding {
        Binding::Text { value } => json!({ "name": name, "type": "text", "value": value }),
        Binding::Json { value } => json!({ "name": name, "type": "json", "value": value }),
        Binding::DurableObject { class } => json!({ "name": name, "type": "durable_object", "class": class }),
        Binding::D1Database { database } => {
            json!({ "name": name, "type": "d1_database", "database": database })
        }
        Binding::R2Bucket { bucket } => json!({ "name": name, "type": "r2_bucket", "bucket": bucket }),
        Binding::Assets => json!({ "name": name, "type": "assets" }),
        Binding::SelfService { entrypoint } => {
            json!({ "name": name, "type": "self_service", "entrypoint": entrypoint })
        }
    });
    json!({
        "version": id.to_string(), "state": state, "created_ms": record.created_ms.get(), "message": record.message,
        "name": manifest.name, "entry": manifest.entry, "compatibility_date": manifest.compatibility_date,
        "compatibility_flags": manifest.compatibility_flags, "classes": manifest.classes,
        "crons": manifest.crons,
        "assets": manifest.assets.as_ref().map(assets_json),
        "modules": modules.collect::<Vec<_>>(), "bindings": bindings.collect::<Vec<_>>(),
    })
}

fn assets_json(assets: &Assets) -> Value {
    let files = assets.files.iter().map(|file| {
        json!({ "path": file.path, "bytes": file.content.bytes, "sha256": file.content.sha256.to_string() })
    });
    json!({
        "files": files.collect::<Vec<_>>(), "html_handling": assets.html_handling,
        "not_found_handling": assets.not_found_handling, "run_worker_first": assets.run_worker_first,
    })
}

fn to_text(id: VersionId, state: &str, record: &VersionRecord) -> String {
    let Manifest { name, entry, compatibility_date, compatibility_flags, modules, bindings, crons, .. } =
        &record.manifest;
    let state = match state {
        "runs" => " (runs)",
        "before" => " (ran before the one that runs)",
        _ => "",
    };
    let age = span(peers::now().since(record.created_ms));
    let mut text = format!("version   {id}{state}\nproject   {}\ncreated   {age} ago\n", printable(name));
    if !record.message.is_empty() {
        text += &format!("message   {}\n", printable(&record.message));
    }
    text += &format!("entry     {}\nfor       {compatibility_date}", printable(entry));
    for flag in compatibility_flags {
        text += &format!(", {}", printable(flag));
    }
    let mut table = Table::new(["MODULE", "KIND", "SIZE"]);
    for module in modules {
        table.row([&module.name, module.kind.as_str(), &bytes(module.content.bytes)]);
    }
    text += &format!("\n\n{table}");
    if !bindings.is_empty() {
        let mut table = Table::new(["BINDING", "WHAT", "VALUE"]);
        for BindingEntry { name, binding } in bindings {
            let (what, value) = match binding {
                Binding::Text { value } => ("text", value.as_str()),
                Binding::Json { value } => ("json", value.as_str()),
                Binding::DurableObject { class } => ("Durable Objects", class.as_str()),
                Binding::D1Database { database } => ("D1 database", database.as_str()),
                Binding::R2Bucket { bucket } => ("R2 bucket", bucket.as_str()),
                Binding::Assets => ("static files", ""),
                Binding::SelfService { entrypoint } => {
                    ("this Worker", entrypoint.as_deref().unwrap_or("default"))
                }
            };
            table.row([name, what, &shortened(value)]);
        }
        text += &format!("\n{table}");
    }
    if let Some(assets) = &record.manifest.assets {
        let len = assets.files.iter().map(|file| file.content.bytes).sum();
        let files = u64::try_from(assets.files.len()).unwrap_or(u64::MAX);
        text += &format!("\n{}, {}\n", count(files, "static file"), bytes(len));
    }
    if !crons.is_empty() {
        let mut table = Table::new(["CRON"]);
        for cron in crons {
            table.row([cron]);
        }
        text += &format!("\n{table}");
    }
    text
}

fn shortened(value: &str) -> String {
    let mut chars = value.chars();
    let short: String = chars.by_ref().take(VALUE_LEN_MAX).collect();
    if chars.next().is_some() { format!("{short}…") } else { short }
}
