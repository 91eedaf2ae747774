//! The hibernatable sockets of a Durable Object: what must outlive an isolate, and what the embedder answers by itself.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdfast_types::Millis;

use crate::effect::SocketId;

/// Sockets of one object: as many as on Cloudflare.
pub const KEPT_MAX: usize = 32_768;

/// One socket.
#[derive(Debug, Default)]
struct Kept {
    tags: Box<[String]>,
    attachment: Option<Bytes>,
    auto_responded_at: Option<Millis>,
    is_connected: bool,
    is_closed: bool,
}

/// The hibernatable sockets of one object, in the order in which they were accepted. It outlives isolates; its owner and
/// the isolate that lives share it on one thread.
#[derive(Debug, Default)]
pub struct KeptSockets {
    made: u64,
    kept: BTreeMap<SocketId, Kept>,
    auto_response: Option<(String, String)>,
    event_timeout_ms: Option<u32>,
}

impl KeptSockets {
    /// A number that no socket of the object has had.
    pub fn next_id(&mut self) -> SocketId {
        self.made += 1;
        SocketId::new(self.made)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether a socket is one of these.
    #[must_use]
    pub fn has(&self, socket: SocketId) -> bool {
        self.kept.contains_key(&socket)
    }

    /// Takes a socket in. False where there are too many.
    pub(super) fn keep(&mut self, socket: SocketId, tags: Vec<String>) -> bool {
        if self.kept.len() >= KEPT_MAX {
            return false;
        }
        self.kept.insert(socket, Kept { tags: tags.into_boxed_slice(), ..Kept::default() });
        true
    }

    /// Those with a tag, first accepted first; without one all, last accepted first: as on Cloudflare.
    pub(super) fn list(&self, tag: Option<&str>) -> Vec<SocketId> {
        match tag {
            None => self.kept.keys().rev().copied().collect(),
            Some(tag) => {
                let has_it = |(_, kept): &(&SocketId, &Kept)| kept.tags.iter().any(|one| one == tag);
                self.kept.iter().filter(has_it).map(|(socket, _)| *socket).collect()
            }
        }
    }

    pub(super) fn tags(&self, socket: SocketId) -> Vec<String> {
        self.kept.get(&socket).map(|kept| kept.tags.to_vec()).unwrap_or_default()
    }

    pub(super) fn attachment(&self, socket: SocketId) -> Option<Bytes> {
        self.kept.get(&socket)?.attachment.clone()
    }

    pub(super) fn attach(&mut self, socket: SocketId, attachment: Bytes) {
        if let Some(kept) = self.kept.get_mut(&socket) {
            kept.attachment = Some(attachment);
        }
    }

    pub(super) fn set_closed(&mut self, socket: SocketId) {
        if let Some(kept) = self.kept.get_mut(&socket) {
            kept.is_closed = true;
        }
    }

    /// Whether the object has said that it closes the socket.
    #[must_use]
    pub fn is_closed(&self, socket: SocketId) -> bool {
        self.kept.get(&socket).is_none_or(|kept| kept.is_closed)
    }

    pub(super) fn set_auto_response(&mut self, pair: Option<(String, String)>) {
        self.auto_response = pair;
    }

    pub(super) fn auto_response(&self) -> Option<(String, String)> {
        self.auto_response.clone()
    }

    pub(super) fn auto_responded_at(&self, socket: SocketId) -> Option<Millis> {
        self.kept.get(&socket)?.auto_responded_at
    }

    pub(super) fn set_event_timeout(&mut self, timeout_ms: Option<u32>) {
        self.event_timeout_ms = timeout_ms;
    }

    pub(super) fn event_timeout(&self) -> Option<u32> {
        self.event_timeout_ms
    }

    /// The answer that the object has left for a message, noted as given at this wall clock.
    pub fn respond(&mut self, socket: SocketId, message: &str, wall: Millis) -> Option<String> {
        let (request, response) = self.auto_response.as_ref()?;
        if request != message {
            return None;
        }
        let kept = self.kept.get_mut(&socket).filter(|kept| !kept.is_closed)?;
        kept.auto_responded_at = Some(wall);
        Some(response.clone())
    }

    /// The socket's other end is with a client.
    pub fn connected(&mut self, socket: SocketId) {
        if let Some(kept) = self.kept.get_mut(&socket) {
            kept.is_connected = true;
        }
    }

    /// Forgets a socket.
    pub fn forget(&mut self, socket: SocketId) {
        self.kept.remove(&socket);
    }

    /// Forgets those whose other end was given to nobody: without an isolate nobody ever can.
    pub fn forget_unconnected(&mut self) {
        self.kept.retain(|_, kept| kept.is_connected);
    }

    /// Forgets all of them, and what was said about them.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.auto_response = None;
        self.event_timeout_ms = None;
    }
}
