//! What a running application asks of the outside: requests and connections to servers, and calls of Durable Objects. It must never
//! connect to an address that is not public unless an operator allowed it, and never send a call twice that may have run.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod addresses;
mod body;
mod cache;
mod connect;
mod databases;
mod decode;
mod fetch;
mod fields;
pub mod frames;
mod heads;
mod objects;
mod r2;
mod redirect;
mod tcp;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use holdfast_r2::R2;
use holdfast_routing::Router;

pub use addresses::{AddressRange, AddressRangeError};
pub use body::read_whole;
pub use fetch::{FetchFrom, Fetched};
pub use fields::strip_hop_by_hop;
pub use heads::{URL, incoming_request, incoming_response, outgoing_request, outgoing_response};
pub use objects::{ObjectReply, ObjectTarget, object_call};
pub use r2::BucketReply;
pub use tcp::Connected;

use connect::{Client, Connector};

/// What an application may ask, and how long it may wait.
#[derive(Clone, Debug)]
pub struct OutboundOptions {
    /// Addresses that `fetch` and `connect` may reach although they are not public.
    pub allow: Vec<AddressRange>,
    /// For looking a name up, TCP and TLS together. 10 s.
    pub connect_timeout: Duration,
    /// Until the head of an answer, with the request's own body. 120 s.
    pub response_timeout: Duration,
    /// Without a byte of an answer's body. 120 s.
    pub idle_timeout: Duration,
    /// Keeps the objects of R2 buckets; none: there are no R2 buckets.
    pub r2: Option<R2>,
    /// Bytes of the answers in the caches of the Cache API. 64 MiB.
    pub cache_bytes_max: u64,
}

impl Default for OutboundOptions {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(120),
            r2: None,
            cache_bytes_max: 64 << 20,
        }
    }
}

/// Why nothing can be asked of the outside.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The TLS library refuses its own defaults: a build that is not right. Disposition: bug.
    #[error("TLS towards servers cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// Does what an application asks of the outside. A cheap clone; clones share their connections.
#[derive(Clone)]
pub struct Outbound {
    inner: Arc<Inner>,
}

struct Inner {
    router: Router,
    client: Client,
    /// Connects for WebSockets, which are not pooled and speak HTTP/1.1.
    sockets: Connector,
    /// Connects for `connect`: no protocol is offered.
    connections: Connector,
    upgrades: tcp::Upgrades,
    caches: cache::Caches,
    options: OutboundOptions,
}

impl std::fmt::Debug for Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbound").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl Outbound {
    /// Sends calls of objects by this router, and trusts the certificate authorities of the machine.
    ///
    /// # Errors
    /// [`OutboundError`].
    pub fn new(router: Router, options: OutboundOptions) -> Result<Self, OutboundError> {
        Self::with_roots(router, options, connect::machine_roots())
    }

    fn with_roots(
        router: Router,
        options: OutboundOptions,
        roots: rustls::RootCertStore,
    ) -> Result<Self, OutboundError> {
        let client = connect::client(&options, roots.clone())?;
        let sockets = connect::connector(&options, roots.clone(), &[b"http/1.1"])?;
        let connections = connect::connector(&options, roots, &[])?;
        let upgrades = tcp::Upgrades::default();
        let caches = cache::Caches::new(options.cache_bytes_max);
        let inner = Inner { router, client, sockets, connections, upgrades, caches, options };
        Ok(Self { inner: Arc::new(inner) })
    }
}

#[cfg(test)]
mod tests;
