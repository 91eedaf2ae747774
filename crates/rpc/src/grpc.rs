//! The framing of gRPC over HTTP/2, for the calls that are made for every request of a user. It speaks what every gRPC
//! peer speaks; it must never be lenient: what is not understood is an error, not a guess. Other calls use tonic's.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures::Stream;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};
use prost::Message;
use tonic::Status;

use crate::limits;

/// `content-type` of requests and responses.
pub(crate) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
/// How long the caller waits.
pub(crate) const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// A compression flag and four bytes of length stand before each message.
const PREFIX_LEN: usize = 5;
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// Memory that is taken for a message before its bytes are there.
const GATHERED_AHEAD_MAX: usize = limits::MESSAGE_LEN_MAX + PREFIX_LEN;

/// The head of a call. Its authority means nothing: the certificate already says who answers.
pub(crate) fn request(uri: Uri) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    let headers = request.headers_mut();
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
    request
}

/// A message with its prefix.
pub(crate) fn encode(message: &impl Message) -> Bytes {
    let len = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX_LEN + len);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(len).expect("a message is below its bound"));
    message.encode_raw(&mut bytes);
    bytes.freeze()
}

/// The trailers of an answer that is complete.
pub(crate) fn trailers_ok() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    trailers
}

/// The trailers of an answer that is not.
pub(crate) fn trailers_failed(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        // Its text cannot be sent; that it failed can.
        trailers.insert(STATUS, HeaderValue::from(i32::from(status.code())));
    }
    trailers
}

/// Hands a message to HTTP/2 once the peer takes any part of it, so that at most one waits here.
pub(crate) async fn send(stream: &mut SendStream<Bytes>, message: Bytes) -> Result<(), h2::Error> {
    stream.reserve_capacity(1);
    while stream.capacity() == 0 {
        match poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(granted) => drop(granted?),
            None => return Err(h2::Reason::CANCEL.into()),
        }
    }
    stream.send_data(message, false)
}

/// The messages of one direction of a stream, each decoded when it is asked for.
pub(crate) struct Messages<T> {
    body: RecvStream,
    buffer: Buffer,
    len_max: usize,
    /// Whether a status must follow, as it does in answers.
    ends_with_status: bool,
    is_over: bool,
    kind: PhantomData<fn() -> T>,
}

impl<T: Message + Default> Messages<T> {
    /// Those of a request, none of them longer than `len_max`.
    pub(crate) fn of_request(body: RecvStream, len_max: usize) -> Self {
        let buffer = Buffer::default();
        Self { body, buffer, len_max, ends_with_status: false, is_over: false, kind: PhantomData }
    }

    /// Those of an answer, unless its head says already that there are none.
    pub(crate) fn of_answer(answer: http::Response<RecvStream>) -> Result<Self, Status> {
        if answer.status() != http::StatusCode::OK {
            return Err(Status::unknown(format!("the peer answered HTTP {}", answer.status())));
        }
        if answer.headers().contains_key(STATUS) {
            checked(answer.headers())?;
        }
        let body = answer.into_body();
        Ok(Self {
            body,
            buffer: Buffer::default(),
            len_max: limits::MESSAGE_LEN_MAX,
            ends_with_status: true,
            is_over: false,
            kind: PhantomData,
        })
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        loop {
            if let Some(message) = self.buffer.take(self.len_max)? {
                let message = T::decode(message);
                return Poll::Ready(Some(message.map_err(|e| Status::internal(format!("a message: {e}")))));
            }
            match ready!(self.body.poll_data(cx)) {
                Some(Ok(piece)) => {
                    // Taken in at once: what is buffered here is a part of one message, which is bounded.
                    let _ = self.body.flow_control().release_capacity(piece.len());
                    self.buffer.push(piece);
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(broken(&error)))),
                None if !self.buffer.is_empty() => {
                    return Poll::Ready(Some(Err(Status::internal("the stream ended inside a message"))));
                }
                None if !self.ends_with_status => return Poll::Ready(None),
                None => {
                    let trailers = ready!(self.body.poll_trailers(cx)).map_err(|e| broken(&e))?;
                    checked(&trailers.unwrap_or_default())?;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

impl<T: Message + Default> Stream for Messages<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let message = ready!(self.poll_message(cx));
        self.is_over = !matches!(message, Some(Ok(_)));
        Poll::Ready(message)
    }
}

fn broken(error: &h2::Error) -> Status {
    Status::unknown(format!("the stream broke: {error}"))
}

fn checked(trailers: &HeaderMap) -> Result<(), Status> {
    // tonic copies all of them to find out.
    if trailers.get(STATUS).is_some_and(|status| status == "0") {
        return Ok(());
    }
    match Status::from_header_map(trailers) {
        Some(status) if status.code() == tonic::Code::Ok => Ok(()),
        Some(status) => Err(status),
        None => Err(Status::unknown("the peer ended its answer without a status")),
    }
}

/// Bytes until they are whole messages. Those of a message that came in one piece are not copied.
#[derive(Default)]
struct Buffer {
    piece: Bytes,
    /// What is gathered of a message in several pieces; empty where `piece` is not.
    gathered: BytesMut,
}

impl Buffer {
    fn is_empty(&self) -> bool {
        self.piece.is_empty() && self.gathered.is_empty()
    }

    fn push(&mut self, piece: Bytes) {
        if self.is_empty() {
            self.piece = piece;
            return;
        }
        if self.gathered.is_empty() {
            let begun = std::mem::take(&mut self.piece);
            // One that is too long is refused by `take`.
            let whole = len_of(&begun, usize::MAX).ok().flatten().unwrap_or_default();
            self.gathered.reserve(whole.min(GATHERED_AHEAD_MAX).max(begun.len() + piece.len()));
            self.gathered.extend_from_slice(&begun);
        }
        self.gathered.extend_from_slice(&piece);
    }

    /// The next whole message, without its prefix.
    fn take(&mut self, len_max: usize) -> Result<Option<Bytes>, Status> {
        let held: &[u8] = if self.gathered.is_empty() { &self.piece } else { &self.gathered };
        let Some(len) = len_of(held, len_max)?.filter(|len| *len <= held.len()) else { return Ok(None) };
        if !self.gathered.is_empty() {
            self.piece = std::mem::take(&mut self.gathered).freeze();
        }
        let mut message = self.piece.split_to(len);
        message.advance(PREFIX_LEN);
        Ok(Some(message))
    }
}

/// The length of the message that begins here, its prefix included, once that is known.
fn len_of(held: &[u8], len_max: usize) -> Result<Option<usize>, Status> {
    let Some((prefix, _)) = held.split_first_chunk::<PREFIX_LEN>() else { return Ok(None) };
    let [flag, len @ ..] = *prefix;
    if flag != 0 {
        return Err(Status::unimplemented("messages are not compressed inside a fleet"));
    }
    let len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
    if len > len_max {
        return Err(Status::out_of_range(format!("a message of {len} bytes is too long")));
    }
    Ok(Some(PREFIX_LEN + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, Status> {
        let mut buffer = Buffer::default();
        let mut all = Vec::new();
        for piece in pieces {
            buffer.push(Bytes::copy_from_slice(piece));
            while let Some(message) = buffer.take(limits::MESSAGE_LEN_MAX)? {
                all.push(message.to_vec());
            }
        }
        assert!(buffer.is_empty(), "something is left");
        Ok(all)
    }

    #[test]
    fn messages_are_found_wherever_the_pieces_are_cut() {
        let wire = b"\0\0\0\0\x03abc\0\0\0\0\0\0\0\0\0\x01d";
        let wanted = vec![b"abc".to_vec(), vec![], b"d".to_vec()];
        for first in 0..=wire.len() {
            for second in first..=wire.len() {
                let pieces = [&wire[..first], &wire[first..second], &wire[second..]];
                assert_eq!(messages(&pieces).unwrap(), wanted, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_message_in_one_piece_is_not_copied() {
        let piece = Bytes::from_static(b"\0\0\0\0\x02ab");
        let mut buffer = Buffer::default();
        buffer.push(piece.clone());
        let message = buffer.take(limits::MESSAGE_LEN_MAX).unwrap().unwrap();
        assert_eq!(message.as_ptr(), piece[PREFIX_LEN..].as_ptr());
    }

    #[test]
    fn what_is_compressed_or_too_long_is_refused_before_it_arrives() {
        assert_eq!(messages(&[b"\x01\0\0\0\0"]).unwrap_err().code(), tonic::Code::Unimplemented);
        assert_eq!(messages(&[b"\0\xff\0\0\0"]).unwrap_err().code(), tonic::Code::OutOfRange);
    }

    #[test]
    fn an_encoded_message_is_found_again() {
        let message = crate::proto::NotOwner { node: "n1".into(), session: String::new() };
        let mut buffer = Buffer::default();
        buffer.push(encode(&message));
        let found =
            crate::proto::NotOwner::decode(buffer.take(limits::MESSAGE_LEN_MAX).unwrap().unwrap()).unwrap();
        assert_eq!(found, message);
    }

    #[test]
    fn an_answer_is_complete_only_with_a_good_status() {
        assert!(checked(&trailers_ok()).is_ok());
        assert_eq!(checked(&HeaderMap::new()).unwrap_err().code(), tonic::Code::Unknown);
        let failed = checked(&trailers_failed(&Status::aborted("disk on fire: ü"))).unwrap_err();
        assert_eq!((failed.code(), failed.message()), (tonic::Code::Aborted, "disk on fire: ü"));
    }
}
