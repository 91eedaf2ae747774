//! The internal listener of a cellnode: mutual TLS of the fleet and nothing else, gRPC inside, a [`CellHost`] behind.

mod accept;
mod cells;
mod deadline;
mod nodes;
mod reply;
mod upload;

use std::future::Future;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_stream::wrappers::ReceiverStream;

use crate::identity::ProcessIdentity;
use crate::proto::cell_service_server::CellServiceServer;
use crate::proto::node_service_server::NodeServiceServer;
use crate::trace::TraceLayer;
use crate::{CellHost, limits};

/// The internal listener failed.
#[derive(Debug, thiserror::Error)]
#[error("the internal listener failed: {0}")]
pub struct ServeError(#[from] tonic::transport::Error);

/// Serves a host until `shutdown` resolves, then answers what is in flight and returns. Connections that show no
/// certificate of the fleet are closed before a byte of theirs is read as a request.
///
/// # Errors
/// [`ServeError`] when the server loop ends by itself.
pub async fn serve(
    listener: TcpListener,
    host: Arc<dyn CellHost>,
    identity: &ProcessIdentity,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let connections = ReceiverStream::new(accept::spawn(listener, identity.clone()));
    let cells = CellServiceServer::new(cells::Cells::new(Arc::clone(&host)))
        .max_decoding_message_size(limits::MESSAGE_LEN_MAX)
        .max_encoding_message_size(limits::MESSAGE_LEN_MAX);
    let nodes = NodeServiceServer::new(nodes::Nodes::new(host));
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(limits::PING_INTERVAL))
        .http2_keepalive_timeout(Some(limits::PING_TIMEOUT))
        .max_concurrent_streams(limits::STREAMS_MAX)
        .initial_stream_window_size(limits::STREAM_WINDOW_LEN)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_LEN)
        .http2_max_header_list_size(16 * 1024)
        .layer(TraceLayer)
        .add_service(cells)
        .add_service(nodes)
        .serve_with_incoming_shutdown(connections, shutdown)
        .await?;
    Ok(())
}
