//! WebSockets on the internal call. The caller's end and the owner's end are the bodies of one call that streams: its
//! request and its answer with status 101. In them messages stand one behind the other, each whole, with its kind and its
//! length in front. HTTP/2 holds a fast sender back. A body that ends in order says that its end has nothing more to say; one
//! that breaks, that its end is lost.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures::FutureExt as _;
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::{Body, BodyError};

/// Longest message, in bytes: as on Cloudflare.
pub const SOCKET_MESSAGE_LEN_MAX: usize = 32 << 20;
/// Bytes on their way to a slow peer beyond which a writer that waits is held back.
const ROOM_LEN: usize = 64 << 10;
/// A message up to this length needs no room in a reader's pool: there may be one of each socket.
const POOLED_LEN: usize = 16 << 10;
/// A kind and four bytes of length stand before each message.
const PREFIX_LEN: usize = 5;
/// No code: what stands for it in close events (RFC 6455, 7.1.5).
pub const NO_CODE: u16 = 1005;

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;

/// What one end tells the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketFrame {
    /// Text, in UTF-8.
    Text(Bytes),
    /// Bytes.
    Binary(Bytes),
    /// It closes: nothing follows.
    Close {
        /// [`NO_CODE`] where there is none.
        code: u16,
        /// At most 123 bytes.
        reason: String,
    },
}

impl SocketFrame {
    /// As it stands in a body.
    ///
    /// # Panics
    /// With a message of 4 GiB.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let (kind, code, payload) = match self {
            Self::Text(text) => (TEXT, None, &text[..]),
            Self::Binary(bytes) => (BINARY, None, &bytes[..]),
            Self::Close { code, reason } => (CLOSE, Some(*code), reason.as_bytes()),
        };
        let len = payload.len() + if code.is_some() { 2 } else { 0 };
        let mut bytes = BytesMut::with_capacity(PREFIX_LEN + len);
        bytes.put_u8(kind);
        bytes.put_u32(u32::try_from(len).expect("a message is below its bound"));
        if let Some(code) = code {
            bytes.put_u16(code);
        }
        bytes.put_slice(payload);
        bytes.freeze()
    }

    fn decode(kind: u8, mut payload: Bytes) -> Result<Self, BodyError> {
        match kind {
            TEXT if std::str::from_utf8(&payload).is_ok() => Ok(Self::Text(payload)),
            BINARY => Ok(Self::Binary(payload)),
            CLOSE if payload.len() >= 2 => {
                let code = payload.get_u16();
                Ok(Self::Close { code, reason: String::from_utf8(payload.to_vec())? })
            }
            _ => {
                Err(format!("a message of a socket is not valid: kind {kind}, {} bytes", payload.len())
                    .into())
            }
        }
    }
}

/// Reads messages out of a body.
pub struct SocketReader {
    body: Option<Body>,
    buffer: BytesMut,
    /// The room for long messages of all who share it, in KiB.
    pool: Option<Arc<Semaphore>>,
    /// Of the message that is being read, or was given out last.
    room: Option<OwnedSemaphorePermit>,
    is_given: bool,
}

impl std::fmt::Debug for SocketReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketReader").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

impl SocketReader {
    /// Reads this body.
    #[must_use]
    pub fn new(body: Body) -> Self {
        Self { body: Some(body), buffer: BytesMut::new(), pool: None, room: None, is_given: false }
    }

    /// Reads this body; a long message only once it has room in `pool`, which counts KiB. It keeps that room until the next
    /// one is asked for.
    #[must_use]
    pub fn within(body: Body, pool: Arc<Semaphore>) -> Self {
        Self { pool: Some(pool), ..Self::new(body) }
    }

    /// The next message; none when the other end has nothing more to say. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The other end is lost, or what came is not valid. Nothing follows.
    pub async fn next(&mut self) -> Result<Option<SocketFrame>, BodyError> {
        if std::mem::take(&mut self.is_given) {
            self.room = None;
        }
        loop {
            let len = self.next_len()?;
            self.make_room(len).await;
            if let Some(frame) = self.take(len)? {
                return Ok(Some(frame));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.push(piece);
                    }
                }
                Some(Err(error)) => {
                    self.body = None;
                    return Err(error);
                }
                None if self.buffer.is_empty() => self.body = None,
                None => return Err("the socket's stream ended inside a message".into()),
            }
        }
    }

    fn push(&mut self, piece: Bytes) {
        if self.buffer.is_empty() {
            // Without a copy where the piece is alone.
            self.buffer = BytesMut::from(piece);
        } else {
            self.buffer.extend_from_slice(&piece);
        }
    }

    /// The length of the message that comes next, once its prefix is there.
    fn next_len(&self) -> Result<Option<usize>, BodyError> {
        let Some(mut prefix) = self.buffer.get(1..PREFIX_LEN) else { return Ok(None) };
        let len = usize::try_from(prefix.get_u32())?;
        if len > SOCKET_MESSAGE_LEN_MAX {
            return Err(format!("a message of {len} bytes: the limit is {SOCKET_MESSAGE_LEN_MAX}").into());
        }
        Ok(Some(len))
    }

    async fn make_room(&mut self, len: Option<usize>) {
        let (Some(pool), Some(len)) = (&self.pool, len) else { return };
        if len <= POOLED_LEN || self.room.is_some() {
            return;
        }
        let kib = u32::try_from(len.div_ceil(1024)).expect("a message is below its bound");
        let room = Arc::clone(pool).acquire_many_owned(kib).await;
        self.room = Some(room.expect("the pool is never closed"));
    }

    fn take(&mut self, len: Option<usize>) -> Result<Option<SocketFrame>, BodyError> {
        let Some(len) = len else { return Ok(None) };
        let kind = self.buffer[0];
        if self.buffer.len() < PREFIX_LEN + len {
            self.buffer.reserve(PREFIX_LEN + len - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(PREFIX_LEN);
        let payload = self.buffer.split_to(len).freeze();
        if self.buffer.is_empty() {
            // An idle socket holds no memory of its last message.
            self.buffer = BytesMut::new();
        }
        self.is_given = true;
        SocketFrame::decode(kind, payload).map(Some)
    }
}

#[derive(Debug, Default)]
struct Pipe {
    queued: AtomicUsize,
    room: Notify,
    is_ended: AtomicBool,
}

/// A message in a pipe, with what it holds of a pool.
#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    room: Option<OwnedSemaphorePermit>,
}

/// Writes messages into a body. Dropped before its end, it breaks the body.
#[derive(Debug)]
pub struct SocketWriter {
    chunks: mpsc::UnboundedSender<Chunk>,
    pipe: Arc<Pipe>,
}

/// A body, and what writes messages into it.
#[must_use]
pub fn socket_pipe() -> (SocketWriter, Body) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let pipe = Arc::new(Pipe::default());
    let body = PipeBody { chunks: receiver, pipe: Arc::clone(&pipe), room: None };
    (SocketWriter { chunks: sender, pipe }, body.boxed_unsync())
}

impl SocketWriter {
    /// Writes a message at once. The bytes that now wait for the reader; none when that has gone.
    pub fn push(&self, frame: &SocketFrame) -> Option<usize> {
        self.push_within(frame, None)
    }

    fn push_within(&self, frame: &SocketFrame, room: Option<OwnedSemaphorePermit>) -> Option<usize> {
        let bytes = frame.encode();
        let len = bytes.len();
        let queued = self.pipe.queued.fetch_add(len, Ordering::AcqRel) + len;
        self.chunks.send(Chunk { bytes, room }).ok().map(|()| queued)
    }

    /// Writes a message once there is room. False when the reader has gone.
    pub async fn send(&self, frame: &SocketFrame) -> bool {
        self.send_within(frame, None).await
    }

    /// [`SocketWriter::send`] of a message that has room in a pool. It keeps that until the reader has taken it and asks for
    /// more.
    pub async fn send_within(&self, frame: &SocketFrame, room: Option<OwnedSemaphorePermit>) -> bool {
        while self.pipe.queued.load(Ordering::Acquire) > ROOM_LEN {
            tokio::select! {
                biased;
                () = self.chunks.closed() => return false,
                () = self.pipe.room.notified() => {}
            }
        }
        self.push_within(frame, room).is_some()
    }

    /// Ends the body in order.
    pub fn end(self) {
        self.pipe.is_ended.store(true, Ordering::Release);
    }
}

struct PipeBody {
    chunks: mpsc::UnboundedReceiver<Chunk>,
    pipe: Arc<Pipe>,
    /// Of what was read last.
    room: Option<OwnedSemaphorePermit>,
}

impl http_body::Body for PipeBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.room = None;
        match ready!(self.chunks.poll_recv(cx)) {
            Some(Chunk { bytes, room }) => {
                self.pipe.queued.fetch_sub(bytes.len(), Ordering::AcqRel);
                self.pipe.room.notify_one();
                self.room = room;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            None if self.pipe.is_ended.load(Ordering::Acquire) => Poll::Ready(None),
            None => Poll::Ready(Some(Err("the other end of the socket is lost".into()))),
        }
    }
}

/// A body whose content is given later. Dropped before that, it breaks the body.
#[derive(Debug)]
pub struct LateBody(oneshot::Sender<Body>);

/// A body, and what gives it its content.
#[must_use]
pub fn late_body() -> (LateBody, Body) {
    let (sender, receiver) = oneshot::channel();
    (LateBody(sender), Late::Awaited(receiver).boxed_unsync())
}

impl LateBody {
    /// Gives the content. Whoever would have read it may have gone.
    pub fn give(self, body: Body) {
        let _ = self.0.send(body);
    }
}

enum Late {
    Awaited(oneshot::Receiver<Body>),
    Given(Body),
    Lost,
}

impl http_body::Body for Late {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Self::Awaited(receiver) = &mut *self {
            *self = match ready!(receiver.poll_unpin(cx)) {
                Ok(body) => Self::Given(body),
                Err(_) => Self::Lost,
            };
        }
        match &mut *self {
            Self::Given(body) => Pin::new(body).poll_frame(cx),
            Self::Awaited(_) | Self::Lost => {
                Poll::Ready(Some(Err("nobody took the other end of the socket".into())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn frames() -> Vec<SocketFrame> {
        vec![
            SocketFrame::Text("héllo".into()),
            SocketFrame::Binary(Bytes::from(vec![7; 100_000])),
            SocketFrame::Text(Bytes::new()),
            SocketFrame::Close { code: NO_CODE, reason: String::new() },
            SocketFrame::Close { code: 4000, reason: "wh\u{e9}re".into() },
        ]
    }

    #[tokio::test]
    async fn messages_come_out_as_they_went_in_whatever_the_pieces() {
        let all: Bytes = frames().iter().flat_map(|frame| frame.encode().to_vec()).collect();
        for size in [1, 3, 5, 6, 4096, all.len()] {
            let pieces: Vec<_> =
                all.chunks(size).map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
            let body = StreamBody::new(futures::stream::iter(pieces)).boxed_unsync();
            let mut reader = SocketReader::new(body);
            for frame in frames() {
                assert_eq!(reader.next().await.unwrap(), Some(frame), "pieces of {size}");
            }
            assert_eq!(reader.next().await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn what_is_not_valid_is_an_error_and_no_guess() {
        for bad in [
            &b"\x01\0\0\0\x01\xff"[..],
            b"\x07\0\0\0\0",
            b"\x08\0\0\0\x01a",
            b"\x02\xff\0\0\0",
            b"\x02\0\0\0\x02a",
        ] {
            let body = Full::new(Bytes::copy_from_slice(bad)).map_err(|never| match never {}).boxed_unsync();
            assert!(SocketReader::new(body).next().await.is_err(), "{bad:?}");
        }
    }

    #[tokio::test]
    async fn a_writer_waits_for_its_reader_and_breaks_the_body_when_it_is_dropped() {
        let (writer, body) = socket_pipe();
        let mut reader = SocketReader::new(body);
        let frame = SocketFrame::Binary(Bytes::from(vec![0; ROOM_LEN]));
        assert!(writer.send(&frame).await);
        assert!(writer.send(&frame).now_or_never().is_none());
        assert_eq!(reader.next().await.unwrap(), Some(frame.clone()));
        assert_eq!(writer.send(&frame).now_or_never(), Some(true));
        reader.next().await.unwrap();
        drop(writer);
        assert!(reader.next().await.is_err());

        let (writer, body) = socket_pipe();
        writer.end();
        assert_eq!(SocketReader::new(body).next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_message_keeps_its_room_until_its_reader_asks_for_more() {
        let pool = Arc::new(Semaphore::new(40));
        let room = || Arc::clone(&pool).try_acquire_many_owned(20).ok();
        let (writer, body) = socket_pipe();
        let mut reader = SocketReader::new(body);
        let frame = SocketFrame::Binary(Bytes::from(vec![0; 20 << 10]));
        for _ in 0..2 {
            assert!(writer.send_within(&frame, room()).await);
        }
        assert_eq!(pool.available_permits(), 0);
        for left in [0, 20] {
            assert_eq!(reader.next().await.unwrap(), Some(frame.clone()));
            assert_eq!(pool.available_permits(), left);
        }
        assert!(reader.next().now_or_never().is_none());
        assert_eq!(pool.available_permits(), 40);
        writer.send_within(&frame, room()).await;
        drop(reader);
        assert_eq!(pool.available_permits(), 40);
    }

    #[tokio::test]
    async fn long_messages_share_their_room_and_short_ones_need_none() {
        let pool = Arc::new(Semaphore::new(40));
        let message = |len| SocketFrame::Binary(Bytes::from(vec![0; len]));
        let reader = |frames: &[SocketFrame]| {
            let (writer, body) = socket_pipe();
            for frame in frames {
                writer.push(frame).unwrap();
            }
            writer.end();
            SocketReader::within(body, Arc::clone(&pool))
        };
        let mut first = reader(&[message(30 << 10), message(30 << 10)]);
        let mut second = reader(&[message(POOLED_LEN), message(30 << 10)]);
        assert_eq!(first.next().await.unwrap(), Some(message(30 << 10)));
        assert_eq!(pool.available_permits(), 10);
        assert_eq!(second.next().await.unwrap(), Some(message(POOLED_LEN)));
        assert!(second.next().now_or_never().is_none(), "there is no room");
        // The next one gives the room of the one before back first, and stands behind who waits.
        {
            let mut waits = std::pin::pin!(second.next());
            assert!(waits.as_mut().now_or_never().is_none());
            assert!(first.next().now_or_never().is_none());
            assert_eq!(waits.await.unwrap(), Some(message(30 << 10)));
        }
        drop(second);
        assert_eq!(first.next().await.unwrap(), Some(message(30 << 10)));
        assert_eq!(first.next().await.unwrap(), None);
        assert_eq!(pool.available_permits(), 40);
    }

    #[tokio::test]
    async fn a_late_body_is_what_it_is_given() {
        let (late, body) = late_body();
        let mut reader = SocketReader::new(body);
        assert!(reader.next().now_or_never().is_none());
        let (writer, given) = socket_pipe();
        late.give(given);
        writer.push(&SocketFrame::Text("x".into())).unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(SocketFrame::Text("x".into())));
        let (late, body) = late_body();
        drop(late);
        assert!(SocketReader::new(body).next().await.is_err());
    }
}
