//! What runs inside a cell. One implementation now: SQL, for class `db`. A runtime is synchronous and single-threaded;
//! it must never answer while a write of its event is unfinished.

mod sql;

use bytes::Bytes;
use holdfast_rpc::{Access, CallError};
use holdfast_sql::Engine;
use holdfast_types::{CellName, Epoch, Millis};

/// What a runtime knows of its cell.
#[derive(Clone, Debug)]
pub struct RuntimeContext {
    /// The cell.
    pub cell: CellName,
    /// The epoch.
    pub epoch: Epoch,
}

/// How an event ended.
#[derive(Debug)]
pub enum RuntimeOutcome {
    /// Answered.
    Reply(http::Response<Bytes>),
    /// Another caller's transaction is open; nothing was done. The event comes again when that has ended.
    Blocked,
}

/// The handler of a cell.
pub trait CellRuntime {
    /// Runs one event. `now` is monotonic.
    fn handle(
        &mut self,
        engine: &mut Engine,
        request: &http::Request<Bytes>,
        access: Access,
        now: Millis,
    ) -> RuntimeOutcome;

    /// When [`CellRuntime::expire`] has something to do.
    fn next_deadline(&self) -> Option<Millis>;

    /// Ends what has been open for too long.
    fn expire(&mut self, engine: &mut Engine, now: Millis);

    /// Ends everything that is open, before the cell is closed.
    fn stop(&mut self, engine: &mut Engine);
}

/// The runtime of a cell's class.
///
/// # Errors
/// [`CallError::Rejected`] for a class that nothing runs.
pub fn runtime_of(context: RuntimeContext) -> Result<Box<dyn CellRuntime>, CallError> {
    check_class(&context.cell)?;
    Ok(Box::new(sql::Sql::new(context)))
}

/// The answer to what asks nothing of the cell: whether the SQL API speaks a version. Clients ask before they have made
/// their database.
pub(crate) fn without_cell<B>(request: &http::Request<B>) -> Option<http::Response<Bytes>> {
    sql::version(request.method().as_str(), request.uri().path())
}

/// Refuses classes that nothing runs, before anything is claimed.
///
/// # Errors
/// [`CallError::Rejected`].
pub fn check_class(cell: &CellName) -> Result<(), CallError> {
    match cell.class() {
        "db" => Ok(()),
        class => Err(CallError::Rejected {
            status: http::StatusCode::NOT_FOUND,
            reason: format!("unknown cell class `{class}`; this fleet serves class `db`"),
        }),
    }
}
