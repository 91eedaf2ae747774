//! Sees to it that no child outlives the test. All children are in the process group of a small shell that waits for
//! the end of its standard input; when the test ends, by whatever means, the pipe closes and the shell kills the
//! group, itself included. It needs no unsafe code, and unlike a parent-death signal it does not depend on threads.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// The shell.
#[derive(Debug)]
pub struct Warden {
    shell: Child,
}

impl Warden {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no `/bin/sh`.
    pub fn start() -> Result<Self> {
        use std::os::unix::process::CommandExt;
        let shell = Command::new("/bin/sh")
            .args(["-c", "trap '' TERM INT HUP; read -r _; kill -9 0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting `/bin/sh`")?;
        Ok(Self { shell })
    }

    /// The process group that children join.
    #[must_use]
    pub fn group(&self) -> i32 {
        i32::try_from(self.shell.id()).expect("a pid fits an i32")
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It kills itself, so that this returns.
        let _ = self.shell.wait();
    }
}
