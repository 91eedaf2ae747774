//! Events: what handlers get, what their answers become, and what waits for what.

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::effect::{
    BrokenCause, Effect, IncomingBody, IncomingBodyId, IncomingResponse, JsError, Op, OpAnswer, OutgoingBody,
    OutgoingCall,
};
use crate::isolate::id_from_name;
use crate::testing::application;
use crate::testing::world::World;
use crate::{Application, Binding};

const OBJECT: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Counter extends DurableObject {
      #secret = 1; own = () => 'own';
      constructor(ctx, env) { super(ctx, env); this.value = 0; }
      increment(by = 1) { this.value += by; return this.value; }
      async later() { await scheduler.wait(10); return this.ctx.id.name + this.env.GREETING; }
      throws() { throw new RangeError('too far'); }
      get computed() { return function () { return 'computed'; }; }
      notMethod = 7;
      async fetch(request) { return new Response(request.method + ' ' + new URL(request.url).pathname + ' ' + this.value); }
    }";

fn counter() -> World {
    World::object(application(OBJECT).bind("GREETING", Binding::Text("!".to_owned())), "Counter", "a")
}

fn bound(source: &str) -> Application {
    application(source)
        .bind("TEXT", Binding::Text("text".to_owned()))
        .bind("JSON", Binding::Json(r#"{"a":[1]}"#.to_owned()))
        .bind("OBJECTS", Binding::ObjectNamespace { class: "Counter".to_owned() })
        .bind("SELF", Binding::SelfService { entrypoint: Some("Named".to_owned()) })
}

#[test]
fn a_worker_answers_with_env_and_ctx() {
    let mut world = World::worker(bound(
        "import { env as imported } from 'cloudflare:workers';
        const atStart = imported.TEXT;
        export default { async fetch(request, env, ctx) {
          ctx.waitUntil(Promise.resolve());
          return new Response([request.url, await request.text(), env.TEXT, env.JSON.a[0], imported === env, atStart].join(), { status: 201, headers: { 'x-a': 'b' } });
        } };",
    ));
    let event =
        world.request(Method::POST, "https://host/p?q", IncomingBody::Whole(Bytes::from_static(b"body")));
    assert_eq!(world.text(event), "https://host/p?q,body,text,1,true,text");
    let response = world.response(event).unwrap();
    assert_eq!((response.status, response.headers["x-a"].as_bytes()), (201, &b"b"[..]));
    assert!(world.is_done(event) && world.isolate.is_idle());
}

#[test]
fn an_isolate_keeps_nothing_of_events_that_are_done() {
    let mut world = World::worker(application(
        "export default { async fetch(request, env, ctx) {
          ctx.waitUntil(scheduler.wait(5));
          await scheduler.wait(5);
          return new Response('');
        } }",
    ));
    let events = [world.get("https://x/"), world.get("https://x/")];
    assert_eq!(world.isolate.budget.charged(), 2);
    while !events.iter().all(|event| world.is_done(*event)) {
        world.wait();
    }
    assert_eq!(world.isolate.budget.charged(), 0);
}

#[test]
fn a_worker_entrypoint_is_made_for_each_event() {
    let mut world = World::worker(application(
        "import { WorkerEntrypoint } from 'cloudflare:workers';
        export default class extends WorkerEntrypoint {
          count = 0;
          async fetch() { return new Response(String(++this.count)); }
          add(a, b) { return { sum: a + b }; }
        }",
    ));
    let (first, second) = (world.get("https://x/"), world.get("https://x/"));
    assert_eq!((world.text(first), world.text(second)), ("1".to_owned(), "1".to_owned()));
    let call = world.call("add", "[1, 2]");
    assert_eq!(world.returned(call), r#"{"sum":3}"#);
}

#[test]
fn what_a_handler_throws_fails_its_event_with_a_stack_that_names_the_module() {
    let mut world =
        World::worker(application("export default { fetch() {\n throw new RangeError('no'); } };"));
    let event = world.get("https://x/");
    let error = world.failure(event);
    assert_eq!((error.name.as_str(), error.message.as_str()), ("RangeError", "no"));
    assert!(error.stack.unwrap().contains("main.js:2"));
    assert!(world.is_done(event));
    let mut world = World::worker(application("export default { async fetch() { return 'text'; } };"));
    let event = world.get("https://x/");
    assert_eq!(
        world.failed(event),
        "TypeError: Incorrect type for Promise: the Promise did not resolve to 'Response'."
    );
    let mut world = World::worker(application("export default {};"));
    let event = world.get("https://x/");
    assert_eq!(world.failed(event), "Error: Handler does not export a fetch() function.");
}

#[test]
fn an_event_is_done_when_its_body_and_its_promises_are() {
    let mut world = World::worker(application(
        "export default { fetch(request, env, ctx) {
          ctx.waitUntil((async () => { await scheduler.wait(10); throw new Error('late'); })());
          setInterval(() => {}, 1000);
          let left = 2;
          return new Response(new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(new TextEncoder().encode('c' + left)); else c.close(); } }));
        } };",
    ));
    let event = world.get("https://x/");
    let Some(OutgoingBody::Stream(body)) = world.response(event).map(|response| response.body.clone()) else {
        panic!("{:?}", world.effects)
    };
    for chunk in ["c1", "c0"] {
        let (op, started) = world.ops().pop().unwrap();
        assert_eq!(started, Op::WriteBody { body, chunk: Bytes::from(chunk) });
        assert!(!world.effects.contains(&Effect::EndBody { body }));
        world.complete(op, OpAnswer::Written);
    }
    assert!(world.effects.contains(&Effect::EndBody { body }));
    assert!(!world.is_done(event));
    world.wait();
    assert!(world.is_done(event));
    assert!(world.log()[0].starts_with("Uncaught (in waitUntil) Error: late"), "{:?}", world.log());
    assert!(world.isolate.is_idle(), "the interval ended with its event");
}

#[test]
fn a_body_that_breaks_is_aborted_and_never_ends() {
    let mut world = World::worker(application(
        "export default { fetch() { return new Response(new ReadableStream({ pull(c) { c.error(new Error('broke')); } })); } };",
    ));
    let event = world.get("https://x/");
    let aborted =
        |effect: &Effect| matches!(effect, Effect::AbortBody { error, .. } if error.message == "broke");
    assert!(world.effects.iter().any(aborted), "{:?}", world.effects);
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::EndBody { .. })));
    assert!(world.is_done(event));
}

#[test]
fn a_streamed_request_is_read_chunk_by_chunk() {
    let mut world = World::worker(application(
        "export default { async fetch(r) { return new Response(await r.text()); } };",
    ));
    let id = IncomingBodyId::new(5);
    let event = world.request(Method::POST, "https://x/", IncomingBody::Stream(id));
    for chunk in [Some("ab"), Some("c"), None] {
        let (op, started) = world.ops().pop().unwrap();
        assert_eq!(started, Op::ReadBody { body: id });
        world.complete(op, OpAnswer::Chunk(chunk.map(Bytes::from)));
    }
    assert_eq!(world.text(event), "abc");
}

#[test]
fn what_a_worker_waits_for_ends_with_its_event() {
    let mut world = World::worker(application(
        "export default { fetch() { fetch('https://other/'); return new Response('x'); } };",
    ));
    let event = world.get("https://x/");
    let (op, _) = world.ops().pop().unwrap();
    assert!(world.is_done(event));
    assert!(world.effects.contains(&Effect::Cancel { op }));
    assert!(world.isolate.is_idle());
}

#[test]
fn an_object_keeps_its_state_between_events() {
    let mut world = counter();
    let first = world.call("increment", "[]");
    let second = world.call("increment", "[41]");
    assert_eq!((world.returned(first), world.returned(second)), ("1".to_owned(), "42".to_owned()));
    let event = world.get("https://x/path");
    assert_eq!(world.text(event), "GET /path 42");
    let later = world.call("later", "[]");
    assert!(!world.is_done(later) && !world.isolate.is_idle());
    world.wait();
    assert_eq!(world.returned(later), "\"a!\"");
    assert!(world.isolate.is_idle());
}

#[test]
fn only_methods_of_the_class_can_be_called() {
    let mut world = counter();
    let mut fails = |method: &str| {
        let event = world.call(method, "[]");
        world.failed(event)
    };
    for own in ["missing", "own", "notMethod", "value", "hasOwnProperty", "toString", "#secret", "__proto__"]
    {
        assert_eq!(
            fails(own),
            format!("TypeError: The RPC receiver does not implement the method \"{own}\".")
        );
    }
    for reserved in ["constructor", "fetch", "alarm", "webSocketMessage", "dup"] {
        assert_eq!(
            fails(reserved),
            format!("TypeError: '{reserved}' is a reserved method and cannot be called over RPC.")
        );
    }
    assert_eq!(fails("throws"), "RangeError: too far");
    let event = world.call("computed", "[]");
    assert_eq!(world.returned(event), "\"computed\"");
    assert_eq!(world.broken, None);
}

#[test]
fn a_legacy_class_has_fetch_and_no_rpc() {
    let source = "export class Old { constructor(state, env) { this.state = state; } method() {} fetch() { return new Response(this.state.id.toString()); } }";
    let mut world = World::object(application(source), "Old", "a");
    let event = world.get("https://x/");
    assert_eq!(world.text(event), id_from_name("Old", "a"));
    let event = world.call("method", "[]");
    assert!(world.failed(event).starts_with("TypeError: The receiving Durable Object does not support RPC"));
}

#[test]
fn events_wait_while_the_constructor_blocks_concurrency() {
    let source = "import { DurableObject } from 'cloudflare:workers';
        export class Slow extends DurableObject {
          order = [];
          constructor(ctx, env) {
            super(ctx, env);
            ctx.blockConcurrencyWhile(async () => { this.order.push('a'); await scheduler.wait(10); this.order.push('b'); });
            ctx.blockConcurrencyWhile(async () => { this.order.push('c'); await scheduler.wait(10); this.order.push('d'); });
            this.order.push('constructed');
          }
          call(name) { this.order.push(name); return this.order.join(); }
        }";
    let mut world = World::object(application(source), "Slow", "a");
    let first = world.call("call", "['first']");
    let second = world.call("call", "['second']");
    world.wait();
    assert!(!world.is_done(first) && !world.is_done(second));
    world.wait();
    assert_eq!(world.returned(first), "\"constructed,a,b,c,d,first\"");
    assert_eq!(world.returned(second), "\"constructed,a,b,c,d,first,second\"");
    assert!(world.isolate.is_idle());
}

#[test]
fn a_section_holds_back_events_timers_and_answers_but_not_its_own() {
    let source = "import { DurableObject } from 'cloudflare:workers';
        export class Gate extends DurableObject {
          order = [];
          async slow() { await fetch('https://slow/'); this.order.push('slow'); }
          async section() {
            setTimeout(() => this.order.push('timer'), 1);
            const value = await this.ctx.blockConcurrencyWhile(async () => {
              await fetch('https://inner/');
              await this.ctx.blockConcurrencyWhile(() => scheduler.wait(5));
              this.order.push('inner');
              return 7;
            });
            this.order.push(value);
          }
          seen() { return this.order; }
        }";
    let mut world = World::object(application(source), "Gate", "a");
    let answer = || {
        OpAnswer::Response(IncomingResponse {
            status: 200,
            status_text: String::new(),
            headers: HeaderMap::new(),
            body: IncomingBody::None,
            url: String::new(),
            redirected: false,
            is_socket: false,
        })
    };
    let slow = world.call("slow", "[]");
    let section = world.call("section", "[]");
    let [(slow_op, _), (inner_op, _)] = world.ops()[..] else { panic!("{:?}", world.effects) };
    world.complete(slow_op, answer());
    world.wait();
    let seen = world.call("seen", "[]");
    assert!(!world.is_done(slow) && !world.is_done(seen));
    world.complete(inner_op, answer());
    assert!(!world.is_done(section));
    world.wait();
    assert!(world.is_done(slow) && world.is_done(section));
    assert_eq!(world.returned(seen), r#"["inner",7,"slow","timer"]"#);
}

#[test]
fn an_object_breaks_with_its_constructor_its_section_or_by_itself() {
    let broken = |body: &str| {
        let source = format!(
            "import {{ DurableObject }} from 'cloudflare:workers'; export class Bad extends DurableObject {{ {body} }}"
        );
        let mut world = World::object(application(&source), "Bad", "a");
        world.call("call", "[]");
        if world.broken.is_none() {
            world.wait();
        }
        assert!(
            world.effects.iter().all(|effect| matches!(effect, Effect::Log { .. })),
            "{:?}",
            world.effects
        );
        world.broken.unwrap()
    };
    let BrokenCause::ConstructorThrew(error) =
        broken("constructor(c, e) { super(c, e); throw new TypeError('new'); }")
    else {
        panic!()
    };
    assert_eq!((error.name.as_str(), error.message.as_str()), ("TypeError", "new"));
    let BrokenCause::BlockConcurrencyFailed(error) =
        broken("call() { return this.ctx.blockConcurrencyWhile(async () => { throw new Error('in'); }); }")
    else {
        panic!()
    };
    assert_eq!(error.message, "in");
    let BrokenCause::BlockConcurrencyFailed(error) =
        broken("call() { return this.ctx.blockConcurrencyWhile(() => new Promise(() => {})); }")
    else {
        panic!()
    };
    assert!(
        error
            .message
            .starts_with("A call to blockConcurrencyWhile() in a Durable Object waited for too long.")
    );
    let BrokenCause::Aborted(error) =
        broken("call() { try { this.ctx.abort('reason'); } catch {} return 1; }")
    else {
        panic!()
    };
    assert_eq!(error.message, "reason");
}

#[test]
fn a_stub_calls_the_object_of_its_id() {
    let mut world = World::worker(bound(
        "export default { async fetch(request, env) {
          const id = env.OBJECTS.idFromName('n');
          const stub = await (async () => env.OBJECTS.get(id))();
          try {
            return new Response(JSON.stringify([await stub.increment(2, { a: new Date(0) }), stub.id === id, stub.name]));
          } catch (e) { return new Response(JSON.stringify([e.name, e.message, e.remote, e.retryable, e instanceof RangeError])); }
        } };",
    ));
    let first = world.get("https://x/");
    let (op, Op::CallObject { class, id, name, call: OutgoingCall::Rpc { method, args }, .. }) =
        world.ops().pop().unwrap()
    else {
        panic!("{:?}", world.effects)
    };
    assert_eq!(
        (class.as_str(), id, name.as_deref(), method.as_str()),
        ("Counter", id_from_name("Counter", "n"), Some("n"), "increment")
    );
    assert_eq!(args, world.serialize("[2, { a: new Date(0) }]"));
    let value = world.serialize("({ m: 1 })");
    world.complete(op, OpAnswer::Returned(value));
    assert_eq!(world.text(first), r#"[{"m":1},true,"n"]"#);
    let second = world.get("https://x/");
    let (op, _) = world.ops().pop().unwrap();
    let error =
        JsError { name: "RangeError".to_owned(), remote: true, retryable: true, ..JsError::new("far") };
    world.complete(op, OpAnswer::Failed(error));
    assert_eq!(world.text(second), r#"["RangeError","far",true,true,true]"#);
}

#[test]
fn a_stub_fetches_from_its_object() {
    let mut world = World::worker(bound(
        "export default { async fetch(request, env) {
          const response = await env.OBJECTS.getByName('n').fetch('https://do/path', { method: 'POST', body: 'b', headers: { a: '1' } });
          return new Response(response.status + await response.text());
        } };",
    ));
    let event = world.get("https://x/");
    let (op, Op::CallObject { call: OutgoingCall::Fetch(request), .. }) = world.ops().pop().unwrap() else {
        panic!("{:?}", world.effects)
    };
    assert_eq!(
        (request.method, request.url.as_str(), request.body),
        (Method::POST, "https://do/path", OutgoingBody::Whole(Bytes::from_static(b"b")))
    );
    assert_eq!(request.headers["a"], "1");
    world.complete(
        op,
        OpAnswer::Response(IncomingResponse {
            status: 418,
            status_text: String::new(),
            headers: HeaderMap::new(),
            body: IncomingBody::Whole(Bytes::from_static(b"tea")),
            url: String::new(),
            redirected: false,
            is_socket: false,
        }),
    );
    assert_eq!(world.text(event), "418tea");
}

/// What an expression in a Worker's handler gives, as JSON; or its error.
fn in_worker(expression: &str) -> String {
    let source = format!(
        "import {{ WorkerEntrypoint, RpcTarget }} from 'cloudflare:workers';
        export class Named extends WorkerEntrypoint {{
          async fetch(r) {{ return new Response('named ' + r.url); }}
          twice(x) {{ return {{ value: x * 2 }}; }}
          mine() {{ return this.ctx.props; }}
        }}
        export default {{ async fetch(request, env, ctx) {{
          try {{ return Response.json(await ({expression})); }} catch (e) {{ return new Response(String(e)); }}
        }} }};"
    );
    let mut world = World::worker(bound(&source));
    let event = world.get("https://x/");
    world.text(event)
}

#[test]
fn ids_are_made_compared_and_refused() {
    assert_eq!(
        in_worker("env.OBJECTS.idFromName('a').toString()"),
        format!("\"{}\"", id_from_name("Counter", "a"))
    );
    assert_eq!(
        in_worker(
            "[env.OBJECTS.idFromName('a').name, env.OBJECTS.newUniqueId().name ?? null, env.OBJECTS.newUniqueId().toString().length]"
        ),
        r#"["a",null,64]"#
    );
    assert_eq!(
        in_worker(
            "(() => { const id = env.OBJECTS.newUniqueId(); const again = env.OBJECTS.idFromString(id.toString()); return [id.equals(again), id.equals(env.OBJECTS.newUniqueId())]; })()"
        ),
        "[true,false]"
    );
    assert_eq!(
        in_worker("env.OBJECTS.idFromString('x')"),
        "TypeError: Invalid Durable Object ID: must be 64 hex digits"
    );
    assert_eq!(
        in_worker("env.OBJECTS.idFromString('0'.repeat(64))"),
        "TypeError: Durable Object ID is not valid for this namespace."
    );
    assert_eq!(
        in_worker("env.OBJECTS.get('x')"),
        "TypeError: Failed to execute 'get' on 'DurableObjectNamespace': parameter 1 is not of type 'DurableObjectId'."
    );
}

#[test]
fn the_worker_can_call_itself() {
    assert_eq!(
        in_worker("env.SELF.fetch('https://self/p').then(r => r.text())"),
        r#""named https://self/p""#
    );
    assert_eq!(in_worker("env.SELF.twice(21)"), r#"{"value":42}"#);
    assert_eq!(
        in_worker("env.SELF.missing()"),
        "TypeError: The RPC receiver does not implement the method \"missing\"."
    );
}

#[test]
fn what_is_missing_says_so_by_name() {
    for (expression, name) in [
        ("new HTMLRewriter()", "HTMLRewriter"),
        ("env.OBJECTS.jurisdiction('eu')", "a jurisdiction of Durable Objects"),
        ("env.OBJECTS.newUniqueId({ jurisdiction: 'eu' })", "a jurisdiction of Durable Objects"),
    ] {
        assert_eq!(in_worker(expression), format!("Error: {name} is not supported yet."));
    }
}

#[test]
fn what_the_application_exports_is_called_by_ctx_exports() {
    for (expression, answer) in [
        ("ctx.exports.Named.twice(4)", "{\"value\":8}"),
        ("ctx.exports.Named.fetch('https://self/p').then(r => r.text())", "\"named https://self/p\""),
        ("ctx.exports.Named({ props: { a: 1 } }).mine()", "{\"a\":1}"),
        ("ctx.exports.Named.mine()", "{}"),
        (
            "[ctx.props, typeof ctx.exports.Named, ctx.exports.Named === ctx.exports.Named, ctx.exports.none === undefined]",
            "[{},\"function\",true,true]",
        ),
        (
            "ctx.exports.Named()",
            "TypeError: Failed to execute '(called as function)' on 'LoopbackServiceStub': parameter 1 is not of type 'Options'.",
        ),
        (
            "ctx.exports.Named({ props: 5 })",
            "TypeError: Incorrect type for the 'props' field on 'Options': the provided value is not of type 'Object'.",
        ),
    ] {
        assert_eq!(in_worker(expression), answer, "{expression}");
    }
}
