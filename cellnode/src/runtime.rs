//! What runs inside a cell, as the cell's actor sees it. A runtime lives on its cell's thread and takes *turns*: it is told
//! what happened, works for a while, and says by effects what shall leave. It does no I/O itself and lets nothing leave
//! itself: the actor takes every effect to the gate, behind the ticket that the engine has after the turn (design 4.5).
//!
//! An event may be answered in the turn that begins it, which costs nothing more, or stay open over many.

mod body;
mod js;
mod operation;
mod socket;
mod sql;

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use holdfast_js::{SocketEvent, SocketId};
use holdfast_rpc::{Access, Body, CallError, ObjectCall, SocketReader, ThrownError};
use holdfast_sql::Engine;
use holdfast_types::{AlarmTime, CellName, Epoch, Millis};
use tokio::sync::mpsc;

pub(crate) use body::{Backlog, IncomingBody, OutgoingBody, OutgoingReader, Piece};
pub(crate) use js::{Applications, SocketRoom};
pub(crate) use operation::{
    BucketRequest, CacheRequest, ConnectRequest, DatabaseRequest, HistoryAnswer, ObjectRequest, OpAnswer,
    Operation, ServerAnswer, ServerRequest,
};
pub(crate) use socket::read_socket;

/// What a runtime knows of its cell.
#[derive(Clone, Debug)]
pub struct RuntimeContext {
    /// The cell.
    pub cell: CellName,
    /// The epoch.
    pub epoch: Epoch,
}

/// A cell's database: the actor's and its runtime's, on one thread. Nobody keeps it borrowed over a call of the other.
pub(crate) type SharedEngine = Rc<RefCell<Engine>>;

/// Names an event of one residency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// Names an operation of one residency; the runtime's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A body that comes in: a request's, or that of an answer to a request of the cell's own.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// All of it.
    Whole(Bytes),
    /// It arrives as it is read.
    Stream(Body),
}

/// What an event asks for.
pub(crate) struct EventCall {
    /// What the caller may do.
    pub(crate) access: Access,
    /// The request.
    pub(crate) request: http::Request<RequestBody>,
    /// What is asked of an object besides.
    pub(crate) object: ObjectCall,
}

impl std::fmt::Debug for EventCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.request.method(), self.request.uri())
    }
}

/// A response's body.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    /// All of it.
    Whole(Bytes),
    /// Pieces, each of which passed the gate.
    Stream(OutgoingReader),
    /// Messages of a socket of another object, which passed that one's gate.
    Joined(Body),
}

/// How an event was answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// By a response; the result of a method is one of status 200.
    Response(http::Response<ReplyBody>),
    /// The handler threw.
    Thrown(Box<ThrownError>),
}

/// How the turn that begins an event ended.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The event is over, and this is its answer.
    Reply(http::Response<Bytes>),
    /// The event is open: [`Effect::Answer`] and [`Effect::Done`] come, in this turn or a later one.
    Open,
    /// Another caller's transaction is open; nothing was done and the call is untouched. The event comes again when that
    /// has ended.
    Blocked,
}

/// How the turn that begins a run of the alarm handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlarmBegun {
    /// It runs as an open event: [`Effect::AlarmEnded`] and [`Effect::Done`] come, in this turn or a later one.
    Open,
    /// It cannot run now; nothing was done.
    NotNow,
    /// The class has no such handler.
    NoHandler,
}

/// How a run of the alarm handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlarmEnd {
    /// Well; the alarm is consumed.
    Succeeded,
    /// It threw, or it broke a limit.
    Failed,
    /// It was broken off for no fault of its own.
    BrokenOff,
    /// The class has no such handler.
    NoHandler,
}

/// What a turn wants done. Effects of one turn leave in order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A run of the alarm handler has ended. What it wrote last is committed.
    AlarmEnded {
        /// How.
        end: AlarmEnd,
    },
    /// Answers an open event; at most once each.
    Answer {
        /// The event.
        event: EventId,
        /// Its answer.
        answer: Answer,
    },
    /// Nothing of the event is under way any more.
    Done {
        /// The event.
        event: EventId,
    },
    /// Starts an operation. [`CellRuntime::complete`] is told its answer.
    Start {
        /// The runtime's name for it, never used before.
        op: OpId,
        /// What to do.
        operation: Operation,
    },
    /// Nobody waits for the operation's answer any more; it is broken off where it stands.
    Cancel {
        /// The operation.
        op: OpId,
    },
    /// A piece of a body whose taking nobody waits for.
    Send {
        /// The piece.
        piece: Piece,
    },
    /// Reads a socket from here on. [`CellRuntime::socket`] is told what comes, one after the other.
    Listen {
        /// The socket.
        socket: SocketId,
        /// What the other end says.
        reader: SocketReader,
        /// Says when the next is wanted. Once its sender is gone nothing is.
        wants: mpsc::Receiver<Wanted>,
    },
}

/// What the reader of a socket is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The handler has begun with what came last.
    Next,
    /// The socket is given up: its other end takes nothing.
    End,
}

/// One turn of a runtime.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// When it began, monotonic.
    pub(crate) now: Millis,
    /// What it wants done.
    pub(crate) effects: Vec<Effect>,
}

/// The handler of a cell. What it throws away at its end (open transactions, streams) is its own affair; what its events'
/// callers are told then is the actor's.
pub(crate) trait CellRuntime {
    /// Begins an event. What is taken out of `call` is gone; nothing may be where the event is blocked.
    fn begin(&mut self, event: EventId, call: &mut EventCall, turn: &mut Turn) -> Begun;

    /// Begins a run of the alarm handler as an event. The embedder begins no second one before that has ended.
    fn alarm(&mut self, event: EventId, alarm: (AlarmTime, u32), turn: &mut Turn) -> AlarmBegun {
        let _ = (event, alarm, turn);
        AlarmBegun::NoHandler
    }

    /// An operation has its answer.
    fn complete(&mut self, op: OpId, answer: OpAnswer, turn: &mut Turn);

    /// The caller of an open event has gone. The event is not over by that.
    fn cancel(&mut self, event: EventId, turn: &mut Turn);

    /// When [`CellRuntime::wake`] has something to do, monotonic.
    fn next_deadline(&self) -> Option<Millis>;

    /// The deadline has come.
    fn wake(&mut self, turn: &mut Turn);

    /// Something came for a socket that the runtime listens to.
    fn socket(&mut self, _socket: SocketId, _event: SocketEvent, _turn: &mut Turn) {}

    /// Sockets that the runtime holds, and connections: the cell is in use as long as there are any.
    fn sockets(&self) -> usize {
        0
    }

    /// What is deployed has changed.
    fn deployed(&mut self, _turn: &mut Turn) {}

    /// Whether an instance of the handler is in memory. Before the next one is made, the database may become another.
    fn has_session(&self) -> bool {
        true
    }

    /// Ends everything that is open, before the cell is closed. There is no turn afterwards.
    fn stop(&mut self);
}

/// Which classes there are, and what runs them.
pub(crate) trait Classes: Send + Sync + std::fmt::Debug {
    /// Refuses a class that nothing runs, before anything is claimed.
    fn check(&self, cell: &CellName) -> Result<(), CallError>;

    /// Whether a call takes its request's body as it arrives. Others are given it whole.
    fn takes_streams(&self, cell: &CellName, object: &ObjectCall) -> bool;

    /// The answer to what asks nothing of the cell.
    fn without_cell(&self, cell: &CellName, request: &http::Request<Body>) -> Option<http::Response<Bytes>>;

    /// Whether a request may make a cell that is not there.
    fn may_create(&self, cell: &CellName, access: Access, method: &http::Method) -> bool;

    /// A runtime for a cell of a class that [`Classes::check`] let through.
    fn runtime(&self, context: RuntimeContext, engine: &SharedEngine)
    -> Result<Box<dyn CellRuntime>, String>;
}

/// The class of databases.
const DB: &str = "db";

/// The classes that are there without an application.
#[derive(Debug)]
pub(crate) struct BuiltIn;

impl BuiltIn {
    /// Whether a cell is of one of these classes.
    fn has(cell: &CellName) -> bool {
        cell.class() == DB
    }
}

impl Classes for BuiltIn {
    fn check(&self, cell: &CellName) -> Result<(), CallError> {
        if Self::has(cell) {
            return Ok(());
        }
        Err(CallError::Rejected {
            status: http::StatusCode::NOT_FOUND,
            reason: format!("unknown cell class `{}`; this fleet serves class `db`", cell.class()),
        })
    }

    fn takes_streams(&self, _: &CellName, _: &ObjectCall) -> bool {
        false
    }

    fn without_cell(&self, _: &CellName, request: &http::Request<Body>) -> Option<http::Response<Bytes>> {
        // Clients ask for versions before they have made their database.
        sql::version(request.method().as_str(), request.uri().path())
    }

    fn may_create(&self, _: &CellName, access: Access, method: &http::Method) -> bool {
        // Nobody makes a database by only looking.
        // Nor by removing something of it.
        access == Access::ReadWrite
            && !matches!(*method, http::Method::GET | http::Method::HEAD | http::Method::DELETE)
    }

    fn runtime(
        &self,
        context: RuntimeContext,
        engine: &SharedEngine,
    ) -> Result<Box<dyn CellRuntime>, String> {
        self.check(&context.cell).map_err(|error| error.to_string())?;
        Ok(Box::new(sql::Sql::new(context, Rc::clone(engine), None)))
    }
}
