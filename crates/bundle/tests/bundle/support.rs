//! Projects in temporary folders, and what their packages answer in Node.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use holdfast_bundle::{Bundled, Options, bundle};
use holdfast_records::Package;
use serde_json::{Value, json};

/// A project's folder.
pub struct Project(tempfile::TempDir);

impl Project {
    /// With these files, and a configuration unless there is one among them.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        if !files.iter().any(|(name, _)| name.starts_with("wrangler.")) {
            let main = files.first().unwrap().0;
            let config = json!({
                "name": "app", "main": main, "compatibility_date": "2026-11-01",
                "compatibility_flags": ["nodejs_compat"],
            });
            project.write("wrangler.json", &config.to_string());
        }
        files.iter().for_each(|(name, text)| project.write(name, text));
        project
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn bundle(&self) -> Bundled {
        bundle(self.path(), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn refusal(&self) -> String {
        bundle(self.path(), &Options::default()).unwrap_err().to_string()
    }

    /// What `run` of the entry's default export answers.
    pub fn run(&self) -> Value {
        run(&self.bundle().package)
    }
}

/// Runs a package in Node.
pub fn run(package: &Package) -> Value {
    let modules: serde_json::Map<String, Value> = package
        .manifest()
        .modules
        .iter()
        .map(|module| {
            let source = String::from_utf8_lossy(package.bytes(module.content)).into_owned();
            (module.name.clone(), json!({ "kind": module.kind.as_str(), "source": source }))
        })
        .collect();
    let input = json!({ "entry": package.manifest().entry, "modules": modules });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bundle/run.mjs");
    let mut node = Command::new("node")
        .args(["--no-warnings", "--experimental-vm-modules", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"))
}
