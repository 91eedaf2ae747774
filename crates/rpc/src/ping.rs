//! Pings on an HTTP/2 connection: how either end finds out that the other is frozen or cut off.

use h2::{Ping, PingPong};

use crate::limits;

/// Resolves when the peer has not answered a ping in time.
pub(crate) async fn silence(mut pings: PingPong) {
    loop {
        tokio::time::sleep(limits::PING_INTERVAL).await;
        match tokio::time::timeout(limits::PING_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection ends by itself, and says why.
            Ok(Err(_)) => return std::future::pending().await,
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, timeout};

    use super::*;

    /// The client's pings on a connection whose server stops moving when it is told to.
    async fn connected(stop: tokio::sync::oneshot::Receiver<()>) -> PingPong {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let mut server = h2::server::handshake(far).await.unwrap();
            tokio::select! {
                _ = stop => {}
                _ = server.accept() => {}
            }
            // Open, and frozen.
            std::future::pending::<()>().await;
            drop(server);
        });
        let (sender, mut connection) = h2::client::handshake(near).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        tokio::spawn(async move {
            let _sender = sender;
            let _ = connection.await;
        });
        pings
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_peer_is_found_out_and_a_live_one_is_left_alone() {
        let (freeze, frozen) = tokio::sync::oneshot::channel();
        let mut silence = std::pin::pin!(silence(connected(frozen).await));
        assert!(timeout(Duration::from_secs(600), &mut silence).await.is_err(), "it answers");
        freeze.send(()).unwrap();
        let since = Instant::now();
        silence.await;
        assert!(since.elapsed() <= limits::PING_INTERVAL + limits::PING_TIMEOUT, "{:?}", since.elapsed());
    }
}
