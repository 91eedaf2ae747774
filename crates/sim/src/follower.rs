//! A follower as the product's shell drives it: the core's log of each session over one journal. Its process may end, its
//! disk may forget what was not fsynced, or be gone.

mod calls;
mod disk;
mod lease;
mod streams;

use std::collections::{BTreeMap, VecDeque};

use holdfast_core::follower::{CallId as SealId, FollowerEffect, SessionLog, StreamId};
use holdfast_core::log_record::MemberId;
use holdfast_types::{FollowerName, HostId, Incarnation, NodeName, SessionId, Zone};

pub(crate) use calls::{Ask, Asked, Told};

use crate::checkers::slowness::Pace;
use crate::clock::NodeClock;
use crate::event::{CallId, Event};
use crate::fault::wall_ahead;
use crate::frame::Frame;
use crate::journal::{Disk, JournalEntry};
use crate::network::{Message, Way};
use crate::node::Purpose;
use crate::rng::Rng;
use crate::scenario::Plan;
use crate::violation::Violation;
use crate::world::World;

/// What a follower's process gets to see.
#[derive(Clone, Debug)]
pub(crate) enum FollowerInput {
    /// The store's answer.
    Answer { call: CallId, is_ambiguous: bool },
    /// No answer in time.
    GiveUp(CallId),
    /// An fsync has ended.
    Synced { upto: u64 },
    /// What nobody waits for may go to the disk.
    Flush,
    /// The lease is due.
    Lease,
    /// A recoverer asks.
    Asked(Asked),
    /// A drain has lasted long enough.
    DrainEnd,
}

/// What a follower's call to the store is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FollowerPurpose {
    /// The log record, for an adoption on a stream.
    Adoption(SessionId, StreamId),
    /// The log record, to see whether the session may be forgotten.
    Forgetting(SessionId),
}

/// A follower: a name, a machine, a disk, and at most one process.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) name: FollowerName,
    pub(crate) host: HostId,
    pub(crate) zone: Zone,
    pub(crate) clock: NodeClock,
    pub(crate) disk: Disk,
    pub(crate) process: Option<FollowerProcess>,
    pub(crate) is_paused: bool,
    pub(crate) deferred: Vec<Event>,
    pub(crate) pace: Pace,
    pub(crate) full_until_ms: u64,
}

/// One process life.
#[derive(Debug)]
pub(crate) struct FollowerProcess {
    pub(crate) life: u64,
    logs: BTreeMap<SessionId, SessionLog>,
    streams: BTreeMap<u64, Stream>,
    /// Not yet given to the system.
    queue: Vec<JournalEntry>,
    is_awaited: bool,
    is_syncing: bool,
    seals: BTreeMap<SealId, Asked>,
    pub(crate) is_draining: bool,
}

/// A session's stream, named by its link.
#[derive(Debug)]
struct Stream {
    node: NodeName,
    session: SessionId,
    /// An adoption waits for the log record: nothing more is read.
    is_checking: bool,
    held: VecDeque<Message>,
}

impl Follower {
    pub(crate) fn new(index: usize, plan: &Plan, rng: &mut Rng) -> Self {
        // The first shares a machine with the first node.
        let host = if index == 0 { "h0".to_owned() } else { format!("g{index}") };
        Self {
            name: FollowerName::parse(&format!("f{index}")).expect("a valid name"),
            host: HostId::parse(&host).expect("a valid name"),
            zone: Zone::parse(&format!("z{}", rng.below(3))).expect("a valid name"),
            clock: NodeClock {
                wall_ahead_ms: wall_ahead(rng, plan.wall_off_ms_max),
                drift_ppm: 0,
                monotonic_start_ms: 1,
            },
            disk: Disk::new(Incarnation::from_bits(rng.wide_bits())),
            process: None,
            is_paused: false,
            deferred: Vec::new(),
            pace: Pace::default(),
            full_until_ms: 0,
        }
    }

    pub(crate) fn life(&self) -> Option<u64> {
        self.process.as_ref().map(|process| process.life)
    }

    pub(crate) fn member(&self) -> MemberId {
        MemberId { follower: self.name.clone(), incarnation: self.disk.incarnation }
    }
}

impl World {
    pub(crate) fn on_follower_start(&mut self, index: usize) -> Result<(), Violation> {
        if self.followers[index].process.is_some() {
            return Ok(());
        }
        let life = self.name();
        let member = self.followers[index].member();
        let (fresh, replays) = self.followers[index].disk.open();
        self.observe_fsynced(&member, &fresh)?;
        self.trace.line(self.now, format_args!("f{index} starts, disk {}", member.incarnation));
        let mut logs = BTreeMap::new();
        let mut due = Vec::new();
        for (session, replay) in replays {
            let (log, effects) = SessionLog::reopen(member.clone(), &replay);
            logs.insert(session, log);
            due.push((session, effects));
        }
        self.followers[index].process = Some(FollowerProcess {
            life,
            logs,
            streams: BTreeMap::new(),
            queue: Vec::new(),
            is_awaited: false,
            is_syncing: false,
            seals: BTreeMap::new(),
            is_draining: false,
        });
        for (session, effects) in due {
            self.run_follower_effects(index, session, effects, &[])?;
        }
        self.publish_follower(index)
    }

    pub(crate) fn on_follower_input(
        &mut self,
        index: usize,
        life: Option<u64>,
        input: FollowerInput,
    ) -> Result<(), Violation> {
        let follower = &mut self.followers[index];
        if follower.is_paused {
            follower.deferred.push(Event::Follower(index, life, input));
            return Ok(());
        }
        if follower.life().is_none() || life.is_some_and(|life| follower.life() != Some(life)) {
            if let FollowerInput::Asked(asked) = input {
                self.tell(&asked, Told::Unreachable);
            }
            return Ok(());
        }
        match input {
            FollowerInput::Answer { call, is_ambiguous } => {
                self.on_follower_answer(index, call, is_ambiguous)
            }
            FollowerInput::GiveUp(call) => self.on_follower_answer(index, call, true),
            FollowerInput::Synced { upto } => self.on_synced(index, upto),
            FollowerInput::Flush => {
                self.start_sync(index);
                Ok(())
            }
            FollowerInput::Lease => self.publish_follower(index),
            FollowerInput::Asked(asked) => self.on_asked(index, asked),
            FollowerInput::DrainEnd => {
                self.end_follower(index);
                let delay = self.rng.within(100, 2_000);
                self.after(delay, Event::StartFollower(index));
                Ok(())
            }
        }
    }

    fn on_follower_answer(&mut self, index: usize, call: CallId, is_failed: bool) -> Result<(), Violation> {
        match self.take_reply(call, is_failed) {
            Some((Purpose::Follower(FollowerPurpose::Adoption(session, stream)), reply)) => {
                self.on_adoption_record(index, session, stream, reply)
            }
            Some((Purpose::Follower(FollowerPurpose::Forgetting(session)), reply)) => {
                self.on_forgetting_record(index, session, &reply)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn follower_process(&mut self, index: usize) -> &mut FollowerProcess {
        self.followers[index].process.as_mut().expect("a process acts")
    }

    /// Does what a session's log asks. `frames` are those of the message that it was given.
    fn run_follower_effects(
        &mut self,
        index: usize,
        session: SessionId,
        effects: Vec<FollowerEffect>,
        frames: &[std::rc::Rc<Frame>],
    ) -> Result<(), Violation> {
        for effect in effects {
            match effect {
                FollowerEffect::ReadRecord { stream } => self.read_for_adoption(index, session, stream)?,
                FollowerEffect::Persist { ticket, entry, is_awaited } => {
                    self.persist(index, (session, ticket, entry), frames, is_awaited);
                }
                FollowerEffect::DropBelow { start } => {
                    self.checkers.release.on_dropped(&mut self.checkers.facts, session, start)?;
                }
                FollowerEffect::AnswerAdopted { stream, log_epoch, next } => {
                    self.say(stream.0, Way::ToNode, Message::Adopted { log_epoch, next });
                }
                FollowerEffect::AnswerDurable { stream, offset, .. } => {
                    self.say(stream.0, Way::ToNode, Message::Durable { offset });
                }
                FollowerEffect::Refuse { stream, refusal } => {
                    self.say(stream.0, Way::ToNode, Message::Refused(refusal));
                    self.follower_process(index).streams.remove(&stream.0);
                }
                FollowerEffect::AnswerSealed { call, state } => {
                    if let Some(asked) = self.follower_process(index).seals.remove(&call) {
                        let holdings = self.holdings(index, state);
                        self.tell(&asked, Told::Sealed(holdings));
                    }
                }
                FollowerEffect::Forgotten => {
                    self.follower_process(index).logs.remove(&session);
                }
            }
        }
        Ok(())
    }

    /// The process is gone, and with it what it had not given to the system.
    pub(crate) fn end_follower(&mut self, index: usize) {
        let follower = &mut self.followers[index];
        let Some(process) = follower.process.take() else { return };
        follower.is_paused = false;
        follower.deferred.clear();
        self.trace.line(self.now, format_args!("f{index} ends"));
        self.break_connections(|connection| connection.follower == index && connection.life == process.life);
    }
}
