//! Sockets, with a server that the test plays.

use bytes::Bytes;
use holdfast_types::Millis;

use crate::effect::{
    ConnectTo, Effect, Ending, IncomingBody, IncomingBodyId, JsError, Op, OpAnswer, OpId, OutgoingBody,
    OutgoingBodyId, OutgoingConnection, Security,
};
use crate::testing::application;
use crate::testing::world::World;

const HEARD: IncomingBodyId = IncomingBodyId::new(77);

fn worker(body: &str) -> World {
    World::worker(application(&format!(
        "import {{ connect }} from 'cloudflare:sockets';
         const text = async of => new TextDecoder().decode((await of.read()).value);
         export default {{ async fetch(request, env, ctx) {{ {body} }} }};"
    )))
}

fn object(body: &str) -> World {
    let code = application(&format!(
        "import {{ connect }} from 'cloudflare:sockets';
         import {{ DurableObject }} from 'cloudflare:workers';
         export class A extends DurableObject {{ {body} }}"
    ));
    World::object(code, "A", "a")
}

fn connections(world: &World) -> Vec<(OpId, OutgoingConnection)> {
    let ops = world.ops().into_iter();
    ops.filter_map(|(op, call)| match call {
        Op::Connect(connection) => Some((op, connection)),
        _ => None,
    })
    .collect()
}

fn body_of(connection: &OutgoingConnection) -> OutgoingBodyId {
    match connection.body {
        OutgoingBody::Stream(id) => id,
        _ => panic!("what is written streams: {connection:?}"),
    }
}

fn open(world: &mut World, op: OpId, key: &'static str) {
    world.complete(op, OpAnswer::Object { head: key.into(), body: IncomingBody::Stream(HEARD) });
}

/// Opens the only connection that there is; gives what it is.
fn open_only(world: &mut World) -> OutgoingConnection {
    let [(op, connection)] = &connections(world)[..] else { panic!("{:?}", world.effects) };
    open(world, *op, "");
    connection.clone()
}

/// Takes all that is written, as long as more comes; gives it with its lengths.
fn take_writes(world: &mut World, of: OutgoingBodyId, taken: &mut Vec<OpId>) -> Vec<Bytes> {
    let mut written = Vec::new();
    loop {
        let next = world.ops().into_iter().find_map(|(op, call)| match call {
            Op::WriteBody { body, chunk } if body == of && !taken.contains(&op) => Some((op, chunk)),
            _ => None,
        });
        let Some((op, chunk)) = next else { return written };
        taken.push(op);
        written.push(chunk);
        world.complete(op, OpAnswer::Written);
    }
}

fn last_read(world: &World) -> OpId {
    let reads = world.ops().into_iter().filter(|(_, call)| *call == Op::ReadBody { body: HEARD });
    reads.last().expect("it reads").0
}

#[test]
fn what_is_written_and_what_is_heard_are_bodies_beside_one_operation() {
    let mut world = worker(
        "const socket = connect({ hostname: 'db.example', port: 5432 }, { secureTransport: 'on' });
         const writer = socket.writable.getWriter();
         const reader = socket.readable.getReader();
         const { remoteAddress } = await socket.opened;
         await writer.write('hello');
         const heard = await text(reader);
         const { done } = await reader.read();
         await Promise.all([socket.closed, writer.closed]);
         return new Response([remoteAddress, heard, done].join());",
    );
    let event = world.get("http://x/");
    let connection = open_only(&mut world);
    let to = ConnectTo::Address { hostname: "db.example".into(), port: 5432 };
    assert_eq!((&connection.to, connection.security), (&to, Security::On));
    let body = body_of(&connection);
    assert_eq!(take_writes(&mut world, body, &mut Vec::new()), ["hello"]);
    let read = last_read(&world);
    world.complete(read, OpAnswer::Chunk(Some("there".into())));
    let read = last_read(&world);
    world.complete(read, OpAnswer::Chunk(None));
    assert!(world.effects.contains(&Effect::EndBody { body }), "the end of the server ends what is written");
    assert_eq!(world.text(event), "db.example:5432,there,true");
    assert!(world.is_done(event) && world.isolate.is_idle());
}

#[test]
fn a_large_chunk_leaves_in_pieces_and_the_next_waits() {
    let mut world = worker(
        "const writer = connect('x:1').writable.getWriter();
         await writer.write(new Uint8Array(150_000));
         return new Response('written');",
    );
    let event = world.get("http://x/");
    let body = body_of(&open_only(&mut world));
    let writes =
        |world: &World| world.ops().iter().filter(|(_, op)| matches!(op, Op::WriteBody { .. })).count();
    assert_eq!(writes(&world), 1, "one piece at a time");
    let lens: Vec<usize> = take_writes(&mut world, body, &mut Vec::new()).iter().map(Bytes::len).collect();
    assert_eq!(lens, [65_536, 65_536, 18_928]);
    assert_eq!(world.text(event), "written");
}

#[test]
fn a_socket_of_a_worker_ends_with_its_event_and_one_that_waits_until_does_not() {
    for (waits, is_open) in [("", false), ("ctx.waitUntil(socket.closed);", true)] {
        let mut world = worker(&format!(
            "const socket = connect('x:1'); await socket.opened; void socket.readable.getReader().read(); {waits}
             return new Response('answered');"
        ));
        let event = world.get("http://x/");
        let body = body_of(&open_only(&mut world));
        assert_eq!(world.text(event), "answered");
        assert_eq!(world.is_done(event), !is_open);
        let is_closed = |world: &World| {
            let breaks =
                |effect: &Effect| matches!(effect, Effect::AbortBody { body: of, .. } if *of == body);
            world.effects.iter().any(breaks) && world.effects.contains(&Effect::CancelBody { body: HEARD })
        };
        assert_eq!(is_closed(&world), !is_open, "{:?}", world.effects);
        assert_eq!(world.isolate.is_idle(), !is_open);
        if is_open {
            // The client's going away leaves what waits; the end of its time does not.
            world.end(event, Ending::CallerGone);
            assert!(!is_closed(&world));
            world.end(event, Ending::TimeOver);
            assert!(is_closed(&world) && world.isolate.is_idle(), "{:?}", world.effects);
        }
    }
}

#[test]
fn a_socket_of_an_object_outlives_its_event_and_keeps_the_isolate() {
    let mut world = object(
        "async open() { this.socket = connect('x:1'); await this.socket.opened; this.reader = this.socket.readable.getReader(); }
         say(text) { return this.socket.writable.getWriter().write(text); }
         async shut() { await this.socket.close(); }",
    );
    let opening = world.call("open", "[]");
    let body = body_of(&open_only(&mut world));
    assert!(world.is_done(opening) && !world.isolate.is_idle());
    let saying = world.call("say", "['later']");
    assert_eq!(take_writes(&mut world, body, &mut Vec::new()), ["later"]);
    assert!(world.is_done(saying));
    let shutting = world.call("shut", "[]");
    assert!(world.is_done(shutting) && world.isolate.is_idle(), "{:?}", world.effects);
    assert!(world.effects.contains(&Effect::EndBody { body }));
    assert!(world.effects.contains(&Effect::CancelBody { body: HEARD }));
}

#[test]
fn closing_waits_for_what_was_written_and_ends_a_read() {
    let mut world = worker(
        "const socket = connect('x:1');
         const reader = socket.readable.getReader();
         const read = reader.read().catch(error => error.message);
         const writing = socket.writable.getWriter().write('last words');
         await socket.opened;
         await socket.close();
         await writing;
         return new Response(await read);",
    );
    let event = world.get("http://x/");
    let body = body_of(&open_only(&mut world));
    assert!(!world.effects.contains(&Effect::EndBody { body }));
    assert_eq!(take_writes(&mut world, body, &mut Vec::new()), ["last words"]);
    assert_eq!(world.text(event), "This socket has been closed.");
    assert!(world.effects.contains(&Effect::EndBody { body }));
}

#[test]
fn tls_begins_after_what_was_written_before_it() {
    let mut world = worker(
        "const plain = connect('x:1', { secureTransport: 'starttls' });
         const writer = plain.writable.getWriter();
         await writer.write('STARTTLS');
         writer.releaseLock();
         const secure = plain.startTls({ expectedServerHostname: 'y' });
         const again = (() => { try { plain.startTls(); } catch (error) { return error.message; } })();
         await secure.opened;
         await secure.writable.getWriter().write('secret');
         const { done } = await plain.readable.getReader().read();
         return new Response([plain.upgraded, secure.upgraded, secure.secureTransport, await plain.closed, done, again].join());",
    );
    let event = world.get("http://x/");
    let [(op, plain)] = &connections(&world)[..] else { panic!("{:?}", world.effects) };
    open(&mut world, *op, "the key");
    let mut taken = Vec::new();
    assert_eq!(take_writes(&mut world, body_of(plain), &mut taken), ["STARTTLS"]);
    let [_, (op, secure)] = &connections(&world)[..] else { panic!("{:?}", world.effects) };
    let to = ConnectTo::Upgraded { key: "the key".into(), written: 8, server_name: "y".into() };
    assert_eq!((&secure.to, secure.security), (&to, Security::On));
    let body = body_of(plain);
    assert!(!world.effects.contains(&Effect::EndBody { body }), "it would be the end of what is written");
    open(&mut world, *op, "");
    assert!(world.effects.contains(&Effect::EndBody { body }));
    assert_eq!(take_writes(&mut world, body_of(secure), &mut taken), ["secret"]);
    assert_eq!(world.text(event), "true,false,on,,true,startTls can only be called once.");
    assert!(world.isolate.is_idle());
}

#[test]
fn an_event_that_ends_while_tls_begins_leaves_nothing_of_either_socket() {
    let mut world = worker(
        "const plain = connect('x:1', { secureTransport: 'starttls' });
         await plain.opened;
         plain.startTls();
         for (let turn = 0; turn < 20; turn += 1) await undefined;
         return new Response('answered');",
    );
    let event = world.get("http://x/");
    let plain = body_of(&open_only(&mut world));
    let [_, (upgrade, secure)] = &connections(&world)[..] else { panic!("{:?}", world.effects) };
    assert!(world.is_done(event) && world.isolate.is_idle());
    assert!(world.effects.contains(&Effect::Cancel { op: *upgrade }), "{:?}", world.effects);
    for body in [plain, body_of(secure)] {
        let is_end = |effect: &Effect| matches!(effect, Effect::AbortBody { body: of, .. } | Effect::EndBody { body: of } if *of == body);
        assert_eq!(world.effects.iter().filter(|effect| is_end(effect)).count(), 1, "{:?}", world.effects);
    }
}

#[test]
fn tls_does_not_begin_while_a_stream_is_locked() {
    let mut world = worker(
        "const plain = connect('x:1', { secureTransport: 'starttls' });
         plain.writable.getWriter();
         return new Response(await plain.startTls().opened.catch(error => error.message));",
    );
    let event = world.get("http://x/");
    open_only(&mut world);
    assert_eq!(world.text(event), "This WritableStream is currently locked to a writer.");
}

#[test]
fn a_server_that_is_gone_fails_what_is_written_and_what_is_read() {
    let mut world = worker(
        "const socket = connect('x:1');
         const failed = promise => promise.then(() => 'ok', error => error.message);
         const writing = failed(socket.writable.getWriter().write('x'));
         const reading = failed(socket.readable.getReader().read());
         return new Response([await writing, await reading, await failed(socket.closed)].join());",
    );
    let event = world.get("http://x/");
    open_only(&mut world);
    let writing = world.ops().into_iter().find(|(_, op)| matches!(op, Op::WriteBody { .. })).unwrap().0;
    world.complete(writing, OpAnswer::Failed(JsError::new("gone")));
    let read = last_read(&world);
    world.complete(read, OpAnswer::Failed(JsError::new("gone")));
    let lost = "Network connection lost.";
    assert_eq!(world.text(event), [lost; 3].join(","));
    assert!(world.isolate.is_idle());
}

#[test]
fn a_connection_that_cannot_be_says_why_as_its_cause() {
    let mut world = worker(
        "const socket = connect('x:443');
         const failed = async promise => { try { await promise; } catch (error) { return `${error.message}|${error.cause?.message}`; } };
         await socket.close();
         return new Response([await failed(socket.opened), await failed(socket.closed)].join('\\n'));",
    );
    let event = world.get("http://x/");
    let [(op, _)] = &connections(&world)[..] else { panic!("{:?}", world.effects) };
    world.complete(*op, OpAnswer::Failed(JsError::new("refused")));
    let said = world.text(event);
    let (opened, closed) = said.split_once('\n').unwrap();
    assert_eq!(opened, closed);
    assert!(opened.starts_with("proxy request failed, cannot connect to the specified address. It looks"));
    assert!(opened.ends_with("|refused"));
    assert!(world.isolate.is_idle());
}

#[test]
fn an_isolate_has_a_bound_of_sockets() {
    let mut world = object(
        "open() { this.sockets = []; try { for (;;) this.sockets.push(connect('x:1')); } catch (error) { return [this.sockets.length, error.message]; } }",
    );
    let event = world.call("open", "[]");
    let message = "too many sockets are open: the limit is 512; close some first";
    assert_eq!(world.returned(event), format!("[512,\"{message}\"]"));
}

#[test]
fn what_connect_refuses_takes_no_place() {
    let mut world = object(
        "open() {
           const refused = {};
           for (let n = 0; n < 600; n++) {
             try { connect('x:1', { highWaterMark: n % 2 ? -1 : NaN }); } catch (error) { refused[error.name] = true; }
           }
           return Object.keys(refused);
         }",
    );
    let event = world.call("open", "[]");
    assert_eq!(world.returned(event), "[\"RangeError\"]");
    assert!(world.isolate.is_idle(), "nothing is open");
}

/// The breaking of a connection: of what is written, and of what is heard.
fn is_broken(world: &World, of: OutgoingBodyId) -> bool {
    world.effects.iter().any(|effect| matches!(effect, Effect::AbortBody { body, .. } if *body == of))
        && world.effects.contains(&Effect::CancelBody { body: HEARD })
}

#[test]
fn closing_gives_a_server_up_that_takes_nothing() {
    let mut world = object(
        "async open() {
           const socket = connect('x:1');
           const said = async promise => { try { await promise; return 'ok'; } catch (error) { return error.message; } };
           const writing = said(socket.writable.getWriter().write(new Uint8Array(100_000)));
           await socket.opened;
           await socket.close();
           return [await writing, await said(socket.closed)];
         }",
    );
    let event = world.call("open", "[]");
    let body = body_of(&open_only(&mut world));
    assert_eq!(world.isolate.next_deadline(), Some(Millis::new(30_000)));
    world.pass(29_000);
    // A piece is taken: the time begins anew.
    let first = world.ops().into_iter().find(|(_, op)| matches!(op, Op::WriteBody { .. })).unwrap().0;
    world.complete(first, OpAnswer::Written);
    assert_eq!(world.isolate.next_deadline(), Some(Millis::new(59_000)));
    assert!(!world.is_done(event) && !is_broken(&world, body));
    world.wait();
    assert_eq!(world.returned(event), "[\"Network connection lost.\",\"Network connection lost.\"]");
    assert!(is_broken(&world, body), "{:?}", world.effects);
    assert!(world.isolate.is_idle(), "its place is free");
}

#[test]
fn tls_gives_a_server_up_that_takes_nothing() {
    let mut world = object(
        "async open() {
           const plain = connect('x:1', { secureTransport: 'starttls' });
           const writer = plain.writable.getWriter();
           writer.write('STARTTLS').catch(() => {});
           writer.releaseLock();
           const secure = plain.startTls();
           return await secure.opened.catch(error => error.message);
         }",
    );
    let event = world.call("open", "[]");
    let [(op, plain)] = &connections(&world)[..] else { panic!("{:?}", world.effects) };
    open(&mut world, *op, "the key");
    let body = body_of(plain);
    world.wait();
    assert_eq!(world.returned(event), "\"Network connection lost.\"");
    assert!(is_broken(&world, body) && world.isolate.is_idle(), "{:?}", world.effects);
}

#[test]
fn nothing_connects_while_modules_load() {
    let world = World::worker(application(
        "import { connect } from 'cloudflare:sockets';
         let said; try { connect('x:1'); } catch (error) { said = error.message; }
         export default { fetch: () => new Response(said) };",
    ));
    let mut world = world;
    let event = world.get("http://x/");
    assert!(world.text(event).starts_with("Disallowed operation called within global scope."));
    assert_eq!(world.isolate.next_deadline(), None::<Millis>);
}
