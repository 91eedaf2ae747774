//! The streams of a follower: what arrives is read in order, and not beyond an adoption that waits for the log record.

use std::collections::VecDeque;

use holdfast_core::follower::{FollowerEvent, FramesCheck, SessionLog, StreamId};
use holdfast_types::SessionId;

use super::{FollowerPurpose, Stream};
use crate::bucket::{Body, Key, Operation, Reply};
use crate::network::Message;
use crate::node::Purpose;
use crate::violation::Violation;
use crate::world::World;

const READ_PATIENCE_MS: u64 = 1_500;

impl World {
    pub(crate) fn on_stream_message(
        &mut self,
        index: usize,
        link: u64,
        message: Message,
    ) -> Result<(), Violation> {
        let process = self.follower_process(index);
        if let Message::Adopt { node, session, .. } = &message {
            let (node, session) = (node.clone(), *session);
            let fresh = || Stream { node, session, is_checking: false, held: VecDeque::new() };
            process.streams.entry(link).or_insert_with(fresh);
        }
        let Some(stream) = process.streams.get_mut(&link) else { return Ok(()) };
        if stream.is_checking {
            stream.held.push_back(message);
            return Ok(());
        }
        let session = stream.session;
        self.take_stream_message(index, link, session, message)
    }

    fn take_stream_message(
        &mut self,
        index: usize,
        link: u64,
        session: SessionId,
        message: Message,
    ) -> Result<(), Violation> {
        let stream = StreamId(link);
        let has_room = self.now >= self.followers[index].full_until_ms;
        let is_draining = self.follower_process(index).is_draining;
        let mut carried = Vec::new();
        let event = match message {
            Message::Adopt { log_epoch, start, .. } => {
                FollowerEvent::AdoptAsked { stream, log_epoch, start, is_draining }
            }
            Message::Frames { log_epoch, frames } => {
                let first = frames.first().expect("a message has frames").offset;
                let last = frames.last().expect("a message has frames").offset;
                carried = frames;
                let check = FramesCheck::Sound;
                FollowerEvent::FramesArrived { stream, log_epoch, first, last, check, has_room }
            }
            Message::Release { start } => FollowerEvent::ReleaseAsked { stream, start },
            Message::Broken => {
                self.follower_process(index).streams.remove(&link);
                FollowerEvent::StreamEnded { stream }
            }
            other => unreachable!("{other:?} goes to a node"),
        };
        let effects = self.session_log(index, session).on(event);
        self.run_follower_effects(index, session, effects, &carried)
    }

    pub(super) fn session_log(&mut self, index: usize, session: SessionId) -> &mut SessionLog {
        let member = self.followers[index].member();
        self.follower_process(index).logs.entry(session).or_insert_with(|| SessionLog::new(member))
    }

    pub(super) fn read_for_adoption(
        &mut self,
        index: usize,
        session: SessionId,
        stream: StreamId,
    ) -> Result<(), Violation> {
        let Some(reader) = self.follower_process(index).streams.get_mut(&stream.0) else { return Ok(()) };
        reader.is_checking = true;
        let read = Operation::Get(Key::Log(reader.node.clone(), session));
        let purpose = Purpose::Follower(FollowerPurpose::Adoption(session, stream));
        self.follower_call(index, purpose, read, (0, READ_PATIENCE_MS));
        Ok(())
    }

    pub(super) fn on_adoption_record(
        &mut self,
        index: usize,
        session: SessionId,
        stream: StreamId,
        reply: Reply,
    ) -> Result<(), Violation> {
        let event = match reply {
            Reply::Object(Some((Body::Log(record), _))) => {
                FollowerEvent::RecordRead { stream, record: Some(record) }
            }
            Reply::Object(_) => FollowerEvent::RecordRead { stream, record: None },
            _ => FollowerEvent::RecordUnreadable { stream },
        };
        if let Some(reader) = self.follower_process(index).streams.get_mut(&stream.0) {
            reader.is_checking = false;
        }
        let effects = self.session_log(index, session).on(event);
        self.run_follower_effects(index, session, effects, &[])?;
        while let Some(reader) = self.follower_process(index).streams.get_mut(&stream.0)
            && !reader.is_checking
            && let Some(message) = reader.held.pop_front()
        {
            self.take_stream_message(index, stream.0, session, message)?;
        }
        Ok(())
    }
}
