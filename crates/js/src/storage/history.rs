//! Bookmarks of a Durable Object's storage, `onNextSessionRestoreBookmark` and `sync`. What a bookmark is and where it leads is
//! known outside; here it is asked, and the wish for a restore is part of the turn's transaction.

use holdfast_types::{Epoch, Millis, Position, Txid};
use rquickjs::function::Func;
use rquickjs::{Ctx, Exception, Object, Result};

use super::state::storage;
use super::text;
use crate::effect::{HistoryAsk, Op};
use crate::isolate::ops;
use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part =
    Part { name: "storage_history", source: include_str!("history.js"), natives, globals: &[] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("check", Func::from(check))?;
    native.set("sync", Func::from(|ctx: Ctx<'_>| start(&ctx, HistoryAsk::Sync)))?;
    native.set("bookmark", Func::from(bookmark))?;
    native.set("at", Func::from(at))?;
    native
        .set("find", Func::from(|ctx: Ctx<'_>, bookmark: String| start(&ctx, HistoryAsk::Find(bookmark))))?;
    native.set("wish", Func::from(wish))?;
    Ok(native)
}

fn start(ctx: &Ctx<'_>, ask: HistoryAsk) -> Result<u64> {
    ops::start(ctx, Op::AskHistory(ask))
}

/// Refuses a method while a transaction is open: its state is none that anybody can come back to.
fn check(ctx: Ctx<'_>, method: String) -> Result<()> {
    if storage(&ctx).is_within_transaction() {
        return Err(text::throw_text(&ctx, &format!("Cannot call {method}() within a transaction")));
    }
    Ok(())
}

fn bookmark(ctx: Ctx<'_>, restore: u32) -> Result<u64> {
    storage(&ctx).run(&ctx, |engine| engine.restore_ensure_state())?;
    start(&ctx, HistoryAsk::Bookmark { restore })
}

/// `time` is an integer; what is before 1970 is as early as can be.
fn at(ctx: Ctx<'_>, time: f64) -> Result<u64> {
    start(&ctx, HistoryAsk::At(Millis::new(time.max(0.0) as u64)))
}

/// Answers the number of the restore.
fn wish(ctx: Ctx<'_>, position: String) -> Result<u32> {
    let Some(target) = position_of(&position) else {
        return Err(Exception::throw_internal(&ctx, "the answer is not a position"));
    };
    storage(&ctx).run(&ctx, |engine| engine.restore_wish(target))
}

fn position_of(text: &str) -> Option<Position> {
    let (epoch, txid) = text.split_at_checked(16)?;
    Some(Position { epoch: Epoch::from_hex(epoch).ok()?, txid: Txid::from_hex(txid).ok()? })
}
