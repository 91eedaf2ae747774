//! Runs snippets in an isolate, for the tests of the parts. The clock is the snippet's own: where it waits for a timer,
//! the time of that timer comes at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_types::Millis;
use rquickjs::{CatchResultExt, Ctx, Function, Object, Value};

use crate::effect::{Effect, LogLevel, Now, Turn, TurnEnd};
use crate::isolate::{Isolate, IsolateKind, Limits};
use crate::{Application, SourceKind, prelude};

pub(crate) mod world;

const BEGIN: &str = "(body => {
  const outcome = [];
  const show = value => typeof value === 'string' ? value : JSON.stringify(value) ?? String(value);
  const begin = (0, eval)('(async () => {' + body + '\\n})');
  begin().then(
    value => outcome.push('ok', show(value)),
    error => outcome.push('error', String(error), error?.stack ?? ''));
  return outcome;
})";

/// 2026-01-01T00:00:00Z.
pub(crate) const WALL_MS: u64 = 1_767_225_600_000;

/// What a snippet came to.
pub(crate) struct Outcome {
    /// `ok` and its value; or `error`, the error, and its stack.
    settled: Vec<String>,
    /// What it logged.
    pub(crate) log: Vec<(LogLevel, String)>,
}

/// What the snippet returns: a string as it is, anything else as JSON.
///
/// # Panics
/// With the error and its stack where the snippet throws.
pub(crate) fn run(body: &str) -> String {
    match outcome(body).settled.as_slice() {
        [kind, value] if kind == "ok" => value.clone(),
        other => panic!("{}", other.join("\n")),
    }
}

/// The error of the snippet as `TypeError: …`.
///
/// # Panics
/// Where the snippet does not throw.
pub(crate) fn fails(body: &str) -> String {
    match outcome(body).settled.as_slice() {
        [kind, error, ..] if kind == "error" => error.clone(),
        other => panic!("it does not throw: {}", other.join("\n")),
    }
}

/// What the snippet returns, with `part` loaded and the object `internals` as a global.
///
/// # Panics
/// With the error and its stack where the snippet throws.
pub(crate) fn inside(part: &str, body: &str) -> String {
    let mut isolate = isolate();
    isolate.context.with(|ctx| {
        prelude::load(&ctx, part).catch(&ctx).unwrap();
        ctx.globals().set("internals", prelude::internals(&ctx)).unwrap();
    });
    match run_in(&mut isolate, body).settled.as_slice() {
        [kind, value] if kind == "ok" => value.clone(),
        other => panic!("{}", other.join("\n")),
    }
}

/// What the snippet logs, a line each.
///
/// # Panics
/// With the error and its stack where the snippet throws.
pub(crate) fn logs(body: &str) -> Vec<String> {
    let outcome = outcome(body);
    assert_eq!(outcome.settled[0], "ok", "{:?}", outcome.settled);
    outcome.log.into_iter().map(|(_, text)| text).collect()
}

/// Calls `test` in the context of a new isolate.
pub(crate) fn within<T>(test: impl FnOnce(&Ctx<'_>) -> T) -> T {
    isolate().context.with(|ctx| test(&ctx))
}

/// The clocks `ms` after the start.
pub(crate) fn at(ms: u64) -> Now {
    Now { monotonic: Millis::new(ms), wall: Millis::new(WALL_MS + ms) }
}

/// Limits for tests that are not about them: this code is compiled with little optimisation.
pub(crate) fn limits() -> Limits {
    Limits { turn: Duration::from_secs(20), start: Duration::from_secs(20), ..Limits::default() }
}

/// An application of one module.
pub(crate) fn application(source: &str) -> Application {
    let module = ("main.js".to_owned(), SourceKind::EsModule, Bytes::copy_from_slice(source.as_bytes()));
    Application::new("v1", "main.js", [module]).unwrap()
}

/// Runs a snippet to its end.
pub(crate) fn outcome(body: &str) -> Outcome {
    run_in(&mut isolate(), body)
}

fn isolate() -> Isolate {
    Isolate::new(&Arc::new(application("")), IsolateKind::Worker, limits(), at(0)).unwrap()
}

fn run_in(isolate: &mut Isolate, body: &str) -> Outcome {
    let mut log = Vec::new();
    let mut take = |turn: Turn| {
        assert_eq!(turn.end, TurnEnd::Ok);
        log.extend(turn.effects.into_iter().filter_map(|effect| match effect {
            Effect::Log { level, text, .. } => Some((level, text)),
            _ => None,
        }));
    };
    take(isolate.probe(at(0), body));
    while isolate.probed().is_empty() {
        let deadline = isolate.next_deadline().expect("the snippet waits for something that never comes");
        take(isolate.wake(at(deadline.get())));
    }
    Outcome { settled: isolate.probed(), log }
}

impl Isolate {
    /// Begins a snippet: the body of an async function.
    pub(crate) fn probe(&mut self, now: Now, body: &str) -> Turn {
        self.turn(now, |ctx, jobs| {
            let begin: Function<'_> = ctx.eval(BEGIN)?;
            let outcome: Object<'_> = begin.call((body,))?;
            prelude::internals(ctx).set("probed", outcome)?;
            jobs.run(ctx)
        })
    }

    /// What the snippet came to; empty while it waits.
    pub(crate) fn probed(&self) -> Vec<String> {
        self.context.with(|ctx| {
            let probed: Value<'_> = prelude::internals(&ctx).get("probed").catch(&ctx).unwrap();
            probed.get().catch(&ctx).unwrap()
        })
    }
}

#[test]
fn a_snippet_gives_its_value_or_its_error() {
    assert_eq!(run("return await Promise.resolve('x')"), "x");
    assert_eq!(run("return { a: [1, null] }"), r#"{"a":[1,null]}"#);
    assert_eq!(fails("null.x"), "TypeError: cannot read property 'x' of null");
}
