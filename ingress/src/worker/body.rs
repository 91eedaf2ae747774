//! Bodies that leave an isolate. A chunk is taken when there is room for it, and a body that nobody ended is broken.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use holdfast_js::EventId;
use holdfast_rpc::{Body, BodyError};
use http_body::Frame;
use tokio::sync::mpsc;

/// Chunks that wait for their reader: one, while the handler makes the next.
const CHUNKS_MAX: usize = 1;

/// The body of an answer.
pub(super) enum Outgoing {
    /// All of it.
    Whole(Bytes),
    /// In pieces.
    Stream(Download),
    /// Messages of a socket; their reader's going away is told by the socket itself.
    Socket(Body),
}

/// How a body ended. Without one it broke.
type End = Arc<OnceLock<Result<(), String>>>;

/// The end of a streamed body that its isolate writes to.
pub(super) struct Sink {
    sender: Option<mpsc::Sender<Bytes>>,
    end: End,
    /// The other end, until somebody asks for it.
    download: Option<Download>,
    /// The event that it answers.
    pub(super) answers: Option<EventId>,
}

impl Sink {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
        let end = End::default();
        let download = Some(Download { receiver, end: Arc::clone(&end) });
        Self { sender: Some(sender), end, download, answers: None }
    }

    /// The end that is read, once.
    pub(super) fn take_download(&mut self) -> Option<Download> {
        self.download.take()
    }

    /// Where chunks go; none after the end.
    pub(super) fn sender(&self) -> Option<&mpsc::Sender<Bytes>> {
        self.sender.as_ref()
    }

    /// No chunk comes any more.
    pub(super) fn end(&mut self, end: Result<(), String>) {
        // The first end stays.
        let _ = self.end.set(end);
        self.sender = None;
    }

    /// Whether both ends are done with.
    pub(super) fn is_over(&self) -> bool {
        self.sender.is_none() && self.download.is_none()
    }
}

/// The end of a streamed body that is read.
pub(super) struct Download {
    receiver: mpsc::Receiver<Bytes>,
    end: End,
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let chunk = ready!(self.receiver.poll_recv(cx));
        Poll::Ready(match (chunk, self.end.get()) {
            (Some(chunk), _) => Some(Ok(Frame::data(chunk))),
            (None, Some(Ok(()))) => None,
            (None, Some(Err(error))) => Some(Err(error.clone().into())),
            (None, None) => Some(Err("the application broke before the end of the body".into())),
        })
    }
}
