//! Events that end before they are done: what their handlers still see, and what is left of them.

use crate::effect::{Effect, Ending, EventId, Op, OpAnswer, OpId};
use crate::testing::application;
use crate::testing::world::World;

/// A Worker that answers with a stream, whose source tells the log when it is cancelled.
fn streaming(begin: &str, source: &str) -> World {
    World::worker(application(&format!(
        "export default {{ async fetch(request, env, ctx) {{
          {begin};
          return new Response(new ReadableStream({{
            {source},
            async cancel(reason) {{ console.log('cancelled: ' + reason.message); }},
          }}));
        }} }};"
    )))
}

const CANCELLED: &[&str] = &["cancelled: The reader of the body has gone."];

fn is_cancelled(world: &World, op: OpId) -> bool {
    world.effects.contains(&Effect::Cancel { op })
}

fn aborts(world: &World) -> usize {
    world.effects.iter().filter(|effect| matches!(effect, Effect::AbortBody { .. })).count()
}

fn write_op(world: &World) -> OpId {
    let (op, Op::WriteBody { .. }) = world.ops().pop().unwrap() else { panic!("{:?}", world.effects) };
    op
}

fn begin(world: &mut World) -> EventId {
    let event = world.get("https://x/");
    assert!(world.response(event).is_some());
    event
}

#[test]
fn a_reader_that_leaves_while_a_chunk_waits_cancels_the_source() {
    let mut world = streaming("", "pull(c) { c.enqueue(new Uint8Array(1)); }");
    let event = begin(&mut world);
    let op = write_op(&world);
    world.end(event, Ending::CallerGone);
    assert_eq!(world.log(), CANCELLED);
    assert!(world.is_done(event) && is_cancelled(&world, op) && world.isolate.is_idle());
    assert_eq!(aborts(&world), 1);
}

#[test]
fn a_reader_that_leaves_while_the_source_waits_cancels_it() {
    let mut world = streaming("", "start(c) { setInterval(() => c.enqueue(new Uint8Array(1)), 1000); }");
    let event = begin(&mut world);
    assert!(world.ops().is_empty());
    world.end(event, Ending::CallerGone);
    assert_eq!(world.log(), CANCELLED);
    assert!(world.is_done(event) && world.isolate.is_idle(), "the interval has ended");
    // What is over stays over.
    world.end(event, Ending::TimeOver);
    assert_eq!(world.log(), CANCELLED);
}

#[test]
fn a_reader_that_is_told_to_have_gone_by_its_chunk_cancels_the_source_once() {
    let mut world = streaming("", "pull(c) { c.enqueue(new Uint8Array(1)); }");
    let event = begin(&mut world);
    let op = write_op(&world);
    world.complete(op, OpAnswer::Failed(crate::JsError::new("The reader of the body has gone.")));
    assert_eq!(world.log(), CANCELLED);
    world.end(event, Ending::CallerGone);
    assert_eq!(world.log(), CANCELLED);
    assert_eq!(aborts(&world), 1);
}

#[test]
fn what_waits_until_goes_on_without_the_reader_and_ends_with_its_time() {
    let mut world = streaming(
        "ctx.waitUntil(scheduler.wait(10).then(() => fetch('https://y/')))",
        "pull(c) { c.enqueue(new Uint8Array(1)); }",
    );
    let event = begin(&mut world);
    world.end(event, Ending::CallerGone);
    assert_eq!(world.log(), CANCELLED);
    assert!(!world.is_done(event));
    world.wait();
    let (op, Op::Fetch(_)) = world.ops().pop().unwrap() else { panic!("{:?}", world.effects) };
    assert_eq!(world.isolate.event_of(op), Some(event));
    world.end(event, Ending::TimeOver);
    assert!(world.is_done(event) && is_cancelled(&world, op) && world.isolate.is_idle());
    assert_eq!(world.isolate.event_of(op), None);
}

#[test]
fn the_source_may_give_its_last_work_to_wait_until() {
    let mut world = World::worker(application(
        "export default { async fetch(request, env, ctx) {
          return new Response(new ReadableStream({
            cancel() { ctx.waitUntil(scheduler.wait(5).then(() => console.log('cleaned'))); },
          }));
        } };",
    ));
    let event = begin(&mut world);
    world.end(event, Ending::CallerGone);
    assert!(!world.is_done(event));
    world.wait();
    assert_eq!(world.log(), ["cleaned"]);
    assert!(world.is_done(event) && world.isolate.is_idle());
}

#[test]
fn an_upload_that_is_left_behind_is_cancelled_with_its_event() {
    let mut world = World::worker(application(
        "export default { async fetch() {
          const body = new ReadableStream({
            pull(c) { c.enqueue(new Uint8Array(1)); },
            cancel(reason) { console.log('cancelled: ' + reason.message); },
          });
          void fetch('https://y/', { method: 'POST', body, duplex: 'half' }).catch(() => {});
          return new Response('done');
        } };",
    ));
    let event = world.get("https://x/");
    assert_eq!(world.text(event), "done");
    assert!(world.is_done(event) && world.isolate.is_idle());
    assert_eq!(world.log(), CANCELLED);
}
