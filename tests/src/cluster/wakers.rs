//! Wakers as processes.

use anyhow::Result;

use super::{Cluster, ProcessSpec};

/// Short, so that a scenario is: the product's own tick is 5 s.
pub const WAKER_TICK: &str = "1s";
/// The same of its sweep for dead sessions: 30 s.
pub const WAKER_SWEEP: &str = "2s";

impl Cluster {
    /// Starts a waker, also again after its end, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not get ready.
    pub async fn start_waker(&mut self, name: &str) -> Result<()> {
        let mut spec = ProcessSpec::new(name, "waker", self.dir());
        spec.args = self.bucket_args(name).await?;
        spec.args.extend(
            ["--name", name, "--tick", WAKER_TICK, "--sweep", WAKER_SWEEP, "--admin-listen", "127.0.0.1:0"]
                .map(Into::into),
        );
        self.spawn(spec)?;
        self.wait_ready(name).await
    }
}
