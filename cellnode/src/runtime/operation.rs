//! Operations that a runtime starts, and their answers. An operation is an output: the gate lets it go, and only then it
//! runs, on the I/O runtime. Nothing here decides whether it may.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use holdfast_js::{HistoryAsk, JsError, OutgoingConnection, Redirect};
use holdfast_outbound::{BucketReply, Connected, FetchFrom, Fetched, ObjectTarget, Outbound, read_whole};
use holdfast_rpc::limits::WHOLE_BODY_LEN_MAX;
use holdfast_rpc::{Body, ObjectCall};
use http_body::Body as _;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{IncomingBody, Piece, RequestBody};

/// Longest wait for the answer of another cell.
const OBJECT_TIMEOUT: Duration = Duration::from_secs(300);

/// What a runtime wants done outside of its thread. It carries all that its execution needs.
#[derive(Debug)]
pub(crate) enum Operation {
    /// The next piece of a body that comes in.
    Read(IncomingBody),
    /// A piece for a body that goes out.
    Write(Piece),
    /// A request to a server.
    Fetch(Box<ServerRequest>),
    /// A call of another object, or of the cell's own.
    CallObject(Box<ObjectRequest>),
    /// Statements for a database.
    QueryDatabase(Box<DatabaseRequest>),
    /// A request to an R2 bucket.
    AskBucket(Box<BucketRequest>),
    /// A request to the caches of this program.
    AskCache(Box<CacheRequest>),
    /// A TCP connection.
    Connect(Box<ConnectRequest>),
    /// A question about the cell's own history, for the actor to take up.
    AskHistory(HistoryAsk),
    /// One that the actor has taken up.
    Answer(HistoryAnswer),
    /// Nothing: it failed before it could begin, and its runtime is to be told like of any other.
    Failed(Box<JsError>),
}

/// The answer to a question about the cell's history, as it is found.
pub(crate) struct HistoryAnswer(pub(crate) BoxFuture<'static, Result<Bytes, JsError>>);

impl std::fmt::Debug for HistoryAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HistoryAnswer")
    }
}

/// A request to a server, or for a static file.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    /// Sends it.
    pub(crate) outbound: Outbound,
    /// Who answers it.
    pub(crate) from: FetchFrom,
    /// What to send.
    pub(crate) request: http::Request<Body>,
    /// How redirects are treated.
    pub(crate) redirect: Redirect,
    /// Whether it asks for a WebSocket, of which its body is one direction.
    pub(crate) is_socket: bool,
}

/// A call of an object.
#[derive(Debug)]
pub(crate) struct ObjectRequest {
    /// Sends it.
    pub(crate) outbound: Outbound,
    /// Which object.
    pub(crate) target: ObjectTarget,
    /// What its `fetch` is given; for a method, its arguments are the body.
    pub(crate) request: http::Request<Body>,
    /// What is asked of it besides.
    pub(crate) object: ObjectCall,
}

/// Statements for a database.
#[derive(Debug)]
pub(crate) struct DatabaseRequest {
    /// Sends them.
    pub(crate) outbound: Outbound,
    /// Which database.
    pub(crate) database: String,
    /// The statements, as JSON.
    pub(crate) request: Bytes,
}

/// A request to an R2 bucket.
#[derive(Debug)]
pub(crate) struct BucketRequest {
    /// Sends it.
    pub(crate) outbound: Outbound,
    /// Which bucket.
    pub(crate) bucket: String,
    /// What is asked, as JSON.
    pub(crate) request: Bytes,
    /// What is put.
    pub(crate) body: Body,
}

/// A request to the caches of this program.
#[derive(Debug)]
pub(crate) struct CacheRequest {
    /// Has them.
    pub(crate) outbound: Outbound,
    /// What is asked, as JSON.
    pub(crate) request: Bytes,
    /// What is put.
    pub(crate) body: Body,
}

/// A TCP connection to a server.
#[derive(Debug)]
pub(crate) struct ConnectRequest {
    /// Opens it.
    pub(crate) outbound: Outbound,
    /// Where it goes.
    pub(crate) connection: OutgoingConnection,
    /// What is written to it.
    pub(crate) said: Body,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct ServerAnswer {
    /// Its head.
    pub(crate) head: http::response::Parts,
    /// Its body.
    pub(crate) body: RequestBody,
    /// The URL that answered.
    pub(crate) url: String,
    /// Whether there were redirects.
    pub(crate) redirected: bool,
}

/// How an operation ended.
#[derive(Debug)]
pub(crate) enum OpAnswer {
    /// A piece of a body, none at its end; or what broke it.
    Chunk(Result<Option<Bytes>, String>),
    /// Whether the reader took the piece; false when it has gone.
    Written(bool),
    /// The answer to a request.
    Response(Box<ServerAnswer>),
    /// The result of a method, or of statements.
    Returned(Bytes),
    /// What an R2 bucket or a cache says, and the bytes of an object or an answer; or the key of a connection, and what its server sends.
    Object(Bytes, RequestBody),
    /// There is no answer.
    Failed(Box<JsError>),
    /// Too many operations of the cell are under way; this one did not begin.
    Refused(String),
}

impl Operation {
    /// Bytes that wait with it at the gate.
    pub(crate) fn len(&self) -> usize {
        let of = |body: &Body| usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        match self {
            Self::Read(_) | Self::Connect(_) | Self::AskHistory(_) | Self::Answer(_) | Self::Failed(_) => 0,
            Self::Write(piece) => piece.len(),
            Self::Fetch(request) => of(request.request.body()),
            Self::CallObject(request) => {
                let first = request.object.session.as_ref().map_or(0, Bytes::len);
                of(request.request.body()).saturating_add(first)
            }
            Self::QueryDatabase(query) => query.request.len(),
            Self::AskBucket(request) => request.request.len().saturating_add(of(&request.body)),
            Self::AskCache(request) => request.request.len().saturating_add(of(&request.body)),
        }
    }

    /// Runs it. `done` is called once, on any thread, unless `cancelled` comes first. A piece enters its body in any case:
    /// one that is missing would break it.
    pub(crate) fn run(
        self,
        runtime: &Handle,
        cancelled: CancellationToken,
        done: impl FnOnce(OpAnswer) + Send + 'static,
    ) {
        let answer = match self {
            Self::Write(piece) => return piece.enter(Box::new(move |taken| done(OpAnswer::Written(taken)))),
            Self::Failed(error) => return done(OpAnswer::Failed(error)),
            other => other.answer(),
        };
        drop(runtime.spawn(async move {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => {}
                answer = answer => done(answer),
            }
        }));
    }

    async fn answer(self) -> OpAnswer {
        let result = match self {
            Self::Read(body) => return OpAnswer::Chunk(body.read().await),
            Self::Fetch(request) => fetch(*request).await,
            Self::CallObject(request) => call_object(*request).await,
            Self::QueryDatabase(query) => query_database(*query).await,
            Self::AskBucket(request) => ask_bucket(*request).await,
            Self::AskCache(request) => ask_cache(*request).await,
            Self::Connect(request) => connect(*request).await,
            Self::Answer(HistoryAnswer(answer)) => answer.await.map(OpAnswer::Returned),
            Self::AskHistory(_) => unreachable!("the actor takes it up before it is let go"),
            Self::Write(_) | Self::Failed(_) => unreachable!("neither is waited for"),
        };
        result.unwrap_or_else(|error| OpAnswer::Failed(Box::new(error)))
    }

    /// The gate failed, or the cell has too many: it does not run.
    pub(crate) fn fail(self, reason: &str) {
        if let Self::Write(piece) = self {
            piece.fail(reason);
        }
    }
}

async fn fetch(request: ServerRequest) -> Result<OpAnswer, JsError> {
    let ServerRequest { outbound, from, request, redirect, is_socket } = request;
    let Fetched { response, url, redirected } = if is_socket {
        outbound.open_socket_from(from, request).await?
    } else {
        outbound.fetch_from(from, request, redirect).await?
    };
    let (head, body) = response.into_parts();
    let body = RequestBody::Stream(body);
    Ok(OpAnswer::Response(Box::new(ServerAnswer { head, body, url, redirected })))
}

async fn query_database(query: DatabaseRequest) -> Result<OpAnswer, JsError> {
    let DatabaseRequest { outbound, database, request } = query;
    let deadline = Instant::now() + OBJECT_TIMEOUT;
    outbound.query_database(&database, request, deadline).await.map(OpAnswer::Returned)
}

async fn ask_bucket(request: BucketRequest) -> Result<OpAnswer, JsError> {
    let BucketRequest { outbound, bucket, request, body } = request;
    let BucketReply { head, body } = outbound.ask_bucket(&bucket, &request, body).await?;
    Ok(OpAnswer::Object(head, at_hand(body).await?))
}

async fn ask_cache(request: CacheRequest) -> Result<OpAnswer, JsError> {
    let CacheRequest { outbound, request, body } = request;
    let BucketReply { head, body } = outbound.ask_cache(&request, body).await?;
    Ok(OpAnswer::Object(head, at_hand(body).await?))
}

async fn connect(request: ConnectRequest) -> Result<OpAnswer, JsError> {
    let ConnectRequest { outbound, connection, said } = request;
    let Connected { key, heard } = outbound.open_connection(connection, said).await?;
    Ok(OpAnswer::Object(key, RequestBody::Stream(heard)))
}

/// A body that is here already, as a whole.
async fn at_hand(body: Body) -> Result<RequestBody, JsError> {
    let is_here = body.size_hint().exact().is_some_and(|len| len <= WHOLE_BODY_LEN_MAX as u64);
    if is_here {
        return Ok(RequestBody::Whole(read_whole(body, WHOLE_BODY_LEN_MAX).await?));
    }
    Ok(RequestBody::Stream(body))
}

async fn call_object(call: ObjectRequest) -> Result<OpAnswer, JsError> {
    let ObjectRequest { outbound, target, request, object } = call;
    let url = request.uri().to_string();
    let is_fetch = object.method.is_none();
    let reply = outbound.call_object(target, request, object, Instant::now() + OBJECT_TIMEOUT).await?;
    if !is_fetch {
        return Ok(OpAnswer::Returned(reply.into_result().await?));
    }
    let (head, body) = reply.response.into_parts();
    // An answer that came in one message has its body with it.
    let body = at_hand(body).await?;
    Ok(OpAnswer::Response(Box::new(ServerAnswer { head, body, url, redirected: false })))
}
