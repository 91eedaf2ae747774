//! Alarms on real programs: nobody asks the objects, nodes are killed, and the waker finds what is due.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use holdfast_tests::client::SqlClient;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use holdfast_types::CellName;
use http::Method;
use serde_json::Value;

use crate::support::{SOON, TTL, client, db_on, ids};

/// `/set/NAME?in=MS`, `/delete/NAME`, `/rung/NAME`. A bell that rings says so in the log of its node, with when it was due.
const BELLS: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Bell extends DurableObject {
      async set(name, ms) {
        const due = Date.now() + ms;
        await this.ctx.storage.put({ name, due });
        await this.ctx.storage.setAlarm(due);
        return { due, cell: `Bell:${this.ctx.id}` };
      }
      async remove() { await this.ctx.storage.deleteAlarm(); return {}; }
      async rung() { return { rung: await this.ctx.storage.get('rung') ?? [], alarm: await this.ctx.storage.getAlarm() }; }
      async alarm() {
        const { storage } = this.ctx;
        const rung = await storage.get('rung') ?? [];
        await storage.put('rung', [...rung, { due: await storage.get('due'), at: Date.now() }]);
        console.log(`bell ${await storage.get('name')} rings`);
      }
    }
    export default { async fetch(request, env) {
      const { pathname, searchParams } = new URL(request.url);
      const [, what, name] = pathname.split('/');
      const bell = env.BELLS.getByName(name);
      if (what === 'set') return Response.json(await bell.set(name, Number(searchParams.get('in'))));
      if (what === 'delete') return Response.json(await bell.remove());
      return Response.json(await bell.rung());
    } };";

pub const CONFIG: &str = r#"{
    "name": "bells", "main": "index.js", "compatibility_date": "2026-11-01",
    "durable_objects": { "bindings": [{ "name": "BELLS", "class_name": "Bell" }] },
    "migrations": [{ "tag": "v1", "new_sqlite_classes": ["Bell"] }]
}"#;

struct Bells {
    cluster: Cluster,
    client: SqlClient,
}

impl Bells {
    /// A fleet with this application; each object can be asked.
    async fn new(nodes: usize, wakers: usize) -> Self {
        let options = ClusterOptions { nodes, wakers, lease_ttl: TTL, ..ClusterOptions::default() };
        let cluster = Cluster::start(options).await.unwrap();
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("index.js"), BELLS).unwrap();
        std::fs::write(project.path().join("wrangler.jsonc"), CONFIG).unwrap();
        let deployed = cluster.tool(&["deploy", project.path().to_str().unwrap()]).await.unwrap();
        assert_eq!(deployed.code, 0, "{deployed:?}");
        let bells = Self { cluster, client: client() };
        // Programs take a version up within seconds.
        bells.until("/rung/first", |answer| answer["alarm"].is_null()).await;
        bells
    }

    async fn ask(&self, path: &str) -> Result<Value> {
        let answer = self.client.send(Method::GET, self.cluster.ingress(), path, Default::default()).await;
        let answer = answer.into_result()?;
        ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.text());
        Ok(serde_json::from_str(&answer.text())?)
    }

    /// Asks again and again until the answer is as wanted.
    async fn until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let asked = wait::until(path, SOON, async || {
            let answer = self.ask(path).await?;
            ensure!(is_wanted(&answer), "{answer}");
            Ok(answer)
        });
        asked.await.unwrap()
    }

    /// Sets a bell; when it is due, and the node that has it.
    async fn set(&self, name: &str, ms: u64) -> (u64, String) {
        let set = self.until(&format!("/set/{name}?in={ms}"), |answer| answer["due"].is_u64()).await;
        let cell = CellName::parse(set["cell"].as_str().unwrap()).unwrap();
        let owner = self.cluster.owner_of(&cell).await.unwrap().expect("it has an owner record");
        (set["due"].as_u64().unwrap(), owner.node.to_string())
    }

    /// Waits until a bell has rung on one of these nodes, without asking for it.
    async fn rings(&self, name: &str, nodes: &[&str]) {
        let line = format!("bell {name} rings");
        let heard = wait::until(&line, SOON, async || {
            let is_there = nodes.iter().any(|node| self.cluster.log(node).contains(&line));
            is_there.then_some(()).context("not yet")
        });
        heard.await.unwrap();
    }

    /// When a bell was due, each time that it rang; none came early.
    async fn rung(&self, name: &str) -> Vec<u64> {
        let answer = self.until(&format!("/rung/{name}"), |_| true).await;
        let rung = answer["rung"].as_array().unwrap();
        let times = rung.iter().map(|ring| (ring["due"].as_u64().unwrap(), ring["at"].as_u64().unwrap()));
        times
            .inspect(|(due, at)| assert!(at >= due, "{name} rang early: {answer}"))
            .map(|(due, _)| due)
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_of_a_killed_node_runs_on_a_survivor_that_nobody_asked() {
    let mut bells = Bells::new(2, 1).await;
    let (due, owner) = bells.set("door", 2_000).await;
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    bells.cluster.kill(&owner).unwrap();
    let survivor = if owner == "n1" { "n2" } else { "n1" };
    bells.rings("door", &[survivor]).await;
    assert_eq!(bells.rung("door").await, [due]);
    assert!(bells.ask("/rung/door").await.unwrap()["alarm"].is_null());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_that_were_due_while_all_were_away_run_when_they_come_back() {
    let mut bells = Bells::new(2, 0).await;
    let mut due = BTreeMap::new();
    for number in 0..12 {
        let name = format!("b{number}");
        due.insert(name.clone(), bells.set(&name, 3_000).await.0);
    }
    // Two are taken back, and whoever did it was told so.
    for name in ["b3", "b7"] {
        bells.until(&format!("/delete/{name}"), |_| true).await;
        due.remove(name);
    }
    for node in ["n1", "n2"] {
        bells.cluster.kill(node).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    for node in ["n1", "n2"] {
        bells.cluster.start_node(node).await.unwrap();
    }
    bells.cluster.start_waker("w1").await.unwrap();
    for name in due.keys() {
        bells.rings(name, &["n1", "n2"]).await;
    }
    for (name, due) in &due {
        assert!(bells.rung(name).await.iter().all(|rung| rung == due), "{name}");
    }
    for name in ["b3", "b7"] {
        assert_eq!(bells.rung(name).await, [0; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_alarm_of_a_database_runs_its_statements_on_another_node_than_the_killed_owner() {
    let options = ClusterOptions { nodes: 2, wakers: 1, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    let db = db_on(&cluster, &client, "n1").await;
    let body = r#"{"in_ms": 4000, "sql": "INSERT INTO t (id, n) VALUES (?, 1)", "args": ["by the alarm"]}"#;
    let path = format!("/-/db/{db}/alarm");
    let set = client.send(Method::POST, ingress, &path, body.into()).await.into_result().unwrap();
    assert_eq!(set.status, 200, "{}", set.text());
    cluster.kill("n1").unwrap();
    // Nobody asks for the database before.
    let ran = wait::until("the alarm", SOON, async || {
        let ran = cluster.metric("n2", "holdfast_cellnode_alarms_runs_count_total", "succeeded").await?;
        ensure!(ran >= 1.0, "not yet");
        Ok(())
    });
    ran.await.unwrap();
    assert_eq!(ids(&client, ingress, &db).await.unwrap(), ["by the alarm"]);
    let shown = client.send(Method::GET, ingress, &path, Default::default()).await.into_result().unwrap();
    assert_eq!(shown.json().unwrap()["alarm"], Value::Null);
}
