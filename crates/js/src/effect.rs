//! What an isolate asks of its embedder and what it is told: effects, operations and their answers, events, turns.
//! Plain data: nothing here holds an engine value, so all of it may cross threads.

use bytes::Bytes;
use holdfast_types::{AlarmTime, Millis};

mod connection;
mod error;
mod http;
mod socket;

pub use connection::{ConnectTo, OutgoingConnection, Security};
pub use error::{BrokenCause, JsError, StartError};
pub use http::{
    IncomingBody, IncomingRequest, IncomingResponse, OutgoingBody, OutgoingRequest, OutgoingResponse,
    Redirect,
};
pub use socket::{SocketAction, SocketEnd, SocketEvent, SocketId, SocketMessage};

macro_rules! id {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(u64);

        impl $type {
            /// Wraps a number.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number; below 2^53.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
        }
    };
}

id!(
    /// An event of one isolate. The embedder numbers them from 1; a number is never used twice.
    EventId
);
id!(
    /// An operation that an isolate waits for. The isolate numbers them.
    OpId
);
id!(
    /// A streamed body that comes into the isolate. The embedder numbers them, below 2^53.
    IncomingBodyId
);
id!(
    /// A streamed body that leaves the isolate. The isolate numbers them.
    OutgoingBodyId
);

/// The clocks, read by the embedder at the start of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Never goes back; from any start. Timers run by it.
    pub monotonic: Millis,
    /// Since 1970-01-01 UTC.
    pub wall: Millis,
}

/// What an event calls.
#[derive(Clone, Debug, PartialEq)]
pub enum EventCall {
    /// The `fetch` handler.
    Fetch(IncomingRequest),
    /// A method, with an array of arguments in the clone format.
    Rpc {
        /// Its name.
        method: String,
        /// The arguments: one array.
        args: Bytes,
        /// Whether the caller takes a result with references in it. Without that such a result is an error.
        takes_references: bool,
    },
    /// A session for RPC, whose messages are those of a socket. It is answered like a request that asks for one, and its
    /// messages come by [`EventCall::Socket`].
    Session {
        /// Its first message; empty where that comes like the others.
        first: Bytes,
    },
    /// The `alarm` handler of a Durable Object. Its end is [`Effect::AlarmEnded`] or [`Effect::Fail`].
    Alarm {
        /// What the alarm was set to.
        scheduled: AlarmTime,
        /// Runs of it that did not succeed.
        retry_count: u32,
    },
    /// What came to a hibernatable socket of the object. It is not answered.
    Socket {
        /// Which.
        socket: SocketId,
        /// What.
        event: SocketEvent,
    },
}

/// Why an event of a Worker ends before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The caller has gone. An event that gave something to `waitUntil` goes on until that has ended.
    CallerGone,
    /// Its time is over, whatever it waits for.
    TimeOver,
}

/// What a stub calls in another isolate.
#[derive(Clone, Debug, PartialEq)]
pub enum OutgoingCall {
    /// Its `fetch` handler. Answered with [`OpAnswer::Response`].
    Fetch(OutgoingRequest),
    /// A method. Answered with [`OpAnswer::Returned`].
    Rpc {
        /// Its name.
        method: String,
        /// The arguments: one array in the clone format.
        args: Bytes,
    },
    /// A session for RPC. Answered with [`OpAnswer::Response`], as a request that asks for a socket.
    Session {
        /// The socket that carries it.
        socket: SocketId,
        /// Its first message; empty where that comes like the others.
        first: Bytes,
    },
}

/// The place of a call among those that were made by one stub: they begin at the object in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOrder {
    /// The stub: a random number.
    pub stub: u64,
    /// Calls that were made by it before.
    pub place: u64,
    /// The first of them that has no answer yet; `place` where all have.
    pub floor: u64,
}

/// What an object asks of the history of its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryAsk {
    /// That everything written before is durable. Answered with nothing.
    Sync,
    /// A bookmark of the state that the turn ends with. Answered with its text.
    Bookmark {
        /// The number of a restore that was wished for in the same turn: the bookmark is then of the state that it will take
        /// the place of. 0: none.
        restore: u32,
    },
    /// The bookmark of the newest state that is not after a time, in milliseconds since 1970. Answered with its text.
    At(Millis),
    /// Whether this bookmark's state can be had. Answered with its position: the two numbers, in 16 hex digits each.
    Find(String),
}

/// Something that an isolate waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A request to the outside. Answered with [`OpAnswer::Response`].
    Fetch(OutgoingRequest),
    /// A call of a Durable Object of this application.
    CallObject {
        /// Its class.
        class: String,
        /// Its id: 64 hex digits.
        id: String,
        /// The name that the id was made from, where the caller knows it.
        name: Option<String>,
        /// Which of its stub's calls it is.
        order: CallOrder,
        /// What it calls.
        call: OutgoingCall,
    },
    /// Statements for a D1 database. Answered with [`OpAnswer::Returned`].
    QueryDatabase {
        /// Its name.
        database: String,
        /// JSON, as the SQL API's `/d1` reads it; its answer is what is returned.
        request: Bytes,
    },
    /// A request to an R2 bucket. Answered with [`OpAnswer::Object`].
    AskBucket {
        /// Its name.
        bucket: String,
        /// JSON, as `crates/r2` reads it.
        request: Bytes,
        /// What is put.
        body: OutgoingBody,
    },
    /// A request to the caches of this program. Answered with [`OpAnswer::Object`].
    AskCache {
        /// JSON, as `crates/outbound` reads it.
        request: Bytes,
        /// The body of an answer that is put.
        body: OutgoingBody,
    },
    /// A TCP connection. Answered with [`OpAnswer::Object`] once it stands.
    Connect(OutgoingConnection),
    /// About the history of the object's storage. Answered with [`OpAnswer::Returned`].
    AskHistory(HistoryAsk),
    /// The next chunk of a body. Answered with [`OpAnswer::Chunk`].
    ReadBody {
        /// Which.
        body: IncomingBodyId,
    },
    /// A chunk for whoever reads a body of ours. Answered with [`OpAnswer::Written`] once the embedder has room for
    /// more: that is the back-pressure.
    WriteBody {
        /// Which.
        body: OutgoingBodyId,
        /// Not empty.
        chunk: Bytes,
    },
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum OpAnswer {
    /// A response.
    Response(IncomingResponse),
    /// The result of a method, in the clone format; for a database, JSON.
    Returned(Bytes),
    /// What an R2 bucket or a cache says, and the bytes of an object or an answer; or a connection, and what its server sends.
    Object {
        /// JSON of a bucket or a cache; of a connection the key to upgrade it by, empty where it cannot be.
        head: Bytes,
        /// The bytes.
        body: IncomingBody,
    },
    /// A chunk, or the end of the body.
    Chunk(Option<Bytes>),
    /// The chunk was taken.
    Written,
    /// It failed. For [`Op::WriteBody`]: the reader has gone.
    Failed(JsError),
}

/// How a run of the `scheduled` handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Well.
    Ok,
    /// It threw, or took too long.
    Failed,
    /// It did not end, as often as it began: it is not run again.
    GivenUp,
}

impl RunEnd {
    /// In a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::GivenUp => "given_up",
        }
    }
}

/// How loud a log line is: the method of `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `console.debug`
    Debug,
    /// `console.log`
    Log,
    /// `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`, and exceptions that nothing caught.
    Error,
}

/// What an isolate asks for, in the order in which it must take place.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The answer to a `fetch` event.
    Respond {
        /// Whose.
        event: EventId,
        /// What.
        response: OutgoingResponse,
    },
    /// The result of an `Rpc` event, in the clone format.
    Return {
        /// Whose.
        event: EventId,
        /// What.
        value: Bytes,
    },
    /// The `alarm` handler has ended well, and the alarm is consumed with this turn.
    AlarmEnded {
        /// Whose.
        event: EventId,
        /// Whether the class has a handler; otherwise nothing ran, and nothing is consumed.
        has_handler: bool,
    },
    /// A run of the Worker's `scheduled` handler, which no caller waits for, is over.
    ScheduledEnded {
        /// How.
        end: RunEnd,
    },
    /// The event's handler threw.
    Fail {
        /// Whose.
        event: EventId,
        /// What.
        error: JsError,
        /// A Worker that called `passThroughOnException`.
        pass_through: bool,
    },
    /// All of an event has ended: its answer, the body of it, and what it gave to `waitUntil`.
    Done {
        /// Whose.
        event: EventId,
    },
    /// Begin an operation, and answer it with [`crate::Isolate::complete`].
    Start {
        /// The answer's address.
        op: OpId,
        /// What to do.
        op_call: Op,
    },
    /// Nobody waits for the operation any more: stop it, and do not answer it.
    Cancel {
        /// Which.
        op: OpId,
    },
    /// A body of ours has ended well.
    EndBody {
        /// Which.
        body: OutgoingBodyId,
    },
    /// A body of ours broke: its reader must see a broken stream, never an end.
    AbortBody {
        /// Which.
        body: OutgoingBodyId,
        /// Why.
        error: JsError,
    },
    /// Something is done with a socket.
    Socket {
        /// Which.
        socket: SocketId,
        /// What.
        action: SocketAction,
    },
    /// Nobody reads the rest of a body.
    CancelBody {
        /// Which.
        body: IncomingBodyId,
    },
    /// A line of the log.
    Log {
        /// The event that ran, if any did.
        event: Option<EventId>,
        /// How loud.
        level: LogLevel,
        /// Its text, cut to a bound.
        text: String,
    },
}

/// What one entry into JavaScript came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// What it asks for. With a broken end nothing but log lines is left: what a broken turn asked for must not leave.
    pub effects: Vec<Effect>,
    /// Whether the isolate may go on.
    pub end: TurnEnd,
}

/// Whether the isolate may go on.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// It may.
    Ok,
    /// It is to be dropped. The events in flight fail with the cause.
    Broken(BrokenCause),
}
