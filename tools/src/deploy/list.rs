//! `deploy list`: the versions there are, and which one runs.

use anyhow::Result;
use holdfast_deploy::{Current, Deployments, VersionInfo};
use holdfast_types::VersionId;
use serde_json::{Value, json};

use crate::output::{Output, Table, bytes, span};
use crate::peers;

/// Digits of a version that are shown; more than enough to tell versions apart.
const DIGITS: usize = 12;

/// Lists.
pub async fn list(deployments: &Deployments, output: Output) -> Result<()> {
    let current = deployments.current().await?;
    let versions = deployments.versions().await?;
    let rows: Vec<Value> = versions.iter().map(|version| row_json(version, current)).collect();
    output.print(&json!({ "versions": rows }), || {
        if versions.is_empty() {
            return "nothing is deployed yet".into();
        }
        let now = peers::now();
        let mut table = Table::new(["VERSION", "STATE", "AGE", "MODULES", "SIZE", "MESSAGE"]);
        for version in &versions {
            let age = span(now.since(version.created));
            let (modules, size) = (version.modules.to_string(), bytes(version.bytes));
            let id = version.id.to_string();
            table.row([&id[..DIGITS], state(version.id, current), &age, &modules, &size, &version.message]);
        }
        table.to_string()
    })
}

/// What a version is now, in a word.
pub(super) fn state(id: VersionId, current: Option<Current>) -> &'static str {
    match current {
        Some(current) if current.id == id => "runs",
        Some(current) if current.previous == Some(id) => "before",
        _ => "",
    }
}

fn row_json(version: &VersionInfo, current: Option<Current>) -> Value {
    let VersionInfo { id, created, message, modules, bytes } = version;
    json!({
        "version": id.to_string(), "state": state(*id, current), "created_ms": created.get(),
        "modules": modules, "bytes": bytes, "message": message,
    })
}
