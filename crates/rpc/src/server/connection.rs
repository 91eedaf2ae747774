//! One connection of an internal listener. Its calls run in the task that reads and writes it: none is spawned for a
//! call, and answers that are ready together are written together.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::Request;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use crate::identity::ALPN_SOCKETS;
use crate::limits;
use crate::ping::silence;

/// What a listener answers.
pub(super) trait Answers: Send + Sync + 'static {
    /// Answers one request. Cancelled when the future is dropped, or the peer resets the stream.
    fn answer(
        self: Arc<Self>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> impl Future<Output = ()> + Send;
}

/// What a connection takes.
pub(super) fn of_node(io: &TlsStream<TcpStream>) -> Builder {
    let (stream_window, window) = if io.get_ref().1.alpn_protocol() == Some(ALPN_SOCKETS) {
        (limits::SOCKET_WINDOW_LEN, limits::SOCKETS_WINDOW_LEN)
    } else {
        (limits::STREAM_WINDOW_LEN, limits::NODE_WINDOW_LEN)
    };
    builder((stream_window, window), limits::NODE_STREAMS_MAX)
}

/// What a connection to a follower takes.
pub(super) fn of_follower() -> Builder {
    let mut builder =
        builder((limits::APPEND_WINDOW_LEN, limits::CONNECTION_WINDOW_LEN), limits::STREAMS_MAX);
    builder.max_frame_size(limits::APPEND_HTTP_FRAME_LEN);
    builder
}

fn builder((stream_window, window): (u32, u32), streams_max: u32) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(stream_window)
        .initial_connection_window_size(window)
        .max_concurrent_streams(streams_max)
        .max_header_list_size(limits::HEADERS_LEN_MAX);
    builder
}

/// Serves a connection until the peer closes it, or, once `stop` is true, until what is in flight is answered.
pub(super) async fn serve<A: Answers>(
    (io, builder): (TlsStream<TcpStream>, Builder),
    answers: Arc<A>,
    mut stop: watch::Receiver<bool>,
) {
    let handshake = builder.handshake(io);
    let mut connection = match tokio::time::timeout(limits::HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return tracing::debug!(%error, "an internal connection is not HTTP/2"),
        Err(_) => return tracing::debug!("an internal connection did not begin HTTP/2 in time"),
    };
    let mut silence = pin!(silence(connection.ping_pong().expect("asked for once")));
    let mut stopped = pin!(async move {
        // A server that is gone without a word has stopped, too.
        let _ = stop.wait_for(|stop| *stop).await;
    });
    let mut is_stopping = false;
    // Dropping them, as this function does when the connection ends, cancels them.
    let mut in_flight = FuturesUnordered::new();
    poll_fn(|cx| {
        if !is_stopping && stopped.as_mut().poll(cx).is_ready() {
            is_stopping = true;
            connection.graceful_shutdown();
        }
        if silence.as_mut().poll(cx).is_ready() {
            tracing::debug!("the peer of an internal connection does not answer pings");
            return Poll::Ready(());
        }
        loop {
            // Reads what came, and writes what is to be sent.
            while let Poll::Ready(accepted) = connection.poll_accept(cx) {
                match accepted {
                    Some(Ok((request, respond))) => {
                        in_flight.push(Arc::clone(&answers).answer(request, respond));
                    }
                    Some(Err(error)) => {
                        tracing::debug!(%error, "an internal connection broke");
                        return Poll::Ready(());
                    }
                    None => return Poll::Ready(()),
                }
            }
            let mut is_any_over = false;
            while let Poll::Ready(Some(())) = in_flight.poll_next_unpin(cx) {
                is_any_over = true;
            }
            if !is_any_over {
                return Poll::Pending;
            }
        }
    })
    .await;
}
