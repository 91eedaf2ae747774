//! Tasks that drive gates and the node log. A panic in one is a broken invariant and ends the process, as on a cell's thread:
//! a machine that was left in the middle of a step must not go on acknowledging.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::runtime::Handle;

/// Spawns such a task.
pub(crate) fn spawn(runtime: &Handle, what: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    runtime.spawn(guarded(what, task));
}

/// Such a task, for whoever polls it.
pub(crate) async fn guarded(what: &'static str, task: impl Future<Output = ()> + Send) {
    if AssertUnwindSafe(task).catch_unwind().await.is_err() {
        tracing::error!(what, "a task panicked; the process ends so that no damaged state is served");
        std::process::abort();
    }
}
