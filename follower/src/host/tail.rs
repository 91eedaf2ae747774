//! Reads a log back for a recovery, piece by piece, a few pieces ahead of the reader.

use std::sync::Arc;

use futures::StreamExt as _;
use holdfast_rpc::follower::{FollowerError, LogFrame, LogName, TailFrames};
use holdfast_types::LogOffset;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use super::Inner;
use super::session::Session;

/// Bytes of one piece; a larger frame is a piece of its own.
const PIECE_LEN: u64 = 1 << 20;
/// Pieces that are read before the reader asks for them.
const PIECES_AHEAD: usize = 2;

type Piece = Result<Vec<LogFrame>, FollowerError>;

pub(super) async fn read(
    inner: &Arc<Inner>,
    log: &LogName,
    start: LogOffset,
    last: Option<LogOffset>,
) -> Result<TailFrames, FollowerError> {
    let Some(session) = inner.session(log.session).filter(|session| session.name == *log) else {
        return Ok(futures::stream::empty().boxed());
    };
    let permit = Arc::clone(&inner.tails).acquire_owned().await.expect("never closed");
    let end = session.end();
    let end = last.map_or(end, |last| end.min(last.next()));
    let (pieces, receiver) = mpsc::channel(PIECES_AHEAD);
    let inner = Arc::clone(inner);
    tokio::task::spawn_blocking(move || produce(&inner, &session, (start, end), &pieces, permit));
    Ok(ReceiverStream::new(receiver).boxed())
}

/// Reads until the end, or until nobody listens.
fn produce(
    inner: &Inner,
    session: &Session,
    (mut start, end): (LogOffset, LogOffset),
    pieces: &mpsc::Sender<Piece>,
    _permit: OwnedSemaphorePermit,
) {
    loop {
        let places = session.piece(start, end, PIECE_LEN);
        let Some((last, _)) = places.last() else { return };
        start = last.next();
        let mut frames = Vec::with_capacity(places.len());
        for place in places {
            match inner.journal().segments().read(session.name.session, place) {
                Ok(frame) => frames.push(frame),
                Err(error) => {
                    if session.unreadable(inner, place.0, &error) {
                        // Nobody may take what came so far for the whole.
                        let _ = pieces.blocking_send(Err(FollowerError::Unavailable(error.to_string())));
                        return;
                    }
                }
            }
        }
        if !frames.is_empty() && pieces.blocking_send(Ok(frames)).is_err() {
            return;
        }
    }
}
