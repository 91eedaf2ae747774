//! A deployed application on real programs: its Worker at the ingress, its objects on nodes, and what survives a node.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use holdfast_bucket::BucketArgs;
use holdfast_deploy::Deployments;
use holdfast_records::{Binding, BindingEntry, Blobs, Manifest, ModuleEntry, ModuleKind, Package};
use holdfast_tests::client::SqlClient;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use http::Method;

use crate::support::{SOON, TTL, client};

const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Counter extends DurableObject {
      constructor(ctx, env) {
        super(ctx, env);
        ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(n INTEGER)');
      }
      increment() { this.ctx.storage.sql.exec('INSERT INTO t VALUES (1)'); return this.count(); }
      count() { return this.ctx.storage.sql.exec('SELECT count(*) AS n FROM t').one().n; }
      async fetch(request) { return new Response(`${request.method} ${request.url} ${this.count()} VERSION`); }
    }
    export default { async fetch(request, env) {
      const [, what, name] = new URL(request.url).pathname.split('/');
      if (what === 'version') return new Response('VERSION');
      const counter = env.COUNTERS.getByName(name);
      if (what === 'count') return new Response(await counter.count());
      if (what === 'increment') return new Response(await counter.increment());
      return counter.fetch('https://counter.example/a%2fb?c', { method: 'PUT', body: request.body });
    } };";

/// A Worker with one class, whose binding is the class in capitals and an S.
fn package(class: &str, source: &str) -> Package {
    let mut blobs = Blobs::default();
    let content = blobs.add(source.to_owned());
    let manifest = Manifest {
        name: "counters".into(),
        entry: "index.js".into(),
        compatibility_date: "2026-11-01".into(),
        compatibility_flags: vec![],
        modules: vec![ModuleEntry {
            name: "index.js".into(),
            kind: ModuleKind::Esm,
            content,
            source_map: None,
        }],
        bindings: vec![BindingEntry {
            name: format!("{}S", class.to_uppercase()),
            binding: Binding::DurableObject { class: class.into() },
        }],
        classes: vec![class.into()],
        migrations: vec![],
        crons: vec![],
        assets: None,
    };
    Package::new(manifest, blobs).unwrap()
}

/// The store's directory is the bucket: both ways in may be used at once.
pub(crate) async fn publish(cluster: &Cluster, class: &str, source: &str) {
    let url = format!("file://{}", cluster.dir().join("store").display());
    let buckets = BucketArgs::at(&url).open().await.unwrap();
    let deployments = Deployments::new(buckets.records, buckets.bulk);
    deployments.publish(&package(class, source), "").await.unwrap();
}

/// The body of an answer with status 200.
pub(crate) async fn ask(
    client: &SqlClient,
    method: Method,
    ingress: SocketAddr,
    path: &str,
) -> Result<String> {
    let answer = client.send(method, ingress, path, Default::default()).await.into_result()?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
    Ok(answer.text())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_is_adopted_and_what_it_acknowledged_survives_a_node() {
    let options = ClusterOptions {
        nodes: 2,
        lease_ttl: TTL,
        ingress_args: vec!["--direct-cells".into()],
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    // A program may know of a class before another does: then a handler throws.
    cluster.allow_in_logs("Uncaught");
    let (client, ingress) = (client(), cluster.ingress());
    let get = async |path: &str| ask(&client, Method::GET, ingress, path).await;

    publish(&cluster, "Counter", &SOURCE.replace("VERSION", "one")).await;
    wait::until("the first version", SOON, async || get("/version").await).await.unwrap();
    let names: Vec<String> = (0..8).map(|number| format!("counter-{number}")).collect();
    for name in &names {
        let path = format!("/count/{name}");
        let count = wait::until("an object", SOON, async || get(&path).await).await.unwrap();
        assert_eq!(count, "0");
        for number in 1..=3 {
            assert_eq!(get(&format!("/increment/{name}")).await.unwrap(), number.to_string());
        }
    }
    let name = &names[0];
    let answer = ask(&client, Method::POST, ingress, &format!("/fetch/{name}")).await.unwrap();
    assert_eq!(answer, "PUT https://counter.example/a%2fb?c 3 one");
    let answer = get(&format!("/-/cells/Counter/{name}/x%20y")).await.unwrap();
    assert_eq!(answer, format!("GET http://{ingress}/x%20y 3 one"));

    publish(&cluster, "Counter", &SOURCE.replace("VERSION", "two")).await;
    wait::until("the second version", SOON, async || {
        let (worker, object) = (get("/version").await?, get(&format!("/-/cells/Counter/{name}/")).await?);
        ensure!(worker == "two" && object.ends_with(" 3 two"), "{worker}, {object}");
        Ok(())
    })
    .await
    .unwrap();

    cluster.kill("n1").unwrap();
    for name in &names {
        let path = format!("/count/{name}");
        let count = wait::until("the object elsewhere", SOON, async || get(&path).await).await.unwrap();
        assert_eq!(count, "3", "{name}");
        assert_eq!(get(&format!("/increment/{name}")).await.unwrap(), "4");
    }
}
