//! Bundles of a process's node log: made as the core's machine asks, put until they are stored.

use std::collections::BTreeSet;
use std::rc::Rc;

use holdfast_core::ensemble::NodeLogEvent;
use holdfast_types::LogOffset;

use super::Purpose;
use crate::bucket::{Body, Cell, Key, Operation, Reply};
use crate::event::Timer;
use crate::frame::Frame;
use crate::violation::Violation;
use crate::world::World;

const PUT_PATIENCE_MS: u64 = 2_500;
const RETRY_PAUSE_MS: u64 = 150;
/// Most frames of one bundle, as bytes bound it in the product.
const ROWS_MAX: u64 = 8;

impl World {
    pub(super) fn on_log_round(&mut self, index: usize) -> Result<(), Violation> {
        self.start_timer(index, self.plan.pace_ms, Timer::LogRound);
        let weight = self.plan.cell_weight;
        let Some(log) = self.log_of(index) else { return Ok(()) };
        let dirty = log.frames.iter().filter(|(offset, _)| log.uncovered.contains_key(offset));
        let dirty: BTreeSet<Cell> = dirty.map(|(_, retained)| retained.frame.id.0).collect();
        let cells = u64::try_from(dirty.len()).expect("few cells") * weight;
        self.log_event(index, NodeLogEvent::Round { cells })
    }

    pub(super) fn start_bundle(
        &mut self,
        index: usize,
        first: LogOffset,
        below: LogOffset,
    ) -> Result<(), Violation> {
        let rows_max = usize::try_from(self.rng.within(1, ROWS_MAX)).expect("few");
        let log = self.log_of(index).expect("a log acts");
        // What is not retained any more is covered or in an earlier bundle.
        let lacking = log.frames.range(first..below).filter(|(offset, _)| log.uncovered.contains_key(offset));
        let mut frames: Vec<Rc<Frame>> = lacking.map(|(_, retained)| Rc::clone(&retained.frame)).collect();
        if frames.is_empty() {
            return self.log_event(index, NodeLogEvent::NothingToBundle);
        }
        let below = frames.get(rows_max).map_or(below, |frame| frame.offset);
        frames.truncate(rows_max);
        log.bundle = Some((first, Body::Bundle(frames.into(), below)));
        self.put_bundle(index, 0)
    }

    fn put_bundle(&mut self, index: usize, pause: u64) -> Result<(), Violation> {
        let session = self.nodes[index].session().expect("checked");
        let log = self.log_of(index).expect("checked");
        let (first, body) = log.bundle.clone().expect("a bundle is on its way");
        let put = Operation::Put(Key::Bundle(session, first), body);
        self.call(index, Purpose::Bundle, put, (pause, PUT_PATIENCE_MS))
    }

    pub(super) fn on_bundle_reply(&mut self, index: usize, reply: &Reply) -> Result<(), Violation> {
        let Some(log) = self.log_of(index) else { return Ok(()) };
        if !matches!(reply, Reply::Done) {
            return self.put_bundle(index, RETRY_PAUSE_MS);
        }
        let Some((_, Body::Bundle(_, below))) = log.bundle.take() else { unreachable!("it was put") };
        self.log_event(index, NodeLogEvent::Bundled { below })?;
        self.drop_stored(index);
        Ok(())
    }
}
