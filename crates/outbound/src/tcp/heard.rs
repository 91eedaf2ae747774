//! What a server sends on a connection, as a body: it ends where the server has ended, and breaks where the connection does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use holdfast_rpc::{Body, BodyError};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

/// Pieces that wait to be read: one, while the next is on its way.
const PIECES_MAX: usize = 1;

/// What was heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// Not empty.
    Bytes(Bytes),
    /// The server sends nothing more.
    End,
    /// The connection broke.
    Lost(io::Error),
}

/// The end that is read.
struct Hearing {
    receiver: mpsc::Receiver<Heard>,
}

pub(super) fn pipe() -> (mpsc::Sender<Heard>, Body) {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    (sender, Hearing { receiver }.boxed_unsync())
}

impl http_body::Body for Hearing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(match ready!(self.receiver.poll_recv(cx)) {
            Some(Heard::Bytes(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(Heard::End) => None,
            Some(Heard::Lost(error)) => Some(Err(error.into())),
            None => Some(Err("the connection was closed".into())),
        })
    }
}
