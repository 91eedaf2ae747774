//! The node log of a process: what the core's machine asks is done, what it proves is told to the gates.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdfast_core::ensemble::{
    EnsembleProof, MemberFailure, NodeLog, NodeLogConfig, NodeLogEffect, NodeLogEvent, Pressure,
    RetentionLimits,
};
use holdfast_core::gate::GateEvent;
use holdfast_core::lease::FenceCause;
use holdfast_core::log_record::MemberId;
use holdfast_types::{Epoch, HostId, LogOffset, Txid, WriteId, Zone};

use super::links::Link;
use super::{Phase, Purpose, Settle};
use crate::bucket::{Body, Cell, Key, OpId, Operation, Reply};
use crate::event::{Event, NodeEvent, Stay, Timer};
use crate::frame::Frame;
use crate::network::{Message, Way};
use crate::scenario::CLOCK_SKEW_MAX_MS;
use crate::violation::Violation;
use crate::world::World;

const READ_PATIENCE_MS: u64 = 1_500;
const WRITE_PATIENCE_MS: u64 = 4_000;
const TICK_MS: u64 = 60;
const RETRY_PAUSE_MS: u64 = 100;
const RETRY_PAUSE_MS_MAX: u64 = 1_000;
/// What a frame counts, in bytes.
const FRAME_BYTES: u64 = 100;
/// So little that every busy run feels the pressure.
const RETENTION: RetentionLimits = RetentionLimits { upload_bytes: 1_500, hold_bytes: 5_000 };

/// The node log of a process.
#[derive(Debug)]
pub(crate) struct LogShell {
    pub(crate) machine: NodeLog<u64>,
    /// From the first retained one on.
    pub(crate) frames: BTreeMap<LogOffset, Retained>,
    /// What is not in its cell's prefix, retained or in a bundle.
    pub(super) uncovered: BTreeMap<LogOffset, (Stay, Txid)>,
    /// The bundle that is on its way: what it begins with, and its body.
    pub(super) bundle: Option<(LogOffset, Body)>,
    /// Frames below were told to their gates.
    told_below: LogOffset,
    pub(crate) links: BTreeMap<MemberId, Link>,
    settle: Option<Settle>,
    rounds: u32,
    pub(crate) is_closing: bool,
    pub(crate) is_closed: bool,
}

/// A frame that the bucket may lack.
#[derive(Debug)]
pub(crate) struct Retained {
    pub(crate) frame: Rc<Frame>,
    stay: Stay,
}

impl LogShell {
    fn pressure(&self) -> Pressure {
        RETENTION.pressure(self.frames.len() as u64 * FRAME_BYTES)
    }

    pub(crate) fn holds_writes(&self) -> bool {
        self.pressure() == Pressure::Hold
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    fn rounds_wanted(&self) -> u32 {
        let may_wait = self.machine.is_by_ensemble() && self.pressure() == Pressure::None;
        if may_wait { self.machine.rounds() } else { 0 }
    }
}

fn pause(attempt: u32) -> u64 {
    attempt.checked_sub(1).map_or(0, |failures| (RETRY_PAUSE_MS << failures.min(8)).min(RETRY_PAUSE_MS_MAX))
}

impl World {
    /// Begins the log of a process that has just got its lease.
    pub(crate) fn start_log(&mut self, index: usize) {
        let node = &self.nodes[index];
        let session = node.session().expect("a process begins a log");
        let config = NodeLogConfig {
            node: node.name.clone(),
            session,
            host: HostId::parse(&format!("h{index}")).expect("a valid name"),
            zone: Zone::parse(&format!("z{}", index % 3)).expect("a valid name"),
            own_host_allowed: self.plan.own_host_allowed,
            clock_skew_max_ms: CLOCK_SKEW_MAX_MS,
        };
        let shell = LogShell {
            machine: NodeLog::new(config),
            frames: BTreeMap::new(),
            uncovered: BTreeMap::new(),
            bundle: None,
            told_below: LogOffset::ZERO,
            links: BTreeMap::new(),
            settle: None,
            rounds: 0,
            is_closing: false,
            is_closed: false,
        };
        self.nodes[index].process.as_mut().expect("checked").log = Some(shell);
        self.start_timer(index, 1, Timer::LogTick);
        self.start_timer(index, self.plan.pace_ms, Timer::LogRound);
        let first = self.rng.within(500, self.plan.sweep_every_ms);
        self.start_timer(index, first, Timer::Sweep);
    }

    pub(crate) fn log_of(&mut self, index: usize) -> Option<&mut LogShell> {
        self.nodes[index].process.as_mut()?.log.as_mut()
    }

    pub(crate) fn on_log_tick(&mut self, index: usize) -> Result<(), Violation> {
        self.start_timer(index, TICK_MS, Timer::LogTick);
        self.log_event(index, NodeLogEvent::Tick)
    }

    /// Gives the machine an event. The process may be gone afterwards.
    pub(crate) fn log_event(&mut self, index: usize, event: NodeLogEvent<u64>) -> Result<(), Violation> {
        let now = self.nodes[index].clock.read(self.now).monotonic;
        let write_id = WriteId::from_bits(self.rng.wide_bits());
        let Some(log) = self.log_of(index) else { return Ok(()) };
        let effects = log.machine.on(event, now, write_id);
        for effect in effects {
            self.run_log_effect(index, effect)?;
        }
        Ok(())
    }

    fn run_log_effect(&mut self, index: usize, effect: NodeLogEffect<u64>) -> Result<(), Violation> {
        let Some(session) = self.nodes[index].session() else { return Ok(()) };
        let key = Key::Log(self.nodes[index].name.clone(), session);
        match effect {
            NodeLogEffect::WriteRecord { record, guard, attempt } => {
                self.provoke(index);
                let write = (key, Body::Log(record), guard);
                let patience = (pause(attempt), WRITE_PATIENCE_MS);
                let settle = self.start_settle(index, Purpose::LogSettle, write, patience)?;
                self.log_of(index).expect("a log acts").settle = Some(settle);
                if self.nodes[index].is_pause_armed {
                    self.pause_now(index);
                }
                Ok(())
            }
            NodeLogEffect::ReadRecord { attempt } => {
                let read = Operation::Get(key);
                self.call(index, Purpose::LogRead, read, (pause(attempt), READ_PATIENCE_MS))
            }
            NodeLogEffect::ReadFollowers => {
                let read = Operation::ReadFollowers;
                self.call(index, Purpose::FollowersRead, read, (0, READ_PATIENCE_MS))
            }
            NodeLogEffect::Adopt { member, log_epoch, start } => {
                self.adopt_on_link(index, member, log_epoch, start);
                Ok(())
            }
            NodeLogEffect::Stream { member, log_epoch, from } => {
                self.stream_on_link(index, &member, log_epoch, from)
            }
            NodeLogEffect::Close { member } => {
                if let Some(link) = self.log_of(index).expect("a log acts").links.remove(&member) {
                    self.break_connection(link.connection);
                }
                Ok(())
            }
            NodeLogEffect::Release { start } => {
                self.checkers.release.on_released(&mut self.checkers.facts, session, start)?;
                let links = self.log_of(index).expect("a log acts").links.values();
                let streaming: Vec<u64> =
                    links.filter(|link| link.is_streaming()).map(|l| l.connection).collect();
                for connection in streaming {
                    self.say(connection, Way::ToFollower, Message::Release { start });
                }
                Ok(())
            }
            NodeLogEffect::Proved(proof) => self.on_log_proved(index, proof),
            NodeLogEffect::Bundle { first, below } => self.start_bundle(index, first, below),
            NodeLogEffect::DeleteBundles { firsts } => {
                let keys = firsts.into_iter().map(|first| Key::Bundle(session, first)).collect();
                self.call(index, Purpose::Nobody, Operation::Delete(keys), (0, WRITE_PATIENCE_MS))
            }
            NodeLogEffect::Durability { .. } | NodeLogEffect::Rounds { .. } => {
                self.check_pace(index);
                Ok(())
            }
            NodeLogEffect::Active { log_epoch, members } => {
                self.tally.ensembles += 1;
                self.trace.line(self.now, format_args!("n{index} log epoch {log_epoch}: {members:?}"));
                self.checkers.slowness.on_active(session, &members, self.now)
            }
            NodeLogEffect::Evicted { member, failure } => {
                self.trace.line(self.now, format_args!("n{index} gives up {member:?}: {}", failure.name()));
                if failure == MemberFailure::Slow { self.observe_slowness(index, &member) } else { Ok(()) }
            }
            NodeLogEffect::Fence => self.fence(index, FenceCause::LogTaken),
            NodeLogEffect::Closed => {
                self.log_of(index).expect("a log acts").is_closed = true;
                self.leave_when_drained(index)
            }
        }
    }

    fn on_log_proved(&mut self, index: usize, proof: EnsembleProof) -> Result<(), Violation> {
        let session = self.nodes[index].session().expect("checked");
        let record = self.log_record(&self.nodes[index].name.clone(), session);
        let facts = &mut self.checkers.facts;
        self.checkers.proof.on_proved(facts, session, proof.below(), record.as_ref())?;
        self.tally.proofs += 1;
        // Gates are on other threads.
        let delay = self.rng.below(3);
        self.after(delay, Event::Node(index, Some(session), NodeEvent::Proved(proof)));
        Ok(())
    }

    /// Tells each gate of the last of its frames that is proved.
    pub(crate) fn on_proved(&mut self, index: usize, proof: EnsembleProof) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        let below = proof.below();
        let mut last: BTreeMap<(Cell, u64), (LogOffset, Txid, Stay)> = BTreeMap::new();
        for (offset, retained) in log.frames.range(log.told_below..below.max(log.told_below)) {
            let (cell, _, txid) = retained.frame.id;
            last.insert((cell, retained.stay.0), (*offset, txid, retained.stay));
        }
        log.told_below = log.told_below.max(below);
        for ((cell, _), (offset, txid, stay)) in last {
            let Some(slot) = self.take_slot(index, cell, stay) else { continue };
            match slot.phase {
                Phase::Serving(_) => {
                    self.gate_event(index, cell, slot, GateEvent::EnsembleProved { proof, offset, txid })?;
                }
                _ => self.put_slot(index, cell, slot),
            }
        }
        Ok(())
    }

    /// Has the gates told when what they may wait for has changed.
    pub(crate) fn check_pace(&mut self, index: usize) {
        let Some(session) = self.nodes[index].session() else { return };
        if let Some(log) = self.log_of(index)
            && log.rounds_wanted() != log.rounds
        {
            self.after(0, Event::Node(index, Some(session), NodeEvent::Pace));
        }
    }

    pub(crate) fn on_pace(&mut self, index: usize) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        let rounds = log.rounds_wanted();
        if rounds == log.rounds {
            return Ok(());
        }
        log.rounds = rounds;
        let process = self.nodes[index].process.as_ref().expect("checked");
        let stays: Vec<(Cell, Stay)> = process.cells.iter().map(|(cell, slot)| (*cell, slot.stay)).collect();
        for (cell, stay) in stays {
            let Some(slot) = self.take_slot(index, cell, stay) else { continue };
            match slot.phase {
                Phase::Serving(_) => {
                    self.gate_event(index, cell, slot, GateEvent::PaceChanged { rounds })?;
                }
                _ => self.put_slot(index, cell, slot),
            }
        }
        Ok(())
    }

    /// Gives a captured transaction its place in the log, if the log takes it.
    pub(crate) fn append(
        &mut self,
        index: usize,
        (cell, stay): (Cell, Stay),
        (epoch, txid): (Epoch, Txid),
        ops: Vec<OpId>,
    ) -> Result<Option<LogOffset>, Violation> {
        let now = self.nodes[index].clock.read(self.now).monotonic;
        let session = self.nodes[index].session().expect("checked");
        let Some(log) = self.log_of(index) else { return Ok(None) };
        let Some(offset) = log.machine.append(now) else { return Ok(None) };
        let frame = Rc::new(Frame { offset, id: (cell, epoch, txid), ops });
        log.frames.insert(offset, Retained { frame, stay });
        log.uncovered.insert(offset, (stay, txid));
        self.checkers.facts.on_appended(session, offset, (cell, epoch, txid));
        self.check_pace(index);
        self.pump_links(index)?;
        Ok(Some(offset))
    }

    /// A cell's prefix has a stay's transactions up to this one: what is covered without a gap is given up.
    pub(crate) fn note_covered(&mut self, index: usize, stay: Stay, uploaded: Txid) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        log.uncovered.retain(|_, (of, txid)| *of != stay || *txid > uploaded);
        let below = log.uncovered.first_key_value().map_or(log.machine.next(), |(offset, _)| *offset);
        if below <= log.machine.covered_below() {
            return Ok(());
        }
        self.log_event(index, NodeLogEvent::Covered { below })?;
        self.drop_stored(index);
        Ok(())
    }

    /// Gives up what need not be retained any more.
    pub(super) fn drop_stored(&mut self, index: usize) {
        if let Some(log) = self.log_of(index) {
            log.frames = log.frames.split_off(&log.machine.start());
            self.check_pace(index);
        }
    }

    pub(crate) fn on_log_settle(&mut self, index: usize, reply: Reply) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        let mut settle = log.settle.take().expect("a write of the log record is under way");
        match self.go_on_settling(index, &mut settle, Purpose::LogSettle, reply)? {
            Some(answer) => self.log_event(index, NodeLogEvent::RecordAnswered { answer }),
            None => {
                self.log_of(index).expect("checked").settle = Some(settle);
                Ok(())
            }
        }
    }

    pub(crate) fn on_log_read(&mut self, index: usize, reply: Reply) -> Result<(), Violation> {
        let event = match reply {
            Reply::Object(Some((Body::Log(record), version))) => {
                NodeLogEvent::RecordRead { record: Some((record, version)) }
            }
            Reply::Object(_) => NodeLogEvent::RecordRead { record: None },
            _ => NodeLogEvent::RecordUnreadable,
        };
        self.log_event(index, event)
    }

    pub(crate) fn on_followers_read(&mut self, index: usize, reply: Reply) -> Result<(), Violation> {
        let Reply::Objects(leases) = reply else { return Ok(()) };
        let views = leases.into_iter().filter_map(|body| match body {
            Some(Body::FollowerLease(view)) => Some(view),
            _ => None,
        });
        let wall_now = self.nodes[index].clock.read(self.now).wall;
        self.log_event(index, NodeLogEvent::FollowersRead { followers: views.collect(), wall_now })
    }

    /// Ends the log of a drained process in order.
    pub(crate) fn close_log(&mut self, index: usize) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        if log.is_closing {
            return Ok(());
        }
        log.is_closing = true;
        self.log_event(index, NodeLogEvent::Closing)
    }
}
