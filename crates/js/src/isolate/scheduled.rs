//! Cron triggers: a Durable Object of a reserved class calls the Worker's `scheduled` handler when its alarm says so.

use holdfast_cron::Schedule;
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result};

use super::host::host;
use crate::effect::{Effect, RunEnd};
use crate::plain;
use crate::prelude::Part;

/// The class of the object that runs the cron triggers of the application. No class of an application may have its name.
pub const CRON_CLASS: &str = "HoldfastCron";
/// The name that the id of the one object of [`CRON_CLASS`] is made from.
pub const CRON_OBJECT: &str = "cron";

pub(crate) const PART: Part =
    Part { name: "scheduled", source: include_str!("scheduled.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let code = &host(ctx).code;
    let native = plain::record(ctx)?;
    native.set("version", code.version())?;
    native.set("crons", code.crons().map(str::to_owned).collect::<Vec<_>>())?;
    native.set("next", Func::from(|cron: String, ms: f64| time(&cron, ms, Schedule::next_after)))?;
    native.set("last", Func::from(|cron: String, ms: f64| time(&cron, ms, Schedule::last_until)))?;
    native.set("now", Func::from(|ctx: Ctx<'_>| host(&ctx).now().wall.get() as f64))?;
    native.set("ended", Func::from(ended))?;
    Ok(native)
}

/// A time of an expression by another time, in milliseconds; null where there is none.
fn time(cron: &str, ms: f64, find: impl Fn(&Schedule, i64) -> Option<i64>) -> Option<f64> {
    let found = find(&Schedule::parse(cron).ok()?, ms as i64)?;
    Some(found as f64)
}

fn ended(ctx: Ctx<'_>, end: String) {
    let end = match end.as_str() {
        "ok" => RunEnd::Ok,
        "failed" => RunEnd::Failed,
        _ => RunEnd::GivenUp,
    };
    host(&ctx).emit(Effect::ScheduledEnded { end });
}

#[cfg(test)]
#[path = "scheduled_tests.rs"]
mod tests;
