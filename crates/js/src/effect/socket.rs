//! WebSockets as they cross the border of an isolate: whole messages and closes. Frames, masks and pings are the business
//! of whoever holds the connection.

use bytes::Bytes;

/// A socket that crosses the border. The isolate numbers them; those of a Durable Object keep their numbers when another
/// isolate takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(u64);

impl SocketId {
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

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketMessage {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

impl SocketMessage {
    /// Its bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether it has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What comes into an isolate from the other end of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A message.
    Message(SocketMessage),
    /// The other end has closed, or has gone: nothing comes any more.
    Close {
        /// 1005 where it gave none, 1006 where it went without a word.
        code: u16,
        /// At most 123 bytes.
        reason: String,
        /// Whether it said that it closes.
        was_clean: bool,
    },
    /// The socket cannot go on. A close follows.
    Error(String),
}

/// What an isolate does with a socket, in the order in which it must take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAction {
    /// Wants what comes: one event, and the next after [`SocketAction::Taken`].
    Accept {
        /// By events of their own ([`super::EventCall::Socket`]), so that the isolate may go meanwhile; otherwise by
        /// [`crate::Isolate::socket_event`].
        is_hibernatable: bool,
    },
    /// The handler has begun with what came last.
    Taken,
    /// A message for the other end.
    Send(SocketMessage),
    /// Says that it closes: after this it sends nothing.
    Close {
        /// None: without one.
        code: Option<u16>,
        /// At most 123 bytes.
        reason: String,
    },
    /// The isolate has nothing more to do with it. Where it did not close itself, it is closed as the other end did.
    Over,
}

/// A socket in an answer: what the caller gets is its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEnd {
    /// One that the isolate holds itself.
    Own(SocketId),
    /// One that it has opened: what calls and what it leads to are joined, and the isolate is out of it.
    Opened(SocketId),
}
