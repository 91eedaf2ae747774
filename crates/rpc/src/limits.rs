//! Every bound of the internal call, in one place. Both ends use the same.

use std::time::Duration;

/// Largest request body that travels in one message; larger ones stream. A message of it, with its head, stays
/// below the largest message.
pub const WHOLE_BODY_LEN_MAX: usize = 1024 * 1024;
/// Largest piece of a streamed body in one message.
pub(crate) const CHUNK_LEN_MAX: usize = 256 * 1024;
/// Largest message: a whole body and a head, with room.
pub(crate) const MESSAGE_LEN_MAX: usize = 2 * 1024 * 1024;
/// Time for TCP and TLS together. A frozen process accepts connections (the kernel does) and then says nothing.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for a peer's TLS handshake on the listener.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Handshakes at a time: more wait in the accept queue.
pub(crate) const HANDSHAKES_MAX: usize = 256;
/// Connections that finished their handshake and wait for the server loop.
pub(crate) const ACCEPTED_MAX: usize = 64;
/// How often an HTTP/2 connection is pinged while requests wait or while it is idle.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(5);
/// A peer that does not answer a ping for this long is gone.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests at a time on one connection between a session and a follower.
pub(crate) const STREAMS_MAX: u32 = 1024;
/// Requests and WebSockets at a time on one connection to a node. Requests are bounded by the node before that; all the
/// sockets of one ingress share one connection.
pub(crate) const NODE_STREAMS_MAX: u32 = 65_536;
/// Requests at a time on a connection whose server has not said how many it takes.
pub(crate) const STREAMS_BEFORE_SETTINGS: usize = 100;
/// Largest headers of one request, in bytes: those of users travel in the message.
pub(crate) const HEADERS_LEN_MAX: u32 = 16 * 1024;
/// Bytes that a peer may send ahead on one stream.
pub(crate) const STREAM_WINDOW_LEN: u32 = 1024 * 1024;
/// Bytes that a peer may send ahead on one connection.
pub(crate) const CONNECTION_WINDOW_LEN: u32 = 8 * 1024 * 1024;
/// The same for what comes to a node: as many slow handlers as this holds streams must not hold up the others' messages.
pub(crate) const NODE_WINDOW_LEN: u32 = 64 * 1024 * 1024;
/// Bytes that may be sent ahead on one WebSocket.
pub(crate) const SOCKET_WINDOW_LEN: u32 = 64 * 1024;
/// Bytes that may be sent ahead on all WebSockets of one connection: never what holds one back, so that a client or an object
/// that takes nothing holds up no other.
pub(crate) const SOCKETS_WINDOW_LEN: u32 = 0x7fff_ffff;
/// A channel that nobody used for this long is dropped.
pub(crate) const CHANNEL_IDLE_MAX: Duration = Duration::from_secs(120);
/// Channels at a time; the least recently used goes first.
pub(crate) const CHANNELS_MAX: usize = 1024;
/// Pause of the accept loop after a failure of the machine, such as no file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The time of a request that came without a deadline.
pub(crate) const DEADLINE_DEFAULT: Duration = Duration::from_secs(30);
/// Rows of one page of cells.
pub(crate) const CELLS_PAGE_MAX: usize = 1000;

/// Largest body of one frame of a node log. Larger transactions are proved by the bucket alone.
pub const FRAME_LEN_MAX: usize = 32 * 1024 * 1024;
/// Largest message of an append stream or a tail: one largest frame, or many small ones.
pub(crate) const APPEND_MESSAGE_LEN_MAX: usize = FRAME_LEN_MAX + 1024 * 1024;
/// Bytes that a peer may send ahead on an append stream or a tail.
pub(crate) const APPEND_WINDOW_LEN: u32 = 4 * 1024 * 1024;
/// Largest HTTP/2 frame between a session and a follower: fewer and larger pieces than the protocol's 16 KiB.
pub(crate) const APPEND_HTTP_FRAME_LEN: u32 = 256 * 1024;
