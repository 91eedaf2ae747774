//! Calls to followers: a session appends to its node log, whoever recovers a dead one seals and reads it. A link reaches
//! the process that the follower's lease names or fails; a failure says nothing about what the follower holds.

mod append;
mod connection;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use holdfast_types::{FollowerName, LogOffset, SessionId};
use http::Uri;
use tonic::{Code, Request, Status, Streaming};

pub use self::append::{AppendConnection, AppendReceiver, AppendSender, AppendStream, AppendStreamOver};
use self::connection::Connection;
use crate::follower::{FollowerDescription, HeldLog, LogFrame, LogName, WireFault, frames_from_wire};
use crate::identity::ProcessIdentity;
use crate::proto::follower_service_client::FollowerServiceClient;
use crate::{limits, proto};

/// A seal waits for one fsync of a disk that may be slow.
const SEAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Everything else answers from memory, or begins to.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of a tail that goes on.
const TAIL_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Where a follower's process listens, as its lease says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FollowerPeer {
    /// The follower.
    pub follower: FollowerName,
    /// The process that must answer there.
    pub session: SessionId,
    /// `host:port` of its internal listener.
    pub address: String,
}

impl fmt::Display for FollowerPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "follower `{}` session {} at {}", self.follower, self.session, self.address)
    }
}

/// Why a follower did not answer: what it was asked, which process it is and where, and what went wrong. None of these is
/// evidence of what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowerCallError {
    /// No connection. Disposition: reread the follower's lease, retry.
    #[error("{0}")]
    Unreachable(String),
    /// Connected, and then no good answer. Disposition: retry; every one of these calls may be repeated.
    #[error("{0}")]
    Failed(String),
    /// The follower will not. Disposition: reject.
    #[error("{0}")]
    Refused(String),
}

/// What a follower is asked: for the text of an error.
#[derive(Clone, Debug)]
struct Question {
    what: String,
    peer: Arc<FollowerPeer>,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, asked of {}", self.what, self.peer)
    }
}

impl Question {
    fn failed(&self, reason: impl fmt::Display) -> FollowerCallError {
        FollowerCallError::Failed(format!("{self}: {reason}"))
    }

    fn status(&self, status: &Status) -> FollowerCallError {
        let text = format!("{self}: {}: {}", status.code(), status.message());
        match status.code() {
            Code::PermissionDenied | Code::InvalidArgument | Code::FailedPrecondition => {
                FollowerCallError::Refused(text)
            }
            _ => FollowerCallError::Failed(text),
        }
    }

    fn nonsense(&self, fault: &WireFault) -> FollowerCallError {
        self.failed(format_args!("the answer makes no sense: {fault}"))
    }

    async fn bounded<T>(
        &self,
        timeout: Duration,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, FollowerCallError> {
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer.map_err(|status| self.status(&status)),
            Err(_) => Err(self.failed(format_args!("no answer within {timeout:?}"))),
        }
    }
}

/// Makes links to followers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FollowerClient {
    identity: ProcessIdentity,
}

impl FollowerClient {
    /// A client that shows this identity.
    #[must_use]
    pub fn new(identity: ProcessIdentity) -> Self {
        Self { identity }
    }

    /// Connects to one process of a follower.
    ///
    /// # Errors
    /// [`FollowerCallError::Unreachable`].
    pub async fn connect(&self, peer: &FollowerPeer) -> Result<FollowerLink, FollowerCallError> {
        let connection =
            Connection::open(peer, &self.identity).await.map_err(FollowerCallError::Unreachable)?;
        Ok(FollowerLink { connection, peer: Arc::new(peer.clone()) })
    }

    /// Connects to one process of a follower and opens the session's append stream there.
    ///
    /// # Errors
    /// [`FollowerCallError`].
    pub async fn append_stream(&self, peer: &FollowerPeer) -> Result<AppendStream, FollowerCallError> {
        append::open(peer, &self.identity).await
    }
}

/// A connection to one process of a follower. Clones share it; it closes when the last one is dropped and nothing is in
/// flight.
#[derive(Clone)]
pub struct FollowerLink {
    connection: Connection,
    peer: Arc<FollowerPeer>,
}

impl fmt::Debug for FollowerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowerLink").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl FollowerLink {
    fn service(&self) -> FollowerServiceClient<Connection> {
        let origin = Uri::from_static("https://follower.holdfast.internal");
        FollowerServiceClient::with_origin(self.connection.clone(), origin)
            .max_decoding_message_size(limits::APPEND_MESSAGE_LEN_MAX)
            .max_encoding_message_size(limits::APPEND_MESSAGE_LEN_MAX)
    }

    fn question(&self, what: impl Into<String>) -> Question {
        Question { what: what.into(), peer: Arc::clone(&self.peer) }
    }

    /// Whether the connection is known to be over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Seals a log and says what is held. May be repeated.
    ///
    /// # Errors
    /// [`FollowerCallError`]; the log may be sealed nevertheless.
    pub async fn seal(&self, log: &LogName) -> Result<HeldLog, FollowerCallError> {
        let mut service = self.service();
        let LogName { node, session } = log;
        let request = proto::SealRequest { node: node.to_string(), session: session.to_string() };
        let question = self.question(format!("the seal of the log of {log}"));
        let answer = question.bounded(SEAL_TIMEOUT, service.seal(timed(request, SEAL_TIMEOUT))).await?;
        HeldLog::from_wire(answer.into_inner().state).map_err(|fault| question.nonsense(&fault))
    }

    /// Reads the retained frames from `start` on, up to `last` when it is given. To resume after a failure, ask again from
    /// the offset after the last frame that came. Every frame's crc is checked.
    ///
    /// # Errors
    /// [`FollowerCallError`], also in the middle; a stream that ends without one is whole.
    pub async fn tail(
        &self,
        log: &LogName,
        start: LogOffset,
        last: Option<LogOffset>,
    ) -> Result<BoxStream<'static, Result<Vec<LogFrame>, FollowerCallError>>, FollowerCallError> {
        let mut service = self.service();
        let session = log.session;
        let request = proto::TailRequest {
            node: log.node.to_string(),
            session: session.to_string(),
            start: start.get(),
            last: last.map_or(0, LogOffset::get),
        };
        let question = self.question(format!("the log of {log} from offset {start} on"));
        let pieces = question.bounded(ANSWER_TIMEOUT, service.tail(request)).await?.into_inner();
        let frames = futures::stream::unfold(Some((pieces, question)), move |reading| async move {
            let (mut pieces, question) = reading?;
            match next_piece(&mut pieces, session, &question).await {
                Ok(Some(frames)) => Some((Ok(frames), Some((pieces, question)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(frames.boxed())
    }

    /// Has the follower forget a log whose record says `sealed`. It would find out by itself.
    ///
    /// # Errors
    /// [`FollowerCallError`].
    pub async fn release(&self, log: &LogName) -> Result<(), FollowerCallError> {
        let mut service = self.service();
        let LogName { node, session } = log;
        let request = proto::ReleaseRequest { node: node.to_string(), session: session.to_string() };
        let question = self.question(format!("the release of the log of {log}"));
        question.bounded(ANSWER_TIMEOUT, service.release(timed(request, ANSWER_TIMEOUT))).await?;
        Ok(())
    }

    /// Asks the follower to describe itself and the logs that it holds.
    ///
    /// # Errors
    /// [`FollowerCallError`].
    pub async fn describe(&self) -> Result<FollowerDescription, FollowerCallError> {
        let mut service = self.service();
        let request = timed(proto::DescribeFollowerRequest {}, ANSWER_TIMEOUT);
        let question = self.question("a description");
        let answer = question.bounded(ANSWER_TIMEOUT, service.describe(request)).await?;
        FollowerDescription::try_from(answer.into_inner()).map_err(|fault| question.nonsense(&fault))
    }
}

fn timed<T>(message: T, timeout: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

async fn next_piece(
    pieces: &mut Streaming<proto::TailResponse>,
    session: SessionId,
    question: &Question,
) -> Result<Option<Vec<LogFrame>>, FollowerCallError> {
    let Some(piece) = question.bounded(TAIL_SILENCE_MAX, pieces.message()).await? else { return Ok(None) };
    let frames = frames_from_wire(piece.frames).map_err(|fault| question.nonsense(&fault))?;
    match frames.iter().find(|frame| !frame.is_intact(session)) {
        None => Ok(Some(frames)),
        Some(frame) => Err(question.failed(format_args!("frame {} does not match its crc", frame.offset))),
    }
}
