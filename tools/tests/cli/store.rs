//! `bucket` and `token`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Dev, holdfast, said};

const KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "holdfast-test"), ("AWS_SECRET_ACCESS_KEY", "holdfast-test-secret")];

fn with_keys() -> Command {
    let mut command = holdfast();
    command.envs(KEYS).env("AWS_EC2_METADATA_DISABLED", "true");
    command
}

#[test]
fn a_directory_is_served_as_a_bucket_that_passes_its_probe() {
    let dir = tempfile::tempdir().unwrap();
    let ready_file = dir.path().join("ready.json");
    let mut serve = with_keys();
    serve
        .args(["bucket", "serve", "--listen", "127.0.0.1:0", "--json", "--dir"])
        .arg(dir.path().join("store"));
    serve.arg("--ready-file").arg(&ready_file);
    let mut server = serve.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let ready: Value = serde_json::from_slice(&std::fs::read(&ready_file).unwrap()).unwrap();
    assert_eq!(ready["s3"], told["s3"]);

    let endpoint = format!("http://{}", ready["s3"].as_str().unwrap());
    let at = ["--bucket", "s3://holdfast", "--endpoint", &endpoint, "--region", "us-east-1"];
    let probed = said(with_keys().args(["bucket", "probe", "--json"]).args(at)).json();
    assert_eq!(probed["ok"], json!(true), "{probed}");
    let diagnosed = said(with_keys().arg("diagnose").args(at));
    assert!(diagnosed.text().contains("fleet identity: none yet"), "{diagnosed:?}");
    let denied = said(with_keys().env("AWS_SECRET_ACCESS_KEY", "wrong").args(["bucket", "probe"]).args(at));
    assert_eq!(denied.code, Some(1), "{denied:?}");
    assert!(denied.err.contains("refuses access"), "{denied:?}");

    kill_process(Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_directory_is_not_served_without_keys_or_under_a_bad_name() {
    let dir = tempfile::tempdir().unwrap();
    let serve = |command: &mut Command, more: &[&str]| {
        command.args(["bucket", "serve", "--listen", "127.0.0.1:0", "--dir"]).arg(dir.path().join("store"));
        said(command.args(more))
    };
    let keyless = serve(&mut holdfast(), &[]);
    assert!(keyless.failure().contains("`AWS_ACCESS_KEY_ID` is not set"), "{keyless:?}");
    assert!(!dir.path().join("store").exists());
    let named = serve(&mut with_keys(), &["--bucket-name", "No_Bucket"]);
    assert!(named.failure().contains("is not a bucket name"), "{named:?}");
}

#[test]
fn a_token_says_what_it_opens() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &[]);
    let made = dev.run(&["token", "create", "--cell", "db:tenant-*", "--read-only", "--expires", "2d"]);
    let token = made.text().trim();
    assert!(token.starts_with("hf1.") && !token.contains(char::is_whitespace), "{made:?}");
    let claims = dev.run(&["token", "verify", token, "--json"]).json();
    assert_eq!((&claims["cells"], &claims["access"]), (&json!("db:tenant-*"), &json!("read-only")));
    let lifetime = claims["expires_s"].as_u64().unwrap() - claims["issued_s"].as_u64().unwrap();
    assert_eq!(lifetime, 2 * 86_400);
    dev.run(&["token", "verify", token, "--cell", "db:tenant-7"]).text();
    let other = dev.run(&["token", "verify", token, "--cell", "db:other"]);
    assert!(other.failure().contains("not for this cell"), "{other:?}");
    let changed = token.replacen("hf1.e", "hf1.f", 1);
    assert_eq!(dev.run(&["token", "verify", &changed]).code, Some(1));
    let never = dev.run(&["token", "create", "--cell", "db:*", "--expires", "0s"]);
    assert!(never.failure().contains("--expires"), "{never:?}");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = said(holdfast().args(["completions", shell]));
        assert!(script.text().contains("diagnose") && script.out.contains("drain"), "{shell}");
    }
}
