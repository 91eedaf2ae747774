//! Waiting for a condition of another process: polled, with a deadline and a text that says what never came.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often a condition is looked at.
const POLL_MS: u64 = 20;

/// Polls until `condition` yields a value.
///
/// # Errors
/// After `limit`, with `what` and the last reason that the condition gave.
pub async fn until<T>(
    what: &str,
    limit: Duration,
    mut condition: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        let reason = match condition().await {
            Ok(value) => return Ok(value),
            Err(reason) => reason,
        };
        if started.elapsed() >= limit {
            bail!("waited {limit:?} in vain for {what}: {reason:#}");
        }
        tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
    }
}
