//! The internal listener of a cellnode: mutual TLS of the fleet and nothing else, gRPC inside, a [`CellHost`] behind.

mod accept;
mod calls;
mod cells;
mod connection;
mod deadline;
mod deliver;
mod follower;
mod nodes;
mod reply;
mod upload;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::follower::serve_follower;

use self::calls::Calls;
pub use self::deliver::{Delivered, deliver};
use crate::CellHost;
use crate::identity::ProcessIdentity;

/// The internal listener failed.
#[derive(Debug, thiserror::Error)]
#[error("the internal listener ended by itself")]
pub struct ServeError;

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
    let mut accepted = accept::spawn(listener, identity.clone());
    let calls = Arc::new(Calls::new(host));
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
                let builder = connection::of_node(&io);
                let serving = connection::serve((io, builder), Arc::clone(&calls), stopped.clone());
                connections.spawn(Delivered::new(serving));
            }
        }
    }
    drop(accepted);
    stop.send_replace(true);
    while connections.join_next().await.is_some() {}
    Ok(())
}
