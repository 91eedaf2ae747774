//! workerd, which serves an application's own modules, for comparison.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// workerd, until dropped.
#[derive(Debug)]
pub struct Workerd {
    child: Child,
    address: SocketAddr,
}

impl Workerd {
    /// Installs workerd into `install` and serves the project in `project`: the modules of `src`, of which `index.js` is
    /// the entry, with the variables, objects, databases and compatibility of `config`. Databases are served by
    /// `d1/server.js` of the project. State goes below `state`.
    ///
    /// # Errors
    /// When it cannot be installed, does not start, or the project has what this does not know.
    pub fn serve(install: &Path, project: &Path, config: &Value, state: &Path) -> Result<Self> {
        let script = project.join("install.sh");
        let output =
            Command::new("/bin/sh").arg(script).arg(install).output().context("running install.sh")?;
        if !output.status.success() {
            bail!("installing workerd: {}", String::from_utf8_lossy(&output.stderr));
        }
        let objects = state.join("objects");
        std::fs::create_dir_all(&objects)?;
        copy_modules(&project.join("src"), &state.join("src"))?;
        copy_modules(&project.join("d1"), &state.join("d1"))?;
        let capnp = state.join("config.capnp");
        std::fs::write(&capnp, configuration(&state.join("src"), &objects, config)?)?;
        let mut child = Command::new(install.join("node_modules/.bin/workerd"))
            .args(["serve", "--control-fd=1"])
            .arg(&capnp)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("starting workerd")?;
        let stdout = child.stdout.take().context("workerd has a standard output")?;
        let mut workerd = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        for line in BufReader::new(stdout).lines() {
            let event: Value = serde_json::from_str(&line?)?;
            if let Some(port) = event["port"].as_u64() {
                workerd.address.set_port(u16::try_from(port)?);
                return Ok(workerd);
            }
        }
        bail!("workerd ended before it listened")
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Workerd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn copy_modules(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// A configuration in workerd's own language. Files are named relative to it.
fn configuration(src: &Path, objects: &Path, config: &Value) -> Result<String> {
    let mut names: Vec<String> = std::fs::read_dir(src)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    // The first module is the entry.
    names.sort_by_key(|name| (name != "index.js", name.clone()));
    let mut modules = String::new();
    for name in names {
        let kind = if name.ends_with(".wasm") { "wasm" } else { "esModule" };
        write!(modules, "(name = {}, {kind} = embed {}),", quote(&name), quote(&format!("src/{name}")))?;
    }
    let (mut bindings, mut classes) = (String::new(), String::new());
    for (name, value) in config["vars"].as_object().into_iter().flatten() {
        let what = match value {
            Value::String(text) => format!("text = {}", quote(text)),
            value => format!("json = {}", quote(&value.to_string())),
        };
        write!(bindings, "(name = {}, {what}),", quote(name))?;
    }
    for binding in config["durable_objects"]["bindings"].as_array().into_iter().flatten() {
        let name = binding["name"].as_str().context("a binding has a name")?;
        let class = binding["class_name"].as_str().context("a binding has a class")?;
        write!(bindings, "(name = {}, durableObjectNamespace = {}),", quote(name), quote(class))?;
        write!(classes, "(className = {0}, uniqueKey = {0}, enableSql = true),", quote(class))?;
    }
    for binding in config["d1_databases"].as_array().into_iter().flatten() {
        let name = binding["binding"].as_str().context("a binding has a name")?;
        let fetcher = r#"(name = "fetcher", service = "database")"#;
        write!(
            bindings,
            r#"(name = {}, wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [{fetcher}])),"#,
            quote(name)
        )?;
    }
    let date = config["compatibility_date"].as_str().context("the project has a compatibility date")?;
    let (date, path) = (quote(date), quote(&objects.display().to_string()));
    Ok(format!(
        r#"using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .application), (name = "database", worker = .database), (name = "internet", network = (allow = ["public", "private", "local"])), (name = "disk", disk = (path = {path}, writable = true))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]);
const database :Workerd.Worker = (
  modules = [(name = "server.js", esModule = embed "d1/server.js")], compatibilityDate = {date},
  bindings = [(name = "DATABASE", durableObjectNamespace = "Database")],
  durableObjectNamespaces = [(className = "Database", uniqueKey = "Database", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"));
const application :Workerd.Worker = (
  modules = [{modules}], compatibilityDate = {date}, bindings = [{bindings}], globalOutbound = "internet",
  durableObjectNamespaces = [{classes}], durableObjectStorage = (localDisk = "disk"));
"#
    ))
}

fn quote(text: &str) -> String {
    // The escapes of JSON are among those of this language.
    Value::from(text).to_string()
}
