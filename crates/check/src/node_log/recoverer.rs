//! One recoverer: the real machine, and a shell that does what it asks.

use std::collections::BTreeMap;

use holdfast_core::follower::HeldLog;
use holdfast_core::log_record::LogRecord;
use holdfast_core::ownership::{LeaseView, Protocol};
use holdfast_core::recovery::{
    GatherFault, Holdings, Missing, Recoverer, Recovery, RecoveryEffect, RecoveryEvent, RecoveryOutcome,
};
use holdfast_types::{LogOffset, Millis, NodeName, SessionId, WriteId};

use super::bounds::{member, place, time};
use super::bundle::{Bundle, Bundles};
use super::follower::{Follower, bit};
use super::owner::{SESSION, node};
use crate::part::Part;
use crate::register::{Read, Register, Version, Write};

/// A recoverer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rescue {
    pub(super) machine: Recovery<Version>,
    pub(super) write: Option<Write<LogRecord>>,
    pub(super) read: Option<Read<LogRecord>>,
    /// Seals under way, by the disk that was asked for.
    pub(super) seals: BTreeMap<(u8, u8), Seal>,
    pub(super) gather: Option<Gather>,
    /// It found a frame in a bundle that its cell's prefix lacked.
    pub(super) brought_from_bundle: bool,
    pub(super) looks_for_loss: bool,
    /// Whose lease it reads.
    pub(super) reads_lease_of: Option<SessionId>,
    pub(super) claimant: SessionId,
    pub(super) ended: Option<Ended>,
}

/// A seal under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seal {
    /// On its way to the follower.
    Sent,
    /// The follower has it.
    Waiting,
    /// On its way back, with the disk that answered.
    Answered(HeldLog, u8),
    /// The follower stopped.
    Broken,
}

/// Frames under way into their cells' prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gather {
    /// From a follower.
    Tail {
        /// The member's place and disk.
        from: (u8, u8),
        /// The next frame.
        next: LogOffset,
        /// The one after the last.
        end: LogOffset,
    },
    /// From bundles.
    Bundles {
        /// What the next one begins with.
        next: LogOffset,
    },
}

/// How a recovery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// The log is recovered: cells may be claimed from the session.
    Recovered,
    /// No witness was found.
    Blocked {
        /// A follower answered as no witness, on the disk that was asked for.
        despite_answer: bool,
    },
    /// It died.
    Died,
    /// Anything else.
    GivenUp,
}

impl Rescue {
    pub(super) fn start(number: u8) -> Self {
        let claimant = SessionId::from_bits(100 + u128::from(number));
        let claimant_node = Some(node_of(claimant));
        let me = Recoverer { claimant, claimant_node, node: node(), session: SESSION, clock_skew_max_ms: 0 };
        let (machine, effect) = Recovery::start(me, WriteId::from_bits((1 + u128::from(number)) << 64));
        let mut rescue = Self {
            machine,
            write: None,
            read: None,
            seals: BTreeMap::new(),
            gather: None,
            brought_from_bundle: false,
            looks_for_loss: false,
            reads_lease_of: None,
            claimant,
            ended: None,
        };
        rescue.execute(effect);
        rescue
    }

    pub(super) fn on(&mut self, event: RecoveryEvent<Version>, leaps: u8) {
        if let Some(effect) = self.machine.on(event, time(leaps)) {
            self.execute(effect);
        }
    }

    fn execute(&mut self, effect: RecoveryEffect<Version>) {
        match effect {
            RecoveryEffect::ReadRecord => self.read = Some(Read::Asked),
            RecoveryEffect::WriteRecord { record, guard, missing: _ } => {
                self.write = Some(Write::Sent(record, guard))
            }
            RecoveryEffect::SealMembers { members } => {
                self.seals.extend(members.iter().map(|member| (place(member), Seal::Sent)));
            }
            RecoveryEffect::Gather { member, start, end, is_whole: _ } => {
                // The first frame's offset is 1 whatever a recovery counts from.
                let next = start.max(LogOffset::new(1));
                self.gather = Some(Gather::Tail { from: place(&member), next, end });
            }
            RecoveryEffect::GatherBundles { from, is_whole: _ } => {
                self.gather = Some(Gather::Bundles { next: from });
            }
            RecoveryEffect::LookForLoss => self.looks_for_loss = true,
            RecoveryEffect::ReadClaimantLease { node } => {
                let bits = node.as_str()[1..].parse().expect("a recoverer's node");
                self.reads_lease_of = Some(SessionId::from_bits(bits));
            }
            RecoveryEffect::Finish(outcome) => self.end(&outcome),
        }
    }

    /// It dies. What it has written may land yet.
    pub(super) fn die(&mut self, record: &mut Register<LogRecord>) {
        if let Some(write) = self.write.take() {
            write.lose(record);
        }
        self.ended = Some(Ended::Died);
        self.seals.clear();
        (self.gather, self.read, self.reads_lease_of, self.looks_for_loss) = (None, None, None, false);
    }

    /// Its shell ends with it.
    fn end(&mut self, outcome: &RecoveryOutcome) {
        self.ended = Some(match outcome {
            RecoveryOutcome::Recovered { .. } => Ended::Recovered,
            RecoveryOutcome::Blocked { missing, .. } => Ended::Blocked {
                despite_answer: missing
                    .iter()
                    .any(|missing| !matches!(missing.why, Missing::NoAnswer(_) | Missing::OtherDisk { .. })),
            },
            RecoveryOutcome::Busy { .. } | RecoveryOutcome::Superseded | RecoveryOutcome::Failed(_) => {
                Ended::GivenUp
            }
        });
        self.seals.clear();
        self.gather = None;
        self.read = None;
    }

    pub(super) fn answer_seal(&mut self, at: (u8, u8), leaps: u8) {
        let member = member(at.0, at.1);
        let event = match self.seals.remove(&at).expect("a seal is under way") {
            Seal::Answered(held, disk) => {
                let HeldLog { log_epoch, start, end, is_complete, is_sealed } = held;
                let incarnation = super::bounds::member(at.0, disk).incarnation;
                let holdings = Holdings { incarnation, log_epoch, start, end, is_complete, is_sealed };
                RecoveryEvent::MemberSealed { member, holdings }
            }
            Seal::Sent | Seal::Waiting | Seal::Broken => {
                RecoveryEvent::MemberUnreachable { member, reason: String::new() }
            }
        };
        self.on(event, leaps);
    }

    /// The next frame of the member's tail, or those of the next bundle, go into the bucket; or there is none, or no such
    /// frame.
    pub(super) fn gather(
        &mut self,
        followers: &[Part<Follower>],
        bundles: &Bundles,
        covered: &mut u32,
        leaps: u8,
    ) {
        let event = match self.gather.as_mut().expect("a gathering is under way") {
            Gather::Tail { next, end, .. } if *next >= *end => RecoveryEvent::Gathered,
            Gather::Tail { from, next, .. } => {
                let follower = &followers[usize::from(from.0)];
                if follower.disk == from.1 && follower.frames & bit(*next) != 0 {
                    *covered |= bit(*next);
                    *next = next.next();
                    RecoveryEvent::Progress { done_below: *next }
                } else {
                    RecoveryEvent::GatherFailed(GatherFault::Member(String::new()))
                }
            }
            Gather::Bundles { next } => match bundles.get(*next) {
                Some(Bundle { below, frames }) => {
                    self.brought_from_bundle |= frames & !*covered != 0;
                    *covered |= frames;
                    *next = below;
                    RecoveryEvent::Progress { done_below: LogOffset::ZERO }
                }
                None => RecoveryEvent::Gathered,
            },
        };
        if !matches!(event, RecoveryEvent::Progress { .. }) {
            self.gather = None;
        }
        self.on(event, leaps);
    }
}

fn node_of(claimant: SessionId) -> NodeName {
    NodeName::parse(&format!("m{}", claimant.bits())).expect("a valid name")
}

/// Of a recoverer that lives.
pub(super) fn lease(claimant: SessionId) -> LeaseView {
    let protocol = Protocol { min: 1, max: 1 };
    LeaseView { session: claimant, expires_ms: Millis::new(u64::MAX), protocol }
}
