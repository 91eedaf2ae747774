//! What befalls a call on its way to the store and back.

use crate::rng::Rng;

/// How a call fares. Times are spans from the moment it was sent, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// When the store applies it, if ever.
    pub applied_after_ms: Option<u64>,
    /// When an answer reaches the caller, if ever, and whether it is an ambiguous failure.
    pub answered_after_ms: Option<(u64, Answered)>,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// What the store did.
    Truly,
    /// 409, 429, 5xx: the call may have been applied.
    Ambiguously,
}

/// Odds in thousandths, and spans in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Longest way in one direction of an ordinary call.
    pub latency_ms_max: u64,
    /// A way that takes up to 2.5 s.
    pub slow: u64,
    /// Lost before it was applied.
    pub request_lost: u64,
    /// Applied, but the answer is lost.
    pub answer_lost: u64,
    /// Applied late, after the caller gave up.
    pub late: u64,
    /// How late, in milliseconds.
    pub late_ms_max: u64,
    /// Answered ambiguously, applied or not.
    pub ambiguous: u64,
    /// A listing may miss what was written within this span.
    pub list_stale_ms_max: u64,
    /// A message between client and node is lost.
    pub message_lost: u64,
}

impl Weather {
    /// Nothing is lost.
    pub const CALM: Self = Self {
        latency_ms_max: 8,
        slow: 0,
        request_lost: 0,
        answer_lost: 0,
        late: 0,
        late_ms_max: 40_000,
        ambiguous: 0,
        list_stale_ms_max: 0,
        message_lost: 0,
    };

    /// Decides how a call sent now fares. `outage_ms` is how long the store stays away yet; 0 when it is there.
    pub fn fate(&self, rng: &mut Rng, outage_ms: u64) -> Fate {
        let there = self.way(rng);
        let back = there + self.way(rng);
        let lost = Fate { applied_after_ms: None, answered_after_ms: None };
        if outage_ms > 0 {
            return match rng.below(4) {
                0 => lost,
                // Held on the way and delivered when the store is back; nobody waits for the answer any more.
                1 => Fate { applied_after_ms: Some(outage_ms + rng.below(500)), ..lost },
                _ => Fate { answered_after_ms: Some((back, Answered::Ambiguously)), ..lost },
            };
        }
        if rng.chance(self.request_lost) {
            lost
        } else if rng.chance(self.answer_lost) {
            Fate { applied_after_ms: Some(there), ..lost }
        } else if rng.chance(self.late) {
            Fate { applied_after_ms: Some(rng.within(1_000, self.late_ms_max)), ..lost }
        } else if rng.chance(self.ambiguous) {
            let applied_after_ms = rng.chance(500).then_some(there);
            Fate { applied_after_ms, answered_after_ms: Some((back, Answered::Ambiguously)) }
        } else {
            Fate { applied_after_ms: Some(there), answered_after_ms: Some((back, Answered::Truly)) }
        }
    }

    fn way(&self, rng: &mut Rng) -> u64 {
        if rng.chance(self.slow) { rng.within(50, 2_500) } else { rng.within(1, self.latency_ms_max.max(1)) }
    }
}
