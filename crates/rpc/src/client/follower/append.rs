//! A session's append stream to one follower, on a connection of its own, in HTTP/2 itself: a message is encoded once and
//! handed to the connection, without a task between. Whoever holds the stream also polls the connection, so that a thread
//! that has something to send can write it ([`crate::deliver`]).

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt as _;
use h2::client::{Builder, Connection, SendRequest};
use h2::{PingPong, SendStream};
use http::Uri;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::connection::{reached, shake_hands};
use super::{ANSWER_TIMEOUT, FollowerCallError, FollowerPeer, Question};
use crate::follower::{AppendAnswer, AppendMessage};
use crate::grpc::{self, Messages};
use crate::identity::ProcessIdentity;
use crate::ping::silence;
use crate::{limits, proto};

static APPEND: LazyLock<Uri> = LazyLock::new(|| {
    Uri::from_static("https://follower.holdfast.internal/holdfast.v1.FollowerService/Append")
});

/// An open append stream. Its first message must be an adoption.
#[derive(Debug)]
pub struct AppendStream {
    /// What the session says.
    pub sender: AppendSender,
    /// What the follower answers.
    pub receiver: AppendReceiver,
    /// Moves the bytes of both.
    pub connection: AppendConnection,
}

/// The connection of an append stream: nothing arrives or leaves unless it is polled. It resolves when the connection has
/// ended, in order once both halves are dropped; the receiving half says why it ended otherwise.
pub struct AppendConnection(Pin<Box<dyn Future<Output = ()> + Send>>);

impl std::fmt::Debug for AppendConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppendConnection").finish_non_exhaustive()
    }
}

impl Future for AppendConnection {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// The sending half of an append stream. Dropping it ends the stream in order.
#[derive(Debug)]
pub struct AppendSender {
    stream: SendStream<Bytes>,
}

/// The stream is over: its receiving half says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the append stream is over")]
pub struct AppendStreamOver;

impl AppendSender {
    /// Sends a message, and waits while the follower takes none: it stops reading when its disk is behind.
    ///
    /// # Errors
    /// [`AppendStreamOver`].
    pub async fn send(&mut self, message: AppendMessage) -> Result<(), AppendStreamOver> {
        let message = grpc::encode(&proto::AppendRequest::from(message));
        grpc::send(&mut self.stream, message).await.map_err(|_| AppendStreamOver)
    }
}

impl Drop for AppendSender {
    fn drop(&mut self) {
        // Fails where the stream is over.
        let _ = self.stream.send_data(Bytes::new(), true);
    }
}

/// The receiving half of an append stream.
pub struct AppendReceiver {
    answers: Messages<proto::AppendResponse>,
    question: Question,
}

impl std::fmt::Debug for AppendReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppendReceiver").field("question", &self.question).finish_non_exhaustive()
    }
}

impl AppendReceiver {
    /// The next answer; none when the follower ended the stream in order. Cancelling loses nothing.
    ///
    /// # Errors
    /// [`FollowerCallError`]: the stream broke. Whatever was not acknowledged may be stored nevertheless.
    pub async fn next(&mut self) -> Result<Option<AppendAnswer>, FollowerCallError> {
        let answer = self.answers.next().await.transpose().map_err(|status| self.question.status(&status))?;
        answer.map(AppendAnswer::try_from).transpose().map_err(|fault| self.question.nonsense(&fault))
    }
}

/// Connects, and opens the stream.
pub(super) async fn open(
    peer: &FollowerPeer,
    identity: &ProcessIdentity,
) -> Result<AppendStream, FollowerCallError> {
    let connected = reached(peer, connect(peer, identity)).await;
    let (sender, mut connection) = connected.map_err(FollowerCallError::Unreachable)?;
    let question = Question { what: "an append stream".into(), peer: Arc::new(peer.clone()) };
    let asking = async {
        tokio::select! {
            biased;
            asked = ask(sender) => asked,
            () = &mut connection => Err(tonic::Status::unavailable("the connection ended")),
        }
    };
    let (stream, answers) = question.bounded(ANSWER_TIMEOUT, asking).await?;
    let (sender, receiver) = (AppendSender { stream }, AppendReceiver { answers, question });
    Ok(AppendStream { sender, receiver, connection })
}

async fn connect(
    peer: &FollowerPeer,
    identity: &ProcessIdentity,
) -> Result<(SendRequest<Bytes>, AppendConnection), String> {
    let tls = shake_hands(peer, identity).await?;
    let (sender, mut connection) = Builder::new()
        .enable_push(false)
        .initial_window_size(limits::APPEND_WINDOW_LEN)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_LEN)
        .max_frame_size(limits::APPEND_HTTP_FRAME_LEN)
        .handshake(tls)
        .await
        .map_err(|e| format!("HTTP/2: {e}"))?;
    let pings = connection.ping_pong().expect("asked for once");
    let peer = peer.clone();
    let connection = async move {
        if let Err(reason) = drive(connection, pings).await {
            tracing::debug!(reason, %peer, "a connection to a follower ended");
        }
    };
    Ok((sender, AppendConnection(Box::pin(connection))))
}

/// Moves bytes until the connection ends or the peer stops answering pings.
async fn drive(connection: Connection<TlsStream<TcpStream>>, pings: PingPong) -> Result<(), String> {
    let mut connection = pin!(connection);
    let mut silence = pin!(silence(pings));
    tokio::select! {
        biased;
        ended = &mut connection => ended.map_err(|e| e.to_string()),
        () = &mut silence => Err("the peer does not answer pings".to_owned()),
    }
}

async fn ask(
    mut sender: SendRequest<Bytes>,
) -> Result<(SendStream<Bytes>, Messages<proto::AppendResponse>), tonic::Status> {
    let broken = |error: h2::Error| tonic::Status::unavailable(error.to_string());
    poll_fn(|cx| sender.poll_ready(cx)).await.map_err(broken)?;
    let (answer, stream) = sender.send_request(grpc::request(APPEND.clone()), false).map_err(broken)?;
    drop(sender);
    let answer = answer.await.map_err(broken)?;
    Ok((stream, Messages::of_answer(answer)?))
}
