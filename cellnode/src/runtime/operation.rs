//! Operations that a runtime starts, and their answers. An operation is an output: the gate lets it go, and only then it
//! runs, on the I/O runtime. Nothing here decides whether it may.

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{IncomingBody, Piece};

/// What a runtime wants done outside of its thread. It carries all that its execution needs.
#[derive(Debug)]
pub(crate) enum Operation {
    /// The next piece of a body that comes in.
    Read(IncomingBody),
    /// A piece for a body that goes out.
    Write(Piece),
}

/// How an operation ended.
#[derive(Debug)]
pub(crate) enum OpAnswer {
    /// A piece of a body, none at its end; or what broke it.
    Chunk(Result<Option<Bytes>, String>),
    /// Whether the reader took the piece; false when it has gone.
    Written(bool),
    /// Too many operations of the cell are under way; this one did not begin.
    Refused(String),
}

impl Operation {
    /// Bytes that wait with it at the gate.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Read(_) => 0,
            Self::Write(piece) => piece.len(),
        }
    }

    /// Runs it. `done` is called once, on any thread, unless `cancelled` comes first. A piece enters its body in any case:
    /// one that is missing would break it.
    pub(crate) fn run(
        self,
        runtime: &Handle,
        cancelled: CancellationToken,
        done: impl FnOnce(OpAnswer) + Send + 'static,
    ) {
        match self {
            Self::Write(piece) => piece.enter(Box::new(move |taken| done(OpAnswer::Written(taken)))),
            Self::Read(body) => drop(runtime.spawn(async move {
                tokio::select! {
                    biased;
                    () = cancelled.cancelled() => {}
                    answer = body.read() => done(OpAnswer::Chunk(answer)),
                }
            })),
        }
    }

    /// The gate failed, or the cell has too many: it does not run.
    pub(crate) fn fail(self, reason: &str) {
        match self {
            Self::Write(piece) => piece.fail(reason),
            Self::Read(_) => {}
        }
    }
}
