//! An HTTP proxy before a store that breaks requests as told: answers lost after the write was applied, forced
//! statuses, held writes, cuts, ignored conditions. What no rule touches passes byte for byte, the Host header
//! included, since the store verifies the client's signature over it.

mod control;
mod forward;
mod rules;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::sigv4::Credentials;

pub use control::serve_control;
pub use forward::BODY_LEN_MAX;
pub use rules::{Action, Faults, Rule, RuleId, Seen, Stage};

/// A running proxy. It stops when dropped, and connections through it are cut.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    faults: Faults,
    _accept: AbortOnDropHandle<()>,
}

impl FaultProxy {
    /// Listens on a free port of loopback and forwards to `upstream`. `credentials` are those of the store: a request
    /// whose conditions are taken away must be signed anew. `seed` decides the rules' chances.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(upstream: SocketAddr, credentials: Credentials, seed: u64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        Self::serve(listener, upstream, credentials, seed)
    }

    /// As [`FaultProxy::start`], on a listener of the caller's.
    ///
    /// # Errors
    /// When the listener has no address.
    pub fn serve(
        listener: TcpListener,
        upstream: SocketAddr,
        credentials: Credentials,
        seed: u64,
    ) -> Result<Self> {
        let address = listener.local_addr()?;
        let faults = Faults::new(seed);
        let forwarder = Arc::new(forward::Forwarder::new(upstream, credentials, faults.clone()));
        let accept = tokio::spawn(accept_loop(listener, faults.clone(), forwarder));
        Ok(Self { address, faults, _accept: AbortOnDropHandle::new(accept) })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The proxy's endpoint as a URL.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The switches.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

async fn accept_loop(listener: TcpListener, faults: Faults, forwarder: Arc<forward::Forwarder>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        while connections.try_join_next().is_some() {}
        if faults.is_cut() {
            continue;
        }
        // Without it an answer in two segments costs 40 ms. A socket that refuses the option is already gone.
        let _ = socket.set_nodelay(true);
        let forwarder = forwarder.clone();
        let mut cut = faults.cuts();
        connections.spawn(async move {
            let service = service_fn(move |request| forwarder.clone().handle(request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(socket), service);
            // Either way the socket closes; a cut closes it in the middle of whatever it was doing.
            tokio::select! {
                biased;
                _ = cut.changed() => {}
                _ = connection => {}
            }
        });
    }
}

#[cfg(test)]
mod tests;
