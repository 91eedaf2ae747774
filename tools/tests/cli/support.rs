//! Runs the program: once, or as a `dev` that stays until the test ends.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The program with an environment that holds nothing of the developer's.
pub fn holdfast() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env_clear().stdin(Stdio::null());
    for (name, value) in std::env::vars_os() {
        if matches!(name.to_string_lossy().as_ref(), "PATH" | "HOME" | "TMPDIR") {
            command.env(name, value);
        }
    }
    command
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Its one JSON value, when it succeeded.
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Its text, when it succeeded.
    pub fn text(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        &self.out
    }

    /// Its error, when it failed with code 1 and nothing on stdout.
    pub fn failure(&self) -> &str {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:?}");
        &self.err
    }
}

/// Runs a command to its end.
pub fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running `dev`; killed when dropped.
pub struct Dev {
    child: Child,
    _out: BufReader<ChildStdout>,
    ready: Value,
}

impl Dev {
    /// Starts one on a directory and waits until it says that it is ready.
    pub fn start(dir: &Path, more: &[&str]) -> Self {
        let mut command = Self::command(dir, "0");
        let mut child =
            command.args(more).arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut err = String::new();
            child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
            panic!("dev ended before it was ready: {err}");
        }
        Self { ready: serde_json::from_str(&line).unwrap(), child, _out: out }
    }

    /// `dev` on a directory and a port.
    pub fn command(dir: &Path, port: &str) -> Command {
        let mut command = holdfast();
        command.arg("dev").arg("--dir").arg(dir).args(["--port", port]);
        command
    }

    pub fn ready(&self, field: &str) -> &str {
        self.ready[field].as_str().unwrap()
    }

    /// What it says of the application that it deployed.
    pub fn application(&self) -> &Value {
        &self.ready["application"]
    }

    /// A command against this fleet.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Said {
        let mut command = holdfast();
        command
            .env("HOLDFAST_BUCKET", self.ready("bucket"))
            .env("HOLDFAST_URL", self.ready("url"))
            .args(args);
        said(&mut command)
    }

    /// One query's answer.
    pub fn sql(&self, cell: &str, sql: &str) -> Value {
        self.run(&["cell", "sql", cell, sql, "--json"]).json()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The next line of its stderr.
    pub fn next_error_line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        let stderr = self.child.stderr.as_mut().unwrap();
        while stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Waits for its end.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap(), err)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
