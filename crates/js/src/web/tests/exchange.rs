//! `fetch` as its embedder sees it: operations and their answers.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::effect::{EventCall, IncomingBodyId, IncomingRequest};
use crate::testing::world::World;
use crate::testing::{application, at, limits};
use crate::{
    Effect, IncomingBody, IncomingResponse, Isolate, IsolateKind, JsError, Op, OpAnswer, OpId, OutgoingBody,
    Turn, TurnEnd,
};

fn isolate() -> Isolate {
    Isolate::new(&Arc::new(application("")), IsolateKind::Worker, limits(), at(0)).unwrap()
}

/// The only operation that the turn starts.
fn started(turn: &Turn) -> (OpId, Op) {
    assert_eq!(turn.end, TurnEnd::Ok);
    let mut starts = turn.effects.iter().filter_map(|effect| match effect {
        Effect::Start { op, op_call } => Some((*op, op_call.clone())),
        _ => None,
    });
    let start = starts.next().unwrap_or_else(|| panic!("nothing starts: {:?}", turn.effects));
    assert_eq!(starts.next(), None);
    start
}

fn response(body: IncomingBody) -> OpAnswer {
    let mut headers = HeaderMap::new();
    headers.append("set-cookie", "a=1".parse().unwrap());
    headers.append("set-cookie", "b=2".parse().unwrap());
    let url = "http://a/x".to_owned();
    OpAnswer::Response(IncomingResponse {
        status: 201,
        status_text: "Made".to_owned(),
        headers,
        body,
        url,
        redirected: false,
        is_socket: false,
    })
}

#[test]
fn a_request_leaves_whole_and_its_body_comes_in_chunks() {
    let mut isolate = isolate();
    let turn = isolate.probe(
        at(0),
        "const r = await fetch('http://a/x', { method: 'POST', headers: { Q: '1' }, body: 'hi' });
        return [r.status, r.statusText, r.headers.getSetCookie().length, await r.text()].join()",
    );
    let (op, Op::Fetch(request)) = started(&turn) else { panic!("it is not a fetch") };
    assert_eq!((request.method, request.url.as_str()), (Method::POST, "http://a/x"));
    assert_eq!(request.headers["q"], "1");
    assert_eq!(request.headers["content-type"], "text/plain;charset=UTF-8");
    assert_eq!(request.body, OutgoingBody::Whole(Bytes::from_static(b"hi")));
    let body = IncomingBodyId::new(7);
    let turn = isolate.complete(at(0), op, response(IncomingBody::Stream(body)));
    let (op, read) = started(&turn);
    assert_eq!(read, Op::ReadBody { body });
    let turn = isolate.complete(at(0), op, OpAnswer::Chunk(Some(Bytes::from_static(b"ab"))));
    let (op, read) = started(&turn);
    assert_eq!(read, Op::ReadBody { body });
    isolate.complete(at(0), op, OpAnswer::Chunk(None));
    assert_eq!(isolate.probed(), ["ok", "201,Made,2,ab"]);
}

/// What a request says of the length of its body.
fn length_of(request: &str) -> Option<String> {
    let mut isolate = isolate();
    let turn = isolate.probe(at(0), &format!("const first = new Request('http://a/x', {{ method: 'POST', headers: {{ 'content-length': '2' }}, body: 'hi' }}); {request}"));
    let request = turn.effects.iter().find_map(|effect| match effect {
        Effect::Start { op_call: Op::Fetch(request), .. } => Some(request),
        _ => None,
    });
    let headers = &request.unwrap_or_else(|| panic!("{:?} {:?}", turn.effects, isolate.probed())).headers;
    headers.get("content-length").map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn a_request_says_how_long_its_own_body_is_whatever_was_copied() {
    let stream = "new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(5)); c.close(); } })";
    let fixed = "new FixedLengthStream(5)";
    for (request, length) in [
        ("await fetch(first)".to_owned(), Some("2")),
        ("await fetch('http://a/x', { method: 'POST', body: 'hello' })".to_owned(), None),
        ("await fetch(new Request('http://a/x', first))".to_owned(), Some("2")),
        ("await fetch(first, { body: 'hällo' })".to_owned(), Some("6")),
        ("await fetch('http://a/x', { method: 'POST', headers: first.headers })".to_owned(), None),
        (format!("await fetch(first, {{ body: {stream} }})"), None),
        (format!("await fetch(first, {{ body: {fixed}.readable }})"), Some("5")),
        (format!("await fetch('http://a/x', {{ method: 'POST', body: {fixed}.readable }})"), Some("5")),
        ("await fetch(first, { body: first.body.pipeThrough(new TransformStream()) })".to_owned(), None),
    ] {
        assert_eq!(length_of(&request).as_deref(), length, "{request}");
    }
}

#[test]
fn a_body_that_comes_in_goes_on_with_the_length_that_its_sender_promised() {
    for (piece, ends) in [(&b"hello"[..], true), (b"more than that", false)] {
        let source = "export default { async fetch(request) { await fetch('http://b/', { method: 'PUT', body: request.body }); return new Response(); } };";
        let mut world = World::worker(application(source));
        let mut headers = HeaderMap::new();
        headers.insert("content-length", "5".parse().unwrap());
        let body = IncomingBody::Stream(IncomingBodyId::new(1));
        let request =
            IncomingRequest { method: Method::PUT, url: "http://a/".into(), headers, body, cf: None };
        world.dispatch(EventCall::Fetch(request));
        let ops = world.ops();
        let fetched =
            ops.iter().find_map(|(_, op)| if let Op::Fetch(request) = op { Some(request) } else { None });
        assert_eq!(fetched.unwrap().headers["content-length"], "5");
        let reads = |world: &World| {
            world.ops().into_iter().rev().find(|(_, op)| matches!(op, Op::ReadBody { .. })).unwrap().0
        };
        let first = reads(&world);
        world.complete(first, OpAnswer::Chunk(Some(Bytes::copy_from_slice(piece))));
        if ends {
            let written =
                world.ops().into_iter().find(|(_, op)| matches!(op, Op::WriteBody { .. })).unwrap().0;
            world.complete(written, OpAnswer::Written);
            let second = reads(&world);
            world.complete(second, OpAnswer::Chunk(None));
        }
        let is_ended = world.effects.iter().any(|effect| matches!(effect, Effect::EndBody { .. }));
        let is_broken = world.effects.iter().any(|effect| matches!(effect, Effect::AbortBody { .. }));
        assert_eq!(
            (is_ended, is_broken),
            (ends, !ends),
            "a longer body breaks: it would be cut off on its way"
        );
    }
}

const UPLOAD: &str = "globalThis.log = []; let n = 0;
    const body = new ReadableStream({ pull(c) { n += 1; if (n > 2) c.close(); else c.enqueue(new Uint8Array(n)); }, cancel(e) { log.push(e.message); } });
    const r = await fetch('http://a/x', { method: 'PUT', body });
    return r.status + log.join()";

#[test]
fn a_streamed_body_waits_for_each_chunk_to_be_taken() {
    let mut isolate = isolate();
    let turn = isolate.probe(at(0), UPLOAD);
    let mut ops = turn.effects.iter().filter_map(|effect| match effect {
        Effect::Start { op, op_call } => Some((*op, op_call.clone())),
        _ => None,
    });
    let (fetch, Op::Fetch(request)) = ops.next().unwrap() else { panic!("the request leaves first") };
    let OutgoingBody::Stream(body) = request.body else { panic!("it is a stream") };
    let (first, chunk) = ops.next().unwrap();
    assert_eq!(chunk, Op::WriteBody { body, chunk: Bytes::from_static(&[0]) });
    assert_eq!(ops.next(), None, "the second chunk waits");
    let turn = isolate.complete(at(0), first, OpAnswer::Written);
    let (second, chunk) = started(&turn);
    assert_eq!(chunk, Op::WriteBody { body, chunk: Bytes::from_static(&[0, 0]) });
    let turn = isolate.complete(at(0), second, OpAnswer::Written);
    assert_eq!(turn.effects, [Effect::EndBody { body }]);
    isolate.complete(at(0), fetch, response(IncomingBody::None));
    assert_eq!(isolate.probed(), ["ok", "201"]);
}

#[test]
fn a_reader_that_goes_away_cancels_the_stream() {
    let mut isolate = isolate();
    let turn = isolate.probe(at(0), UPLOAD);
    let op_of = |effect: &Effect| match effect {
        Effect::Start { op, .. } => Some(*op),
        _ => None,
    };
    let ops: Vec<OpId> = turn.effects.iter().filter_map(op_of).collect();
    let turn = isolate.complete(at(0), ops[1], OpAnswer::Failed(JsError::new("gone")));
    assert!(
        matches!(&turn.effects[..], [Effect::AbortBody { error, .. }] if error.message == "gone"),
        "{turn:?}"
    );
    isolate.complete(at(0), ops[0], response(IncomingBody::None));
    assert_eq!(isolate.probed(), ["ok", "201gone"]);
}

#[test]
fn an_abort_cancels_the_operation() {
    let mut isolate = isolate();
    let turn = isolate.probe(
        at(0),
        "const c = new AbortController(); setTimeout(() => c.abort(), 5);
        try { await fetch('http://a', { signal: c.signal }); } catch (e) { return e.name; }",
    );
    let (op, _) = started(&turn);
    let turn = isolate.wake(at(5));
    assert!(turn.effects.contains(&Effect::Cancel { op }), "{turn:?}");
    assert_eq!(isolate.probed(), ["ok", "AbortError"]);
}

#[test]
fn a_failed_exchange_rejects() {
    let mut isolate = isolate();
    let turn = isolate.probe(at(0), "try { await fetch('http://a'); } catch (e) { return String(e); }");
    let (op, _) = started(&turn);
    isolate.complete(at(0), op, OpAnswer::Failed(JsError::type_error("Network connection lost.")));
    assert_eq!(isolate.probed(), ["ok", "TypeError: Network connection lost."]);
}
