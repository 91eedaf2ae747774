//! Requests, responses and their bodies, as they enter and leave an isolate.

use bytes::Bytes;
use http::{HeaderMap, Method};

use super::{IncomingBodyId, OutgoingBodyId, SocketEnd, SocketId};

/// A body that comes into an isolate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingBody {
    /// There is none.
    None,
    /// All of it.
    Whole(Bytes),
    /// Read with [`super::Op::ReadBody`].
    Stream(IncomingBodyId),
}

/// A body that leaves an isolate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingBody {
    /// There is none.
    None,
    /// All of it.
    Whole(Bytes),
    /// Chunks follow as [`super::Op::WriteBody`], then [`super::Effect::EndBody`] or [`super::Effect::AbortBody`].
    Stream(OutgoingBodyId),
}

/// A request that an event brings.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingRequest {
    /// Its method.
    pub method: Method,
    /// Its absolute URL, byte for byte as the client wrote path and query.
    pub url: String,
    /// Its fields. Values are read as UTF-8, with U+FFFD where they are not.
    pub headers: HeaderMap,
    /// Its body.
    pub body: IncomingBody,
    /// `request.cf`, as JSON text.
    pub cf: Option<String>,
}

/// The answer to a request of the isolate.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingResponse {
    /// 101, or 200 to 999.
    pub status: u16,
    /// The reason phrase, where the protocol has one.
    pub status_text: String,
    /// Its fields.
    pub headers: HeaderMap,
    /// Its body, decoded as `Content-Encoding` says where the embedder does that.
    pub body: IncomingBody,
    /// The URL that answered, after redirects.
    pub url: String,
    /// Whether there were redirects.
    pub redirected: bool,
    /// Whether the socket that the request asked for is open; the status is 101, and there is no body.
    pub is_socket: bool,
}

/// How `fetch` treats a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// Go where it points, at most 20 times.
    Follow,
    /// Fail.
    Error,
    /// Give it to the handler.
    Manual,
}

/// A request that an isolate makes.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingRequest {
    /// Its method.
    pub method: Method,
    /// Its absolute URL.
    pub url: String,
    /// Its fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: OutgoingBody,
    /// How to treat a redirect.
    pub redirect: Redirect,
    /// The socket that an answer with status 101 opens, where the request asks for one.
    pub socket: Option<SocketId>,
    /// It asks for one of the application's static files, and no server.
    pub is_for_assets: bool,
}

/// A response that answers an event.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingResponse {
    /// 200 to 599; 101 with a socket.
    pub status: u16,
    /// The reason phrase; empty: the usual one of the status.
    pub status_text: String,
    /// Its fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: OutgoingBody,
    /// The socket whose other end the caller gets.
    pub socket: Option<SocketEnd>,
}
