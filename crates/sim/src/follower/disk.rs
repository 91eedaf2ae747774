//! The group commit: entries gather while an fsync is under way, and share the next one.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdfast_core::follower::{FollowerEvent, LogEntry, Ticket};
use holdfast_types::SessionId;

use super::FollowerInput;
use crate::event::Event;
use crate::frame::Frame;
use crate::journal::JournalEntry;
use crate::violation::Violation;
use crate::world::World;

/// How long an entry may wait that nobody waits for.
const FLUSH_MS: u64 = 60;

impl World {
    pub(super) fn persist(
        &mut self,
        index: usize,
        (session, ticket, entry): (SessionId, Ticket, LogEntry),
        frames: &[Rc<Frame>],
        is_awaited: bool,
    ) {
        let frames = match entry {
            LogEntry::Frames { first, last } => {
                let new = frames.iter().filter(|frame| frame.offset >= first && frame.offset <= last);
                new.cloned().collect()
            }
            _ => Vec::new(),
        };
        let process = self.follower_process(index);
        process.queue.push(JournalEntry { session, ticket, entry, frames });
        process.is_awaited |= is_awaited;
        let life = process.life;
        if is_awaited {
            self.start_sync(index);
        } else {
            self.after(FLUSH_MS, Event::Follower(index, Some(life), FollowerInput::Flush));
        }
    }

    pub(super) fn start_sync(&mut self, index: usize) {
        let process = self.follower_process(index);
        if process.is_syncing || process.queue.is_empty() {
            return;
        }
        process.is_syncing = true;
        process.is_awaited = false;
        let life = process.life;
        let batch = std::mem::take(&mut process.queue);
        let upto = self.followers[index].disk.write(batch);
        let (low, high) = if self.now < self.followers[index].pace.until_ms {
            self.plan.slow_fsync_ms
        } else {
            (1, self.plan.fsync_ms_max)
        };
        let delay = self.rng.within(low, high);
        self.after(delay, Event::Follower(index, Some(life), FollowerInput::Synced { upto }));
    }

    pub(super) fn on_synced(&mut self, index: usize, upto: u64) -> Result<(), Violation> {
        let member = self.followers[index].member();
        let fresh = self.followers[index].disk.on_synced(upto);
        self.observe_fsynced(&member, &fresh)?;
        self.followers[index].disk.drop_segments();
        let process = self.follower_process(index);
        process.is_syncing = false;
        let goes_on = process.is_awaited;
        let mut persisted: BTreeMap<SessionId, Ticket> = BTreeMap::new();
        for entry in &fresh {
            persisted.insert(entry.session, entry.ticket);
        }
        for (session, upto) in persisted {
            let Some(log) = self.follower_process(index).logs.get_mut(&session) else { continue };
            let effects = log.on(FollowerEvent::Persisted { upto });
            self.run_follower_effects(index, session, effects, &[])?;
        }
        if goes_on {
            self.start_sync(index);
        }
        Ok(())
    }
}
