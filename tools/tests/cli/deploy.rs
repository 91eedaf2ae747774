//! `deploy` and `secret`: versions come, go back and go; what is broken stops before anything of it is in the bucket.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Said, holdfast, said};

/// A bucket, and a project beside it.
pub struct Site {
    dir: TempDir,
}

impl Site {
    pub fn new() -> Self {
        let site = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(site.bucket_dir()).unwrap();
        site.write(
            "wrangler.jsonc",
            r#"{ "name": "app", "main": "index.js", "compatibility_date": "2026-11-01", "vars": { "MODE": "live" } }"#,
        );
        site
    }

    fn bucket_dir(&self) -> PathBuf {
        self.dir.path().join("bucket")
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("app")
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) {
        let file = self.project().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// A command against the bucket.
    fn run(&self, args: &[&str]) -> Said {
        said(holdfast().env("HOLDFAST_BUCKET", self.bucket()).args(args))
    }

    fn bucket(&self) -> String {
        format!("file://{}", self.bucket_dir().display())
    }

    /// Deploys the project with this `index.js`.
    fn deploy(&self, source: &str) -> Said {
        self.write("index.js", source);
        self.run(&["deploy", self.project().to_str().unwrap(), "--json"])
    }

    /// The versions' names and states.
    fn states(&self) -> Vec<(String, String)> {
        let listed = self.run(&["deploy", "list", "--json"]).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let rows = listed["versions"].as_array().unwrap();
        rows.iter().map(|row| (text(&row["version"]), text(&row["state"]))).collect()
    }

    fn state(&self, version: &str) -> String {
        self.states().into_iter().find(|(id, _)| id == version).unwrap().1
    }

    fn put_secret(&self, name: &str, value: &[u8]) -> Said {
        let mut command = holdfast();
        command.env("HOLDFAST_BUCKET", self.bucket()).args(["secret", "put", name]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        // A name that is refused is refused before the value is read to its end.
        let _ = child.stdin.take().unwrap().write_all(value);
        let output = child.wait_with_output().unwrap();
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn version(said: &Said) -> String {
    said.json()["version"].as_str().unwrap().to_owned()
}

fn worker(text: &str) -> String {
    format!("export default {{ fetch() {{ return new Response('{text}'); }} }};\n")
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn versions_are_deployed_listed_shown_and_rolled_back() {
    let site = Site::new();
    assert_eq!(site.run(&["deploy", "list"]).text(), "nothing is deployed yet\n");
    assert!(site.run(&["deploy", "rollback"]).failure().contains("nothing is deployed yet"));
    assert!(site.run(&["deploy", "show"]).failure().contains("nothing is deployed yet"));

    let first = site.deploy(&worker("one")).json();
    assert_eq!(
        (&first["name"], &first["changed"], &first["previous"]),
        (&json!("app"), &json!(true), &Value::Null)
    );
    assert_eq!((&first["modules"], &first["notes"]), (&json!(1), &json!([])));
    let first = first["version"].as_str().unwrap().to_owned();
    assert!(site.run(&["deploy", "rollback"]).failure().contains("no version ran before"));

    // As a person does it: in the folder, with a message.
    site.write("index.js", &worker("two"));
    let mut command = holdfast();
    command.env("HOLDFAST_BUCKET", site.bucket()).current_dir(site.project());
    let deployed = said(command.args(["deploy", "--message", "the second"]));
    let second = site.states().into_iter().find(|(_, state)| state == "runs").unwrap().0;
    assert!(deployed.text().starts_with("bundled `app`: 1 module, "), "{deployed:?}");
    assert!(deployed.out.contains(&format!("version {second} is the one that runs")), "{deployed:?}");
    assert!(deployed.out.contains(&format!("before it: {first}")), "{deployed:?}");
    assert_eq!(site.state(&first), "before");

    let again = site.deploy(&worker("two")).json();
    assert_eq!(
        (&again["version"], &again["changed"], &again["previous"]),
        (&json!(second), &json!(false), &json!(first))
    );

    let shown = site.run(&["deploy", "show", "--json"]).json();
    assert_eq!((&shown["version"], &shown["message"]), (&json!(second), &json!("the second")));
    assert_eq!(shown["bindings"], json!([{ "name": "MODE", "type": "text", "value": "live" }]));
    assert_eq!(
        (&shown["modules"][0]["name"], &shown["modules"][0]["kind"]),
        (&json!("index.js"), &json!("esm"))
    );
    let shown = site.run(&["deploy", "show", &first[..8]]);
    assert!(
        shown.text().contains(&first) && shown.out.contains("ran before") && shown.out.contains("MODE"),
        "{shown:?}"
    );

    let back = site.run(&["deploy", "rollback", "--json"]).json();
    assert_eq!(
        (&back["version"], &back["previous"], &back["changed"]),
        (&json!(first), &json!(second), &json!(true))
    );
    assert_eq!(site.state(&first), "runs");
    site.run(&["deploy", "rollback", &second[..6]]).text();
    assert_eq!(site.state(&second), "runs");
    assert!(
        site.run(&["deploy", "rollback", "ffffffff"]).failure().contains("there is no version `ffffffff`")
    );
    let listed = site.run(&["deploy", "list"]);
    assert!(listed.text().contains("the second") && listed.out.contains(&second[..12]), "{listed:?}");
}

#[test]
fn what_is_broken_stops_with_its_place_and_what_runs_goes_on() {
    let site = Site::new();
    let broken = site.deploy("export default {\n  fetch() { return new Response('x' }\n};\n");
    assert!(broken.failure().contains("index.js:2:"), "{broken:?}");
    assert!(files(&site.bucket_dir()).is_empty(), "nothing of it is in the bucket");

    let good = version(&site.deploy(&worker("good")));
    let objects = files(&site.bucket_dir());
    let refused = |source: &str, reason: &str| {
        let broken = site.deploy(source);
        assert!(broken.failure().contains(reason), "{reason}: {broken:?}");
    };
    refused("export default {\n  fetch() {\n", "index.js:3:1");
    // What only the engine finds.
    refused("export default {\n  fetch() { return /(?<a>.)(?<a>.)\\k<b>/u; }\n};\n", "at index.js");
    refused("import './absent.js';\nexport default {};\n", "index.js:1:");
    refused("export const nothing = 1;\n", "nothing");

    let config = |text: &str| site.write("wrangler.jsonc", text);
    config(
        "{\n  \"name\": \"app\",\n  \"main\": \"index.js\",\n  \"compatibility_date\": \"2026-11-01\",\n  \"mian\": 1\n}",
    );
    refused(&worker("x"), "wrangler.jsonc:5:3: unknown key `mian`");
    config(
        "{ \"name\": \"app\", \"main\": \"index.js\", \"compatibility_date\": \"2026-11-01\",\n  \"kv_namespaces\": [] }",
    );
    refused(&worker("x"), "wrangler.jsonc:2:3: `kv_namespaces` is not supported yet");
    config(
        "{ \"name\": \"app\", \"main\": \"index.js\", \"compatibility_date\": \"2026-11-01\",\n  \"durable_objects\": \
         { \"bindings\": [{ \"name\": \"A\", \"class_name\": \"Absent\" }] } }",
    );
    refused(&worker("x"), "the class `Absent` is not exported");
    assert_eq!(files(&site.bucket_dir()), objects);
    assert_eq!(site.states(), [(good, "runs".to_owned())]);
}

#[test]
fn a_folder_without_a_project_and_a_bucket_that_is_not_there_are_named() {
    let site = Site::new();
    let absent = site.run(&["deploy", site.dir.path().join("absent").to_str().unwrap()]);
    assert!(absent.failure().contains("absent` cannot be read"), "{absent:?}");
    let none = site.run(&["deploy", site.bucket_dir().to_str().unwrap()]);
    assert!(none.failure().contains("holds no wrangler.jsonc"), "{none:?}");

    site.write("index.js", &worker("x"));
    let project = site.project();
    let project = project.to_str().unwrap();
    let no_bucket = said(holdfast().args(["deploy", project]));
    assert_eq!((no_bucket.code, no_bucket.out.as_str()), (Some(2), ""), "{no_bucket:?}");
    assert!(no_bucket.err.contains("--bucket"), "{no_bucket:?}");
    let elsewhere = format!("{}-absent", site.bucket());
    let missing = said(holdfast().args(["deploy", project, "--bucket", &elsewhere]));
    assert!(missing.failure().contains("there is no bucket"), "{missing:?}");

    // The bucket's options go before or after a command's name; what belongs to a deploy goes nowhere else.
    let bucket = site.bucket();
    said(holdfast().args(["deploy", "list", "--bucket", &bucket])).text();
    said(holdfast().args(["deploy", "--bucket", &bucket, "list"])).text();
    let mixed = said(holdfast().args(["deploy", project, "--bucket", &bucket, "list"]));
    assert_eq!((mixed.code, mixed.out.as_str()), (Some(2), ""), "{mixed:?}");
}

#[test]
fn a_prune_keeps_what_runs_what_ran_before_and_the_newest() {
    let site = Site::new();
    let ids: Vec<String> =
        ["one", "two", "three", "four"].map(|text| version(&site.deploy(&worker(text)))).into();
    site.run(&["deploy", "rollback", &ids[0]]).text();
    let pruned = site.run(&["deploy", "prune", "--keep", "0", "--json"]).json();
    let mut removed: Vec<&str> =
        pruned["versions"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    removed.sort_unstable();
    let mut expected = [ids[1].as_str(), ids[2].as_str()];
    expected.sort_unstable();
    assert_eq!((removed, &pruned["is_partial"]), (expected.to_vec(), &json!(false)));
    assert!(site.run(&["deploy", "rollback", &ids[1]]).failure().contains("there is no version"));
    assert_eq!(site.run(&["deploy", "prune"]).text(), "removed 0 versions and 0 files\n");
    site.run(&["deploy", "rollback"]).text();
    assert_eq!(site.state(&ids[3]), "runs");
}

#[test]
fn secrets_are_put_listed_and_deleted_and_never_shown() {
    let site = Site::new();
    site.deploy(&worker("x")).json();
    assert_eq!(site.run(&["secret", "list"]).text(), "there are no secrets\n");
    let put = site.put_secret("TOKEN", b"hush-hush\n");
    assert_eq!(put.text(), "the secret `TOKEN` is put; nodes take it up within seconds\n");
    let file = site.dir.path().join("value");
    std::fs::write(&file, "from-a-file\n").unwrap();
    site.run(&["secret", "put", "KEY", "--value-file", file.to_str().unwrap()]).text();
    std::fs::remove_file(&file).unwrap();
    let listed = site.run(&["secret", "list", "--json"]).json();
    let names: Vec<&Value> =
        listed["secrets"].as_array().unwrap().iter().map(|secret| &secret["name"]).collect();
    assert_eq!(names, ["KEY", "TOKEN"]);
    for object in files(&site.bucket_dir()) {
        let body = std::fs::read(&object).unwrap();
        let body = String::from_utf8_lossy(&body);
        assert!(!body.contains("hush-hush") && !body.contains("from-a-file"), "{}", object.display());
    }

    let refused = |name: &str, value: &[u8], reason: &str| {
        let said = site.put_secret(name, value);
        assert!(said.failure().contains(reason), "{reason}: {said:?}");
        assert!(!said.err.contains("hush"), "{said:?}");
    };
    refused("MODE", b"hush", "both a secret and a binding");
    refused("a-b", b"hush", "has no name of a JavaScript variable");
    refused("EMPTY", b"\n", "is empty");
    refused("LONG", &[b'x'; (64 << 10) + 100], "more than 64 KiB");
    refused("BYTES", b"hush\xff", "not UTF-8");
    let absent = site.run(&["secret", "put", "KEY", "--value-file", file.to_str().unwrap()]);
    assert!(absent.failure().contains("cannot be read"), "{absent:?}");

    // A binding may not take a secret's name either.
    site.write(
        "wrangler.jsonc",
        r#"{ "name": "app", "main": "index.js", "compatibility_date": "2026-11-01", "vars": { "TOKEN": "x" } }"#,
    );
    assert!(site.deploy(&worker("y")).failure().contains("`TOKEN` is both a secret and a binding"));

    site.run(&["secret", "delete", "TOKEN"]).text();
    assert!(site.run(&["secret", "delete", "TOKEN"]).failure().contains("there is no secret `TOKEN`"));
    site.deploy(&worker("y")).json();
}

#[test]
fn every_example_bundles_compiles_and_deploys() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let site = Site::new();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(examples).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.is_dir() {
            continue;
        }
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(dir.join("README.md").is_file(), "`{name}` has no README.md");
        let deployed = site.run(&["deploy", dir.to_str().unwrap(), "--json"]).json();
        assert_eq!((&deployed["name"], &deployed["notes"]), (&json!(name), &json!([])), "{deployed}");
        names.push(name);
    }
    assert_eq!(site.states().len(), names.len(), "{names:?}");
    assert!(names.len() >= 4, "{names:?}");
}
