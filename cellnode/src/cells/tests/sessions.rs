//! Sessions of RPC at an object's node: through the gate in order, and over what ends an isolate.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use holdfast_js::Limits;
use holdfast_rpc::{CallError, CallOrder, SocketFrame, SocketReader, SocketWriter, socket_pipe};

use super::js::{Js, application};
use super::support::PATIENCE;

const COUNTER: &str = r"
    import { DurableObject, RpcTarget } from 'cloudflare:workers';
    export default {};
    class Row extends RpcTarget {
        constructor(object) { super(); this.object = object; }
        write(text) { return this.object.write(text); }
        slow(text) { return scheduler.wait(20).then(() => text); }
        hang() { return new Promise(() => {}); }
    }
    export class Rows extends DurableObject {
        constructor(ctx, env) {
            super(ctx, env);
            ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
        }
        write(text) { this.ctx.storage.sql.exec('INSERT INTO t VALUES (?)', text); return text; }
        row() { return new Row(this); }
        read(text) { return text; }
        fetch() { return new Response(this.ctx.storage.sql.exec('SELECT a FROM t').toArray().map(row => row.a).join()); }
    }
";

/// An array of numbers, texts and bytes in the clone format.
enum Part<'a> {
    Number(u8),
    Text(&'a str),
    List(Vec<Part<'a>>),
    Bytes(Vec<u8>),
}

use Part::{List, Number, Text};

fn write(part: &Part<'_>, out: &mut Vec<u8>) {
    match part {
        Number(number) => out.extend([b'I', number * 2]),
        Text(text) => {
            out.extend([b'"', u8::try_from(text.len()).unwrap()]);
            out.extend(text.as_bytes());
        }
        List(parts) => {
            let len = u8::try_from(parts.len()).unwrap();
            out.extend([b'A', len]);
            parts.iter().for_each(|part| write(part, out));
            out.extend([b'$', 0, len]);
        }
        Part::Bytes(bytes) => {
            let len = u8::try_from(bytes.len()).unwrap();
            out.extend([b'B', len]);
            out.extend(bytes);
            out.extend([b'V', b'B', 0, len, 0]);
        }
    }
}

fn clone(part: &Part<'_>) -> Vec<u8> {
    let mut out = vec![0xff, 15];
    write(part, &mut out);
    out
}

/// A call: the number of the call, whose member, which, and one text as its argument or none.
fn call(number: u8, target: u8, method: &str, text: &str) -> Vec<u8> {
    let args = if text.is_empty() { vec![] } else { vec![Text(text)] };
    let args = Part::Bytes(clone(&List(args)));
    clone(&List(vec![
        Number(1),
        Number(number),
        Number(target),
        List(vec![Text(method)]),
        args,
        List(vec![]),
    ]))
}

/// One end of a session.
struct Session {
    says: Option<SocketWriter>,
    hears: SocketReader,
}

impl Session {
    async fn open(js: &Js, first: Vec<u8>) -> Self {
        let (says, said) = socket_pipe();
        let reply = js.bench.open_session("/", said, first.into()).await.unwrap().reply;
        assert_eq!(reply.response.status(), 101);
        Self { says: Some(says), hears: SocketReader::new(reply.response.into_body()) }
    }

    fn say(&self, message: Vec<u8>) {
        self.says.as_ref().unwrap().push(&SocketFrame::Binary(message.into())).unwrap();
    }

    /// The next message is the result of this call, and has this in it.
    async fn returns(&mut self, number: u8, text: &str) {
        let next = tokio::time::timeout(PATIENCE, self.hears.next()).await.expect("something comes");
        let Some(SocketFrame::Binary(bytes)) = next.unwrap() else { panic!("no message") };
        assert_eq!(&bytes[..8], [0xff, 15, b'A', 4, b'I', 4, b'I', number * 2], "{bytes:?}");
        let is_there = bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(is_there, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_is_called_and_answered_through_the_gate_in_order() {
    let js = Js::new(COUNTER).await;
    let mut session = Session::open(&js, call(1, 0, "row", "")).await;
    session.returns(1, "\\").await;
    session.say(call(2, 1, "write", "first"));
    session.returns(2, "first").await;
    let held = js.bench.hold_uploads();
    session.say(call(3, 1, "write", "second"));
    session.say(call(4, 0, "read", "third"));
    js.bench.upload_is_held(&held).await;
    js.bench.quiet_thread().await;
    assert!(session.hears.next().now_or_never().is_none(), "nothing leaves while proofs are blocked");
    held.release();
    session.returns(3, "second").await;
    session.returns(4, "third").await;
    assert_eq!(js.text("/").await, "first,second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_keep_their_isolate_and_end_with_it() {
    let limits = Limits { turn: PATIENCE, start: PATIENCE, ..Limits::default() };
    let js = Js::idling(COUNTER, limits, 1).await;
    let mut session = Session::open(&js, call(1, 0, "row", "")).await;
    session.returns(1, "\\").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    session.say(call(2, 1, "write", "kept"));
    session.returns(2, "kept").await;
    // What a version has given does not outlive it.
    session.say(call(3, 1, "slow", "under way"));
    js.deploy.send_replace(application(COUNTER, "v2"));
    session.returns(3, "under way").await;
    assert_eq!(js.text("/").await, "kept");
    let end = tokio::time::timeout(PATIENCE, session.hears.next()).await.expect("it ends");
    assert!(end.is_err(), "{end:?}");
    // A caller that goes takes its end along.
    let mut session = Session::open(&js, call(1, 0, "row", "")).await;
    session.returns(1, "\\").await;
    drop(session.says.take());
    let end = tokio::time::timeout(PATIENCE, session.hears.next()).await.expect("it ends");
    assert!(matches!(end, Ok(None) | Err(_)), "{end:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_stub_begin_in_their_order_whichever_comes_first() {
    let js = Js::new(COUNTER).await;
    assert_eq!(js.text("/").await, "");
    let args = |text: &str| Bytes::from(clone(&List(vec![Text(text)])));
    let mut calls = Vec::new();
    for place in (0..20_u64).rev() {
        let order = CallOrder { stub: 7, place, floor: 0 };
        calls.push(tokio::spawn(js.bench.call_in_order("write", args(&place.to_string()), order)));
        // So that they come in this order.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let wanted: Vec<String> = (0..20).map(|place| place.to_string()).collect();
    assert_eq!(js.text("/").await, wanted.join(","));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_for_a_session_is_taken_however_many_events_are_under_way() {
    let js = Js::new(COUNTER).await;
    // More than may be under way of sockets: what comes may be what they wait for.
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let mut session = Session::open(&js, call(1, 0, "row", "")).await;
        session.returns(1, "\\").await;
        for _ in 0..600 {
            session.say(call(2, 1, "hang", ""));
        }
        sessions.push(session);
    }
    for session in &mut sessions {
        session.say(call(3, 0, "read", "taken"));
        session.returns(3, "taken").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_message_of_a_session_counts_among_bodies() {
    let js = Js::new(COUNTER).await;
    let bodies = std::sync::Arc::clone(&js.bench.node.bodies);
    let free = u32::try_from(bodies.available_permits()).unwrap();
    let all = bodies.try_acquire_many_owned(free).unwrap();
    let (_says, said) = socket_pipe();
    let refused = js.bench.open_session("/", said, call(1, 0, "row", "").into()).await;
    assert!(matches!(refused, Err(CallError::Overloaded { .. })), "{refused:?}");
    drop(all);
    Session::open(&js, call(1, 0, "row", "")).await.returns(1, "\\").await;
    let given_back = async {
        while js.bench.node.bodies.available_permits() < usize::try_from(free).unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, given_back).await.expect("its room is given back");
}
