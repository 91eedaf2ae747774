//! Connections by session. One connection is made at a time per session; those who waited for one that failed share
//! the failure instead of trying one after the other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_types::SessionId;
use tokio::time::Instant;

use super::Peer;
use super::channel::Channel;
use crate::identity::ProcessIdentity;
use crate::limits;

pub(super) struct Pool {
    identity: ProcessIdentity,
    started: Instant,
    swept_ms: AtomicU64,
    entries: Mutex<HashMap<SessionId, Arc<Entry>>>,
}

struct Entry {
    address: String,
    used_ms: AtomicU64,
    ready: Mutex<Option<Channel>>,
    /// Held while connecting; remembers the last failure.
    connecting: tokio::sync::Mutex<Option<Failure>>,
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

    /// A live connection to the session, made now when there is none.
    pub(super) async fn channel(&self, peer: &Peer) -> Result<Channel, String> {
        let entry = self.entry(peer);
        if let Some(channel) = entry.live() {
            return Ok(channel);
        }
        let asked = Instant::now();
        let mut failure = entry.connecting.lock().await;
        if let Some(channel) = entry.live() {
            return Ok(channel);
        }
        if let Some(Failure { at, reason }) = &*failure
            && *at >= asked
        {
            return Err(reason.clone());
        }
        match Channel::connect(peer, &self.identity).await {
            Ok(channel) => {
                *lock(&entry.ready) = Some(channel.clone());
                *failure = None;
                Ok(channel)
            }
            Err(reason) => {
                *failure = Some(Failure { at: Instant::now(), reason: reason.clone() });
                Err(reason)
            }
        }
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
            ready: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(None),
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

impl Entry {
    fn live(&self) -> Option<Channel> {
        let mut ready = lock(&self.ready);
        if ready.as_ref().is_some_and(Channel::is_closed) {
            *ready = None;
        }
        ready.clone()
    }
}
