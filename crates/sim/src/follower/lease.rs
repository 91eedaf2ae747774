//! A follower's lease: published now and then, by a plain write that may land late. No promise rests on it.

use holdfast_core::ensemble::FollowerView;

use super::FollowerInput;
use crate::bucket::{Body, Key, Operation};
use crate::event::Event;
use crate::node::Purpose;
use crate::violation::Violation;
use crate::world::World;

/// How long a published lease lasts.
const LEASE_MS: u64 = 3_000;
const PUBLISH_MS: u64 = 900;
const PATIENCE_MS: u64 = 1_500;
const FREE_BYTES: u64 = 1 << 40;

impl World {
    pub(super) fn publish_follower(&mut self, index: usize) -> Result<(), Violation> {
        let follower = &self.followers[index];
        let process = follower.process.as_ref().expect("a process publishes");
        let is_full = self.now < follower.full_until_ms;
        let view = FollowerView {
            member: follower.member(),
            host: follower.host.clone(),
            zone: follower.zone.clone(),
            free_bytes: if is_full { 0 } else { FREE_BYTES },
            sessions: process.streams.len() as u64,
            draining: process.is_draining,
            expires_ms: follower.clock.read(self.now).wall.plus(LEASE_MS),
        };
        let (life, key) = (process.life, Key::FollowerLease(follower.name.clone()));
        let put = Operation::Put(key, Body::FollowerLease(view));
        self.follower_call(index, Purpose::Nobody, put, (0, PATIENCE_MS));
        self.after(PUBLISH_MS, Event::Follower(index, Some(life), FollowerInput::Lease));
        Ok(())
    }
}
