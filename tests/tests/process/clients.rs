//! libSQL clients that nobody here wrote, unchanged.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::fleet;

async fn run(client: &str) {
    let cluster = fleet(2, 1).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(client).join("run.sh");
    let install = Path::new(env!("CARGO_TARGET_TMPDIR")).join(client);
    // With the slash: clients resolve `v2/pipeline` against it.
    let url = format!("http://{}/-/db/{client}/", cluster.ingress());
    let mut command = Command::new("/bin/sh");
    command.arg(script).arg(install).arg(url).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("all checks passed"), "{out}\n{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "installs @libsql/client from npm"]
async fn libsql_js() {
    run("libsql_js").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "installs libsql from PyPI"]
async fn python() {
    run("python").await;
}
