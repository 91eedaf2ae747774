//! Runs one file of the suite in an isolate of its own. The clock is the file's: where it waits for a timer, the time of
//! that timer comes at once.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, Ctx, Function, Object, Result, Value};

use super::Subtest;
use crate::effect::TurnEnd;
use crate::isolate::{Isolate, IsolateKind, Limits};
use crate::prelude;
use crate::testing::{application, at};

/// How long a file may wait in its own time, in milliseconds: none waits for more than some seconds on purpose.
const WAIT_MS_MAX: u64 = 60_000;

/// The subtests of a file. What keeps it from its end is one more, `(the file)`.
pub(super) fn file(root: &Path, test: &str) -> Vec<Subtest> {
    let limits = Limits {
        memory_bytes: 1 << 30,
        turn: Duration::from_secs(120),
        start: Duration::from_secs(20),
        ..Limits::default()
    };
    let mut isolate = Isolate::new(&Arc::new(application("")), IsolateKind::Worker, limits, at(0))
        .expect("nothing stops it");
    let began = isolate.turn(at(0), |ctx, jobs| {
        if let Err(error) = begin(ctx, root, test).catch(ctx) {
            prelude::internals(ctx).set("wptError", error.to_string())?;
        }
        jobs.run(ctx)
    });
    let mut end = began.end;
    while end == TurnEnd::Ok && !is_done(&isolate) {
        let deadline = isolate.next_deadline().filter(|deadline| deadline.get() < WAIT_MS_MAX);
        let Some(deadline) = deadline else { break };
        end = isolate.wake(at(deadline.get())).end;
    }
    let broken = |failure: String| vec![Subtest { name: "(the file)".to_owned(), failure: Some(failure) }];
    match end {
        TurnEnd::Ok => isolate
            .context
            .with(|ctx| outcome(&ctx).catch(&ctx).unwrap_or_else(|error| broken(error.to_string()))),
        TurnEnd::Broken(cause) => broken(format!("the isolate is broken: {cause:?}")),
    }
}

/// Evaluates the harness, the scripts that the file names, and the file.
fn begin(ctx: &Ctx<'_>, root: &Path, test: &str) -> Result<()> {
    let text = read(root, test)?;
    let host: Function<'_> = ctx.eval(include_str!("host.js"))?;
    let beside = (root.to_owned(), test.to_owned());
    let read_file =
        Function::new(ctx.clone(), move |name: String| read(&beside.0, &beside_of(&beside.1, &name)))?;
    let collect = Function::new(ctx.clone(), |ctx: Ctx<'_>| ctx.run_gc())?;
    host.call::<_, ()>((test, read_file, collect))?;
    script(ctx, root, "resources/testharness.js")?;
    let report: Function<'_> = ctx.eval(include_str!("report.js"))?;
    prelude::internals(ctx).set("wptOutcome", report.call::<_, Object<'_>>(())?)?;
    for name in text.lines().filter_map(|line| line.strip_prefix("// META: script=")) {
        script(ctx, root, &beside_of(test, name.trim()))?;
    }
    script(ctx, root, test)
}

fn script(ctx: &Ctx<'_>, root: &Path, name: &str) -> Result<()> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    ctx.eval_with_options::<Value<'_>, _>(read(root, name)?, options).map(drop)
}

fn read(root: &Path, name: &str) -> Result<String> {
    fs::read_to_string(root.join(name)).map_err(|error| {
        rquickjs::Error::new_loading_message(name, format!("tests/wpt/files has no such file: {error}"))
    })
}

/// The path below the root of a file that `test` names.
fn beside_of(test: &str, name: &str) -> String {
    if let Some(absolute) = name.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut path = Path::new(test).parent().map(Path::to_owned).unwrap_or_default();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.to_str().expect("it is made of text").to_owned()
}

fn is_done(isolate: &Isolate) -> bool {
    isolate.context.with(|ctx| {
        let outcome = prelude::internals(&ctx).get::<_, Option<Object<'_>>>("wptOutcome");
        outcome.is_ok_and(|outcome| outcome.is_none_or(|outcome| outcome.get("isDone").unwrap_or(true)))
    })
}

fn outcome(ctx: &Ctx<'_>) -> Result<Vec<Subtest>> {
    let internals = prelude::internals(ctx);
    let error: Option<String> = internals.get("wptError")?;
    let mut subtests = Vec::new();
    if let Some(outcome) = internals.get::<_, Option<Object<'_>>>("wptOutcome")? {
        if !outcome.get::<_, bool>("isDone")? {
            outcome.get::<_, Function<'_>>("stop")?.call::<_, ()>(())?;
        }
        let json: String = outcome.get::<_, Function<'_>>("json")?.call(())?;
        let pairs: Vec<(String, Option<String>)> = serde_json::from_str(&json).expect("it is well formed");
        subtests = pairs.into_iter().map(|(name, failure)| Subtest { name, failure }).collect();
    }
    if error.is_some() {
        subtests.push(Subtest { name: "(the file)".to_owned(), failure: error });
    }
    Ok(subtests)
}
