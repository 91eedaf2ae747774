//! The restore that an object wished for, before its next session: no event begins, the state is read from the bucket, and
//! takes the place of the present one as one transaction, with which the wish ends. So it is carried out once, whatever fails
//! on the way: who opens the cell next finds the wish, or the restore. A state that will not be had ends the wish, and the
//! object goes on as it is.

use std::sync::Arc;

use holdfast_core::gate::GateEvent;
use holdfast_sql::RestoreWish;
use holdfast_types::Txid;
use tempfile::TempPath;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::worker::Job;
use super::Actor;
use crate::past::fetch_wished;

/// A restore under way.
#[derive(Debug)]
pub(super) struct Restoring {
    wish: RestoreWish,
    /// Where the database stands.
    before: Txid,
    /// Ends the read when the cell leaves.
    _stop: DropGuard,
}

impl Actor {
    /// Whether a restore comes before anything else that happens to the object.
    pub(super) fn must_restore_first(&self) -> bool {
        self.restoring.is_some() || self.may_have_wish()
    }

    /// Whether there may be a wish between two sessions. Costs next to nothing.
    fn may_have_wish(&self) -> bool {
        !self.runtime.has_session() && self.engine.borrow().may_have_restore_wish()
    }

    /// Begins with the restore that the object wished for, if its session is over and it did.
    pub(in super::super) fn look_for_wish(&mut self) {
        while self.restoring.is_none()
            && self.may_have_wish()
            && self.leaving.takes_events()
            && self.may_turn()
        {
            let wished = self.engine.borrow_mut().restore_wished();
            match wished {
                Ok(Some(wish)) => self.begin_restore(wish),
                // One that was rolled back, or none ever: what was held goes on.
                Ok(None) => self.run_blocked(),
                Err(failure) => {
                    tracing::error!(cell = %self.resident.cell, %failure, "whether the object wished for a restore cannot be read");
                    self.resident.on(GateEvent::DatabaseFailed);
                }
            }
        }
    }

    fn begin_restore(&mut self, wish: RestoreWish) {
        let before = self.cut();
        let stop = CancellationToken::new();
        let (node, resident, stopped) = (Arc::clone(&self.node), Arc::clone(&self.resident), stop.clone());
        self.restoring = Some(Restoring { wish, before, _stop: stop.drop_guard() });
        self.resident.note_restoring(true);
        drop(self.node.runtime.spawn(async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                fetched = fetch_wished(&node, &resident, (before, wish.target)) => {
                    resident.send(Job::Wished(Arc::clone(&resident), fetched));
                }
            }
        }));
    }

    /// The state was read, or will not be had.
    pub(in super::super) fn restore(&mut self, fetched: Result<TempPath, String>) {
        let Some(Restoring { wish, before, _stop }) = self.restoring.take() else { return };
        self.resident.note_restoring(false);
        // Nothing is committed after the last ticket: whoever opens the cell next begins anew.
        if !self.may_turn() || !self.leaving.takes_events() {
            return;
        }
        if self.engine.borrow().ticket() != before {
            // What became of an alarm's run was committed meanwhile: that is the state before now.
            return self.begin_restore(wish);
        }
        let cell = self.resident.cell.clone();
        let at = self.resident.end_at(before).expect("a database with a wish has a position");
        let replaced = fetched.and_then(|file| {
            let mut engine = self.engine.borrow_mut();
            engine.replace(&file, Some((wish.number, at))).map_err(|error| error.to_string())
        });
        match replaced {
            Ok(()) => {
                tracing::info!(%cell, target = %wish.target, before = %at, "a state of the past takes the place of the present one, as the object wished");
            }
            Err(reason) => {
                tracing::error!(%cell, target = %wish.target, %reason, "the state of the past that the object wished for is not to be had; it goes on as it is");
                let given_up = self.engine.borrow_mut().restore_give_up();
                if let Err(failure) = given_up {
                    tracing::error!(%cell, %failure, "the wish cannot be given up");
                }
            }
        }
        let ticket = self.after_turn();
        self.prove(ticket);
        self.settle_runs();
        self.run_blocked();
        self.look_for_wish();
    }
}
