//! Programs that workerd and Holdfast run from the same bytes, and answer the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use holdfast_tests::client::{Outcome, SqlClient};
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use holdfast_tests::workerd::Workerd;
use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::support::{SOON, TTL};

/// Programs at once: they share nothing.
const LANES: usize = 4;

/// What no program can show.
const NOT_THERE: &str = "
## Not there yet

Using what is not there throws an error that names it, and a key of `wrangler` that needs it stops the deploy:
`connect()` of service bindings. Of `nodejs_compat` there are `node:assert`,
`async_hooks`, `buffer`, `crypto` (hashes, keyed hashes, random values, PBKDF2, HKDF, Web Crypto), `diagnostics_channel`,
`events`, `path`, `process`, `querystring`, `stream`, `string_decoder`, `timers`, `url` and `util` (without `MIMEType` and
`parseArgs`), and the globals; not the rest. Of WebAssembly there is not: exceptions (`Tag`, `Exception`), garbage-collected
types, threads, 64-bit memories, `Suspending` and `promising`; a module that needs one of the first four stops the deploy with
its name.

A module of WebAssembly has at most 100,000 globals and 1,000,000 items of element segments. All that an instance has counts in the
isolate's memory, and so do the frames of calls within calls, by way of JavaScript.

The instruction `table.grow` by 512 elements or more may trap (\"growth operation limited\") where it comes just at the end of one of the
slices in which the interpreter runs: by 512 once in 100,000 times, by 100,000 once in 500. By fewer it never does, and neither does
`WebAssembly.Table.prototype.grow`.

";

/// A known difference.
#[derive(Deserialize)]
struct Known {
    /// What Holdfast answers.
    holdfast: String,
    /// Why.
    reason: String,
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("differential")
}

/// The project's configuration; its one comment line goes.
fn config() -> Value {
    let text = std::fs::read_to_string(project().join("wrangler.jsonc")).unwrap();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).unwrap()
}

async fn get(client: &SqlClient, address: SocketAddr, path: &str) -> Result<String, String> {
    match client.send(Method::GET, address, path, Bytes::new()).await {
        Outcome::Acked(answer, _) if answer.status == 200 => Ok(answer.text()),
        Outcome::Acked(answer, _) => Ok(format!("status {}: {}", answer.status, answer.text())),
        Outcome::Refused(reason) | Outcome::Unknown(reason) => Err(reason),
    }
}

async fn run_all(client: &SqlClient, address: SocketAddr, paths: &[String]) -> BTreeMap<String, String> {
    let runs = paths.iter().map(|path| async move {
        let answer = get(client, address, path).await.unwrap_or_else(|reason| format!("no answer: {reason}"));
        (path.clone(), answer)
    });
    stream::iter(runs).buffer_unordered(LANES).collect().await
}

#[test]
fn modules_of_webassembly_are_what_their_texts_say() {
    for name in ["module", "start"] {
        let made = wat::parse_file(project().join("wasm").join(name).with_extension("wat")).unwrap();
        let path = project().join("src").join(name).with_extension("wasm");
        if std::env::var_os("HOLDFAST_BLESS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let written = std::fs::read(&path).unwrap_or_default();
        assert!(written == made, "{} is not what its text says: HOLDFAST_BLESS=1 writes it", path.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "installs workerd from npm"]
async fn programs_answer_as_on_workerd() {
    // Its own ingress is the server outside.
    let allow = vec!["--allow-outbound".to_owned(), "127.0.0.1".to_owned()];
    let options = ClusterOptions {
        node_args: allow.clone(),
        ingress_args: allow,
        lease_ttl: TTL,
        ..ClusterOptions::default()
    };
    let mut cluster = Cluster::start(options).await.unwrap();
    // What programs throw on purpose.
    cluster.allow_in_logs("console: ");
    let deployed = cluster.tool(&["deploy", project().to_str().unwrap()]).await.unwrap();
    assert_eq!(deployed.code, 0, "{}", deployed.stderr);
    let state = tempfile::tempdir().unwrap();
    let install = Path::new(env!("CARGO_TARGET_TMPDIR")).join("workerd");
    let (folder, settings) = (state.path().to_owned(), config());
    let workerd =
        tokio::task::spawn_blocking(move || Workerd::serve(&install, &project(), &settings, &folder))
            .await
            .unwrap()
            .unwrap();

    let client = SqlClient::new(Duration::from_secs(60));
    let paths: Vec<String> =
        serde_json::from_str(&get(&client, workerd.address(), "/").await.unwrap()).unwrap();
    let adopted = async || -> anyhow::Result<()> {
        let answer = get(&client, cluster.ingress(), "/").await.map_err(anyhow::Error::msg)?;
        anyhow::ensure!(answer.starts_with('['), "{answer}");
        Ok(())
    };
    wait::until("the ingress runs the application", SOON, adopted).await.unwrap();
    // Nodes adopt it by themselves, soon after.
    let object = async || -> anyhow::Result<()> {
        let answer =
            get(&client, cluster.ingress(), "/object/order/cleared").await.map_err(anyhow::Error::msg)?;
        anyhow::ensure!(answer == "0", "{answer}");
        Ok(())
    };
    wait::until("the nodes run the application", SOON, object).await.unwrap();

    let theirs = run_all(&client, workerd.address(), &paths).await;
    let ours = run_all(&client, cluster.ingress(), &paths).await;
    let known: BTreeMap<String, Known> =
        serde_json::from_str(&std::fs::read_to_string(project().join("known.json")).unwrap()).unwrap();

    let mut wrong = String::new();
    for path in &paths {
        let (theirs, ours) = (&theirs[path], &ours[path]);
        match known.get(path) {
            None if theirs == ours => {}
            None => writeln!(wrong, "{path}\n  workerd:  {theirs}\n  holdfast: {ours}").unwrap(),
            Some(_) if theirs == ours => {
                writeln!(wrong, "{path} differs no more: take it out of known.json").unwrap()
            }
            Some(known) if known.holdfast == *ours => {}
            Some(known) => {
                writeln!(
                    wrong,
                    "{path}\n  known as: {}\n  holdfast: {ours}\n  workerd:  {theirs}",
                    known.holdfast
                )
                .unwrap();
            }
        }
    }
    let all: BTreeSet<&String> = paths.iter().collect();
    for path in known.keys().filter(|path| !all.contains(path)) {
        writeln!(wrong, "{path} is in known.json and is no program").unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    compare_document(&document(&paths, &theirs, &known));
}

/// What the run came to, for people.
fn document(paths: &[String], theirs: &BTreeMap<String, String>, known: &BTreeMap<String, Known>) -> String {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for path in paths {
        let group = path[1..].rsplit_once('/').map_or("", |(group, _)| group);
        let (all, same) = groups.entry(group).or_default();
        *all += 1;
        *same += usize::from(!known.contains_key(path));
    }
    let mut text = String::from(
        "# Compatibility\n\nMade by the test `process::differential` (`HOLDFAST_BLESS=1` writes it). Programs of \
         `tests/differential` run\non workerd and on Holdfast from the same bytes. What passes of the Web-platform-tests is in \
         [web-platform.md](web-platform.md).\n\n| programs | all | same answer \
         |\n|---|---|---|\n",
    );
    let (mut total, mut same_total) = (0, 0);
    for (group, (all, same)) in &groups {
        writeln!(text, "| `{group}` | {all} | {same} |").unwrap();
        total += all;
        same_total += same;
    }
    writeln!(text, "| together | {total} | {same_total} |").unwrap();
    text.push_str(NOT_THERE);
    text.push_str("## Known differences\n");
    for (path, Known { holdfast, reason }) in known {
        let theirs = &theirs[path];
        write!(
            text,
            "\n- `{path}`: {reason}.\n\n  ```text\n  workerd:  {theirs}\n  holdfast: {holdfast}\n  ```\n"
        )
        .unwrap();
    }
    text
}

fn compare_document(made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compatibility.md");
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, made, "docs/compatibility.md is not what this run made: HOLDFAST_BLESS=1 writes it");
}
