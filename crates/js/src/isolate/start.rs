//! How an isolate begins: an engine with limits, the prelude, the modules of the application run to their end.

use std::rc::Rc;
use std::sync::Arc;

use rquickjs::promise::PromiseState;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Module, Object, Promise, Runtime, Value};

use super::budget::Budget;
use super::host::Host;
use super::kind::IsolateKind;
use super::limits::Limits;
use super::modules::Modules;
use super::scheduled::CRON_CLASS;
use super::turn::{Jobs, track_rejection};
use super::{Isolate, errors};
use crate::application::Application;
use crate::effect::{BrokenCause, JsError, Now, StartError};
use crate::foreign::Shared;
use crate::prelude;

pub(super) fn start(
    code: &Arc<Application>,
    kind: IsolateKind,
    limits: Limits,
    now: Now,
) -> Result<Isolate, StartError> {
    code.compile().map_err(StartError::Threw)?;
    let no_memory = |_| StartError::Exceeded(BrokenCause::MemoryExceeded);
    let runtime = Runtime::new().map_err(no_memory)?;
    runtime.set_memory_limit(limits.memory_bytes);
    runtime.set_max_stack_size(limits.stack_bytes);
    let budget = Rc::new(Budget::default());
    let clock = Rc::clone(&budget);
    runtime.set_interrupt_handler(Some(Box::new(move || clock.must_stop())));
    let context = Context::full(&runtime).map_err(no_memory)?;
    runtime.set_loader(Modules(Arc::clone(code)), Modules(Arc::clone(code)));
    let host = Host::new(code, kind, limits, now, &budget);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(|ctx, promise, reason, is_handled| {
        track_rejection(&ctx, promise, reason, is_handled);
    })));
    budget.arm(limits.start);
    let loaded = context.with(|ctx| load(&ctx, &host));
    budget.disarm();
    if budget.is_exceeded() {
        return Err(StartError::Exceeded(BrokenCause::CpuExceeded));
    }
    loaded.map_err(|error| match error {
        StartError::Threw(error) => StartError::Threw(code.map_stack(error)),
        other => other,
    })?;
    Ok(Isolate { context, runtime, host, budget, broken: None })
}

fn load(ctx: &Ctx<'_>, host: &Rc<Host>) -> Result<(), StartError> {
    let stored = ctx.store_userdata(Shared(Rc::clone(host)));
    assert!(matches!(stored, Ok(None)), "a new context has no user data");
    prelude::install(ctx).catch(ctx).map_err(thrown)?;
    let namespace = import(ctx, host)?;
    if let IsolateKind::Object(object) = &host.kind
        && object.class != CRON_CLASS
    {
        let class: Value<'_> = namespace.get(object.class.as_str()).catch(ctx).map_err(thrown)?;
        if !class.is_constructor() {
            return Err(StartError::NoClass(object.class.clone()));
        }
    }
    prelude::internals(ctx).set("main", namespace).catch(ctx).map_err(thrown)
}

/// Runs the entry and gives its namespace.
fn import<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> Result<Object<'js>, StartError> {
    let promise = Module::import(ctx, host.code.entry()).catch(ctx).map_err(thrown)?;
    Jobs(Rc::clone(host)).run(ctx).catch(ctx).map_err(thrown)?;
    settled(ctx, &promise)
}

fn settled<'js>(ctx: &Ctx<'js>, promise: &Promise<'js>) -> Result<Object<'js>, StartError> {
    if promise.state() == PromiseState::Pending {
        return Err(StartError::NeverEnds);
    }
    promise.result().expect("it is settled").catch(ctx).map_err(thrown)
}

fn thrown(error: CaughtError<'_>) -> StartError {
    if errors::is_out_of_memory(&error) {
        return StartError::Exceeded(BrokenCause::MemoryExceeded);
    }
    let error: JsError = errors::of_caught(error);
    StartError::Threw(error)
}
