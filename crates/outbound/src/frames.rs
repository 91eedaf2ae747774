//! Frames of WebSockets as messages, at either end: fragments are put together, text is checked, and what breaks RFC 6455 is an
//! error with the close code that it asks for. Frames of ours are never fragmented; a server's are not masked, a client's are.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use holdfast_rpc::{NO_CODE, SOCKET_MESSAGE_LEN_MAX, SocketFrame, SocketWriter};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};

/// Longest payload of a control frame (RFC 6455, 5.5).
const CONTROL_LEN_MAX: u64 = 125;
/// Bytes that are asked for at a time while it is not known how many come.
const READ_LEN: usize = 4 << 10;

/// What a socket may hold of a message that is not whole without asking the pool.
const FREE_LEN: usize = 64 << 10;
/// Bytes that are made room for at once, however many a frame announces.
const READ_LEN_MAX: usize = 256 << 10;

/// An end that takes not one byte for this long is gone.
const STALL_MAX: Duration = Duration::from_secs(60);
/// How often an end that is not read counts as heard.
const HEARD_EVERY: Duration = Duration::from_secs(1);

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// Its frames are masked.
    Client,
    /// Its frames are not.
    Server,
}

/// What the other end says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A whole text, in UTF-8.
    Text(Bytes),
    /// Whole bytes.
    Binary(Bytes),
    /// It wants to be answered with this.
    Ping(Bytes),
    /// An answer to a ping.
    Pong,
    /// It closes.
    Close {
        /// [`NO_CODE`] where it gave none.
        code: u16,
        /// At most 123 bytes.
        reason: String,
    },
}

/// Why the other end cannot be understood any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// The connection ended or broke.
    Lost,
    /// It is to be closed with this code.
    Invalid {
        /// Of the close.
        code: u16,
        /// Of the close.
        reason: &'static str,
    },
}

const fn invalid(reason: &'static str) -> Unheard {
    Unheard::Invalid { code: 1002, reason }
}

const TOO_LONG: Unheard = Unheard::Invalid { code: 1009, reason: "the message is too long" };
const NO_MEMORY: Unheard = Unheard::Invalid {
    code: 1013,
    reason: "too many long messages are under way at this server; come again",
};
const NOT_UTF8: Unheard = Unheard::Invalid { code: 1007, reason: "the text is not UTF-8" };

/// The other end takes nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled;

/// Says a frame.
///
/// # Errors
/// [`Stalled`] once the other end has taken not one byte for a minute.
pub async fn say<W>(write: &mut W, frame: Frame, speaker: Speaker) -> Result<(), Stalled>
where
    W: AsyncWrite + Unpin,
{
    let mut bytes = bytes_of(frame, speaker);
    while !bytes.is_empty() {
        match timeout(STALL_MAX, write.write_buf(&mut bytes)).await {
            Ok(Ok(len)) if len > 0 => {}
            Ok(_) | Err(_) => return Err(Stalled),
        }
    }
    match timeout(STALL_MAX, write.flush()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Stalled),
    }
}

/// Passes on what the other end has said, with the room that it has. While it is not taken the other end is not read, and so
/// not heard: it counts as heard.
pub async fn pass_on(
    writer: &SocketWriter,
    frame: &SocketFrame,
    room: Option<OwnedSemaphorePermit>,
    is_heard: &AtomicBool,
) {
    let mut sent = std::pin::pin!(writer.send_within(frame, room));
    while timeout(HEARD_EVERY, &mut sent).await.is_err() {
        is_heard.store(true, Ordering::Relaxed);
    }
}

/// A message that is being put together.
struct Partial {
    is_text: bool,
    content: BytesMut,
}

/// Reads what the other end says.
pub struct Ear {
    speaker: Speaker,
    buffer: BytesMut,
    partial: Option<Partial>,
    /// KiB for messages that are not whole yet or were not taken yet, shared with the other sockets.
    memory: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Ear {
    /// One for this speaker, that takes the memory of long messages from a pool, in KiB.
    #[must_use]
    pub fn new(speaker: Speaker, memory: Arc<Semaphore>) -> Self {
        Self { speaker, buffer: BytesMut::new(), partial: None, memory, held: None }
    }

    /// The room of what it said last, which is its caller's from here on.
    pub fn give_room(&mut self) -> Option<OwnedSemaphorePermit> {
        self.held.take()
    }

    /// Takes what it holds and will read next from the pool.
    fn account(&mut self, more: usize) -> Result<(), Unheard> {
        let len = self.buffer.len() + self.partial.as_ref().map_or(0, |partial| partial.content.len()) + more;
        if len <= FREE_LEN {
            self.held = None;
            return Ok(());
        }
        let wanted = len.div_ceil(1024);
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if wanted <= held {
            return Ok(());
        }
        let missing = u32::try_from(wanted - held).map_err(|_| TOO_LONG)?;
        let permit = Arc::clone(&self.memory).try_acquire_many_owned(missing).map_err(|_| NO_MEMORY)?;
        match &mut self.held {
            Some(held) => held.merge(permit),
            None => self.held = Some(permit),
        }
        Ok(())
    }

    /// Reads to the end of the connection and keeps nothing.
    pub async fn discard(&mut self, io: &mut (impl AsyncRead + Unpin)) {
        (self.partial, self.held) = (None, None);
        loop {
            self.buffer.clear();
            self.buffer.reserve(READ_LEN);
            if !matches!(io.read_buf(&mut self.buffer).await, Ok(len) if len > 0) {
                return;
            }
        }
    }

    /// The next thing that it says. Dropping the future loses nothing. `is_heard` becomes true with each byte.
    ///
    /// # Errors
    /// [`Unheard`]; nothing follows.
    pub async fn hear(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        is_heard: &AtomicBool,
    ) -> Result<Said, Unheard> {
        loop {
            let wanted = match self.frame()? {
                Ok((header, payload)) => match self.take(&header, payload)? {
                    Some(said) => {
                        if self.buffer.is_empty() {
                            // An idle socket holds no memory of its last message.
                            self.buffer = BytesMut::new();
                        }
                        return Ok(said);
                    }
                    None => continue,
                },
                Err(wanted) => wanted,
            };
            let more = wanted.min(READ_LEN_MAX);
            self.account(more)?;
            self.buffer.reserve(more);
            match io.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(Unheard::Lost),
                Ok(_) => is_heard.store(true, Ordering::Relaxed),
            }
        }
    }

    /// A whole frame, or how many bytes to ask for.
    fn frame(&mut self) -> Result<Result<(FrameHeader, Bytes), usize>, Unheard> {
        let mut cursor = Cursor::new(&self.buffer[..]);
        let parsed = FrameHeader::parse(&mut cursor).map_err(|_| invalid("no such kind of frame"))?;
        let Some((header, len)) = parsed else { return Ok(Err(READ_LEN)) };
        self.check(&header, len)?;
        let begin = usize::try_from(cursor.position()).expect("a header is short");
        let len = usize::try_from(len).map_err(|_| TOO_LONG)?;
        let missing = (begin + len).saturating_sub(self.buffer.len());
        if missing > 0 {
            return Ok(Err(missing));
        }
        self.buffer.advance(begin);
        let mut payload = self.buffer.split_to(len);
        if let Some(mask) = header.mask {
            for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                *byte ^= mask;
            }
        }
        Ok(Ok((header, payload.freeze())))
    }

    fn check(&self, header: &FrameHeader, len: u64) -> Result<(), Unheard> {
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(invalid("no extension was agreed on"));
        }
        match (self.speaker, header.mask) {
            (Speaker::Client, None) => return Err(invalid("frames of clients are masked")),
            (Speaker::Server, Some(_)) => return Err(invalid("frames of servers are not masked")),
            (Speaker::Client, Some(_)) | (Speaker::Server, None) => {}
        }
        if matches!(header.opcode, OpCode::Control(_)) {
            return if header.is_final && len <= CONTROL_LEN_MAX {
                Ok(())
            } else {
                Err(invalid("a control frame is whole and short"))
            };
        }
        let before = self.partial.as_ref().map_or(0, |partial| partial.content.len());
        if len > (SOCKET_MESSAGE_LEN_MAX - before) as u64 {
            return Err(TOO_LONG);
        }
        Ok(())
    }

    fn take(&mut self, header: &FrameHeader, payload: Bytes) -> Result<Option<Said>, Unheard> {
        match header.opcode {
            OpCode::Control(Control::Close) => close(payload).map(Some),
            OpCode::Control(Control::Ping) => Ok(Some(Said::Ping(payload))),
            OpCode::Control(Control::Pong) => Ok(Some(Said::Pong)),
            OpCode::Control(Control::Reserved(_)) | OpCode::Data(Data::Reserved(_)) => {
                Err(invalid("no such kind of frame"))
            }
            OpCode::Data(kind @ (Data::Text | Data::Binary)) => {
                if self.partial.is_some() {
                    return Err(invalid("the message before is not whole"));
                }
                let is_text = kind == Data::Text;
                if header.is_final {
                    return message(is_text, payload).map(Some);
                }
                self.partial = Some(Partial { is_text, content: BytesMut::from(payload) });
                Ok(None)
            }
            OpCode::Data(Data::Continue) => {
                let partial = self.partial.as_mut().ok_or(invalid("there is nothing to continue"))?;
                partial.content.extend_from_slice(&payload);
                if !header.is_final {
                    return Ok(None);
                }
                let Partial { is_text, content } = self.partial.take().expect("it is there");
                message(is_text, content.freeze()).map(Some)
            }
        }
    }
}

fn message(is_text: bool, content: Bytes) -> Result<Said, Unheard> {
    match is_text {
        true if std::str::from_utf8(&content).is_err() => Err(NOT_UTF8),
        true => Ok(Said::Text(content)),
        false => Ok(Said::Binary(content)),
    }
}

fn close(mut payload: Bytes) -> Result<Said, Unheard> {
    if payload.is_empty() {
        return Ok(Said::Close { code: NO_CODE, reason: String::new() });
    }
    if payload.len() == 1 {
        return Err(invalid("a close has no code or a whole one"));
    }
    let code = payload.get_u16();
    // What RFC 6455 and the registry let an endpoint send.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(invalid("no such close code"));
    }
    let reason = String::from_utf8(payload.into()).map_err(|_| NOT_UTF8)?;
    Ok(Said::Close { code, reason })
}

/// A frame of ours as bytes: of a client with a mask of its own.
///
/// # Panics
/// When the system has no random bytes.
#[must_use]
fn bytes_of(mut frame: Frame, speaker: Speaker) -> Bytes {
    if speaker == Speaker::Client {
        let mut mask = [0; 4];
        getrandom::fill(&mut mask).expect("the system has random bytes");
        frame.header_mut().mask = Some(mask);
    }
    let mut bytes = Vec::with_capacity(frame.len());
    frame.format(&mut bytes).expect("memory takes all");
    bytes.into()
}

/// A close of ours.
#[must_use]
pub fn close_frame(code: u16, reason: &str) -> Frame {
    let says = (code != NO_CODE).then(|| CloseFrame { code: CloseCode::from(code), reason: reason.into() });
    Frame::close(says)
}

/// A message of ours.
#[must_use]
pub fn message_frame(is_text: bool, content: Bytes) -> Frame {
    let kind = if is_text { Data::Text } else { Data::Binary };
    Frame::message(content, OpCode::Data(kind), true)
}
