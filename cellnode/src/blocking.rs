//! Work that blocks, off the I/O threads.

/// Runs `work` on a thread for blocking calls. A panic of it goes on here; where the runtime is ending, and takes no more
/// work, this never returns.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
