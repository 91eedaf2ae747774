//! `console`, and exceptions that nothing caught: log lines, bounded in length and number.

use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result};

use super::host::{Host, host};
use crate::effect::{Effect, LogLevel};
use crate::plain;
use crate::prelude::Part;

/// Bytes of one line; the rest is cut.
const LINE_LEN_MAX: usize = 16 << 10;
/// Lines of one turn; further ones are counted, and told of in one line.
const LINES_MAX: usize = 256;

pub(crate) const PART: Part =
    Part { name: "console", source: include_str!("console.js"), natives, globals: &[] };
/// How values look in a log. Lazy: many handlers log strings alone.
pub(crate) const INSPECT: Part = Part {
    name: "inspect",
    source: include_str!("inspect.js"),
    natives: crate::prelude::no_natives,
    globals: &[],
};

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("log", Func::from(log))?;
    Ok(native)
}

/// Counts the lines of a turn.
#[derive(Default)]
pub(crate) struct LogLines {
    count: usize,
}

impl LogLines {
    pub(super) fn enter(&mut self) {
        self.count = 0;
    }

    /// Tells of the lines that the turn had beyond the bound.
    pub(super) fn leave(&mut self, host: &Host) {
        let dropped = self.count.saturating_sub(LINES_MAX);
        if dropped > 0 {
            let text = format!("{dropped} more lines of one turn are not logged: the limit is {LINES_MAX}");
            host.emit(Effect::Log { event: host.event(), level: LogLevel::Warn, text });
        }
    }
}

fn log(ctx: Ctx<'_>, level: u8, mut text: String) {
    let host = host(&ctx);
    let level = match level {
        0 => LogLevel::Debug,
        1 => LogLevel::Log,
        2 => LogLevel::Info,
        3 => LogLevel::Warn,
        _ => LogLevel::Error,
    };
    let count = {
        let mut lines = host.log.borrow_mut();
        lines.count += 1;
        lines.count
    };
    if count <= LINES_MAX {
        if text.len() > LINE_LEN_MAX {
            text.truncate(text.floor_char_boundary(LINE_LEN_MAX));
            text.push('…');
        }
        let text = host.code.map_stacks(text);
        host.emit(Effect::Log { event: host.event(), level, text });
    }
}
