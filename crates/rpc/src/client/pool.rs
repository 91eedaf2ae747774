//! Connections by session: some for calls in one message, one for WebSockets, and one for everything else that streams, so
//! that no small call waits behind a large body. Each is made once at a time; those who waited for one that failed share the failure instead of
//! trying one after the other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_types::SessionId;
use tokio::time::Instant;

use super::Peer;
use super::channel::{Channel, SocketChannel};
use super::link::Link;
use crate::identity::ProcessIdentity;
use crate::limits;

pub(super) struct Pool {
    identity: ProcessIdentity,
    started: Instant,
    swept_ms: AtomicU64,
    entries: Mutex<HashMap<SessionId, Arc<Entry>>>,
}

/// A kind of connection.
pub(super) trait Pooled: Clone + Sized {
    /// Connects, with the session pinned by the name that its certificate must have.
    async fn open(peer: &Peer, identity: &ProcessIdentity) -> Result<Self, String>;

    /// Whether no new call can be made on it.
    fn is_closed(&self) -> bool;
}

struct Entry {
    address: String,
    used_ms: AtomicU64,
    link: Slot<Link>,
    channel: Slot<Channel>,
    sockets: Slot<SocketChannel>,
}

/// Place for one connection.
struct Slot<T> {
    ready: Mutex<Option<T>>,
    /// Held while connecting; remembers the last failure.
    connecting: tokio::sync::Mutex<Option<Failure>>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { ready: Mutex::new(None), connecting: tokio::sync::Mutex::new(None) }
    }
}

struct Failure {
    at: Instant,
    reason: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(super) fn new(identity: ProcessIdentity) -> Self {
        Self {
            identity,
            started: Instant::now(),
            swept_ms: AtomicU64::new(0),
            entries: Mutex::new(HashMap::new()),
        }
    }

    /// The live connection to the session for calls in one message, where there is one.
    pub(super) fn live_link(&self, peer: &Peer) -> Option<Link> {
        self.entry(peer).link.live()
    }

    /// A live connection to the session for calls in one message, made now when there is none.
    pub(super) async fn link(&self, peer: &Peer) -> Result<Link, String> {
        self.entry(peer).link.get(peer, &self.identity).await
    }

    /// A live connection to the session for everything else, made now when there is none.
    pub(super) async fn channel(&self, peer: &Peer) -> Result<Channel, String> {
        self.entry(peer).channel.get(peer, &self.identity).await
    }

    /// A live connection to the session for WebSockets, made now when there is none.
    pub(super) async fn socket_channel(&self, peer: &Peer) -> Result<Channel, String> {
        self.entry(peer).sockets.get(peer, &self.identity).await.map(|sockets| sockets.0)
    }

    fn entry(&self, peer: &Peer) -> Arc<Entry> {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut entries = lock(&self.entries);
        self.sweep(&mut entries, now_ms);
        if let Some(entry) = entries.get(&peer.session)
            && entry.address == peer.address
        {
            entry.used_ms.store(now_ms, Ordering::Relaxed);
            return Arc::clone(entry);
        }
        if entries.len() >= limits::CHANNELS_MAX {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used_ms.load(Ordering::Relaxed));
            let oldest = oldest.map(|(session, _)| *session).expect("the pool is full, so not empty");
            entries.remove(&oldest);
        }
        let entry = Arc::new(Entry {
            address: peer.address.clone(),
            used_ms: AtomicU64::new(now_ms),
            link: Slot::default(),
            channel: Slot::default(),
            sockets: Slot::default(),
        });
        entries.insert(peer.session, Arc::clone(&entry));
        entry
    }

    /// Drops connections that nobody used for a while; what is in flight on them finishes.
    fn sweep(&self, entries: &mut HashMap<SessionId, Arc<Entry>>, now_ms: u64) {
        let idle_ms = u64::try_from(limits::CHANNEL_IDLE_MAX.as_millis()).expect("a short time");
        if now_ms.saturating_sub(self.swept_ms.load(Ordering::Relaxed)) < idle_ms {
            return;
        }
        self.swept_ms.store(now_ms, Ordering::Relaxed);
        entries.retain(|_, entry| now_ms.saturating_sub(entry.used_ms.load(Ordering::Relaxed)) < idle_ms);
    }
}

impl<T: Pooled> Slot<T> {
    async fn get(&self, peer: &Peer, identity: &ProcessIdentity) -> Result<T, String> {
        if let Some(live) = self.live() {
            return Ok(live);
        }
        let asked = Instant::now();
        let mut failure = self.connecting.lock().await;
        if let Some(live) = self.live() {
            return Ok(live);
        }
        if let Some(Failure { at, reason }) = &*failure
            && *at >= asked
        {
            return Err(reason.clone());
        }
        match connect(peer, identity).await {
            Ok(live) => {
                *lock(&self.ready) = Some(T::clone(&live));
                *failure = None;
                Ok(live)
            }
            Err(reason) => {
                *failure = Some(Failure { at: Instant::now(), reason: reason.clone() });
                Err(reason)
            }
        }
    }

    fn live(&self) -> Option<T> {
        let mut ready = lock(&self.ready);
        if ready.as_ref().is_some_and(T::is_closed) {
            *ready = None;
        }
        ready.clone()
    }
}

async fn connect<T: Pooled>(peer: &Peer, identity: &ProcessIdentity) -> Result<T, String> {
    match tokio::time::timeout(limits::CONNECT_TIMEOUT, T::open(peer, identity)).await {
        Ok(Ok(live)) => Ok(live),
        Ok(Err(reason)) => Err(format!("cannot reach {peer}: {reason}")),
        Err(_) => {
            let limit = limits::CONNECT_TIMEOUT;
            Err(format!("cannot reach {peer}: no connection within {limit:?}"))
        }
    }
}
