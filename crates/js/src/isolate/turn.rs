//! A turn: enter JavaScript, run until no job is left, commit the storage, collect the effects. A turn that breaks
//! leaves nothing but log lines: what it asked for rests on state that is gone.

use std::rc::Rc;

use rquickjs::{CatchResultExt, CaughtError, Ctx, Function, Result, Value};

use super::budget::cpu_time;
use super::host::{Host, host};
use super::{Isolate, errors};
use crate::effect::{BrokenCause, Effect, Now, Turn, TurnEnd};
use crate::node::hooks;
use crate::prelude;

/// Jobs between two looks at the clock: the engine itself looks only inside long ones.
const JOBS_PER_LOOK: usize = 64;

/// Runs the jobs (microtasks) of a turn.
pub(crate) struct Jobs(pub(super) Rc<Host>);

impl Jobs {
    /// Runs jobs, and what waited in front of the input gate, until nothing is left or the turn must stop.
    pub(crate) fn run(&self, ctx: &Ctx<'_>) -> Result<()> {
        loop {
            self.drain(ctx);
            if self.must_stop() {
                return Ok(());
            }
            if self.0.take_rejections() {
                call(ctx, "reportRejections")?;
            } else if self.0.take_resume() {
                call(ctx, "resume")?;
            } else {
                return Ok(());
            }
        }
    }

    fn drain(&self, ctx: &Ctx<'_>) {
        while !self.must_stop() {
            for _ in 0..JOBS_PER_LOOK {
                if !ctx.execute_pending_job() {
                    return;
                }
            }
        }
    }

    /// Whether the turn must stop.
    pub(super) fn must_stop(&self) -> bool {
        self.0.budget.must_stop()
    }
}

fn call(ctx: &Ctx<'_>, entry: &str) -> Result<()> {
    prelude::internals(ctx).get::<_, Function<'_>>(entry)?.call(())
}

/// Notes a promise that was rejected while nothing waited for it, or that something waits for after all.
pub(super) fn track_rejection<'js>(
    ctx: &Ctx<'js>,
    promise: Value<'js>,
    reason: Value<'js>,
    is_handled: bool,
) {
    let track = || -> Result<()> {
        let entry: Function<'js> = prelude::internals(ctx).get("onRejection")?;
        entry.call((promise, reason, is_handled))
    };
    host(ctx).note_rejection();
    // Without the memory to note it, or the time, the turn has other troubles than an untold rejection.
    let _ = track().catch(ctx);
}

impl Isolate {
    pub(crate) fn turn(
        &mut self,
        now: Now,
        enter: impl for<'js> FnOnce(&Ctx<'js>, &Jobs) -> Result<()>,
    ) -> Turn {
        if let Some(cause) = &self.broken {
            return Turn { effects: Vec::new(), end: TurnEnd::Broken(cause.clone()) };
        }
        let began = cpu_time();
        self.host.enter(now);
        if let Some(bytes) = self.host.wasm.account.take_heap_limit() {
            self.runtime.set_memory_limit(bytes);
        }
        self.budget.arm(self.host.limits.turn);
        let host = Rc::clone(&self.host);
        self.context.with(|ctx| {
            let entered = hooks::begin_turn(&ctx).and_then(|()| enter(&ctx, &Jobs(Rc::clone(&host))));
            if let Err(error) = entered.catch(&ctx) {
                host.break_with(cause(&host, &error));
            }
        });
        self.budget.disarm();
        host.wasm.leave();
        if let Some(event) = host.event() {
            self.budget.charge(event, cpu_time().saturating_sub(began), host.limits.event);
            if !host.is_under_way(event) {
                // It ended in this turn, or what it left behind ran: there is nothing to add up any more.
                self.budget.forget(event);
            }
        }
        self.end()
    }

    fn end(&mut self) -> Turn {
        if self.budget.is_exceeded() {
            self.host.break_with(BrokenCause::CpuExceeded);
        }
        if let Some(storage) = self.host.storage() {
            if self.host.broken().is_some() {
                storage.abandon_turn();
            } else if let Err(reason) = storage.commit_turn() {
                self.host.break_with(BrokenCause::StorageFailed(reason));
            }
        }
        self.host.log.borrow_mut().leave(&self.host);
        let mut effects = self.host.take_effects();
        let end = match self.host.broken() {
            None => TurnEnd::Ok,
            Some(cause) => {
                effects.retain(|effect| matches!(effect, Effect::Log { .. }));
                self.broken = Some(cause.clone());
                TurnEnd::Broken(cause)
            }
        };
        Turn { effects, end }
    }
}

/// Why an entry of ours threw: they catch what handlers throw, so it is a limit, or a fault of ours.
pub(crate) fn cause(host: &Host, error: &CaughtError<'_>) -> BrokenCause {
    if host.budget.is_exceeded() {
        BrokenCause::CpuExceeded
    } else if errors::is_out_of_memory(error) {
        BrokenCause::MemoryExceeded
    } else {
        BrokenCause::Internal(error.to_string())
    }
}
