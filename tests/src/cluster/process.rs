//! One child process: its flags, its log, its ready file, its signals.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use super::binaries::{Release, binary_of};
use super::{clocks, credentials, logs};
use crate::cluster::Warden;
use crate::wait;

/// How much of a log an error shows.
const TAIL_LINES: usize = 30;

/// What to start.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// Its name in the cluster and of its log.
    pub name: String,
    /// Its binary.
    pub program: String,
    /// Its flags, without `--ready-file`.
    pub args: Vec<String>,
    /// Where log and ready file go.
    pub dir: PathBuf,
    /// Shell commands that run before it, as root of mount and user namespaces of its own.
    pub prepare: Option<String>,
    /// A file of the certificate authorities that it trusts, in place of the machine's.
    pub authorities: Option<PathBuf>,
    /// Of which release.
    pub release: Release,
    life: u32,
}

impl ProcessSpec {
    /// A program without flags.
    #[must_use]
    pub fn new(name: &str, program: &str, dir: &Path) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            dir: dir.into(),
            prepare: None,
            authorities: None,
            release: Release::This,
            life: 0,
        }
    }

    pub(super) fn life(mut self, life: u32) -> Self {
        self.life = life;
        self
    }
}

/// A child, running or ended.
#[derive(Debug)]
pub struct Process {
    spec: ProcessSpec,
    child: Child,
    ready_file: PathBuf,
    log: PathBuf,
}

impl Process {
    /// Starts it, in the warden's process group, with an environment that holds nothing of the developer's.
    ///
    /// # Errors
    /// When the binary is missing.
    pub fn spawn(spec: ProcessSpec, warden: &Warden) -> Result<Self> {
        let log = logs::path(&spec.dir, &spec.name, spec.life);
        let ready_file = spec.dir.join(format!("{}.{}.ready", spec.name, spec.life));
        let output = File::create_new(&log).with_context(|| format!("creating `{}`", log.display()))?;
        let mut command = command(&spec)?;
        command.args(&spec.args).arg("--ready-file").arg(&ready_file);
        set_environment(&mut command);
        command.envs(spec.authorities.iter().map(|file| ("SSL_CERT_FILE", file)));
        command.envs(clocks::environment(&spec.dir, &spec.name)?);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(warden.group());
        let child = command.spawn().with_context(|| format!("starting `{}`", spec.program))?;
        Ok(Self { spec, child, ready_file, log })
    }

    /// Its binary.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.spec.program
    }

    /// How often the program was started before under this name.
    #[must_use]
    pub fn life(&self) -> u32 {
        self.spec.life
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for one address of the ready file.
    ///
    /// # Errors
    /// When it does not come, or the program ends before it.
    pub async fn ready_address(&mut self, field: &str, limit: Duration) -> Result<SocketAddr> {
        let what = format!("the ready file of `{}`", self.spec.name);
        let waited = wait::until(&what, limit, async || match self.exit_status()? {
            Some(status) => Ok(Err(status)),
            None => self.address(field).map(Ok),
        })
        .await;
        let log = || format!("log of `{}`:\n{}", self.spec.name, self.log_tail());
        match waited.with_context(log)? {
            Ok(address) => Ok(address),
            Err(status) => bail!("`{}` ended with {status} before it was ready; {}", self.spec.name, log()),
        }
    }

    /// One address of the ready file as it is now.
    ///
    /// # Errors
    /// When the file is not there yet, or lacks the field.
    pub fn address(&self, field: &str) -> Result<SocketAddr> {
        let path = self.ready_file.display();
        let text = std::fs::read_to_string(&self.ready_file).with_context(|| format!("reading `{path}`"))?;
        let ready: Value = serde_json::from_str(&text).with_context(|| format!("`{path}` holds `{text}`"))?;
        let address = ready[field].as_str().with_context(|| format!("`{path}` has no `{field}`: {text}"))?;
        Ok(address.parse()?)
    }

    /// How it ended, or `None` while it runs.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Whether it was ended by a signal of the test rather than by itself.
    #[must_use]
    pub fn was_killed(status: ExitStatus) -> bool {
        status.signal() == Some(9)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it still runs after `limit`.
    pub async fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("the end of `{}`", self.spec.name);
        let ended = wait::until(&what, limit, async || self.exit_status()?.context("it still runs")).await;
        ended.with_context(|| format!("log of `{}`:\n{}", self.spec.name, self.log_tail()))
    }

    /// SIGKILL, and waits for the end. An ended process stays ended.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&mut self) -> Result<()> {
        if self.exit_status()?.is_none() {
            self.child.kill()?;
            self.child.wait()?;
        }
        Ok(())
    }

    /// SIGSTOP, and waits until no thread of it runs: the signal alone takes some milliseconds on a busy machine, in which a
    /// process may still answer.
    ///
    /// # Errors
    /// When it no longer runs.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        let stopped_or_ended = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid()?), stopped_or_ended)?;
        let is_stopped = status.is_some_and(|status| status.stopped());
        ensure!(is_stopped, "`{}` ended instead of stopping", self.spec.name);
        Ok(())
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When it no longer runs.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// SIGTERM: asks it to end in order.
    ///
    /// # Errors
    /// When it no longer runs.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    fn pid(&self) -> Result<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a pid is positive")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid()?, signal).with_context(|| format!("signalling `{}`", self.spec.name))
    }

    /// The log of this life.
    #[must_use]
    pub fn log(&self) -> String {
        logs::read(&self.log)
    }

    /// The end of the log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let text = self.log();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The warden kills whatever this misses.
        let _ = self.kill();
    }
}

/// The program itself, or the preparing shell that becomes it: the process id is the program's either way.
fn command(spec: &ProcessSpec) -> Result<Command> {
    let program = binary_of(spec.release, &spec.program)?;
    let Some(prepare) = &spec.prepare else { return Ok(Command::new(program)) };
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "/bin/sh", "-c"]);
    command.arg(format!("set -e; {prepare}; exec \"$0\" \"$@\"")).arg(program);
    Ok(command)
}

/// Nothing of the developer's but what a program needs, and the store's credentials.
pub(super) fn set_environment(command: &mut Command) {
    let credentials = credentials();
    command
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| is_passed_on(&name.to_string_lossy())))
        .env("AWS_ACCESS_KEY_ID", credentials.access_key)
        .env("AWS_SECRET_ACCESS_KEY", credentials.secret_key)
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("RUST_BACKTRACE", "1");
}

fn is_passed_on(name: &str) -> bool {
    matches!(name, "PATH" | "HOME" | "TMPDIR" | "LANG" | "TZ" | "HOLDFAST_LOG" | "RUST_LOG")
}
