//! The session that writes the log: the real machine, and a shell that does what it asks.

use std::collections::BTreeSet;

use holdfast_core::ensemble::{MemberFailure, NodeLog, NodeLogConfig, NodeLogEffect, NodeLogEvent};
use holdfast_core::follower::{Refusal, StreamId};
use holdfast_core::log_record::LogRecord;
use holdfast_types::{HostId, LogEpoch, LogOffset, NodeName, SessionId, WriteId, Zone};

use super::bounds::{At, Bounds, member, place, time, view};
use super::bundle::{Bundle, Bundling};
use super::follower::{Follower, Message, Reply, bit};
use crate::part::Part;
use crate::register::{Read, Version, Write};

/// The session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub(super) log: NodeLog<Version>,
    pub(super) write: Option<Write<LogRecord>>,
    pub(super) read: Option<Read<LogRecord>>,
    /// The link to each follower.
    pub(super) links: Vec<Option<Link>>,
    /// Of the next link.
    next_stream: u64,
    /// Of the next write of the record.
    next_write: u128,
    /// Views of the followers that it has seen.
    pub(super) views: u8,
    /// Frames that it brought into their cells' prefixes, a bit each.
    pub(super) uploaded: u32,
    /// Rounds that have begun.
    pub(super) rounds: usize,
    /// The bundle on its way into the bucket.
    pub(super) bundling: Option<Bundling>,
    /// Bundles to be deleted, by their first frame.
    pub(super) deleting: BTreeSet<LogOffset>,
    bundle_frames: usize,
    pub(super) is_closing: bool,
    /// Its log ended in order.
    pub(super) is_closed: bool,
    /// Every frame below was proved.
    pub(super) proved_below: LogOffset,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The disk that was linked.
    disk: u8,
    stream: StreamId,
    /// The epoch that frames are sent under.
    streaming: Option<LogEpoch>,
}

pub(super) fn node() -> NodeName {
    NodeName::parse("n").expect("a valid name")
}

pub(super) const SESSION: SessionId = SessionId::from_bits(1);

impl Owner {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let log = NodeLog::new(NodeLogConfig {
            node: node(),
            session: SESSION,
            host: HostId::parse("here").expect("a valid name"),
            zone: Zone::parse("z").expect("a valid name"),
            own_host_allowed: false,
            clock_skew_max_ms: 0,
        });
        Self {
            log,
            write: None,
            read: None,
            links: vec![None; usize::from(bounds.followers)],
            next_stream: 1,
            next_write: 1,
            views: 0,
            uploaded: 0,
            rounds: 0,
            bundling: None,
            deleting: BTreeSet::new(),
            bundle_frames: bounds.bundle_frames,
            is_closing: false,
            is_closed: false,
            proved_below: LogOffset::new(1),
        }
    }

    pub(super) fn appended(&self) -> u8 {
        u8::try_from(self.log.next().get() - 1).expect("few frames")
    }

    /// The first frame that it has not brought into its cell's prefix.
    pub(super) fn covered_below(&self) -> LogOffset {
        let next = self.log.next();
        let mut offsets = (1..next.get()).map(LogOffset::new);
        offsets.find(|offset| self.uploaded & bit(*offset) == 0).unwrap_or(next)
    }

    /// Frames that it may bring into the bucket now. Those of one cell go in their order.
    pub(super) fn uploadable(&self, bounds: &Bounds) -> Vec<LogOffset> {
        let offsets = (1..self.log.next().get()).map(LogOffset::new);
        let left = offsets.filter(|offset| self.uploaded & bit(*offset) == 0);
        left.take(if bounds.rounds.is_empty() { 1 } else { usize::MAX }).collect()
    }

    /// The session sees the followers with the disks that they have now.
    pub(super) fn look(&mut self, bounds: &Bounds, followers: &mut [Part<Follower>], leaps: u8) {
        let seen = bounds.views[usize::from(self.views).min(bounds.views.len() - 1)];
        self.views = self.views.saturating_add(1).min(bounds.views.len().try_into().expect("few views"));
        let views = seen.there.iter().map(|at| {
            let disk = followers[usize::from(*at)].disk;
            view(member(*at, disk), seen.draining.contains(at))
        });
        let event = NodeLogEvent::FollowersRead { followers: views.collect(), wall_now: time(leaps) };
        self.on(event, followers, leaps);
    }

    pub(super) fn append(&mut self, followers: &mut [Part<Follower>], leaps: u8) {
        let Some(offset) = self.log.append(time(leaps)) else { return };
        for (at, link) in self.links.iter().enumerate() {
            if let Some(Link { stream, streaming: Some(log_epoch), .. }) = *link {
                followers[at].send(stream, Message::Frames { log_epoch, first: offset, last: offset });
            }
        }
    }

    /// A round of uploads begins.
    pub(super) fn round(&mut self, bounds: &Bounds, followers: &mut [Part<Follower>], leaps: u8) {
        let cells = bounds.rounds[self.rounds];
        self.rounds += 1;
        self.on(NodeLogEvent::Round { cells }, followers, leaps);
    }

    /// The session knows that its bundle is there.
    pub(super) fn stored_bundle(&mut self, followers: &mut [Part<Follower>], leaps: u8) {
        let Bundle { below, .. } = self.bundling.take().expect("a bundle is on its way").bundle;
        self.on(NodeLogEvent::Bundled { below }, followers, leaps);
    }

    /// The session ends in order.
    pub(super) fn close(&mut self, followers: &mut [Part<Follower>], leaps: u8) {
        self.is_closing = true;
        self.on(NodeLogEvent::Closing, followers, leaps);
    }

    /// The next reply of a follower arrives.
    pub(super) fn receive(&mut self, at: usize, followers: &mut [Part<Follower>], leaps: u8) {
        let (stream, reply) = followers[at].replies.pop_front().expect("a reply is on its way");
        let Some(link) = self.links[at].filter(|link| link.stream == stream) else { return };
        let member = member(u8::try_from(at).expect("few followers"), link.disk);
        let event = match reply {
            Reply::Adopted(log_epoch, next) => NodeLogEvent::Adopted { member, log_epoch, next },
            Reply::Durable(offset) => NodeLogEvent::Durable { member, offset },
            Reply::Refused(refusal) => NodeLogEvent::MemberFailed { member, failure: failure(refusal) },
            Reply::Broken => NodeLogEvent::MemberFailed { member, failure: MemberFailure::Unreachable },
        };
        self.on(event, followers, leaps);
    }

    /// The session gives a link up.
    pub(super) fn give_up(&mut self, at: At, followers: &mut [Part<Follower>], leaps: u8) {
        let link = self.links[usize::from(at)].expect("a link is there");
        let (member, failure) = (member(at, link.disk), MemberFailure::Unreachable);
        self.on(NodeLogEvent::MemberFailed { member, failure }, followers, leaps);
    }

    pub(super) fn on(&mut self, event: NodeLogEvent<Version>, followers: &mut [Part<Follower>], leaps: u8) {
        let effects = self.log.on(event, time(leaps), WriteId::from_bits(self.next_write));
        let mut behind = Vec::new();
        let mut has_nothing_to_bundle = false;
        for effect in effects {
            match effect {
                NodeLogEffect::WriteRecord { record, guard, attempt: _ } => {
                    assert!(self.write.is_none() && self.read.is_none(), "one thing at a time");
                    self.next_write += 1;
                    self.write = Some(Write::Sent(record, guard));
                }
                NodeLogEffect::ReadRecord { attempt: _ } => self.read = Some(Read::Asked),
                NodeLogEffect::Adopt { member, log_epoch, start } => {
                    let (at, disk) = place(&member);
                    let stream = self.link(at, disk, &mut followers[usize::from(at)]);
                    followers[usize::from(at)].send(stream, Message::Adopt { log_epoch, start });
                }
                NodeLogEffect::Stream { member, log_epoch, from } => {
                    let at = usize::from(place(&member).0);
                    let link = self.links[at].as_mut().expect("the member is linked");
                    link.streaming = Some(log_epoch);
                    let stream = link.stream;
                    if from < self.log.start() {
                        behind.push(member);
                    } else if let Some(last) = self.log.next().previous().filter(|last| *last >= from) {
                        followers[at].send(stream, Message::Frames { log_epoch, first: from, last });
                    }
                }
                NodeLogEffect::Close { member } => self.links[usize::from(place(&member).0)] = None,
                NodeLogEffect::Release { start } => {
                    for (at, link) in self.links.iter().enumerate() {
                        if let Some(Link { stream, streaming: Some(_), .. }) = *link {
                            followers[at].send(stream, Message::Release(start));
                        }
                    }
                }
                NodeLogEffect::Proved(proof) => self.proved_below = self.proved_below.max(proof.below()),
                NodeLogEffect::Bundle { first, below } => {
                    assert!(self.bundling.is_none(), "one bundle at a time");
                    self.bundling = self.bundle(first, below);
                    has_nothing_to_bundle = self.bundling.is_none();
                }
                NodeLogEffect::DeleteBundles { firsts } => self.deleting.extend(firsts),
                NodeLogEffect::Closed => self.is_closed = true,
                NodeLogEffect::ReadFollowers
                | NodeLogEffect::Durability { .. }
                | NodeLogEffect::Active { .. }
                | NodeLogEffect::Evicted { .. }
                | NodeLogEffect::Rounds { .. }
                | NodeLogEffect::Fence => {}
            }
        }
        for member in behind {
            self.on(NodeLogEvent::MemberFellBehind { member }, followers, leaps);
        }
        if has_nothing_to_bundle {
            self.on(NodeLogEvent::NothingToBundle, followers, leaps);
        }
    }

    /// What a bundle of these frames is made of: those that are retained and not covered, as many as one holds.
    fn bundle(&self, first: LogOffset, below: LogOffset) -> Option<Bundling> {
        let retained = (first.max(self.log.start()).get()..below.get()).map(LogOffset::new);
        let lacking: Vec<LogOffset> = retained.filter(|offset| self.uploaded & bit(*offset) == 0).collect();
        let below = lacking.get(self.bundle_frames).copied().unwrap_or(below);
        let frames = lacking.into_iter().filter(|offset| *offset < below).fold(0, |bits, at| bits | bit(at));
        (frames != 0).then_some(Bundling { first, bundle: Bundle { below, frames }, is_stored: false })
    }

    fn link(&mut self, at: At, disk: u8, follower: &mut Follower) -> StreamId {
        let link = &mut self.links[usize::from(at)];
        if let Some(link) = link.as_mut().filter(|link| link.disk == disk) {
            link.streaming = None;
            return link.stream;
        }
        let stream = StreamId(self.next_stream);
        self.next_stream += 1;
        follower.connect(stream);
        *link = Some(Link { disk, stream, streaming: None });
        stream
    }
}

/// As the link's shell tells the machine of a refusal.
const fn failure(refusal: Refusal) -> MemberFailure {
    match refusal {
        Refusal::Sealed => MemberFailure::Sealed,
        Refusal::Damaged => MemberFailure::Damaged,
        Refusal::StaleEpoch { found } => MemberFailure::StaleEpoch { found },
        Refusal::Full => MemberFailure::Full,
        Refusal::Draining => MemberFailure::Draining,
        Refusal::NotAMember | Refusal::RecordUnreadable | Refusal::Gap | Refusal::Corrupt => {
            MemberFailure::Refused
        }
    }
}
