//! The internal listener of a follower: mutual TLS of the fleet and nothing else. The caller's certificate decides what it
//! may ask: a node log is appended to by its own session only; sealed, read and released by those that recover it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use h2::RecvStream;
use h2::server::SendResponse;
use holdfast_types::LogOffset;
use http::header::CONTENT_TYPE;
use http::{Request as HttpRequest, Response as HttpResponse};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::{Request, Response, Status, Streaming};

use super::calls::{is_of, refuse, tonic, unless_reset};
use super::connection::{self, Answers};
use super::{Delivered, ServeError, accept};
use crate::follower::{AppendMessage, FollowerError, FollowerHost, LogName, WireFault, frames_to_wire};
use crate::grpc::{self, Messages};
use crate::identity::{Caller, ProcessIdentity, Role};
use crate::proto::follower_service_server::{FollowerService, FollowerServiceServer};
use crate::{limits, proto};

/// `FollowerService.Append`, which is answered without generated code: every acknowledged write passes it.
const APPEND: &str = "/holdfast.v1.FollowerService/Append";

/// Serves a follower until `shutdown` resolves, then answers what is in flight and returns. Append streams end when their
/// session or the host ends them.
///
/// # Errors
/// [`ServeError`] when the server loop ends by itself.
pub async fn serve_follower(
    listener: TcpListener,
    host: Arc<dyn FollowerHost>,
    identity: &ProcessIdentity,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut accepted = accept::spawn(listener, identity.clone());
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            io = accepted.recv() => {
                let io = io.ok_or(ServeError)?;
                let Some(caller) = Caller::of(io.get_ref().1.peer_certificates()) else {
                    tracing::debug!("the peer of an internal connection has a certificate of no known kind");
                    continue;
                };
                let calls = Arc::new(Calls::new(Followers { host: Arc::clone(&host), caller }));
                let serving = connection::serve((io, connection::of_follower()), calls, stopped.clone());
                connections.spawn(Delivered::new(serving));
            }
        }
    }
    drop(accepted);
    stop.send_replace(true);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// What one caller may ask.
struct Calls {
    followers: Followers,
    service: FollowerServiceServer<Followers>,
}

impl Calls {
    fn new(followers: Followers) -> Self {
        let service = FollowerServiceServer::new(followers.clone())
            .max_decoding_message_size(limits::APPEND_MESSAGE_LEN_MAX)
            .max_encoding_message_size(limits::APPEND_MESSAGE_LEN_MAX);
        Self { followers, service }
    }

    async fn append(
        &self,
        request: HttpRequest<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let messages = Messages::of_request(request.into_body(), limits::APPEND_MESSAGE_LEN_MAX);
        let mut answers = match self.followers.appended(messages) {
            Ok(answers) => answers,
            Err(status) => return refuse(respond, &status),
        };
        let mut head = HttpResponse::new(());
        head.headers_mut().insert(CONTENT_TYPE, grpc::CONTENT_TYPE);
        let mut stream = respond.send_response(head, false)?;
        loop {
            match unless_reset(|cx| stream.poll_reset(cx), answers.next()).await? {
                Some(answer) => grpc::send(&mut stream, grpc::encode(&answer)).await?,
                None => return stream.send_trailers(grpc::trailers_ok()),
            }
        }
    }
}

impl Answers for Calls {
    async fn answer(self: Arc<Self>, request: HttpRequest<RecvStream>, respond: SendResponse<Bytes>) {
        let answered = match request.uri().path() {
            APPEND => self.append(request, respond).await,
            path if is_of(&self.service, path) => {
                Box::pin(tonic(self.service.clone(), request, respond)).await
            }
            _ => refuse(respond, &Status::unimplemented("there is no such call")),
        };
        if let Err(error) = answered {
            tracing::debug!(%error, caller = ?self.followers.caller, "an answer was not wanted any more");
        }
    }
}

#[derive(Clone)]
struct Followers {
    host: Arc<dyn FollowerHost>,
    caller: Caller,
}

fn not_valid(fault: WireFault) -> Status {
    Status::invalid_argument(fault.to_string())
}

impl From<FollowerError> for Status {
    fn from(error: FollowerError) -> Self {
        match error {
            FollowerError::Unavailable(reason) => Self::unavailable(reason),
            FollowerError::Rejected(reason) => Self::failed_precondition(reason),
        }
    }
}

impl Followers {
    /// Who recovers logs: an owner that claims, the sweep, an operator.
    fn check_recoverer(&self) -> Result<(), Status> {
        match self.caller.role {
            Role::Cellnode | Role::Waker | Role::Tools => Ok(()),
            Role::Ingress | Role::Follower => {
                Err(Status::permission_denied("this role has no business with node logs"))
            }
        }
    }

    /// The answers to a session's append stream.
    fn appended(
        &self,
        messages: impl Stream<Item = Result<proto::AppendRequest, Status>> + Send + 'static,
    ) -> Result<BoxStream<'static, proto::AppendResponse>, Status> {
        let caller = self.caller;
        if caller.role != Role::Cellnode {
            return Err(Status::permission_denied("only a session appends to its own log"));
        }
        let messages = messages.map(move |message| Self::check_message(caller, message)).boxed();
        Ok(self.host.append(caller.session, messages).map(proto::AppendResponse::from).boxed())
    }

    /// A message of the session's stream; the text says why the stream is broken.
    fn check_message(
        caller: Caller,
        message: Result<proto::AppendRequest, Status>,
    ) -> Result<AppendMessage, String> {
        let message = message.map_err(|status| status.message().to_owned())?;
        let message = AppendMessage::try_from(message).map_err(|fault| fault.to_string())?;
        match &message {
            AppendMessage::Adopt { log, .. } if log.session != caller.session => {
                Err(format!("session {} asks for the log of {log}", caller.session))
            }
            _ => Ok(message),
        }
    }
}

#[tonic::async_trait]
impl FollowerService for Followers {
    type AppendStream = BoxStream<'static, Result<proto::AppendResponse, Status>>;
    type TailStream = BoxStream<'static, Result<proto::TailResponse, Status>>;

    async fn append(
        &self,
        request: Request<Streaming<proto::AppendRequest>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        Ok(Response::new(self.appended(request.into_inner())?.map(Ok).boxed()))
    }

    async fn seal(
        &self,
        request: Request<proto::SealRequest>,
    ) -> Result<Response<proto::SealResponse>, Status> {
        self.check_recoverer()?;
        let proto::SealRequest { node, session } = request.into_inner();
        let log = LogName::from_wire(&node, &session).map_err(not_valid)?;
        let state = self.host.seal(log).await?;
        Ok(Response::new(proto::SealResponse { state: Some(state.into()) }))
    }

    async fn tail(&self, request: Request<proto::TailRequest>) -> Result<Response<Self::TailStream>, Status> {
        self.check_recoverer()?;
        let proto::TailRequest { node, session, start, last } = request.into_inner();
        let log = LogName::from_wire(&node, &session).map_err(not_valid)?;
        let last = (last != 0).then_some(LogOffset::new(last));
        let frames = self.host.tail(log, LogOffset::new(start), last).await?;
        let pieces = frames.map(|piece| match piece {
            Ok(frames) => Ok(proto::TailResponse { frames: frames_to_wire(frames) }),
            Err(error) => Err(error.into()),
        });
        Ok(Response::new(pieces.boxed()))
    }

    async fn release(
        &self,
        request: Request<proto::ReleaseRequest>,
    ) -> Result<Response<proto::ReleaseResponse>, Status> {
        self.check_recoverer()?;
        let proto::ReleaseRequest { node, session } = request.into_inner();
        let log = LogName::from_wire(&node, &session).map_err(not_valid)?;
        self.host.release(log).await?;
        Ok(Response::new(proto::ReleaseResponse {}))
    }

    async fn describe(
        &self,
        _request: Request<proto::DescribeFollowerRequest>,
    ) -> Result<Response<proto::DescribeFollowerResponse>, Status> {
        Ok(Response::new(self.host.describe().await.into()))
    }
}

#[cfg(test)]
mod tests;
