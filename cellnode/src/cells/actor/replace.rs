//! A state of the past in the place of the present one: the first thing that happens to a cell that was opened for it.

use holdfast_rpc::CallError;
use holdfast_types::Position;

use super::Actor;
use crate::past::Replacement;

impl Actor {
    /// Puts another database in the place of this one, and tells when that is in the bucket.
    pub(in super::super) fn replace(&mut self, Replacement { file, done, .. }: Replacement) {
        let cell = self.resident.cell.clone();
        let before = self.resident.end_at(self.restored);
        let replaced = self.engine.borrow_mut().replace(&file, None);
        if let Err(error) = replaced {
            tracing::warn!(%cell, %error, "a state of the past could not take the place of the present one");
            let reason =
                format!("the past of cell `{cell}` could not take its place: {error}; it is as it was");
            // Whoever asked may have gone.
            let _ = done.send(Err(CallError::Unavailable { reason }));
            return;
        }
        let ticket = self.after_turn();
        let now = Position { epoch: self.resident.epoch, txid: ticket };
        let before = before.unwrap_or(now);
        tracing::info!(%cell, %before, %now, "a state of the past takes the place of the present one");
        self.resident.cover(ticket, self.node.proof_deadline(), move |outcome| {
            let unknown = |cause: holdfast_core::gate::FailCause| CallError::OutcomeUnknown {
                reason: format!("{cause}; before, it was at {before}"),
            };
            let _ = done.send(outcome.map(|()| (before, now)).map_err(unknown));
        });
    }
}
