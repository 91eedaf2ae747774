//! The programs of a fleet as processes of their own. None outlives this process, whatever ends it: all are in the
//! process group of a small shell that waits for the end of its standard input, and then kills the group.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::time::sleep;

/// How long a program may take until it serves, and until it has ended in order.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at another process.
const LOOK: Duration = Duration::from_millis(10);
/// Lines of a log that an error shows.
const TAIL_LINES: usize = 20;
/// Units of the times in `/proc/<pid>/stat` per second: the same for every machine that Linux runs on here.
const TICKS_PER_S: u64 = 100;
/// What a program gets of this process's environment: its options come from the command line alone.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "TMPDIR", "RUST_BACKTRACE"];

/// Running programs, by name.
pub(super) struct Children {
    dir: PathBuf,
    running: BTreeMap<String, Child>,
    warden: Child,
}

impl Children {
    /// None yet; their logs and ready files go into `dir`.
    pub(super) fn new(dir: &Path) -> Result<Self> {
        let warden = Command::new("/bin/sh")
            .args(["-c", "trap '' TERM INT HUP; read -r _; kill -9 0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("`/bin/sh` cannot be started")?;
        Ok(Self { dir: dir.to_path_buf(), running: BTreeMap::new(), warden })
    }

    /// Starts a program and waits for its ready file.
    pub(super) async fn start(&mut self, name: &str, program: &Path, arguments: &[String]) -> Result<Value> {
        let group = i32::try_from(self.warden.id()).context("a pid fits an i32")?;
        let log = std::fs::File::create(self.log(name))?;
        let ready = self.dir.join(format!("{name}.ready"));
        let child = Command::new(program)
            .args(arguments)
            .arg("--ready-file")
            .arg(&ready)
            .args(["--log", "warn"])
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(group)
            .spawn()
            .with_context(|| format!("`{}` cannot be started", program.display()))?;
        self.running.insert(name.to_owned(), child);
        self.ready(name, &ready).await
    }

    async fn ready(&mut self, name: &str, path: &Path) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(text) = std::fs::read(path) {
                return Ok(serde_json::from_slice(&text)?);
            }
            self.check(name)?;
            ensure!(
                Instant::now() < deadline,
                "`{name}` is not ready after {PATIENCE:?}:\n{}",
                self.tail(name)
            );
            sleep(LOOK).await;
        }
    }

    /// An error when a program has ended, which none does by itself.
    pub(super) fn check_all(&mut self) -> Result<()> {
        let names: Vec<String> = self.running.keys().cloned().collect();
        names.iter().try_for_each(|name| self.check(name))
    }

    fn check(&mut self, name: &str) -> Result<()> {
        let child = self.running.get_mut(name).with_context(|| format!("`{name}` does not run"))?;
        match child.try_wait()? {
            Some(status) => bail!("`{name}` has ended with {status}:\n{}", self.tail(name)),
            None => Ok(()),
        }
    }

    /// Asks a program to end in order, and waits until it has.
    pub(super) async fn stop(&mut self, name: &str) -> Result<()> {
        self.check(name)?;
        let child = self.running.get_mut(name).with_context(|| format!("`{name}` does not run"))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a pid is positive")?;
        kill_process(pid, Signal::TERM)?;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            ensure!(Instant::now() < deadline, "`{name}` has not stopped after {PATIENCE:?}");
            sleep(LOOK).await;
        };
        self.running.remove(name);
        ensure!(status.success(), "`{name}` stopped with {status}:\n{}", self.tail(name));
        Ok(())
    }

    /// The CPU time that each program has taken so far, by name.
    pub(super) fn cpu(&self) -> Result<BTreeMap<String, Duration>> {
        let cpu = |(name, child): (&String, &Child)| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
            let cpu = cpu_of(&stat).with_context(|| format!("`{stat}` is no status of a process"))?;
            anyhow::Ok((name.clone(), cpu))
        };
        self.running.iter().map(cpu).collect()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.log"))
    }

    fn tail(&self, name: &str) -> String {
        let text = std::fs::read(self.log(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

/// The user's and the system's time in a `/proc/<pid>/stat`.
fn cpu_of(stat: &str) -> Option<Duration> {
    // The program's name, which may hold anything, ends with the last bracket.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    Some(Duration::from_millis(ticks * 1_000 / TICKS_PER_S))
}

impl Drop for Children {
    /// Waits for their ends too, so that their directory can go.
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(self.warden.stdin.take());
        // It has killed itself with its group.
        let _ = self.warden.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments of `/bin/sh` that make it a program: `$2` is the ready file.
    fn shell(text: &str) -> Vec<String> {
        ["-c", text, "sh"].map(Into::into).to_vec()
    }

    #[test]
    fn the_time_of_a_process_is_read_whatever_it_is_called() {
        let stat = "7 (a ) b) S 1 1 1 0 -1 4194304 99 0 0 0 150 50 3 4 20 0 5 0 1000 0";
        assert_eq!(cpu_of(stat), Some(Duration::from_secs(2)));
        assert_eq!(cpu_of("7 (a) S 1"), None);
    }

    #[tokio::test]
    async fn a_program_that_ends_before_it_is_ready_is_told_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut children = Children::new(dir.path()).unwrap();
        let arguments = shell("echo no luck; exit 3");
        let error = children.start("x", Path::new("/bin/sh"), &arguments).await.unwrap_err().to_string();
        assert!(error.contains("`x`") && error.contains("3") && error.contains("no luck"), "{error}");
    }

    #[tokio::test]
    async fn a_program_is_asked_to_stop_and_one_that_is_left_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let mut children = Children::new(dir.path()).unwrap();
        let ready = "echo '{\"a\":1}' > \"$2.new\"; mv \"$2.new\" \"$2\"";
        let polite = shell(&format!("trap 'exit 0' TERM; {ready}; while :; do sleep 0.02; done"));
        let started = children.start("polite", Path::new("/bin/sh"), &polite).await.unwrap();
        assert_eq!(started, serde_json::json!({ "a": 1 }));
        children.check_all().unwrap();
        children.stop("polite").await.unwrap();
        assert!(children.stop("polite").await.is_err());

        let stubborn = shell(&format!("trap '' TERM; {ready}; while :; do sleep 0.02; done"));
        children.start("stubborn", Path::new("/bin/sh"), &stubborn).await.unwrap();
        let process = PathBuf::from(format!("/proc/{}", children.running["stubborn"].id()));
        assert!(process.exists());
        drop(children);
        assert!(!process.exists());
    }
}
