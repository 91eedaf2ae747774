//! Public WebSockets. The connection and the protocol (RFC 6455) end here; what goes on is whole messages and closes, over
//! the bodies of one internal call. A client sees exactly one close: its object's, the echo of its own, or 1012 when whatever
//! held the socket is gone. One that breaks off without a close is lost to the object, never closed for it.

pub(crate) mod handshake;
mod pump;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use holdfast_rpc::{Body, SocketReader, SocketWriter, socket_pipe, whole_body};
use holdfast_telemetry::metrics;
use http::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::answer::Failure;

pub(crate) use handshake::Handshake;

/// KiB for messages of clients that are not whole yet, of all sockets together, beyond 64 KiB of each: 256 MiB. A client whose
/// message finds none is closed with 1013.
const MEMORY_KIB: usize = 256 << 10;

/// What all sockets of an ingress share.
#[derive(Debug)]
pub(crate) struct Sockets {
    places: Arc<Semaphore>,
    /// For messages that are not whole yet, in KiB.
    memory: Arc<Semaphore>,
    max: usize,
    ping_interval: Duration,
    ended: CancellationToken,
}

/// A socket that a client asks for.
pub(crate) struct Asked {
    handshake: Handshake,
    uplink: SocketWriter,
    place: OwnedSemaphorePermit,
}

impl Sockets {
    /// At most `max`, each pinged at this interval.
    pub(crate) fn new(max: usize, ping_interval: Duration) -> Self {
        let (places, ended) = (Arc::new(Semaphore::new(max)), CancellationToken::new());
        let memory = Arc::new(Semaphore::new(MEMORY_KIB));
        Self { places, memory, max, ping_interval, ended }
    }

    /// Makes room for a socket. With it comes the body that carries what its client sends.
    pub(crate) fn ask(&self, handshake: Handshake) -> Result<(Asked, Body), Failure> {
        if self.ended.is_cancelled() {
            return Err(Failure::busy("draining", "this ingress is draining", 1_000));
        }
        let busy = || Failure::busy("overloaded", "too many WebSockets are open at this ingress", 1_000);
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| busy())?;
        let (uplink, body) = socket_pipe();
        Ok((Asked { handshake, uplink, place }, body))
    }

    /// The answer for the client: where it opens the socket that was asked for, its body is what the object sends on that.
    pub(crate) fn answer(&self, asked: Option<Asked>, answer: Response<Body>) -> Response<Body> {
        match asked {
            Some(asked) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => self.open(asked, answer),
            _ => answer,
        }
    }

    fn open(&self, asked: Asked, answer: Response<Body>) -> Response<Body> {
        let Asked { handshake, uplink, place } = asked;
        let (mut parts, downlink) = answer.into_parts();
        let upgraded = handshake.complete(&mut parts);
        let (ended, ping_interval) = (self.ended.clone(), self.ping_interval);
        let memory = Arc::clone(&self.memory);
        tokio::spawn(async move {
            let _place = place;
            let open = metrics().socket_opened();
            match upgraded.await {
                Ok(io) => {
                    let ends = pump::Ends { uplink, downlink: SocketReader::new(downlink), memory };
                    let cause = pump::run(TokioIo::new(io), ends, ping_interval, ended).await;
                    open.closed(cause.name());
                }
                // The client has gone; the object is told so by its body, which breaks.
                Err(error) => {
                    tracing::debug!(%error, "a connection did not become a WebSocket");
                    open.closed(pump::Cause::Lost.name());
                }
            }
        });
        Response::from_parts(parts, whole_body(bytes::Bytes::new()))
    }

    /// Closes all sockets, and opens none any more.
    pub(crate) fn begin_close(&self) {
        self.ended.cancel();
    }

    /// Waits until all of them are closed, or the time is over.
    pub(crate) async fn closed(&self, patience: Duration) {
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        if tokio::time::timeout(patience, self.places.acquire_many(all)).await.is_err() {
            tracing::warn!("WebSockets did not close in time and are cut off");
        }
    }
}
