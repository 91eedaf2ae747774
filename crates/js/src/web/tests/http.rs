//! Fetch Standard: headers, bodies, requests, responses.

use super::holds;
use crate::testing::{fails, run};

#[test]
fn headers_are_case_insensitive_combined_and_sorted() {
    holds(&[
        "const h = new Headers({ B: '1', a: '2' }); h.append('b', '3'); return JSON.stringify([...h]) === '[[\"a\",\"2\"],[\"b\",\"1, 3\"]]' && h.get('B') === '1, 3'",
        "const h = new Headers([['Set-Cookie', 'a=1'], ['set-cookie', 'b=2'], ['x', 'y']]); return h.getSetCookie().join() === 'a=1,b=2' && JSON.stringify([...h.keys()]) === '[\"set-cookie\",\"set-cookie\",\"x\"]' && h.get('set-cookie') === 'a=1, b=2' && h.getAll('Set-Cookie').length === 2",
        "const h = new Headers({ a: '  x\\t\\r\\n' }); return h.get('a') === 'x' && h.has('A') && !h.has('b') && h.get('b') === null",
        "const h = new Headers({ a: '1' }); h.set('A', '2'); h.delete('zz'); return [...h.values()].join() === '2' && (h.delete('A'), !h.has('a'))",
        "const h = new Headers(new Headers({ a: '1' })); h.append('c', ''); return [...h].join(';') === 'a,1;c,'",
        "new Headers(new Map([['k', 'v']])).get('k') === 'v'",
        "const seen = []; new Headers({ a: '1' }).forEach((v, k, h) => seen.push(v, k, h instanceof Headers)); return seen.join() === '1,a,true'",
        "const h = new Headers({ a: '1', b: '2' }), seen = []; for (const [k] of h) { seen.push(k); h.set('c', '3'); } return seen.join() === 'a,b,c'",
        "new Headers({ a: 5, b: null }).get('b') === 'null' && new Headers({ a: '\\xe9' }).get('a') === '\\xe9'",
        "Object.prototype.toString.call(new Headers().entries()) === '[object Headers Iterator]' && Headers.prototype[Symbol.iterator] === Headers.prototype.entries",
    ]);
    assert_eq!(fails("new Headers({ 'a b': 'x' })"), "TypeError: Invalid header name.");
    assert_eq!(fails("new Headers({ '': 'x' })"), "TypeError: Invalid header name.");
    assert_eq!(fails("new Headers({ a: 'x\\ny' })"), "TypeError: Invalid header value.");
    assert_eq!(fails("new Headers({ a: 'x\\0y' })"), "TypeError: Invalid header value.");
    assert!(fails("new Headers({ a: '€' })").starts_with("TypeError: Invalid header value"));
    assert!(fails("new Headers([['a']])").starts_with("TypeError"));
    assert!(fails("new Headers(null)").starts_with("TypeError"));
    assert!(fails("new Headers().getAll('x')").starts_with("TypeError"));
    assert!(fails("new Headers().get()").starts_with("TypeError"));
    assert_eq!(fails("Headers.prototype.get.call({}, 'a')"), "TypeError: Illegal invocation");
    assert_eq!(fails("Response.error().headers.set('a', 'b')"), "TypeError: Can't modify immutable headers.");
}

#[test]
fn a_response_has_what_it_was_made_of() {
    holds(&[
        "const r = new Response('x', { status: 201, statusText: 'Made', headers: { A: 'b' } }); return r.status === 201 && r.statusText === 'Made' && r.headers.get('a') === 'b' && r.ok && !r.redirected && r.url === '' && r.type === 'default' && r.cf === undefined",
        "new Response('x').headers.get('content-type') === 'text/plain;charset=UTF-8' && new Response(new Uint8Array(1)).headers.get('content-type') === null && new Response().headers.has('content-type') === false",
        "new Response('x', { headers: { 'content-type': 'a/b' } }).headers.get('content-type') === 'a/b'",
        "new Response(new URLSearchParams('a=b')).headers.get('content-type') === 'application/x-www-form-urlencoded;charset=UTF-8'",
        "new Response(new Blob(['x'], { type: 'Text/X' })).headers.get('content-type') === 'text/x' && !new Response(new Blob(['x'])).headers.has('content-type')",
        "new Response(new FormData()).headers.get('content-type').startsWith('multipart/form-data; boundary=')",
        "new Response().body === null && new Response(null).body === null && new Response('', { status: 200 }).bodyUsed === false",
        "new Response(null, { status: 204 }).status === 204 && !new Response(null, { status: 404 }).ok",
        "const r = Response.json({ a: 1 }, { status: 202 }); return r.status === 202 && r.headers.get('content-type') === 'application/json' && (await r.json()).a === 1",
        "Response.json(1, { headers: { 'content-type': 'x/y' } }).headers.get('content-type') === 'x/y'",
        "const r = Response.redirect('http://a/b c', 301); return r.status === 301 && r.headers.get('location') === 'http://a/b%20c' && Response.redirect('http://a').status === 302",
        "const r = Response.error(); return r.type === 'error' && r.status === 0 && !r.ok",
        "new Response('x', { cf: { a: 1 } }).cf.a === 1 && new Response('x', { webSocket: null, encodeBody: 'automatic' }).webSocket === null",
        "const a = new Response('x', { status: 404, headers: { a: 'b' } }); const b = new Response(null, a); return b.status === 404 && b.headers.get('a') === 'b'",
        "Object.prototype.toString.call(new Response()) === '[object Response]'",
    ]);
    let range =
        "RangeError: Responses may only be constructed with status codes in the range 200 to 599, inclusive.";
    for status in ["199", "600", "0", "'x'"] {
        assert_eq!(fails(&format!("new Response(null, {{ status: {status} }})")), range);
    }
    let null_body = "TypeError: Response with null body status (101, 204, 205, or 304) cannot have a body.";
    for status in [204, 205, 304] {
        assert_eq!(fails(&format!("new Response('', {{ status: {status} }})")), null_body);
    }
    assert_eq!(
        fails("new Response(null, { webSocket: {} })"),
        "TypeError: Failed to construct 'Response': member webSocket is not of type 'WebSocket'."
    );
    assert!(
        fails("new Response('', { encodeBody: 'manual' })")
            .contains("`encodeBody: \"manual\"` is not implemented")
    );
    assert!(fails("new Response('', { encodeBody: 'x' })").starts_with("TypeError: encodeBody"));
    assert!(fails("new Response('', { statusText: 'a\\n' })").starts_with("TypeError"));
    assert!(fails("Response.redirect('http://a', 200)").starts_with("RangeError"));
    assert!(fails("Response.redirect('/x')").starts_with("TypeError"));
    assert!(fails("Response.json(undefined)").starts_with("TypeError"));
    assert!(fails("new Response('', 5)").starts_with("TypeError"));
    assert_eq!(fails("Response.prototype.status"), "TypeError: Illegal invocation");
}

#[test]
fn a_body_is_read_in_every_form_and_once() {
    holds(&[
        "await new Response('é').text() === 'é' && await new Response('\\ufeffx').text() === 'x' && await new Response().text() === ''",
        "[...await new Response('é').bytes()].join() === '195,169'",
        "(await new Response('ab').arrayBuffer()).byteLength === 2 && (await new Response().arrayBuffer()).byteLength === 0",
        "(await new Response('[1,{\"a\":2}]').json())[1].a === 2",
        "const b = await new Response('x', { headers: { 'content-type': 'A/b' } }).blob(); return b.type === 'a/b' && b.size === 1 && b instanceof Blob",
        "const f = await new Response(new URLSearchParams('a=1&b=2&a=3')).formData(); return f.getAll('a').join() === '1,3' && f.get('b') === '2'",
        "const u = new Uint8Array([1, 2, 3]); const r = new Response(u.subarray(1)); u[1] = 9; return [...await r.bytes()].join() === '2,3'",
        "const r = new Response('x'); const used = r.bodyUsed; const p = r.text(); return !used && r.bodyUsed && await p === 'x'",
        "const r = new Response('x'); await r.text(); try { await r.text(); } catch (e) { return e instanceof TypeError && e.message.startsWith('Body has already been used'); }",
        "const r = new Response(); await r.text(); return !r.bodyUsed && await r.text() === ''",
        "const a = new Response('x'), b = a.clone(); return await a.text() === 'x' && await b.text() === 'x'",
        "const a = new Response(new Uint8Array([1])), b = a.clone(); (await a.bytes())[0] = 7; return (await b.bytes())[0] === 1",
        "const a = new Response('x', { headers: { a: '1' } }), b = a.clone(); b.headers.set('a', '2'); return a.headers.get('a') === '1'",
        "const blob = new Blob(['x']); const bytes = await new Response(blob).bytes(); bytes[0] = 0; return await blob.text() === 'x'",
        "await new Response(5).text() === '5' && await new Response({}).text() === '[object Object]' && await new Response('\\ud800').text() === '\\ufffd'",
        "await new Response(new DataView(new Uint8Array([97, 98]).buffer, 1)).text() === 'b'",
    ]);
    assert!(fails("await new Response('{').json()").starts_with("SyntaxError"));
    assert!(fails("await new Response('x').formData()").starts_with("TypeError: Unrecognized Content-Type"));
    assert!(fails("const r = new Response('x'); await r.text(); r.clone()").starts_with("TypeError"));
    assert_eq!(fails("await Response.prototype.text.call({})"), "TypeError: Illegal invocation");
}

#[test]
fn a_request_has_what_it_was_made_of() {
    holds(&[
        "const r = new Request('http://A/b', { method: 'post', headers: { X: 'y' }, body: 'z' }); return r.method === 'POST' && r.url === 'http://a/b' && r.headers.get('x') === 'y' && r.headers.get('content-type') === 'text/plain;charset=UTF-8' && await r.text() === 'z' && r.redirect === 'follow'",
        "new Request('http://a', { method: 'patch' }).method === 'PATCH' && new Request(new URL('http://a/x')).url === 'http://a/x'",
        "const a = new Request('http://a', { method: 'PUT', body: 'x', headers: { h: '1' } }); const b = new Request(a, { headers: { h: '2' } }); return a.bodyUsed && b.method === 'PUT' && b.headers.get('h') === '2' && await b.text() === 'x'",
        "const a = new Request('http://a', { method: 'PUT', body: 'x' }), b = a.clone(); return await a.text() === 'x' && await b.text() === 'x'",
        "const c = new AbortController(), r = new Request('http://a', { signal: c.signal }); c.abort(); return r.signal.aborted && new Request('http://a').signal.aborted === false",
        "new Request('http://a', { cf: { cacheTtl: 5 } }).cf.cacheTtl === 5 && new Request('http://a').cf === undefined",
        "new Request('http://a').body === null && new Request('http://a', { redirect: 'manual' }).redirect === 'manual' && new Request('http://a', { signal: null }) instanceof Request",
        "const a = new Request('http://a', { method: 'POST', body: 'x' }); const b = new Request('http://b', a); return b.url === 'http://b/' && b.method === 'POST' && await b.text() === 'x'",
    ]);
    assert_eq!(fails("new Request('/x')"), "TypeError: Invalid URL: /x");
    assert_eq!(
        fails("new Request('http://a', { body: 'x' })"),
        "TypeError: Request with a GET or HEAD method cannot have a body."
    );
    assert_eq!(
        fails("new Request('http://a', { method: 'a b' })"),
        "TypeError: Invalid HTTP method string: a b"
    );
    assert_eq!(
        fails("new Request('http://a', { method: 'trace' })"),
        "TypeError: Invalid HTTP method string: trace"
    );
    assert!(
        fails("new Request('http://a', { redirect: 'x' })").starts_with("TypeError: Invalid redirect value")
    );
    assert!(
        fails("new Request('http://a', { cache: 'x' })").starts_with("TypeError: Unsupported cache mode: x")
    );
    assert!(fails("new Request('http://a', { signal: {} })").starts_with("TypeError"));
    assert!(
        fails(
            "const a = new Request('http://a', { method: 'PUT', body: 'x' }); await a.text(); new Request(a)"
        )
        .starts_with("TypeError")
    );
}

#[test]
fn blobs_share_slices_and_files_have_names() {
    holds(&[
        "const b = new Blob(['aé', new Uint8Array([98]), new Blob(['c'])]); return b.size === 5 && await b.text() === 'aébc' && b.type === ''",
        "const b = new Blob(['abcdef']).slice(1, -1, 'A/B'); return await b.text() === 'bcde' && b.type === 'a/b'",
        "await new Blob(['abc']).slice(-2).text() === 'bc' && new Blob(['abc']).slice(2, 1).size === 0 && new Blob().size === 0",
        "const b = new Blob(['ab']); (await b.bytes())[0] = 0; return await b.text() === 'ab' && (await b.arrayBuffer()).byteLength === 2",
        "const f = new File(['x'], 'n.txt', { type: 'text/plain', lastModified: 5 }); return f.name === 'n.txt' && f.lastModified === 5 && f.size === 1 && f instanceof Blob && f.type === 'text/plain'",
        "new Blob(['x'], { type: 'a\\u0080' }).type === ''",
        "Math.abs(new File([], 'x').lastModified - Date.now()) < 10000",
    ]);
    assert!(fails("new Blob('x')").starts_with("TypeError"));
    assert!(fails("new File(['x'])").starts_with("TypeError"));
    assert_eq!(fails("Blob.prototype.size"), "TypeError: Illegal invocation");
}

#[test]
fn forms_travel_as_multipart() {
    assert_eq!(
        run(
            "const f = new FormData(); f.append('a', 'x\\ny'); f.append('f', new Blob(['bytes'], { type: 'text/x' }), 'q\".txt'); f.append('b', new Blob(['z'])); const r = new Response(f), boundary = r.headers.get('content-type').split('boundary=')[1]; return (await r.text()).replaceAll(boundary, 'B')"
        ),
        "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\ny\r\n--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"q%22.txt\"\r\nContent-Type: text/x\r\n\r\nbytes\r\n--B\r\nContent-Disposition: form-data; name=\"b\"; filename=\"blob\"\r\nContent-Type: application/octet-stream\r\n\r\nz\r\n--B--\r\n"
    );
    holds(&[
        "const f = new FormData(); f.append('a', '1'); f.append('a', new File(['xyz'], 'é.bin', { type: 'x/y' })); const g = await new Response(f).formData(); const file = g.getAll('a')[1]; return g.get('a') === '1' && file.name === 'é.bin' && file.type === 'x/y' && await file.text() === 'xyz' && file instanceof File",
        "const f = new FormData(); f.set('a', '1'); f.set('a', '2'); f.append('b', 3); f.delete('zz'); return [...f].join(';') === 'a,2;b,3' && f.has('b') && f.get('c') === null && [...f.keys()].join() === 'a,b'",
        "const f = new FormData(); f.append('b', new Blob(['x'], { type: 'p/q' })); return f.get('b') instanceof File && f.get('b').name === 'blob' && f.get('b').type === 'p/q'",
        "(await new Response(new FormData()).formData()).has('a') === false",
        "const r = new Request('http://a', { method: 'POST', body: new FormData() }); return r.headers.get('content-type').includes('boundary=')",
    ]);
    assert!(fails("new FormData().append('a', 'b', 'c')").starts_with("TypeError"));
    assert!(fails("new FormData({})").starts_with("TypeError"));
    assert!(
        fails("await new Response('x', { headers: { 'content-type': 'multipart/form-data' } }).formData()")
            .starts_with("TypeError: No boundary")
    );
    assert!(fails("await new Response('x', { headers: { 'content-type': 'multipart/form-data; boundary=b' } }).formData()").starts_with("TypeError: FormData body does not begin"));
}

#[test]
fn streams_are_bodies_and_bodies_are_streams() {
    let made = "const make = (...texts) => new ReadableStream({ pull(c) { if (texts.length === 0) c.close(); else c.enqueue(new TextEncoder().encode(texts.shift())); } });";
    for snippet in [
        "const r = new Response(make('ab', 'c')); return await r.text() === 'abc' && r.bodyUsed",
        "const r = new Response('abc'), reader = r.body.getReader(), { value } = await reader.read(); return r.body instanceof ReadableStream && new TextDecoder().decode(value) === 'abc' && (await reader.read()).done && r.bodyUsed",
        "const r = new Response('abc'), body = r.body; return body === r.body && !r.bodyUsed && await r.text() === 'abc' && r.bodyUsed",
        "const r = new Response('abc'); r.body.getReader(); try { await r.text(); } catch (e) { return e instanceof TypeError; }",
        "const a = new Response(make('x', 'y')), b = a.clone(); return await a.text() === 'xy' && await b.text() === 'xy'",
        "const s = make('x'); await s.getReader().read(); try { new Response(s); } catch (e) { return e instanceof TypeError && e.message.includes('disturbed'); }",
        "const r = new Response('abc'); await r.text(); return r.body.locked === false && r.bodyUsed",
        "return (await new Response(new Blob(['xy']).stream()).text()) === 'xy'",
        "const r = new Request('http://a', { method: 'POST', body: make('q') }); const s = new Request(r); return r.bodyUsed && await s.text() === 'q' && !s.headers.has('content-type')",
        "const r = new Response(new ReadableStream({ start(c) { c.enqueue('text'); c.close(); } })); try { await r.text(); } catch (e) { return e instanceof TypeError; }",
        "const r = new Response(new ReadableStream({ start(c) { c.error(new RangeError('mine')); } })); try { await r.text(); } catch (e) { return e.message === 'mine'; }",
        "const r = new Response(make('[1]')); return (await r.json())[0] === 1 && await new Response(null).body === null",
    ] {
        assert_eq!(run(&format!("{made} {snippet}")), "true", "{snippet}");
    }
}
