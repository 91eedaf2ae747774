//! The links of a node log: frames go out in order, only so many unanswered at a time; a broken link is sometimes made
//! anew without a word to the machine, and what was not answered is sent again.

use holdfast_core::ensemble::{MemberFailure, NodeLogEvent};
use holdfast_core::follower::Refusal;
use holdfast_core::log_record::MemberId;
use holdfast_types::{LogEpoch, LogOffset};

use crate::network::{Message, Way};
use crate::violation::Violation;
use crate::world::World;

/// Frames that are sent and not answered.
const UNANSWERED_LEN_MAX: u64 = 6;
/// Frames of one message.
const BATCH_LEN_MAX: usize = 3;
/// Times that a broken link is made anew in silence.
const RESUMES_MAX: u32 = 3;

/// A link to a member.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) connection: u64,
    log_epoch: LogEpoch,
    /// The next frame to send; none while nothing may be sent.
    cursor: Option<LogOffset>,
    /// Frames below were answered.
    answered_below: LogOffset,
    resumes: u32,
    is_resuming: bool,
}

impl Link {
    pub(crate) fn is_streaming(&self) -> bool {
        self.cursor.is_some()
    }
}

impl World {
    pub(crate) fn adopt_on_link(
        &mut self,
        index: usize,
        member: MemberId,
        log_epoch: LogEpoch,
        start: LogOffset,
    ) {
        let log = self.log_of(index).expect("a log acts");
        match log.links.get_mut(&member) {
            Some(link) => {
                link.log_epoch = log_epoch;
                link.cursor = None;
                link.is_resuming = false;
                let connection = link.connection;
                self.say_adopt(index, connection, log_epoch, start);
            }
            None => {
                let Some(connection) = self.connect_to(index, &member, log_epoch, start) else { return };
                let link = Link {
                    connection,
                    log_epoch,
                    cursor: None,
                    answered_below: LogOffset::ZERO,
                    resumes: 0,
                    is_resuming: false,
                };
                self.log_of(index).expect("a log acts").links.insert(member, link);
            }
        }
    }

    /// By name: whatever disk is there now, the follower has to know what it is.
    fn connect_to(
        &mut self,
        index: usize,
        member: &MemberId,
        log_epoch: LogEpoch,
        start: LogOffset,
    ) -> Option<u64> {
        let follower = self.followers.iter().position(|follower| follower.name == member.follower)?;
        let connection = self.connect(index, follower);
        self.say_adopt(index, connection, log_epoch, start);
        Some(connection)
    }

    fn say_adopt(&mut self, index: usize, connection: u64, log_epoch: LogEpoch, start: LogOffset) {
        let node = self.nodes[index].name.clone();
        let session = self.nodes[index].session().expect("checked");
        self.say(connection, Way::ToFollower, Message::Adopt { node, session, log_epoch, start });
    }

    pub(crate) fn stream_on_link(
        &mut self,
        index: usize,
        member: &MemberId,
        log_epoch: LogEpoch,
        from: LogOffset,
    ) -> Result<(), Violation> {
        if let Some(link) = self.log_of(index).and_then(|log| log.links.get_mut(member)) {
            link.log_epoch = log_epoch;
            link.cursor = Some(from);
            link.answered_below = from;
        }
        self.pump_link(index, member)
    }

    pub(crate) fn pump_links(&mut self, index: usize) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        let members: Vec<MemberId> = log.links.keys().cloned().collect();
        members.iter().try_for_each(|member| self.pump_link(index, member))
    }

    fn pump_link(&mut self, index: usize, member: &MemberId) -> Result<(), Violation> {
        loop {
            let batch = 1 + self.rng.index(BATCH_LEN_MAX);
            let Some(log) = self.log_of(index) else { return Ok(()) };
            let (start, next) = (log.machine.start(), log.machine.next());
            let Some(link) = log.links.get_mut(member) else { return Ok(()) };
            let Some(cursor) = link.cursor.filter(|cursor| *cursor < next) else { return Ok(()) };
            if cursor < start {
                link.cursor = None;
                return self.log_event(index, NodeLogEvent::MemberFellBehind { member: member.clone() });
            }
            if cursor.get().saturating_sub(link.answered_below.get()) >= UNANSWERED_LEN_MAX {
                return Ok(());
            }
            let frames = log.frames.range(cursor..).take(batch).map(|(_, retained)| retained.frame.clone());
            let frames: Vec<_> = frames.collect();
            let Some(last) = frames.last() else { return Ok(()) };
            link.cursor = Some(last.offset.next());
            let (connection, log_epoch) = (link.connection, link.log_epoch);
            self.say(connection, Way::ToFollower, Message::Frames { log_epoch, frames });
        }
    }

    pub(crate) fn on_link_message(
        &mut self,
        index: usize,
        connection: u64,
        message: Message,
    ) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        let Some((member, link)) = log.links.iter_mut().find(|(_, link)| link.connection == connection)
        else {
            return Ok(());
        };
        let member = member.clone();
        match message {
            Message::Adopted { log_epoch, next } if link.is_resuming && log_epoch == link.log_epoch => {
                // Frames that are there already are sent again with the others.
                link.is_resuming = false;
                link.cursor = Some(link.answered_below.min(next));
                self.pump_link(index, &member)
            }
            Message::Adopted { log_epoch, next } => {
                self.log_event(index, NodeLogEvent::Adopted { member, log_epoch, next })
            }
            Message::Durable { offset } => {
                link.answered_below = link.answered_below.max(offset.next());
                self.log_event(index, NodeLogEvent::Durable { member: member.clone(), offset })?;
                self.pump_link(index, &member)
            }
            Message::Refused(refusal) => {
                self.tally.asked_anew += u64::from(matches!(refusal, Refusal::StaleEpoch { .. }));
                self.fail_link(index, member, failure_of(refusal))
            }
            Message::Broken => self.on_link_broken(index, member),
            other => unreachable!("{other:?} goes to a follower"),
        }
    }

    fn on_link_broken(&mut self, index: usize, member: MemberId) -> Result<(), Violation> {
        let resumes = self.rng.chance(700);
        let log = self.log_of(index).expect("checked");
        let start = log.machine.start();
        let link = log.links.get_mut(&member).expect("just seen");
        let may_resume = (link.cursor.is_some() || link.is_resuming) && link.resumes < RESUMES_MAX;
        if !may_resume || !resumes {
            return self.fail_link(index, member, MemberFailure::Unreachable);
        }
        link.resumes += 1;
        link.cursor = None;
        link.is_resuming = true;
        let log_epoch = link.log_epoch;
        if let Some(connection) = self.connect_to(index, &member, log_epoch, start)
            && let Some(link) = self.log_of(index).and_then(|log| log.links.get_mut(&member))
        {
            link.connection = connection;
        }
        Ok(())
    }

    fn fail_link(&mut self, index: usize, member: MemberId, failure: MemberFailure) -> Result<(), Violation> {
        self.log_event(index, NodeLogEvent::MemberFailed { member, failure })
    }
}

fn failure_of(refusal: Refusal) -> MemberFailure {
    match refusal {
        Refusal::Sealed => MemberFailure::Sealed,
        Refusal::Full => MemberFailure::Full,
        Refusal::Draining => MemberFailure::Draining,
        Refusal::Damaged => MemberFailure::Damaged,
        Refusal::StaleEpoch { found } => MemberFailure::StaleEpoch { found },
        Refusal::NotAMember | Refusal::RecordUnreadable | Refusal::Gap | Refusal::Corrupt => {
            MemberFailure::Refused
        }
    }
}
