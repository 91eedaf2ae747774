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
