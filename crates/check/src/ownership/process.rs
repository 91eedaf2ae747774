//! One session of a node, and what it is at.

use holdfast_core::gate::Gate;
use holdfast_core::ownership::{
    Claim, ClaimEffect, Claimant, Intent, OwnerView, Protocol, Release, ReleaseEffect,
};
use holdfast_types::{NodeName, SessionId, WriteId};

use crate::register::{Read, Version, Write};

/// What a session is at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// A claim.
    Claiming {
        /// The machine.
        claim: Claim<Version>,
        /// What it waits for.
        ask: Ask,
    },
    /// It has claimed the cell and restores it.
    Restoring {
        /// The record that it wrote.
        owner: OwnerView,
        /// Its version.
        version: Version,
    },
    /// It serves the cell.
    Serving(Box<Serving>),
    /// A release.
    Releasing {
        /// The machine.
        release: Release,
        /// What it waits for.
        ask: Ask,
    },
}

/// A cell that is served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Serving {
    pub(super) owner: OwnerView,
    pub(super) version: Version,
    pub(super) gate: Gate,
    pub(super) has_written: bool,
    pub(super) upload: Option<Upload>,
    pub(super) owner_read: Option<Read<OwnerView>>,
    /// The gate has failed, or the output has left: nothing more is to come.
    pub(super) is_over: bool,
}

/// An upload under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Upload {
    /// On its way to the bucket.
    Sent,
    /// On its way back.
    Landed,
}

/// What a machine waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// The owner record.
    Owner(Read<OwnerView>),
    /// A node's lease.
    Lease(NodeName),
    /// The log of a dead session.
    Log(SessionId),
    /// Data of a cell without a record.
    History,
    /// A write of the record.
    Record(Write<OwnerView>),
}

/// A session of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The node's number.
    pub(super) node: u8,
    /// The number of its session.
    pub(super) life: u8,
    /// Whether its lease has ended.
    pub(super) has_ended: bool,
    /// Of its next claim or release.
    next_write: u128,
    pub(super) phase: Phase,
}

pub(super) const PROTOCOL: Protocol = Protocol { min: 1, max: 1 };

pub(super) fn name(node: u8) -> NodeName {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    NodeName::parse(NAMES[usize::from(node)]).expect("a valid name")
}

pub(super) fn session(node: u8, life: u8) -> SessionId {
    SessionId::from_bits(u128::from(node) * 16 + u128::from(life) + 1)
}

impl Process {
    pub(super) const fn new(node: u8, life: u8) -> Self {
        Self { node, life, has_ended: false, next_write: 1, phase: Phase::Idle }
    }

    pub(super) fn session(&self) -> SessionId {
        session(self.node, self.life)
    }

    pub(super) fn write_id(&mut self) -> WriteId {
        let id = self.session().bits() << 16 | self.next_write << 8;
        self.next_write += 1;
        WriteId::from_bits(id)
    }

    pub(super) fn claim(&mut self) {
        let (node, session) = (name(self.node), self.session());
        let me = Claimant { node, session, protocol: PROTOCOL, clock_skew_max_ms: 0 };
        let (claim, effect) = Claim::start(me, Intent::Own, self.write_id());
        assert_eq!(effect, ClaimEffect::ReadOwner, "a claim begins with the record");
        self.phase = Phase::Claiming { claim, ask: Ask::Owner(Read::Asked) };
    }

    pub(super) fn release(&mut self) {
        let write_id = self.write_id();
        let Phase::Serving(serving) = &self.phase else { unreachable!("only what is served is released") };
        let (release, effect) = Release::start(&serving.owner, serving.version, write_id);
        let ReleaseEffect::WriteOwner { owner, guard } = effect else {
            unreachable!("a release begins with a write")
        };
        self.phase = Phase::Releasing { release, ask: Ask::Record(Write::Sent(owner, guard)) };
    }

    pub(super) const fn ask(&self) -> Option<&Ask> {
        match &self.phase {
            Phase::Claiming { ask, .. } | Phase::Releasing { ask, .. } => Some(ask),
            _ => None,
        }
    }

    pub(super) const fn ask_mut(&mut self) -> Option<&mut Ask> {
        match &mut self.phase {
            Phase::Claiming { ask, .. } | Phase::Releasing { ask, .. } => Some(ask),
            _ => None,
        }
    }
}
