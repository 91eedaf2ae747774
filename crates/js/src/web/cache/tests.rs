//! What is asked of the keeper of answers, which the test plays, and what is made of what it says.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::effect::{IncomingBody, JsError, Op, OpAnswer, OpId, OutgoingBody};
use crate::testing::application;
use crate::testing::world::World;

fn worker(body: &str) -> World {
    World::worker(application(&format!(
        "const said = promise => promise.then(() => 'nothing was thrown', error => `${{error}}`);
         export default {{ async fetch(request, env, ctx) {{ {body} }} }};"
    )))
}

/// What is asked last, and with which body.
fn asked(world: &World) -> (OpId, Value, OutgoingBody) {
    let ops = world.ops().into_iter();
    let asked = ops.filter_map(|(op, call)| match call {
        Op::AskCache { request, body } => Some((op, serde_json::from_slice(&request).unwrap(), body)),
        _ => None,
    });
    asked.last().expect("something is asked")
}

fn answer(world: &mut World, op: OpId, head: &Value, body: &'static str) {
    let head = Bytes::from(head.to_string());
    world.complete(op, OpAnswer::Object { head, body: IncomingBody::Whole(body.into()) });
}

#[test]
fn an_answer_is_put_with_what_says_how_long_it_is_kept() {
    let mut world = worker(
        "const headers = { 'Expires': 'Thu, 01 Jan 1970 00:01:40 GMT', 'Date': 'Thu, 01 Jan 1970 00:01:30 GMT',
            'Last-Modified': 'Thu, 01 Jan 1970 00:00:01 GMT', 'X-Y': 'z' };
         const response = new Response('kept', { status: 203, statusText: 'Well', headers });
         await (await caches.open('mine')).put('https://h/p?q#f', response);
         return new Response(String(response.bodyUsed));",
    );
    let event = world.get("http://x/");
    let (op, request, body) = asked(&world);
    assert_eq!(
        request,
        json!({
            "method": "put", "cache": "mine", "url": "https://h/p?q", "status": 203, "statusText": "Well",
            "headers": request["headers"], "expiresIn": 10_000, "lastModified": 1_000,
        })
    );
    let headers = request["headers"].as_array().unwrap();
    assert!(headers.iter().any(|pair| pair[1] == "z") && headers.len() == 5, "{headers:?}");
    assert_eq!(body, OutgoingBody::Whole("kept".into()));
    answer(&mut world, op, &json!({}), "");
    assert_eq!(world.text(event), "true");
}

#[test]
fn what_is_no_answer_to_keep_is_refused_before_anything_is_asked() {
    let mut world = worker(
        "const put = (request, ...init) => said(caches.default.put(request, new Response(...init)));
         return Response.json([
            await put(new Request('https://h/', { method: 'POST' }), 'x'),
            await put('https://h/', 'x', { status: 206 }),
            await put('https://h/', 'x', { headers: { Vary: 'accept, *' } }),
            await put('no url', 'x'),
            await said(caches.default.put('https://h/', 'text')),
            await said(caches.default.put('https://h/')),
            await said(caches.default.match()),
            await caches.default.match(new Request('https://h/', { method: 'HEAD' })) === undefined,
            await caches.default.delete(new Request('https://h/', { method: 'PUT' })),
            caches.default === caches.default,
            (() => { try { new Cache(); } catch (error) { return error.message; } })(),
         ]);",
    );
    let event = world.get("http://x/");
    assert_eq!(
        serde_json::from_str::<Value>(&world.text(event)).unwrap(),
        json!([
            "TypeError: Cannot cache response to non-GET request.",
            "TypeError: Cannot cache response to a range request (206 Partial Content).",
            "TypeError: Cannot cache response with 'Vary: *' header.",
            "TypeError: Invalid URL: no url",
            "TypeError: Failed to execute 'put' on 'Cache': parameter 2 is not of type 'Response'.",
            "TypeError: Failed to execute 'put' on 'Cache': 2 arguments required, but only 1 present.",
            "TypeError: Failed to execute 'match' on 'Cache': 1 argument required, but only 0 present.",
            true,
            false,
            true,
            "Illegal constructor",
        ])
    );
}

#[test]
fn what_is_found_is_a_response_and_what_is_not_is_undefined() {
    let mut world = worker(
        "const headers = { 'If-None-Match': '\"a\"', 'If-Modified-Since': 'Thu, 01 Jan 1970 00:00:02 GMT', 'Range': 'bytes=0-1', 'If-Range': 'x' };
         const none = await caches.default.match(new Request('https://h/', { headers }));
         const found = await caches.default.match(new Request('https://h/', { method: 'POST', body: 'x' }), { ignoreMethod: true });
         const { status, statusText, headers: fields } = found;
         const isFixed = (() => { try { fields.set('a', 'b'); } catch (error) { return error.name; } })();
         return Response.json([none === undefined, status, statusText, [...fields], await found.text(), isFixed,
            await caches.default.delete('https://h/')]);",
    );
    let event = world.get("http://x/");
    let (op, request, body) = asked(&world);
    assert_eq!(
        (request, body),
        (
            json!({
                "method": "match", "url": "https://h/", "noneMatch": "\"a\"", "modifiedSince": 2_000,
                "range": "bytes=0-1", "ifRange": "x",
            }),
            OutgoingBody::None
        )
    );
    answer(&mut world, op, &Value::Null, "");
    let (op, request, _) = asked(&world);
    assert_eq!(request, json!({ "method": "match", "url": "https://h/" }));
    let headers = json!([["CF-Cache-Status", "HIT"], ["Content-Length", "4"]]);
    let head = json!({ "status": 203, "statusText": "Well", "headers": headers, "hasBody": true });
    answer(&mut world, op, &head, "kept");
    let (op, request, _) = asked(&world);
    assert_eq!(request, json!({ "method": "delete", "url": "https://h/" }));
    answer(&mut world, op, &json!({ "deleted": true }), "");
    assert_eq!(
        world.text(event),
        r#"[true,203,"Well",[["cf-cache-status","HIT"],["content-length","4"]],"kept","TypeError",true]"#
    );
}

#[test]
fn a_body_that_breaks_fails_the_put_with_what_broke_it() {
    let mut world = worker(
        "const body = new ReadableStream({ pull() { throw new RangeError('the source broke'); } });
         return new Response(await said(caches.default.put('https://h/', new Response(body))));",
    );
    let event = world.get("http://x/");
    let (op, _, _) = asked(&world);
    world.complete(op, OpAnswer::Failed(JsError::new("the body broke")));
    assert_eq!(world.text(event), "RangeError: the source broke");
}
