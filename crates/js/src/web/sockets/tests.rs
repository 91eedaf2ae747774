use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};

use crate::effect::{
    Effect, EventCall, EventId, IncomingBody, IncomingRequest, IncomingResponse, Op, OpAnswer, OutgoingCall,
    SocketAction, SocketEnd, SocketEvent, SocketId, SocketMessage,
};
use crate::testing::world::World;
use crate::testing::{application, fails, run};

const PAIR: &str = "
    const { 0: a, 1: b } = new WebSocketPair();
    a.accept();
    b.accept();
    const next = (socket, type) => new Promise(done => socket.addEventListener(type, done, { once: true }));
";

fn pair(body: &str) -> String {
    run(&format!("{PAIR}{body}"))
}

#[test]
fn a_pair_carries_messages_in_order_and_then_the_close() {
    let seen = pair(
        "const seen = [];
        b.addEventListener('message', ({ data }) => seen.push(typeof data === 'string' ? data : [...new Uint8Array(data)]));
        const over = next(b, 'close');
        a.send('one'); a.send(new Uint8Array([1, 2, 3]).subarray(1)); a.close(4000, 'why');
        const { code, reason, wasClean } = await over;
        return [seen, code, reason, wasClean, a.readyState, b.readyState]",
    );
    assert_eq!(seen, r#"[["one",[2,3]],4000,"why",true,2,2]"#);
}

#[test]
fn what_waits_for_its_acceptance_is_kept() {
    let seen = run("
        const { 0: a, 1: b } = new WebSocketPair();
        a.accept(); a.send('1'); a.send('2');
        await scheduler.wait(1);
        const seen = [];
        b.onmessage = ({ data }) => { seen.push(data); };
        b.accept();
        await scheduler.wait(1);
        return seen");
    assert_eq!(seen, r#"["1","2"]"#);
}

#[test]
fn codes_that_no_close_may_carry_are_refused() {
    for code in ["999", "1004", "1005", "1006", "1015", "5000", "-1", "NaN", "null"] {
        let error = fails(&format!("{PAIR} a.close({code}, 'x')"));
        assert!(error.starts_with("InvalidAccessError: Invalid WebSocket close code: "), "{code}: {error}");
    }
    assert_eq!(pair("a.close(3000, 'r'.repeat(123)); return a.readyState"), "2");
    assert_eq!(
        fails(&format!("{PAIR} a.close(3000, 'é'.repeat(62))")),
        "SyntaxError: WebSocket close reason must not be longer than 123 bytes when UTF-8 encoded."
    );
    assert_eq!(
        fails(&format!("{PAIR} a.close(); a.send('x')")),
        "TypeError: Can't call WebSocket send() after close()."
    );
    assert_eq!(
        fails("new WebSocketPair()[0].send('x')"),
        "TypeError: You must call one of accept() or state.acceptWebSocket() on this WebSocket before sending messages."
    );
}

#[test]
fn a_response_gives_a_socket_away_with_status_101_alone() {
    assert_eq!(
        run(
            "const p = new WebSocketPair(); const r = new Response(null, { status: 101, webSocket: p[0] }); return r.webSocket === p[0]"
        ),
        "true"
    );
    assert_eq!(
        fails("new Response(null, { webSocket: new WebSocketPair()[0] })"),
        "RangeError: Responses with a WebSocket must have status code 101."
    );
    assert!(fails("new Response(null, { status: 101 })").starts_with("RangeError"));
    assert_eq!(
        fails("new Response(null, { status: 101, webSocket: new WebSocketPair()[0] }).clone()"),
        "TypeError: Cannot clone a response to a WebSocket handshake."
    );
}

const ROOM: &str = "
    import { DurableObject } from 'cloudflare:workers';
    export default {};
    export class Room extends DurableObject {
        async fetch(request) {
            const { 0: client, 1: server } = new WebSocketPair();
            if (new URL(request.url).pathname === '/classic') {
                server.accept();
                server.addEventListener('message', ({ data }) => server.send(`echo ${data}`));
                server.addEventListener('close', ({ code, wasClean }) => { console.log(`closed ${code} ${wasClean}`); server.close(); });
            } else {
                this.ctx.acceptWebSocket(server, ['a', 'b', 'a']);
                server.serializeAttachment({ n: 1 });
                this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'));
            }
            server.send('hello');
            return new Response(null, { status: 101, webSocket: client, headers: { 'x-a': 'b' } });
        }
        webSocketMessage(ws, message) {
            const { n } = ws.deserializeAttachment();
            ws.serializeAttachment({ n: n + 1 });
            ws.send(`${n} ${this.ctx.getTags(ws)} ${this.ctx.getWebSockets('b').length} ${message}`);
        }
        webSocketClose(ws, code, reason, wasClean) {
            console.log(`closed ${code} ${reason} ${wasClean} ${this.ctx.getWebSockets().length}`);
        }
        count() { return this.ctx.getWebSockets().length; }
    }
";

fn upgrade(world: &mut World, url: &str) -> EventId {
    let mut headers = HeaderMap::new();
    headers.insert("upgrade", HeaderValue::from_static("WebSocket"));
    let body = IncomingBody::None;
    world.dispatch(EventCall::Fetch(IncomingRequest {
        method: Method::GET,
        url: url.into(),
        headers,
        body,
        cf: None,
    }))
}

/// What was done with sockets, in order.
fn actions(world: &World) -> Vec<SocketAction> {
    let of = |effect: &Effect| match effect {
        Effect::Socket { action, .. } => Some(action.clone()),
        _ => None,
    };
    world.effects.iter().filter_map(of).collect()
}

fn text(text: &str) -> SocketMessage {
    SocketMessage::Text(text.to_owned())
}

fn message(of: &str) -> SocketEvent {
    SocketEvent::Message(text(of))
}

const CLOSED: SocketEvent = SocketEvent::Close { code: 1000, reason: String::new(), was_clean: true };

#[test]
fn a_classic_socket_keeps_its_isolate_until_it_is_over() {
    let mut world = World::object(application(ROOM), "Room", "x");
    let event = upgrade(&mut world, "http://x/classic");
    let Some(SocketEnd::Own(socket)) = world.response(event).unwrap().socket else { panic!("no socket") };
    assert!(world.is_done(event) && !world.isolate.is_idle());
    assert_eq!(
        actions(&world),
        [SocketAction::Send(text("hello")), SocketAction::Accept { is_hibernatable: false }]
    );
    world.effects.clear();
    world.socket(socket, message("1"));
    assert_eq!(actions(&world), [SocketAction::Send(text("echo 1")), SocketAction::Taken]);
    world.effects.clear();
    world.socket(socket, CLOSED);
    assert_eq!(
        actions(&world),
        [SocketAction::Close { code: None, reason: String::new() }, SocketAction::Over, SocketAction::Taken]
    );
    assert_eq!(world.log(), ["closed 1000 true"]);
    assert!(world.isolate.is_idle());
}

#[test]
fn a_hibernatable_socket_outlives_its_isolate_with_its_tags_and_attachment() {
    let mut world = World::object(application(ROOM), "Room", "x");
    let event = upgrade(&mut world, "http://x/");
    let Some(SocketEnd::Own(socket)) = world.response(event).unwrap().socket else { panic!("no socket") };
    assert!(world.isolate.is_idle());
    let hibernatable = SocketAction::Accept { is_hibernatable: true };
    assert_eq!(actions(&world), [SocketAction::Send(text("hello")), hibernatable]);
    let mut world = world.hibernate(application(ROOM));
    let event = world.dispatch(EventCall::Socket { socket, event: message("x") });
    assert!(world.is_done(event), "{:?}", world.effects);
    assert_eq!(actions(&world), [SocketAction::Send(text("1 a,b 1 x")), SocketAction::Taken]);
    let wall = crate::testing::at(7).wall;
    let answer = world.kept().borrow_mut().respond(socket, "ping", wall);
    assert_eq!(answer.as_deref(), Some("pong"));
    let event = world.dispatch(EventCall::Socket { socket, event: CLOSED });
    assert!(world.is_done(event) && world.log() == ["closed 1000  true 1"], "{:?}", world.effects);
    assert_eq!(actions(&world).last(), Some(&SocketAction::Over));
    let event = world.call("count", "[]");
    assert_eq!(world.returned(event), "0");
}

#[test]
fn a_caller_that_asked_for_no_socket_gets_none() {
    let mut world = World::object(application(ROOM), "Room", "x");
    let event = world.get("http://x/");
    assert!(world.failed(event).starts_with("TypeError: Worker tried to return WebSocket in a response"));
}

const FRONT: &str = "
    export default {
        async fetch(request, env) {
            const response = await env.ROOM.getByName('x').fetch(request);
            if (new URL(request.url).pathname === '/through') return response;
            response.webSocket.accept();
            response.webSocket.send('from the Worker');
            const { 0: client, 1: server } = new WebSocketPair();
            server.accept();
            response.webSocket.addEventListener('message', ({ data }) => server.send(data));
            return new Response(null, { status: 101, webSocket: client });
        },
    };
    export class Room {}
";

fn front(url: &str) -> (World, EventId, SocketId) {
    let room = crate::Binding::ObjectNamespace { class: "Room".into() };
    let mut world = World::worker(application(FRONT).bind("ROOM", room));
    let event = upgrade(&mut world, url);
    let [(op, Op::CallObject { call: OutgoingCall::Fetch(request), .. })] = &world.ops()[..] else {
        panic!("{:?}", world.effects)
    };
    let socket = request.socket.expect("the request asks for a socket");
    let response = IncomingResponse {
        status: 101,
        status_text: "Switching Protocols".into(),
        headers: HeaderMap::new(),
        body: IncomingBody::None,
        url: "http://x/".into(),
        redirected: false,
        is_socket: true,
    };
    world.complete(*op, OpAnswer::Response(response));
    (world, event, socket)
}

#[test]
fn what_a_stub_opened_goes_through_a_worker_without_it() {
    let (world, event, socket) = front("http://x/through");
    assert_eq!(world.response(event).unwrap().socket, Some(SocketEnd::Opened(socket)));
    assert!(world.is_done(event) && actions(&world).is_empty() && world.isolate.is_idle());
}

#[test]
fn a_worker_may_hold_both_sockets() {
    let (mut world, event, opened) = front("http://x/held");
    let Some(SocketEnd::Own(own)) = world.response(event).unwrap().socket else { panic!("no socket") };
    assert!(!world.is_done(event));
    world.effects.clear();
    world.socket(opened, SocketEvent::Message(SocketMessage::Binary(Bytes::from_static(b"\x01"))));
    let sent = SocketAction::Send(SocketMessage::Binary(Bytes::from_static(b"\x01")));
    assert_eq!(actions(&world), [sent, SocketAction::Taken]);
    for socket in [opened, own] {
        world.socket(socket, SocketEvent::Close { code: 1006, reason: String::new(), was_clean: false });
    }
    assert!(world.is_done(event), "{:?}", world.effects);
}
