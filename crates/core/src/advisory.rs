//! Advisory leases: they share out background work and keep no promise, so a holder that is late or two holders at once
//! cost nothing but work done twice.

use holdfast_types::{Millis, SessionId};

/// A lease as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisoryLease {
    /// Who holds it.
    pub session: SessionId,
    /// When it ends, wall clock.
    pub expires_ms: Millis,
}

/// Whether a session should write the lease anew: nobody holds it, it ended, or it is the session's own.
#[must_use]
pub fn may_take(found: Option<AdvisoryLease>, me: SessionId, wall_now: Millis) -> bool {
    found.is_none_or(|lease| lease.session == me || lease.expires_ms <= wall_now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_when_it_ends_and_renewed_before() {
        let me = SessionId::from_bits(1);
        let held = |session, expires| {
            Some(AdvisoryLease { session: SessionId::from_bits(session), expires_ms: Millis::new(expires) })
        };
        let now = Millis::new(100);
        assert!(may_take(None, me, now));
        assert!(may_take(held(1, 200), me, now));
        assert!(may_take(held(2, 100), me, now));
        assert!(!may_take(held(2, 101), me, now));
    }
}
