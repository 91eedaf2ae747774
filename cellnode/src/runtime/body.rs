//! Bodies that stream through a cell. One that comes in is pulled piece by piece on the I/O runtime. One that goes out is
//! a pipe: pieces enter it when the gate releases them, in the order in which the cell's thread made them, and a reader
//! that is slow holds its writer back. A pipe whose writer is dropped before the end, or one of whose pieces fails at the
//! gate, breaks: it never ends as if it were whole.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use holdfast_rpc::{Body, BodyError};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

/// Bytes in a pipe beyond which a write is not told to be done before the reader has taken some. A writer that does not
/// wait for that is bounded by the number of its operations.
const BUFFERED_MAX: usize = 64 << 10;

/// A body that comes in. Clones are the same body.
#[derive(Clone)]
pub(crate) struct IncomingBody(Arc<tokio::sync::Mutex<Option<Body>>>);

impl std::fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingBody").finish_non_exhaustive()
    }
}

impl IncomingBody {
    /// This body.
    pub(crate) fn new(body: Body) -> Self {
        Self(Arc::new(tokio::sync::Mutex::new(Some(body))))
    }

    /// Whether its end was read, or what broke it.
    pub(crate) fn is_over(&self) -> bool {
        self.0.try_lock().is_ok_and(|body| body.is_none())
    }

    /// The next piece, none at the end. The body is let go of at its end, and when it breaks.
    ///
    /// # Errors
    /// What broke it.
    pub(crate) async fn read(self) -> Result<Option<Bytes>, String> {
        let mut slot = self.0.lock().await;
        loop {
            let Some(body) = slot.as_mut() else { return Ok(None) };
            match body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Ok(Some(piece)),
                    Ok(_) | Err(_) => {}
                },
                Some(Err(error)) => {
                    *slot = None;
                    return Err(error.to_string());
                }
                None => *slot = None,
            }
        }
    }
}

/// Told once when a piece is taken, or false when its reader has gone.
pub(crate) type OnTaken = Box<dyn FnOnce(bool) + Send>;

enum Content {
    Chunk(Bytes),
    End,
    Broken(String),
}

/// Bytes that were made and that no reader has taken, of all bodies that share it.
#[derive(Debug, Default)]
pub(crate) struct Backlog(AtomicU64);

impl Backlog {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One body's part of a backlog.
#[derive(Default)]
struct Share {
    backlog: Option<Arc<Backlog>>,
    bytes: u64,
}

impl Share {
    fn add(&mut self, len: u64) {
        if let Some(backlog) = &self.backlog {
            self.bytes += len;
            backlog.0.fetch_add(len, Ordering::Relaxed);
        }
    }

    fn remove(&mut self, len: u64) {
        if let Some(backlog) = &self.backlog {
            // What is left when the body is given up is not taken any more.
            let len = len.min(self.bytes);
            self.bytes -= len;
            backlog.0.fetch_sub(len, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.remove(self.bytes);
    }
}

#[derive(Default)]
struct State {
    /// The number of the next piece to enter.
    next: u64,
    /// Pieces that were released before those in front of them: two threads may report what a gate let go.
    early: BTreeMap<u64, (Content, Option<OnTaken>)>,
    chunks: VecDeque<Bytes>,
    buffered: usize,
    /// Bytes that the reader has taken.
    taken: u64,
    share: Share,
    /// Writes that wait for the reader.
    waiting: VecDeque<OnTaken>,
    /// What comes after the chunks.
    end: Option<Result<(), String>>,
    is_abandoned: bool,
    reader: Option<Waker>,
}

type Shared = Arc<Mutex<State>>;

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    // Every step leaves the state whole.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writing end of a body that goes out; on the cell's thread.
pub(crate) struct OutgoingBody {
    shared: Shared,
    made: u64,
    made_bytes: u64,
    is_ended: bool,
}

impl std::fmt::Debug for OutgoingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutgoingBody").field("made", &self.made).finish_non_exhaustive()
    }
}

impl OutgoingBody {
    /// A pipe.
    pub(crate) fn new() -> (Self, OutgoingReader) {
        let shared = Shared::default();
        let reader = OutgoingReader { shared: Arc::clone(&shared), on_abandoned: None };
        (Self { shared, made: 0, made_bytes: 0, is_ended: false }, reader)
    }

    /// A pipe whose backlog counts in one of many.
    pub(crate) fn counted(backlog: &Arc<Backlog>) -> (Self, OutgoingReader) {
        let (body, reader) = Self::new();
        lock(&body.shared).share.backlog = Some(Arc::clone(backlog));
        (body, reader)
    }

    /// Bytes that were made and that the reader has not taken, those that wait at the gate among them.
    pub(crate) fn backlog(&self) -> u64 {
        self.made_bytes - lock(&self.shared).taken
    }

    /// The next piece.
    pub(crate) fn chunk(&mut self, chunk: Bytes) -> Piece {
        self.made_bytes += chunk.len() as u64;
        lock(&self.shared).share.add(chunk.len() as u64);
        self.piece(Content::Chunk(chunk))
    }

    /// The clean end.
    pub(crate) fn end(mut self) -> Piece {
        self.is_ended = true;
        self.piece(Content::End)
    }

    /// The end of a body that breaks.
    pub(crate) fn abort(mut self, reason: String) -> Piece {
        self.is_ended = true;
        self.piece(Content::Broken(reason))
    }

    fn piece(&mut self, content: Content) -> Piece {
        let number = self.made;
        self.made += 1;
        Piece { shared: Arc::clone(&self.shared), number, content: Some(content) }
    }
}

impl Drop for OutgoingBody {
    fn drop(&mut self) {
        if !self.is_ended {
            break_off(&self.shared, "the handler has gone before the end of its answer");
        }
    }
}

fn break_off(shared: &Shared, reason: &str) {
    let mut state = lock(shared);
    if state.end.is_none() {
        state.end = Some(Err(reason.to_owned()));
        wake(&mut state);
    }
    let waiting = std::mem::take(&mut state.waiting);
    let early = std::mem::take(&mut state.early);
    drop(state);
    for on_taken in waiting.into_iter().chain(early.into_values().filter_map(|(_, on_taken)| on_taken)) {
        on_taken(false);
    }
}

fn wake(state: &mut State) {
    if let Some(reader) = state.reader.take() {
        reader.wake();
    }
}

/// A piece on its way through the gate. Dropped there, it breaks its body.
pub(crate) struct Piece {
    shared: Shared,
    number: u64,
    content: Option<Content>,
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Piece").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Piece {
    /// The bytes in it.
    pub(crate) fn len(&self) -> usize {
        match &self.content {
            Some(Content::Chunk(chunk)) => chunk.len(),
            Some(Content::End | Content::Broken(_)) | None => 0,
        }
    }

    /// The gate released it.
    pub(crate) fn enter(mut self, on_taken: OnTaken) {
        let content = self.content.take().expect("a piece enters once");
        let mut state = lock(&self.shared);
        if state.is_abandoned || state.end.is_some() {
            drop(state);
            return on_taken(false);
        }
        state.early.insert(self.number, (content, Some(on_taken)));
        let mut taken = Vec::new();
        while let Some((content, on_taken)) = take_next(&mut state) {
            state.next += 1;
            match content {
                Content::Chunk(chunk) => {
                    state.buffered += chunk.len();
                    state.chunks.push_back(chunk);
                }
                Content::End => state.end = Some(Ok(())),
                Content::Broken(reason) => state.end = Some(Err(reason)),
            }
            match on_taken {
                Some(on_taken) if state.buffered > BUFFERED_MAX => state.waiting.push_back(on_taken),
                Some(on_taken) => taken.push(on_taken),
                None => {}
            }
        }
        wake(&mut state);
        drop(state);
        for on_taken in taken {
            on_taken(true);
        }
    }

    /// The gate failed.
    pub(crate) fn fail(mut self, reason: &str) {
        self.content = None;
        break_off(&self.shared, reason);
    }
}

fn take_next(state: &mut State) -> Option<(Content, Option<OnTaken>)> {
    let next = state.next;
    state.early.remove(&next)
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.content.is_some() {
            break_off(&self.shared, "a piece of the answer was lost");
        }
    }
}

/// The reading end of a body that goes out.
pub(crate) struct OutgoingReader {
    shared: Shared,
    /// Called when the reader goes away before the end.
    on_abandoned: Option<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for OutgoingReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutgoingReader").finish_non_exhaustive()
    }
}

impl OutgoingReader {
    /// Has `told` called when the reader goes away before the end.
    pub(crate) fn when_abandoned(&mut self, told: impl FnOnce() + Send + 'static) {
        self.on_abandoned = Some(Box::new(told));
    }
}

impl http_body::Body for OutgoingReader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut state = lock(&self.shared);
        if let Some(chunk) = state.chunks.pop_front() {
            state.buffered -= chunk.len();
            state.taken += chunk.len() as u64;
            state.share.remove(chunk.len() as u64);
            let taken = if state.buffered <= BUFFERED_MAX {
                std::mem::take(&mut state.waiting)
            } else {
                VecDeque::new()
            };
            drop(state);
            for on_taken in taken {
                on_taken(true);
            }
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(reason)) => Poll::Ready(Some(Err(reason.clone().into()))),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = lock(&self.shared);
        state.chunks.is_empty() && matches!(state.end, Some(Ok(())))
    }

    fn size_hint(&self) -> SizeHint {
        let state = lock(&self.shared);
        let len = u64::try_from(state.buffered).unwrap_or(u64::MAX);
        if matches!(state.end, Some(Ok(()))) {
            return SizeHint::with_exact(len);
        }
        let mut hint = SizeHint::new();
        hint.set_lower(len);
        hint
    }
}

impl Drop for OutgoingReader {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.is_abandoned = true;
        let is_whole = state.chunks.is_empty() && state.end.is_some();
        let waiting = std::mem::take(&mut state.waiting);
        let early = std::mem::take(&mut state.early);
        state.chunks.clear();
        drop(std::mem::take(&mut state.share));
        drop(state);
        for on_taken in waiting.into_iter().chain(early.into_values().filter_map(|(_, on_taken)| on_taken)) {
            on_taken(false);
        }
        if let Some(told) = self.on_abandoned.take()
            && !is_whole
        {
            told();
        }
    }
}

#[cfg(test)]
mod tests;
