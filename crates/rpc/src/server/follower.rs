//! The internal listener of a follower: mutual TLS of the fleet and nothing else. The caller's certificate decides what it
//! may ask: a node log is appended to by its own session only; sealed, read and released by those that recover it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use holdfast_types::LogOffset;
use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;
use tonic::{Request, Response, Status, Streaming};
use tower::ServiceExt as _;

use super::{ServeError, accept};
use crate::follower::{AppendMessage, FollowerError, FollowerHost, LogName, WireFault, frames_to_wire};
use crate::identity::{Caller, ProcessIdentity, Role};
use crate::proto::follower_service_server::{FollowerService, FollowerServiceServer};
use crate::{limits, proto};

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
            connection = accepted.recv() => {
                let connection = connection.ok_or(ServeError)?;
                connections.spawn(serve_connection(connection, Arc::clone(&host), stopped.clone()));
            }
        }
    }
    drop(accepted);
    stop.send_replace(true);
    while connections.join_next().await.is_some() {}
    Ok(())
}

async fn serve_connection(
    io: TlsStream<TcpStream>,
    host: Arc<dyn FollowerHost>,
    mut stop: watch::Receiver<bool>,
) {
    let Some(caller) = Caller::of(io.get_ref().1.peer_certificates()) else {
        return tracing::debug!("the peer of an internal connection has a certificate of no known kind");
    };
    let service = FollowerServiceServer::new(Followers { host, caller })
        .max_decoding_message_size(limits::APPEND_MESSAGE_LEN_MAX)
        .max_encoding_message_size(limits::APPEND_MESSAGE_LEN_MAX);
    let service = service
        .map_request(|request: http::Request<hyper::body::Incoming>| request.map(tonic::body::Body::new));
    let mut connection = pin!(
        Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(limits::PING_INTERVAL)
            .keep_alive_timeout(limits::PING_TIMEOUT)
            .initial_stream_window_size(limits::APPEND_WINDOW_LEN)
            .initial_connection_window_size(limits::CONNECTION_WINDOW_LEN)
            .max_frame_size(limits::APPEND_HTTP_FRAME_LEN)
            .max_concurrent_streams(limits::STREAMS_MAX)
            .max_header_list_size(limits::HEADERS_LEN_MAX)
            .serve_connection(TokioIo::new(io), TowerToHyperService::new(service))
    );
    let stopped = async move {
        // A server that is gone without a word has stopped, too.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stopped => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, ?caller, "an internal connection ended");
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
        let caller = self.caller;
        if caller.role != Role::Cellnode {
            return Err(Status::permission_denied("only a session appends to its own log"));
        }
        let messages = request.into_inner().map(move |message| Self::check_message(caller, message)).boxed();
        let answers = self.host.append(caller.session, messages);
        Ok(Response::new(answers.map(|answer| Ok(answer.into())).boxed()))
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
