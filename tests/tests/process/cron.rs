//! Cron triggers on real programs: the next occurrence is run though the node that was to run it is killed.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use holdfast_records::Key;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use http::Method;
use serde_json::Value;

use super::application::ask;
use crate::support::{SOON, TTL, client};

/// The next minute, and a takeover in it.
const NEXT_RUN: Duration = Duration::from_secs(90);

const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Runs extends DurableObject {
      note(time) {
        const { kv } = this.ctx.storage;
        kv.put('runs', [...kv.get('runs') ?? [], { time, at: Date.now() }]);
      }
      all() { return this.ctx.storage.kv.get('runs') ?? []; }
    }
    export default {
      async fetch(request, env) { return Response.json(await env.RUNS.getByName('runs').all()); },
      async scheduled({ scheduledTime }, env) { await env.RUNS.getByName('runs').note(scheduledTime); },
    };";

const CONFIG: &str = r#"{
    "name": "runs", "main": "index.js", "compatibility_date": "2026-11-01",
    "triggers": { "crons": ["* * * * *"] },
    "durable_objects": { "bindings": [{ "name": "RUNS", "class_name": "Runs" }] },
    "migrations": [{ "tag": "v1", "new_sqlite_classes": ["Runs"] }]
}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_occurrence_is_run_though_its_node_is_killed() {
    let options = ClusterOptions { nodes: 2, wakers: 1, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    // What the killed node had under way.
    cluster.allow_in_logs("Uncaught");
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("index.js"), SOURCE).unwrap();
    std::fs::write(project.path().join("wrangler.jsonc"), CONFIG).unwrap();
    let deployed = cluster.tool(&["deploy", project.path().to_str().unwrap()]).await.unwrap();
    assert_eq!(deployed.code, 0, "{deployed:?}");

    let owner = wait::until("the object of the triggers", SOON, async || {
        let keys = cluster.raw_store().list("cells/HoldfastCron:").await?;
        let cells = keys.iter().filter_map(|key| match Key::parse(key) {
            Ok(Key::Owner(cell)) => Some(cell),
            _ => None,
        });
        let cells: Vec<_> = cells.collect();
        ensure!(cells.len() == 1, "there is one such object in a fleet: {cells:?}");
        let owner = cluster.owner_of(&cells[0]).await?.context("it has no owner")?;
        // By both nodes, so that it runs what the next minute shall call.
        let told = ["n1", "n2"].map(|node| cluster.log(node).contains("of this version are looked after"));
        ensure!(told == [true; 2], "told: {told:?}");
        Ok(owner.node.to_string())
    });
    let owner = owner.await.unwrap();
    cluster.kill(&owner).unwrap();

    let (client, ingress) = (client(), cluster.ingress());
    let runs = wait::until("a run", NEXT_RUN, async || {
        let runs: Value = serde_json::from_str(&ask(&client, Method::GET, ingress, "/").await?)?;
        ensure!(runs.as_array().is_some_and(|runs| !runs.is_empty()), "{runs}");
        Ok(runs)
    });
    let runs = runs.await.unwrap();
    for run in runs.as_array().unwrap() {
        let (time, at) = (run["time"].as_u64().unwrap(), run["at"].as_u64().unwrap());
        assert_eq!(time % 60_000, 0, "{runs}");
        assert!(time <= at, "none came early: {runs}");
    }
}
