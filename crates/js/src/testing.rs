//! Runs snippets in a context with the prelude, for the tests of the parts.

use rquickjs::{CatchResultExt, Context, Ctx, Function, Runtime, Value};

const SETUP: &str = "(body => {
  let outcome;
  const show = value => typeof value === 'string' ? value : JSON.stringify(value) ?? String(value);
  const begin = (0, eval)('(async () => {' + body + '\\n})');
  begin().then(value => { outcome = ['ok', show(value)]; }, error => { outcome = ['error', String(error), error?.stack ?? '']; });
  return () => outcome;
})";

/// What the snippet returns: a string as it is, anything else as JSON.
///
/// # Panics
/// With the error and its stack where the snippet throws.
pub(crate) fn run(body: &str) -> String {
    match outcome(body).as_slice() {
        [kind, value] if kind == "ok" => value.clone(),
        other => panic!("{}", other.join("\n")),
    }
}

/// The error of the snippet as `TypeError: …`.
///
/// # Panics
/// Where the snippet does not throw.
pub(crate) fn fails(body: &str) -> String {
    match outcome(body).as_slice() {
        [kind, error, ..] if kind == "error" => error.clone(),
        other => panic!("it does not throw: {}", other.join("\n")),
    }
}

/// What the snippet returns, with `part` loaded and the object `internals` as a global.
///
/// # Panics
/// With the error and its stack where the snippet throws.
pub(crate) fn inside(part: &str, body: &str) -> String {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    let outcome = context.with(|ctx| {
        crate::prelude::install(&ctx).catch(&ctx).unwrap();
        crate::prelude::load(&ctx, part).catch(&ctx).unwrap();
        ctx.globals().set("internals", crate::prelude::internals(&ctx)).unwrap();
        settle(&ctx, body)
    });
    match outcome.as_slice() {
        [kind, value] if kind == "ok" => value.clone(),
        other => panic!("{}", other.join("\n")),
    }
}

fn outcome(body: &str) -> Vec<String> {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| {
        crate::prelude::install(&ctx).catch(&ctx).unwrap();
        settle(&ctx, body)
    })
}

fn settle(ctx: &Ctx<'_>, body: &str) -> Vec<String> {
    let begin: Function<'_> = ctx.eval(SETUP).catch(ctx).unwrap();
    let outcome: Function<'_> = begin.call((body,)).catch(ctx).unwrap();
    while ctx.execute_pending_job() {}
    let outcome: Value<'_> = outcome.call(()).catch(ctx).unwrap();
    assert!(!outcome.is_undefined(), "the snippet waits for something that never comes");
    outcome.get().catch(ctx).unwrap()
}

#[test]
fn a_snippet_gives_its_value_or_its_error() {
    assert_eq!(run("return await Promise.resolve('x')"), "x");
    assert_eq!(run("return { a: [1, null] }"), r#"{"a":[1,null]}"#);
    assert_eq!(fails("null.x"), "TypeError: cannot read property 'x' of null");
}
