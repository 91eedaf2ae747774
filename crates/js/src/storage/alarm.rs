//! The alarm of a Durable Object. Whether and when its handler runs is decided outside; here it is set, read and consumed,
//! in the transaction of the turn.

use holdfast_types::AlarmTime;
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result};

use super::state::storage;
use crate::effect::{Effect, EventId};
use crate::isolate::host::host;
use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part =
    Part { name: "storage_alarm", source: include_str!("alarm.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("get", Func::from(get))?;
    native.set("set", Func::from(set))?;
    native
        .set("delete", Func::from(|ctx: Ctx<'_>| storage(&ctx).run(&ctx, |engine| engine.alarm_delete())))?;
    native.set(
        "consume",
        Func::from(|ctx: Ctx<'_>| storage(&ctx).run(&ctx, |engine| engine.alarm_consume())),
    )?;
    native.set("ended", Func::from(ended))?;
    Ok(native)
}

fn get(ctx: Ctx<'_>) -> Result<Option<f64>> {
    let deadline = storage(&ctx).run(&ctx, |engine| engine.alarm_deadline())?;
    Ok(deadline.map(|deadline| deadline.get() as f64))
}

/// `time` is an integer of at most 8.64e15.
fn set(ctx: Ctx<'_>, time: f64) -> Result<()> {
    storage(&ctx).run(&ctx, |engine| engine.alarm_set(AlarmTime::new(time as i64)))
}

fn ended(ctx: Ctx<'_>, event: u64, has_handler: bool) {
    host(&ctx).emit(Effect::AlarmEnded { event: EventId::new(event), has_handler });
}
