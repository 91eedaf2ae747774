//! Accepts connections and shakes hands with many at a time, so that one silent peer holds up nobody.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::identity::ProcessIdentity;
use crate::limits;

pub(super) type Connection = TlsStream<TcpStream>;

/// Starts accepting; ends when the receiver is dropped.
pub(super) fn spawn(listener: TcpListener, identity: ProcessIdentity) -> mpsc::Receiver<Connection> {
    let (connections, receiver) = mpsc::channel(limits::ACCEPTED_MAX);
    tokio::spawn(run(listener, identity, connections));
    receiver
}

async fn run(listener: TcpListener, identity: ProcessIdentity, connections: mpsc::Sender<Connection>) {
    let permits = Arc::new(Semaphore::new(limits::HANDSHAKES_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let accepted = tokio::select! {
            biased;
            () = connections.closed() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                tokio::spawn(shake_hands(stream, identity.clone(), connections.clone(), permit));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an internal connection");
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn shake_hands(
    stream: TcpStream,
    identity: ProcessIdentity,
    connections: mpsc::Sender<Connection>,
    permit: OwnedSemaphorePermit,
) {
    let peer = stream.peer_addr();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, ?peer, "cannot set TCP_NODELAY");
    }
    let handshake = TlsAcceptor::from(identity.server_config()).accept(stream);
    match tokio::time::timeout(limits::HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => {
            drop(permit);
            // Fails only when the server is gone.
            let _ = connections.send(stream).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, ?peer, "refused an internal connection"),
        Err(_) => tracing::debug!(?peer, "an internal connection did not shake hands in time"),
    }
}
