//! The Worker with applications made here, and nobody between it and the tests.

mod support;

use std::time::Duration;

use holdfast_js::BrokenCause;
use http::Method;
use http_body_util::BodyExt as _;

use super::{Deployed, WorkerError, WorkerOptions};
use support::{World, options, stream, text};

#[tokio::test]
async fn a_request_is_answered_by_the_application() {
    let world = World::running(
        "export default { async fetch(request) {
           const seen = [request.method, request.url, request.headers.get('x-mine'), await request.text()];
           return new Response(seen.join(' '), { status: 201, statusText: 'Fine', headers: { 'x-answer': 'yes' } });
         } };",
    )
    .await;
    let mut head = support::head(Method::POST, "/a%2f?b");
    head.headers.insert("x-mine", "1".parse().unwrap());
    let answer = world.fetch_with(head, support::whole("body")).await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["x-answer"]), (201, &"yes".parse().unwrap()));
    assert_eq!(text(answer).await, "POST https://x.example/a%2f?b 1 body");
    world.worker.idle().await;
}

#[tokio::test]
async fn events_of_one_isolate_interleave() {
    let world = World::running(
        "let go; const gone = new Promise(resolve => { go = resolve; });
         export default { async fetch(request) {
           if (request.url.endsWith('/wait')) { await gone; return new Response('waited'); }
           go(); return new Response('went');
         } };",
    )
    .await;
    let waiting = world.spawn_get("/wait");
    // One thread begins them in this order.
    tokio::task::yield_now().await;
    assert_eq!(text(world.get("/go").await.unwrap()).await, "went");
    assert_eq!(text(waiting.await.unwrap().unwrap()).await, "waited");
}

#[tokio::test]
async fn an_exception_is_told_without_its_words() {
    let world = World::running("export default { fetch() { throw new Error('secret'); } };").await;
    let error = world.get("/").await.unwrap_err();
    assert_eq!(error, WorkerError::Threw);
    let response = error.into_response();
    assert_eq!(response.status(), 500);
    assert_eq!(text(response).await, "the application threw an exception\n");
    world.worker.idle().await;
}

#[tokio::test]
async fn an_isolate_that_breaks_fails_its_events_and_is_replaced() {
    let mut options = options();
    options.limits.turn = Duration::from_millis(200);
    let world = World::start(
        options,
        "let count = 0;
         export default { async fetch(request) {
           count += 1;
           if (request.url.endsWith('/loop')) for (;;);
           if (request.url.endsWith('/wait')) await new Promise(() => {});
           if (request.url.endsWith('/stream')) return new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); } }));
           return new Response(`${count}`);
         } };",
    )
    .await;
    assert_eq!(text(world.get("/").await.unwrap()).await, "1");
    let mut streamed = world.get("/stream").await.unwrap().into_body();
    assert_eq!(streamed.frame().await.unwrap().unwrap().into_data().unwrap().len(), 3);
    let waiting = world.spawn_get("/wait");
    tokio::task::yield_now().await;
    let error = world.get("/loop").await.unwrap_err();
    assert_eq!(error, WorkerError::Broken(BrokenCause::CpuExceeded));
    assert_eq!(waiting.await.unwrap().unwrap_err(), error);
    let response = error.into_response();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["holdfast-outcome"]),
        (503, &"unknown".parse().unwrap())
    );
    assert!(streamed.frame().await.unwrap().is_err(), "a broken stream, never a clean end");
    assert_eq!(text(world.get("/").await.unwrap()).await, "1", "a fresh isolate");
}

#[tokio::test]
async fn events_in_flight_finish_on_their_version() {
    let source = |version: &str| {
        format!(
            "let go; const gone = new Promise(resolve => {{ go = resolve; }});
             export default {{ async fetch(request) {{
               if (request.url.endsWith('/wait')) await Promise.race([gone, scheduler.wait(60_000)]);
               if (request.url.endsWith('/stream')) return new Response(request.body);
               return new Response('{version}');
             }} }};"
        )
    };
    let world = World::running(&source("one")).await;
    let (mut upload, body) = stream();
    let streaming = world.fetch_with(support::head(Method::POST, "/stream"), body).await.unwrap();
    assert_eq!(support::isolates(), 1);
    world.adopt(&source("two")).await.unwrap();
    assert_eq!(text(world.get("/").await.unwrap()).await, "two");
    assert_eq!(support::isolates(), 2);
    upload.chunk("still here").await;
    drop(upload);
    assert_eq!(text(streaming).await, "still here");
    world.worker.idle().await;
    // The thread has dropped the old one when it takes its next request.
    assert_eq!(text(world.get("/").await.unwrap()).await, "two");
    assert_eq!(support::isolates(), 1);
}

#[tokio::test]
async fn a_version_that_does_not_start_leaves_the_one_before() {
    let world = World::start(options(), "throw new Error('first')").await;
    assert!(matches!(world.worker.deployed(), Deployed::Broken(_)));
    let error = world.get("/").await.unwrap_err();
    assert_eq!(error.clone().into_response().status(), 500);
    assert!(matches!(error, WorkerError::NotStarted(_)));
    world.adopt("export default { fetch: () => new Response('good') };").await.unwrap();
    world.adopt("export default {}; throw new Error('second')").await.unwrap_err();
    assert_eq!(text(world.get("/").await.unwrap()).await, "good");
}

#[tokio::test]
async fn bodies_stream_both_ways_and_wait_for_their_readers() {
    let world = World::running(
        "let pulls = 0;
         export default { async fetch(request) {
           if (request.url.endsWith('/pulls')) return new Response(`${pulls}`);
           if (request.method === 'POST') return new Response(request.body.pipeThrough(new TransformStream()));
           return new Response(new ReadableStream({ pull(c) { pulls += 1; c.enqueue(new TextEncoder().encode('x')); } }));
         } };",
    )
    .await;
    let (mut upload, body) = stream();
    let mut echo = world.fetch_with(support::head(Method::POST, "/"), body).await.unwrap().into_body();
    for chunk in ["one", "two"] {
        upload.chunk(chunk).await;
        assert_eq!(echo.frame().await.unwrap().unwrap().into_data().unwrap(), chunk);
    }
    drop(upload);
    assert!(echo.frame().await.is_none());

    let mut endless = world.get("/").await.unwrap().into_body();
    for _ in 0..5 {
        endless.frame().await.unwrap().unwrap();
    }
    let pulls: usize = text(world.get("/pulls").await.unwrap()).await.parse().unwrap();
    assert!((5..=9).contains(&pulls), "{pulls} chunks were made for 5 that were read");
    drop(endless);
    world.worker.idle().await;
}

#[tokio::test]
async fn a_broken_upload_is_an_exception_and_a_broken_answer_a_broken_body() {
    let world = World::running(
        "export default { async fetch(request) {
           if (request.method === 'POST') {
             try { await request.text(); } catch (e) { return new Response('caught ' + e.message); }
           }
           return new Response(new ReadableStream({
             start(c) { c.enqueue(new Uint8Array(1)); },
             pull(c) { c.error(new Error('the source broke')); },
           }));
         } };",
    )
    .await;
    let (mut upload, body) = stream();
    upload.fail("cut").await;
    let answer = world.fetch_with(support::head(Method::POST, "/"), body).await.unwrap();
    assert_eq!(text(answer).await, "caught the body broke: cut");
    let mut body = world.get("/").await.unwrap().into_body();
    let mut broke = None;
    while let Some(frame) = body.frame().await {
        if let Err(error) = frame {
            broke = Some(error.to_string());
            break;
        }
    }
    assert_eq!(broke.as_deref(), Some("Error: the source broke"));
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_its_event_and_cancels_what_it_read() {
    let world = World::running(
        "const log = []; let go; const gone = new Promise(resolve => { go = resolve; });
         export default { async fetch(request, env, ctx) {
           if (request.url.endsWith('/log')) return new Response(log.join());
           if (request.url.endsWith('/go')) { go(); return new Response(log.join()); }
           if (request.url.endsWith('/never')) { log.push('began'); await new Promise(() => {}); }
           if (request.url.endsWith('/after')) ctx.waitUntil(gone.then(() => log.push('waited')));
           return new Response(new ReadableStream({
             start(c) { c.enqueue(new Uint8Array(1)); },
             cancel() { log.push('cancelled'); },
           }));
         } };",
    )
    .await;
    let never = world.spawn_get("/never");
    while text(world.get("/log").await.unwrap()).await != "began" {}
    never.abort();
    world.worker.idle().await;

    let mut body = world.get("/stream").await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    world.worker.idle().await;
    assert_eq!(text(world.get("/log").await.unwrap()).await, "began,cancelled");

    let mut body = world.get("/after").await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    // The thread is told of the reader before it is asked again.
    assert_eq!(text(world.get("/go").await.unwrap()).await, "began,cancelled,cancelled");
    world.worker.idle().await;
    assert_eq!(text(world.get("/log").await.unwrap()).await, "began,cancelled,cancelled,waited");
}

#[tokio::test]
async fn what_waits_until_outlives_the_answer_but_not_its_time() {
    let source = "const log = [];
         export default { async fetch(request, env, ctx) {
           if (request.url.endsWith('/log')) return new Response(log.join());
           ctx.waitUntil(scheduler.wait(1).then(() => log.push('soon')));
           if (request.url.endsWith('/long')) ctx.waitUntil(scheduler.wait(3_600_000));
           return new Response('out');
         } };";
    let world =
        World::start(WorkerOptions { afterwards: Duration::from_millis(50), ..options() }, source).await;
    assert_eq!(text(world.get("/").await.unwrap()).await, "out");
    world.worker.idle().await;
    assert_eq!(text(world.get("/log").await.unwrap()).await, "soon");
    assert_eq!(text(world.get("/long").await.unwrap()).await, "out");
    world.worker.idle().await;
}

#[tokio::test]
async fn a_handler_that_does_not_answer_in_time_is_given_up() {
    let short = Duration::from_millis(50);
    let world = World::start(
        WorkerOptions { request_timeout: short, ..options() },
        "export default { fetch: () => new Promise(() => {}) };",
    )
    .await;
    let error = world.get("/").await.unwrap_err();
    assert_eq!(error, WorkerError::Late(short));
    assert_eq!(error.into_response().headers()["holdfast-outcome"], "unknown");
    world.worker.idle().await;
}

#[tokio::test]
async fn more_events_than_a_thread_takes_are_refused() {
    let world = World::start(
        WorkerOptions { events_max: 1, ..options() },
        "export default { fetch: () => new Promise(() => {}) };",
    )
    .await;
    let first = world.spawn_get("/");
    tokio::task::yield_now().await;
    let error = world.get("/").await.unwrap_err();
    assert_eq!(error, WorkerError::Overloaded);
    assert_eq!(error.into_response().headers()["retry-after"], "1");
    first.abort();
    world.worker.idle().await;
}

#[tokio::test]
async fn the_application_fetches_and_an_answer_that_it_does_not_read_is_dropped() {
    let server = support::server().await;
    let world = World::running(&format!(
        "export default {{ async fetch(request) {{
           const answer = await fetch('http://{server}/', {{ method: 'POST', body: request.body, duplex: 'half' }});
           if (request.url.endsWith('/ignore')) return new Response('ignored ' + answer.status);
           return new Response(answer.body, answer);
         }} }};"
    ))
    .await;
    let ask =
        |path: &'static str| world.fetch_with(support::head(Method::POST, path), support::whole("sent"));
    let answer = ask("/").await.unwrap();
    assert_eq!(answer.headers()["x-from"], "server");
    assert_eq!(text(answer).await, "got sent");
    assert_eq!(text(ask("/ignore").await.unwrap()).await, "ignored 200");
    world.worker.idle().await;
}

#[tokio::test]
async fn addresses_inside_are_out_of_reach() {
    let server = support::server().await;
    let world = World::closed(&format!(
        "export default {{ async fetch() {{
           try {{ await fetch('http://{server}/'); }} catch (e) {{ return new Response(e.name + ': ' + e.message); }}
         }} }};"
    ))
    .await;
    let answer = text(world.get("/").await.unwrap()).await;
    assert!(answer.starts_with("TypeError: fetch of") && answer.contains("not a public address"), "{answer}");
}

#[tokio::test]
async fn an_object_that_no_node_takes_is_an_error_that_may_be_tried_again() {
    let world = World::start(
        WorkerOptions { request_timeout: Duration::from_secs(4), ..options() },
        "export default { async fetch(request, env) {
           try { await env.ROOMS.getByName('a').fetch('https://do/'); }
           catch (e) { return new Response(JSON.stringify([e.retryable, e.message])); }
         } };",
    )
    .await;
    let answer = text(world.get("/").await.unwrap()).await;
    assert_eq!(answer, r#"[true,"the Durable Object did not answer: no live cellnode takes this cell"]"#);
}

#[tokio::test]
async fn nothing_is_answered_before_something_is_deployed() {
    let world = World::empty();
    let error = world.get("/").await.unwrap_err();
    assert_eq!((error.clone(), error.into_response().status().as_u16()), (WorkerError::NotDeployed, 404));
}
