//! A Worker and an object whose calls carry references, joined as a fleet joins them: by operations, and by the messages of
//! sessions.

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use http::HeaderMap;

use super::{CALLS_MAX, REFERENCES_MAX};
use crate::effect::{
    Effect, EventCall, EventId, IncomingBody, IncomingResponse, JsError, Op, OpAnswer, OpId, OutgoingCall,
    SocketAction, SocketEnd, SocketEvent, SocketId,
};
use crate::testing::application;
use crate::testing::world::World;
use crate::{Application, Binding};

const OBJECT: &str = "
    import { DurableObject, RpcTarget } from 'cloudflare:workers';
    class Counter extends RpcTarget {
        #value;
        constructor(value, owner) { super(); this.#value = value; this.own = 1; this.owner = owner; }
        increment(by = 1) { this.#value += by; return this.#value; }
        get value() { return this.#value; }
        get deep() { return { inner: new Counter(this.#value * 10), list: [this.#value] }; }
        fail(text) { throw new RangeError(text); }
        failAtLength() { throw new RangeError('x'.repeat(9 << 20)); }
        tooMuch() { return [new Counter(1, this.owner), 'x'.repeat(9 << 20)]; }
        take(target, text) { return text.length; }
        hang() { return new Promise(() => {}); }
        [Symbol.dispose]() { this.owner.count += 1; }
    }
    class Plain { a = 1; }
    const bytes = text => new TextEncoder().encode(text);
    export class Rows extends DurableObject {
        count = 0;
        order = [];
        counter(value) { return new Counter(value, this); }
        disposals() { return this.count; }
        counters() { return [new Counter(1, this), { two: new Counter(2, this) }]; }
        adder(a) { return b => a + b; }
        nested() { return { name: 'x', add: (a, b) => a + b, in: { twice: x => x * 2 } }; }
        plain() { return new Plain(); }
        get property() { return 'of a getter'; }
        many(count) { return Array.from({ length: count }, () => () => 1); }
        echo(value) { return value; }
        async call(callback, ...values) { return callback(...values); }
        async callTwice(callback) { return [await callback(1), await callback(2)]; }
        async callAll(callback, count) { return (await Promise.allSettled(Array.from({ length: count }, () => callback()))).filter(end => end.status === 'rejected').length; }
        async read(target, name) { return target[name]; }
        keep(callback) { this.kept = callback; }
        keepDup(callback) { this.kept = callback.dup(); }
        callKept(...values) { return this.kept(...values); }
        note(value) { this.order.push(value); }
        async gated(callback) { return this.ctx.blockConcurrencyWhile(async () => { const got = await callback(); this.note('section'); return got; }); }
        noted() { return this.order; }
        stream(...parts) { return new ReadableStream({ type: 'bytes', pull(controller) {
            const part = parts.shift();
            if (part === undefined) controller.close(); else controller.enqueue(bytes(part));
        } }); }
        broken() { return new ReadableStream({ pull(controller) { controller.error(new RangeError('it broke')); } }); }
        async text(stream) { return new Response(stream).text(); }
        sink() { const seen = this.order; return new WritableStream({ write(chunk) { seen.push(chunk.length); }, close() { seen.push('end'); } }); }
        response() { return new Response('made', { status: 201, headers: { 'x-b': 'b' } }); }
        request(request) { return request.text().then(text => [request.method, request.url, text]); }
    }
    const handler = { async fetch(request, env) {
        const stub = env.ROWS.getByName('a');
        const { RpcTarget, RpcStub } = await import('cloudflare:workers');
        class Mine extends RpcTarget { constructor() { super(); this.own = 2; } twice(x) { return x * 2; } get seven() { return 7; } [Symbol.dispose]() { Mine.disposals += 1; } static disposals = 0; }
        const thrown = async body => { try { await body(); } catch (e) { return `${e.name}: ${e.message}`; } return 'nothing'; };
        const result = await (async () => { EXPRESSION })();
        return new Response(typeof result === 'string' ? result : JSON.stringify(result));
    } };
    export default handler;
    export class Caller extends DurableObject { fetch(request) { return handler.fetch(request, this.env); } }
";

fn code(expression: &str) -> Application {
    let binding = Binding::ObjectNamespace { class: "Rows".into() };
    application(&OBJECT.replace("EXPRESSION", expression)).bind("ROWS", binding)
}

/// What is on its way from one isolate to the other.
enum Letter {
    ToObject(OpId, OutgoingCall),
    ToWorker(OpId, OpAnswer),
    ObjectHears(SocketId, SocketEvent),
    WorkerHears(SocketId, SocketEvent),
}

struct Pair {
    worker: World,
    object: World,
    calls: HashMap<EventId, (OpId, Option<SocketId>)>,
    /// The sockets of sessions: the Worker's, the object's.
    sessions: Vec<(SocketId, SocketId)>,
    letters: VecDeque<Letter>,
    /// The object's sockets that are not over.
    held: HashSet<SocketId>,
    cancelled: HashSet<OpId>,
    opened: usize,
    /// The object lets go of what nobody has come for before it hears of a session.
    is_late: bool,
}

impl Pair {
    fn new(expression: &str) -> Self {
        Self::of(World::worker(code(expression)), expression)
    }

    /// With an object as the caller.
    fn of_objects(expression: &str) -> Self {
        Self::of(World::object(code(expression), "Caller", "b"), expression)
    }

    fn of(worker: World, expression: &str) -> Self {
        let object = World::object(code(expression), "Rows", "a");
        let (calls, sessions, letters) = (HashMap::new(), Vec::new(), VecDeque::new());
        Self {
            worker,
            object,
            calls,
            sessions,
            letters,
            held: HashSet::new(),
            cancelled: HashSet::new(),
            opened: 0,
            is_late: false,
        }
    }

    fn collect(&mut self) {
        for effect in std::mem::take(&mut self.worker.effects) {
            match effect {
                Effect::Start { op, op_call: Op::CallObject { call, .. } } => {
                    self.letters.push_back(Letter::ToObject(op, call));
                }
                // What nobody waits for any more does not arrive, or its answer finds nobody.
                Effect::Cancel { op } => {
                    self.letters.retain(|letter| !matches!(letter, Letter::ToObject(of, _) if *of == op));
                    self.cancelled.insert(op);
                }
                Effect::Socket { socket, action } => {
                    let peer = self.sessions.iter().find(|(ours, _)| *ours == socket).map(|(_, peer)| *peer);
                    if let Some((peer, event)) = peer.zip(heard(action)) {
                        self.letters.push_back(Letter::ObjectHears(peer, event));
                    }
                }
                other => self.worker.effects.push(other),
            }
        }
        for effect in std::mem::take(&mut self.object.effects) {
            match effect {
                Effect::Return { event, value } => self.answer(event, OpAnswer::Returned(value)),
                Effect::Fail { event, error, .. } => {
                    self.answer(event, OpAnswer::Failed(JsError { remote: true, ..error }));
                }
                Effect::Respond { event, response } => {
                    let Some(SocketEnd::Own(theirs)) = response.socket else { panic!("{response:?}") };
                    let (_, Some(ours)) = self.calls[&event] else { panic!("no session was asked for") };
                    self.sessions.push((ours, theirs));
                    self.held.insert(theirs);
                    self.opened += 1;
                    self.answer(event, OpAnswer::Response(open()));
                }
                Effect::Socket { socket, action } => {
                    if action == SocketAction::Over {
                        self.held.remove(&socket);
                    }
                    let peer =
                        self.sessions.iter().find(|(_, theirs)| *theirs == socket).map(|(ours, _)| *ours);
                    if let Some((peer, event)) = peer.zip(heard(action)) {
                        self.letters.push_back(Letter::WorkerHears(peer, event));
                    }
                }
                other => self.object.effects.push(other),
            }
        }
    }

    fn answer(&mut self, event: EventId, answer: OpAnswer) {
        let (op, _) = self.calls.remove(&event).expect("an event is answered once");
        self.letters.push_back(Letter::ToWorker(op, answer));
    }

    /// Lets the object give up what nobody has come for.
    fn let_go(&mut self) {
        while self.object.isolate.next_deadline().is_some() {
            self.object.wait();
        }
    }

    /// Delivers until nothing is on its way.
    fn run(&mut self) {
        loop {
            self.collect();
            let Some(letter) = self.letters.pop_front() else { return };
            match letter {
                Letter::ToObject(op, OutgoingCall::Rpc { method, args }) => {
                    let event = self.object.dispatch(EventCall::Rpc { method, args, takes_references: true });
                    self.calls.insert(event, (op, None));
                }
                Letter::ToObject(op, OutgoingCall::Session { socket, first }) => {
                    if self.is_late {
                        self.let_go();
                    }
                    let event = self.object.dispatch(EventCall::Session { first });
                    self.calls.insert(event, (op, Some(socket)));
                }
                Letter::ToObject(_, OutgoingCall::Fetch(_)) => unreachable!("nothing fetches here"),
                Letter::ToWorker(op, answer) if self.cancelled.contains(&op) => {
                    if let (OpAnswer::Response(_), Some((_, theirs))) = (answer, self.sessions.last()) {
                        self.letters.push_back(Letter::ObjectHears(*theirs, lost()));
                    }
                }
                Letter::ToWorker(op, answer) => self.worker.complete(op, answer),
                Letter::ObjectHears(socket, event) => {
                    // As its node does: nothing is told of a socket that is over.
                    if self.held.contains(&socket) {
                        self.object.dispatch(EventCall::Socket { socket, event });
                    }
                }
                Letter::WorkerHears(socket, event) => self.worker.socket(socket, event),
            }
            assert_eq!((&self.worker.broken, &self.object.broken), (&None, &None));
        }
    }
}

fn heard(action: SocketAction) -> Option<SocketEvent> {
    match action {
        SocketAction::Send(message) => Some(SocketEvent::Message(message)),
        SocketAction::Close { code, reason } => {
            Some(SocketEvent::Close { code: code.unwrap(), reason, was_clean: true })
        }
        SocketAction::Accept { is_hibernatable } => {
            assert!(!is_hibernatable, "what holds references stays awake");
            None
        }
        // The end of a body: who has heard a close does not read that far.
        SocketAction::Over => Some(lost()),
        SocketAction::Taken => None,
    }
}

fn lost() -> SocketEvent {
    SocketEvent::Close { code: 1006, reason: String::new(), was_clean: false }
}

fn open() -> IncomingResponse {
    IncomingResponse {
        status: 101,
        status_text: String::new(),
        headers: HeaderMap::new(),
        body: IncomingBody::None,
        url: String::new(),
        redirected: false,
        is_socket: true,
    }
}

/// What a Worker's handler with this body answers. Nothing of it is left at the object then.
fn gives(expression: &str) -> String {
    let mut pair = Pair::new(expression);
    let event = pair.worker.get("https://x/");
    pair.run();
    let text = pair.worker.text(event);
    assert!(pair.worker.is_done(event) && pair.worker.isolate.is_idle(), "{expression}");
    pair.let_go();
    assert!(pair.object.isolate.is_idle(), "{expression}");
    text
}

#[track_caller]
fn all(cases: &[(&str, &str)]) {
    for (expression, answer) in cases {
        assert_eq!(gives(expression), *answer, "{expression}");
    }
}

#[test]
fn what_a_method_gives_is_called_where_it_is() {
    all(&[
        (
            "const c = await stub.counter(5); return [await c.increment(), await c.increment(2), await c.value];",
            "[6,8,8]",
        ),
        ("const [one, { two }] = await stub.counters(); return [await one.value, await two.value];", "[1,2]"),
        (
            "const add = await stub.adder(3); return [await add(4), typeof add, add instanceof RpcStub, add.then ?? null];",
            "[7,\"function\",true,null]",
        ),
        (
            "const o = await stub.nested(); return [o.name, await o.add(1, 2), await o.in.twice(4), Object.keys(o).join()];",
            "[\"x\",3,8,\"name,add,in\"]",
        ),
        (
            "const c = await stub.counter(5); return [await c.deep.list, await c.deep.inner.increment()];",
            "[[5],51]",
        ),
        (
            "const c = await stub.counter(5); return Promise.all([thrown(() => c.own), thrown(() => c.none()), thrown(() => c.value()), thrown(() => c())]);",
            r#"["TypeError: The RPC receiver does not implement the method \"own\".","TypeError: The RPC receiver does not implement the method \"none\".","TypeError: \"value\" is not a function.","TypeError: \"(this)\" is not a function."]"#,
        ),
        (
            "const c = await stub.counter(5); try { await c.fail('why'); } catch (e) { return [e instanceof RangeError, e.message, e.remote]; }",
            "[true,\"why\",true]",
        ),
        (
            "return [await stub.property, await thrown(() => stub.count)];",
            r#"["of a getter","TypeError: The RPC receiver does not implement the method \"count\"."]"#,
        ),
        (
            "return thrown(() => stub.plain());",
            "DataCloneError: Could not serialize object of type \"Plain\". This type does not support serialization.",
        ),
    ]);
}

#[test]
fn a_result_may_be_used_before_it_is_there() {
    all(&[
        (
            "return [await stub.counter(5).increment(), await stub.counter(5).value, await stub.adder(3)(4), await stub.nested().in.twice(2)];",
            "[6,5,7,4]",
        ),
        (
            "return Promise.all([thrown(() => stub.echo(1).none()), thrown(() => stub.echo({ a: 1 }).a()), stub.echo({ a: 1 }).a]);",
            r#"["TypeError: The RPC receiver does not implement the method \"none\".","TypeError: \"a\" is not a function.",1]"#,
        ),
        ("return thrown(() => stub.counter(5).fail('later'));", "RangeError: later"),
        (
            "const p = stub.echo(1); return [typeof p, p instanceof Promise, await p.then(x => x + 1), await stub.echo(2).finally(() => {})];",
            "[\"function\",false,2,2]",
        ),
    ]);
}

#[test]
fn arguments_are_called_back_while_the_call_lives() {
    all(&[
        ("return stub.call((a, b) => a + b, 1, 2);", "3"),
        (
            "let sum = 0; const got = await stub.callTwice(async x => { sum += x; return x * 3; }); return [sum, got];",
            "[3,[3,6]]",
        ),
        ("return thrown(() => stub.call(() => { throw new TypeError('in it'); }));", "TypeError: in it"),
        (
            "return [await stub.read(new Mine(), 'seven'), await thrown(() => stub.read(new Mine(), 'own'))];",
            r#"[7,"TypeError: The RPC receiver does not implement the method \"own\"."]"#,
        ),
        ("const f = await stub.call(() => x => x + 1); return f(1);", "2"),
        ("const f = await stub.echo(x => x + 1); return [typeof f, await f(1)];", "[\"function\",2]"),
        (
            "await stub.keep(() => 1); return thrown(() => stub.callKept());",
            "Error: RPC stub used after being disposed.",
        ),
        ("await stub.keepDup(x => x + 1); return [await stub.callKept(1), await stub.callKept(2)];", "[2,3]"),
        // The object's gate is closed, and what the section waits for passes.
        (
            "const [a] = await Promise.all([stub.gated(() => 'got'), stub.note('after')]); return [a, await stub.noted()];",
            "[\"got\",[\"section\",\"after\"]]",
        ),
    ]);
}

#[test]
fn stubs_are_duplicated_and_disposed_of() {
    all(&[
        (
            "const c = await stub.counter(5); const d = c.dup(); c[Symbol.dispose](); return [await d.increment(), await thrown(() => c.increment()), await stub.echo(0)];",
            r#"[6,"Error: RPC stub used after being disposed.",0]"#,
        ),
        (
            "const o = await stub.nested(); o[Symbol.dispose](); return thrown(() => o.add(1, 2));",
            "Error: RPC stub used after being disposed.",
        ),
        (
            "const o = await stub.echo({ a: 1 }); return [typeof o[Symbol.dispose], Object.getOwnPropertySymbols(o).length];",
            "[\"function\",1]",
        ),
        (
            "const s = new RpcStub(new Mine()); return [await s.twice(4), await s.seven, s instanceof RpcStub];",
            "[8,7,true]",
        ),
        (
            "return thrown(() => new RpcStub(1));",
            "TypeError: Failed to construct 'JsRpcStub': constructor parameter 1 is not of type 'Object'.",
        ),
    ]);
}

#[test]
fn a_target_is_told_when_nobody_has_a_stub_of_it_any_more() {
    let mut pair = Pair::new(
        "const c = await stub.counter(1); const d = c.dup(); c[Symbol.dispose](); await stub.echo(1); d[Symbol.dispose](); await stub.counter(2); return 'x';",
    );
    let event = pair.worker.get("https://x/");
    pair.run();
    assert_eq!(pair.worker.text(event), "x");
    // Nobody comes for the second: its caller's event is over.
    assert_eq!(pair.opened, 1);
    pair.let_go();
    assert!(pair.object.isolate.is_idle());
    let count = pair.object.call("disposals", "[]");
    assert_eq!(pair.object.returned(count), "2");
}

#[test]
fn streams_requests_and_responses_cross() {
    all(&[
        ("return new Response(await stub.stream('one ', 'two')).text();", "one two"),
        ("return thrown(async () => new Response(await stub.broken()).text());", "RangeError: it broke"),
        ("return stub.text(new Response('there').body);", "there"),
        (
            "return stub.text(ReadableStream.from([new Uint8Array([97]), new Uint8Array(0), new Uint8Array([98])]));",
            "ab",
        ),
        (
            "return (await new Response(await stub.echo(new Response('x'.repeat(300000)).body)).text()).length;",
            "300000",
        ),
        (
            "const w = (await stub.sink()).getWriter(); await w.write(new Uint8Array(3)); await w.close(); return stub.noted();",
            "[3,\"end\"]",
        ),
        (
            "const r = await stub.response(); return [r instanceof Response, r.status, r.headers.get('x-b'), await r.text()];",
            "[true,201,\"b\",\"made\"]",
        ),
        (
            "return stub.request(new Request('http://x/y', { method: 'POST', body: 'b' }));",
            "[\"POST\",\"http://x/y\",\"b\"]",
        ),
        ("return [...await stub.echo(new Headers({ b: '2', a: '1' }))];", "[[\"a\",\"1\"],[\"b\",\"2\"]]"),
        (
            "return thrown(() => stub.echo(new FormData()));",
            "DataCloneError: Could not serialize object of type \"FormData\". This type does not support serialization.",
        ),
    ]);
}

#[test]
fn one_session_has_bounds() {
    all(&[
        (
            &format!("return thrown(() => stub.many({}));", REFERENCES_MAX + 1),
            &format!(
                "RangeError: An RPC session cannot hold more than {REFERENCES_MAX} references; dispose of some."
            ),
        ),
        (&format!("return (await stub.many({REFERENCES_MAX})).length;"), &REFERENCES_MAX.to_string()),
        (&format!("return stub.callAll(() => scheduler.wait === undefined, {});", CALLS_MAX + 1), "1"),
        (
            "return thrown(() => stub.call(() => 1, 'x'.repeat(9 << 20)));",
            "RangeError: A message of 9437250 bytes is too long for an RPC session: the limit is 8388608.",
        ),
    ]);
}

#[test]
fn calls_without_references_open_no_session() {
    let mut pair =
        Pair::new("await stub.echo({ a: new Date(0), b: [new Map([[1, 2]])] }); return stub.echo(1);");
    let event = pair.worker.get("https://x/");
    pair.run();
    assert_eq!((pair.worker.text(event).as_str(), pair.opened), ("1", 0));
}

#[test]
fn references_end_with_the_object() {
    let mut pair = Pair::new(
        "const c = await stub.counter(1); const ends = [];
         for (const method of ['hang', 'increment']) await c[method]().catch(e => ends.push(e));
         return [ends[0].message, ends[0].retryable ?? false, ends[1].retryable];",
    );
    let event = pair.worker.get("https://x/");
    pair.run();
    assert!(pair.worker.response(event).is_none());
    let (socket, _) = pair.sessions[0];
    pair.worker.socket(socket, lost());
    pair.run();
    assert_eq!(
        pair.worker.text(event),
        r#"["Network connection lost: the Durable Object that this RPC stub leads to has gone, and its references with it.",false,true]"#
    );
}

#[test]
fn what_nobody_comes_for_is_given_up() {
    let mut object = World::object(code("return 1;"), "Rows", "a");
    let event = object.call("counter", "[1]");
    assert!(object.is_done(event) && !object.isolate.is_idle());
    object.wait();
    assert!(object.isolate.is_idle());
    // Who comes too late is told that nothing is left.
    let bytes = object.serialize("[5, 'late']");
    object.effects.clear();
    object.dispatch(EventCall::Session { first: bytes });
    let closed = object.effects.iter().any(|effect| {
        matches!(effect, Effect::Socket { action: SocketAction::Close { code: Some(1001), .. }, .. })
    });
    assert!(closed && object.isolate.is_idle(), "{:?}", object.effects);
}

#[test]
fn whoever_comes_too_late_for_a_result_is_told_so() {
    let mut pair = Pair::new(
        "const c = await stub.counter(1); try { await c.increment(); } catch (e) { return [e.message, e.retryable]; }",
    );
    pair.is_late = true;
    let event = pair.worker.get("https://x/");
    pair.run();
    assert_eq!(
        pair.worker.text(event),
        r#"["Network connection lost: the caller came too late for the references of this RPC result (the Durable Object keeps them for 10 s, while it runs). Call the method again.",true]"#
    );
    assert!(pair.worker.isolate.is_idle() && pair.object.isolate.is_idle());
}

#[test]
fn objects_call_each_other_with_references() {
    for expression in [
        "const c = await stub.counter(5); return [await c.increment(), await stub.call((a, b) => a + b, 1, 2)];",
        "const c = await stub.counter(5); return Promise.all([c.increment(), stub.callTwice(async x => x - 5)]).then(all => [all[0], all[1][0] + 7]);",
    ] {
        let mut pair = Pair::of_objects(expression);
        let event = pair.worker.get("https://x/");
        pair.run();
        assert_eq!(pair.worker.text(event), "[6,3]");
        assert!(pair.worker.is_done(event), "{expression}");
        // What nobody can reach any more was disposed of.
        pair.let_go();
        assert!(pair.worker.isolate.is_idle() && pair.object.isolate.is_idle(), "{expression}");
    }
}

#[test]
fn what_cannot_be_said_on_a_session_is_told_and_has_given_nothing() {
    all(&[
        (
            "const c = await stub.counter(1); return thrown(() => c.failAtLength());",
            "RangeError: The call failed, and its error is too long for an RPC session.",
        ),
        (
            "const c = await stub.counter(1); return [await thrown(() => c.take(new Mine(), 'x'.repeat(9 << 20))), Mine.disposals, await c.take(new Mine(), 'x')];",
            r#"["RangeError: A message of 9437250 bytes is too long for an RPC session: the limit is 8388608.",1,1]"#,
        ),
        (
            "const c = await stub.counter(1); const text = await thrown(() => c.tooMuch()); return [text.slice(0, 24), await stub.disposals()];",
            r#"["RangeError: A message of",1]"#,
        ),
        (
            "const texts = await thrown(() => stub.call(new Mine(), 'x'.repeat(9 << 20))); return Mine.disposals;",
            "1",
        ),
    ]);
}

#[test]
fn a_caller_of_the_release_before_gets_no_references() {
    let mut object = World::object(code("return 1;"), "Rows", "a");
    let args = object.serialize("[1]");
    let event = object.dispatch(EventCall::Rpc { method: "adder".into(), args, takes_references: false });
    assert!(object.failed(event).starts_with("DataCloneError: "), "{}", object.failed(event));
    let event = object.dispatch(EventCall::Session { first: Bytes::new() });
    assert!(object.response(event).is_some_and(|response| response.status == 101));
}

#[test]
fn the_worker_calls_itself_with_references() {
    let source = "
        import { WorkerEntrypoint } from 'cloudflare:workers';
        export class Named extends WorkerEntrypoint {
            adder(a) { return b => a + b; }
            call(callback) { return callback(2); }
            text(stream) { return new Response(stream).text(); }
            get property() { return 'p'; }
        }
        export default { async fetch(request, env) {
            const add = await env.SELF.adder(1);
            return Response.json([await add(2), await env.SELF.call(x => x * 2), await env.SELF.text(new Response('s').body), await env.SELF.property, await env.SELF.adder(3)(4)]);
        } };";
    let binding = Binding::SelfService { entrypoint: Some("Named".into()) };
    let mut world = World::worker(application(source).bind("SELF", binding));
    let event = world.get("https://x/");
    assert_eq!(world.text(event), "[3,4,\"s\",\"p\",7]");
}
