//! Timers: their deadlines. Their callbacks stay in JavaScript, in `timers.js`.

use std::collections::{BTreeSet, HashMap};

use holdfast_types::Millis;
use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Function, Object, Result};

use super::host::host;
use super::turn::Jobs;
use crate::plain;
use crate::prelude::{self, Part};

/// Timers that an isolate may have at once.
const TIMERS_MAX: usize = 10_000;
/// The longest delay: what a signed 32-bit number of milliseconds holds, as in browsers.
const DELAY_MS_MAX: f64 = 2_147_483_647.0;

pub(crate) const PART: Part =
    Part { name: "timers", source: include_str!("timers.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("schedule", Func::from(schedule))?;
    native.set("unschedule", Func::from(unschedule))?;
    native.set("elapsed", Func::from(|ctx: Ctx<'_>| host(&ctx).elapsed_ms()))?;
    native.set("timeOrigin", host(ctx).time_origin_ms())?;
    Ok(native)
}

/// Deadlines by timer, in the order in which they are due.
#[derive(Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Millis, u32)>,
    deadlines: HashMap<u32, Millis>,
}

impl Timers {
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        self.due.first().map(|(deadline, _)| *deadline)
    }

    fn schedule(&mut self, id: u32, deadline: Millis) {
        self.unschedule(id);
        self.due.insert((deadline, id));
        self.deadlines.insert(id, deadline);
    }

    fn unschedule(&mut self, id: u32) {
        if let Some(deadline) = self.deadlines.remove(&id) {
            assert!(self.due.remove(&(deadline, id)), "a timer is in both");
        }
    }

    fn due(&self, now: Millis) -> Vec<u32> {
        self.due.iter().take_while(|(deadline, _)| *deadline <= now).map(|(_, id)| *id).collect()
    }

    fn take(&mut self, id: u32) -> bool {
        let is_armed = self.deadlines.contains_key(&id);
        self.unschedule(id);
        is_armed
    }
}

fn schedule(ctx: Ctx<'_>, id: u32, delay_ms: f64) -> Result<()> {
    let host = host(&ctx);
    // Not borrowed while the error is made: nothing of the engine runs under a borrow of ours.
    let has_room = host.timers.borrow().deadlines.len() < TIMERS_MAX;
    if !has_room {
        return Err(Exception::throw_range(&ctx, &format!("too many timers: the limit is {TIMERS_MAX}")));
    }
    // A delay that is not a number counts as 0, as in browsers: so does the cast.
    let delay_ms = delay_ms.clamp(0.0, DELAY_MS_MAX) as u64;
    let deadline = host.now().monotonic.plus(delay_ms);
    host.timers.borrow_mut().schedule(id, deadline);
    Ok(())
}

fn unschedule(ctx: Ctx<'_>, id: u32) {
    host(&ctx).timers.borrow_mut().unschedule(id);
}

/// Fires the timers that are due as the turn begins; what they set waits for the next one, whatever its delay.
pub(super) fn fire(ctx: &Ctx<'_>, jobs: &Jobs) -> Result<()> {
    let host = host(ctx);
    let due = host.timers.borrow().due(host.now().monotonic);
    let fire: Function<'_> = prelude::internals(ctx).get("fireTimer")?;
    for id in due {
        // One before it may have cleared it.
        if host.timers.borrow_mut().take(id) {
            fire.call::<_, ()>((id,))?;
            jobs.run(ctx)?;
        }
        if jobs.must_stop() {
            break;
        }
    }
    Ok(())
}
