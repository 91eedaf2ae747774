//! The ways in which a cell leaves its thread: in order, or at once.

use std::rc::Rc;
use std::sync::Arc;

use holdfast_core::gate::FailCause;
use holdfast_sql::Engine;
use holdfast_telemetry::metrics;
use holdfast_types::{Epoch, Millis, Txid};
use tokio::sync::oneshot;

use super::{Actor, Input, gone};
use crate::clock;

/// Told once everything committed is covered, or cannot be.
type Quiesced = oneshot::Sender<Result<(), FailCause>>;

/// A database that was closed in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    /// Its last transaction.
    pub(crate) txid: Txid,
    /// Whether there is a file of all of it: where not, it was removed.
    pub(crate) is_whole: bool,
}

/// Whether a cell is being given up.
pub(super) enum Leaving {
    /// It is not.
    No,
    /// It takes no events; those that are open go on until this time.
    Finishing { done: Quiesced, until: Millis },
    /// There is no turn any more.
    Stopped,
}

impl Leaving {
    pub(super) fn takes_events(&self) -> bool {
        matches!(self, Self::No)
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped)
    }

    pub(super) fn until(&self) -> Option<Millis> {
        match self {
            Self::Finishing { until, .. } => Some(*until),
            Self::No | Self::Stopped => None,
        }
    }
}

impl Actor {
    pub(in super::super) fn quiesce(&mut self, done: Quiesced) {
        let patience = clock::millis(self.node.config.finish_timeout);
        self.leaving = Leaving::Finishing { done, until: clock::monotonic().plus(patience) };
        self.stop_alarm();
        self.refuse_events();
        self.leave_if_done();
    }

    pub(super) fn leave_if_late(&mut self, now: Millis) {
        if self.leaving.until().is_some_and(|until| until <= now) {
            self.stop();
        }
    }

    pub(super) fn leave_if_done(&mut self) {
        if self.leaving.until().is_some() && self.open.is_empty() {
            self.stop();
        }
    }

    /// Ends the last turn's work, and asks for everything committed to be covered.
    fn stop(&mut self) {
        let Leaving::Finishing { done, .. } = std::mem::replace(&mut self.leaving, Leaving::Stopped) else {
            return;
        };
        self.runtime.stop();
        self.operations.cancel_all();
        self.open.fail_all("the cell moved to another node before the request ended");
        // What became of a run is committed before the last ticket is taken, and nothing after it.
        self.settle_runs();
        self.is_settled = true;
        let ticket = self.engine.borrow().ticket();
        self.resident.cover(ticket, self.node.proof_deadline(), move |outcome| {
            let _ = done.send(outcome);
        });
    }

    pub(in super::super) fn close(self) -> Result<Closed, String> {
        assert!(
            !self.engine.borrow().is_dirty(),
            "a cell is closed only when everything committed is covered"
        );
        let resident = Arc::clone(&self.resident);
        let engine = self.end("the cell was closed").ok_or("the cell's handler still holds its database")?;
        let txid = engine.close().map_err(|error| error.to_string())?.txid;
        let Some(paged) = &resident.paged else { return Ok(Closed { txid, is_whole: true }) };
        let (files, epoch) = (&resident.files, resident.epoch);
        let is_whole = paged.is_whole();
        if is_whole {
            std::fs::rename(files.paged_database(epoch), files.database(epoch))
                .map_err(|error| format!("a database that is whole could not get its name: {error}"))?;
        } else {
            files.remove_database(epoch);
        }
        Ok(Closed { txid, is_whole })
    }

    pub(in super::super) fn discard(self) {
        let (cell, files) = (self.resident.cell.clone(), self.resident.files.clone());
        let epoch: Epoch = self.resident.epoch;
        match self.end("the cell was discarded").map(Engine::discard) {
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::warn!(%cell, %error, "a local database could not be removed"),
            None => tracing::error!(%cell, "a discarded cell's handler still holds its database"),
        }
        files.remove_database(epoch);
    }

    /// Ends everything but the database, which is given back unless something still holds it.
    fn end(mut self, reason: &str) -> Option<Engine> {
        metrics().cells_resident_changed(-1);
        metrics().wal_bytes_changed(-i64::try_from(self.wal_bytes).unwrap_or(i64::MAX));
        self.refuse_events();
        self.open.fail_all(reason);
        if let Leaving::Finishing { done, .. } = std::mem::replace(&mut self.leaving, Leaving::Stopped) {
            let _ = done.send(Err(FailCause::Abandoned));
        }
        let Self { runtime, engine, operations, .. } = self;
        drop((operations, runtime));
        Rc::into_inner(engine).map(std::cell::RefCell::into_inner)
    }

    /// Nothing that waits has run.
    fn refuse_events(&mut self) {
        let queue = std::mem::take(&mut self.queue);
        for input in queue {
            match input {
                Input::Event(event) => {
                    self.resident.dequeued();
                    event.refuse(gone(&self.resident.cell));
                }
                input @ (Input::Completed(..)
                | Input::Cancel(_)
                | Input::Alarm(_)
                | Input::Socket(..)
                | Input::Deployed) => self.queue.push_back(input),
            }
        }
        for event in self.blocked.drain(..) {
            event.refuse(gone(&self.resident.cell));
        }
    }
}
