//! R2 buckets on real programs: one bucket for the Worker at an ingress and an object on a node.

use anyhow::ensure;
use bytes::Bytes;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use http::Method;

use crate::support::{SOON, TTL, client};

const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    const files = async (request, { FILES }) => {
      const { pathname, searchParams } = new URL(request.url);
      const key = decodeURIComponent(pathname.slice(pathname.indexOf('/', 1) + 1));
      switch (request.method) {
        case 'PUT': return new Response((await FILES.put(key, request.body)).etag);
        case 'DELETE': await FILES.delete(key); return new Response('deleted');
        case 'POST': return Response.json((await FILES.list({ delimiter: '/' })).delimitedPrefixes);
      }
      const range = searchParams.has('range') ? { offset: 1_000_000, length: 5 } : undefined;
      const object = await FILES.get(key, { range });
      return object === null ? new Response('none') : new Response(object.body);
    };
    export class Keeper extends DurableObject {
      fetch(request) { return files(request, this.env); }
    }
    export default { fetch(request, env) {
      return request.url.includes('/worker/') ? files(request, env) : env.KEEPERS.getByName('k').fetch(request);
    } };";

const CONFIG: &str = r#"{
    "name": "files", "main": "index.js", "compatibility_date": "2026-11-01",
    "r2_buckets": [{ "binding": "FILES", "bucket_name": "files" }],
    "durable_objects": { "bindings": [{ "name": "KEEPERS", "class_name": "Keeper" }] },
    "migrations": [{ "tag": "v1", "new_sqlite_classes": ["Keeper"] }]
}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_and_an_object_share_a_bucket() {
    let options = ClusterOptions { nodes: 1, lease_ttl: TTL, ..ClusterOptions::default() };
    let cluster = Cluster::start(options).await.unwrap();
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("index.js"), SOURCE).unwrap();
    std::fs::write(project.path().join("wrangler.jsonc"), CONFIG).unwrap();
    let deployed = cluster.tool(&["deploy", project.path().to_str().unwrap()]).await.unwrap();
    assert_eq!(deployed.code, 0, "{deployed:?}");

    let (client, ingress) = (client(), cluster.ingress());
    let ask = async |method: Method, path: &str, body: &Bytes| {
        let answer = client.send(method, ingress, path, body.clone()).await.into_result()?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
        Ok::<String, anyhow::Error>(answer.text())
    };
    let nothing = Bytes::new();
    for side in ["worker", "object"] {
        let get = wait::until("the application", SOON, async || {
            ask(Method::GET, &format!("/{side}/absent"), &nothing).await
        });
        assert_eq!(get.await.unwrap(), "none", "{side}");
    }
    // Larger than any window between the programs, and of many pieces.
    let large = Bytes::from((0..3_000_000u32).map(|at| b'a' + (at % 23) as u8).collect::<Vec<u8>>());
    let part = String::from_utf8(large[1_000_000..1_000_005].to_vec()).unwrap();
    for (writer, reader) in [("worker", "object"), ("object", "worker")] {
        for body in [&large, &Bytes::from_static(b"small")] {
            let path = format!("{writer}/a%20b/{writer}");
            let etag = ask(Method::PUT, &format!("/{path}"), body).await.unwrap();
            assert_eq!(etag.len(), 32, "{etag}");
            let path = format!("/{reader}/a%20b/{writer}");
            assert!(ask(Method::GET, &path, &nothing).await.unwrap().as_bytes() == &body[..], "{path}");
            if body.len() > 5 {
                assert_eq!(ask(Method::GET, &format!("{path}?range"), &nothing).await.unwrap(), part);
            }
        }
        assert_eq!(ask(Method::POST, &format!("/{reader}/x"), &nothing).await.unwrap(), "[\"a b/\"]");
    }
    // The large ones were replaced, and their bytes are gone.
    let stored = cluster.raw_store().list("r2/files/").await.unwrap();
    assert_eq!(stored, ["r2/files/o/=a!20b/=object", "r2/files/o/=a!20b/=worker"]);
    assert_eq!(ask(Method::DELETE, "/object/a%20b/worker", &nothing).await.unwrap(), "deleted");
    assert_eq!(ask(Method::GET, "/worker/a%20b/worker", &nothing).await.unwrap(), "none");
    let swept = cluster.tool(&["--json", "r2", "sweep", "--older-than", "0s"]).await.unwrap();
    assert_eq!(swept.code, 0, "{swept:?}");
}
