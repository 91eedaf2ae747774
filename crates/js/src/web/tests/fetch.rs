//! `fetch` against a server that is a function of the test: `server(request)` answers
//! `{ status, headers, body }`, and sees what an exchange with a real one would send.

use crate::testing::inside;

const SERVER: &str = "
  internals.exchange = request => ({
    answer: (async () => ({ status: 200, statusText: '', headers: [], body: null, ...await server(request) }))(),
    cancel(reason) { globalThis.canceled = reason; },
  });
";

fn holds(snippets: &[&str]) {
    for snippet in snippets {
        assert_eq!(inside("fetch", &format!("{SERVER} {snippet}")), "true", "{snippet}");
    }
}

fn fails_with(snippet: &str, text: &str) {
    let caught = format!(
        "{SERVER} try {{ await (async () => {{ {snippet} }})(); }} catch (error) {{ return String(error); }}"
    );
    let error = inside("fetch", &caught);
    assert!(error.contains(text), "{snippet}: {error}");
}

#[test]
fn a_request_goes_out_and_its_answer_comes_back() {
    holds(&[
        "globalThis.server = r => ({ status: 201, statusText: 'Made', headers: ['X-A', r.method + r.url + r.headers.join()], body: new TextEncoder().encode(r.body) }); const r = await fetch('http://a/b#h', { method: 'POST', headers: { Q: '1' }, body: 'hi' }); return r.status === 201 && r.statusText === 'Made' && r.headers.get('x-a') === 'POSThttp://a/b#hQ,1,Content-Type,text/plain;charset=UTF-8' && await r.text() === 'hi' && r.url === 'http://a/b' && !r.redirected",
        "globalThis.server = () => ({}); const r = await fetch(new Request('http://a')); return r.body === null && await r.text() === ''",
        "const chunks = [new Uint8Array([97]), new Uint8Array([98, 99])]; globalThis.server = () => ({ body: { pull: async () => chunks.shift(), cancel() {} } }); const r = await fetch('http://a'); return await r.text() === 'abc' && r.bodyUsed",
        "let pulled = 0; globalThis.server = () => ({ body: { pull: async () => { pulled += 1; return new Uint8Array(1); }, cancel() {} } }); const r = await fetch('http://a'), reader = r.body.getReader(); await reader.read(); await reader.read(); return pulled <= 3",
        "globalThis.server = async r => { const seen = []; for (let chunk; (chunk = await r.body.read()) !== undefined;) seen.push(chunk.length); return { body: new TextEncoder().encode(seen.join()) }; }; let n = 3; const r = await fetch('http://a', { method: 'POST', body: new ReadableStream({ pull(c) { if (n === 0) c.close(); else c.enqueue(new Uint8Array(n--)); } }) }); return await r.text() === '3,2,1'",
        "globalThis.server = () => ({ body: new Uint8Array([1]) }); const r = await fetch('http://a'); try { r.headers.set('a', 'b'); } catch (e) { return e instanceof TypeError; }",
        "globalThis.server = () => ({ body: { pull: async () => { throw new TypeError('broken'); }, cancel() {} } }); const r = await fetch('http://a'); try { await r.text(); } catch (e) { return e.message === 'broken'; }",
    ]);
    fails_with(
        "globalThis.server = () => { throw new TypeError('refused'); }; await fetch('http://a'); return true",
        "refused",
    );
    fails_with("await fetch('ftp://a'); return true", "Fetch API cannot load: ftp://a/");
    fails_with("await fetch('http://u:p@a'); return true", "credentials");
    fails_with("await fetch('/x'); return true", "Invalid URL: /x");
    fails_with("await fetch(); return true", "1 argument required");
    fails_with(
        "await fetch('http://a', { method: 'POST', headers: { upgrade: 'WebSocket' }, body: 'lost' }); return true",
        "TypeError: A request with \"Upgrade: websocket\" cannot have a body",
    );
}

#[test]
fn redirects_are_followed_as_the_standard_says() {
    let log = "const log = []; globalThis.server = r => { log.push(r.method + ' ' + r.url + ' ' + (r.body ?? '') + ' ' + r.headers.join()); return answers.shift(); };";
    holds(&[
        &format!(
            "{log} const answers = [{{ status: 302, headers: ['Location', '/c?d'] }}, {{}}]; const r = await fetch('http://a/b#f'); return r.url === 'http://a/c?d' && r.redirected && log[1] === 'GET http://a/c?d#f  '"
        ),
        &format!(
            "{log} const answers = [{{ status: 301, headers: ['location', 'http://a/c'] }}, {{}}]; await fetch('http://a', {{ method: 'POST', body: 'x' }}); return log[1] === 'GET http://a/c  '"
        ),
        &format!(
            "{log} const answers = [{{ status: 303, headers: ['location', 'http://a/c'] }}, {{}}]; await fetch('http://a', {{ method: 'PUT', body: 'x' }}); return log[1] === 'GET http://a/c  '"
        ),
        &format!(
            "{log} const answers = [{{ status: 303, headers: ['location', 'http://a/c'] }}, {{}}]; await fetch('http://a', {{ method: 'HEAD' }}); return log[1] === 'HEAD http://a/c  '"
        ),
        &format!(
            "{log} const answers = [{{ status: 307, headers: ['location', 'http://a/c'] }}, {{}}]; await fetch('http://a', {{ method: 'POST', body: 'x', headers: {{ 'content-type': 't' }} }}); return log[1] === 'POST http://a/c x content-type,t'"
        ),
        &format!(
            "{log} const answers = [{{ status: 302, headers: ['location', 'http://b/'] }}, {{}}]; await fetch('http://a', {{ headers: {{ Authorization: 's', X: 'y' }} }}); return log[1] === 'GET http://b/  X,y'"
        ),
        &format!(
            "{log} const answers = [{{ status: 302, headers: ['location', 'http://a/2'] }}, {{}}]; await fetch('http://a', {{ headers: {{ Authorization: 's' }} }}); return log[1] === 'GET http://a/2  Authorization,s'"
        ),
        "globalThis.server = () => ({ status: 302, headers: ['location', '/x'] }); const r = await fetch('http://a', { redirect: 'manual' }); return r.status === 302 && r.headers.get('location') === '/x' && !r.redirected",
        "globalThis.server = () => ({ status: 302 }); return (await fetch('http://a')).status === 302",
        "let n = 0; globalThis.server = r => n++ < 20 ? ({ status: 302, headers: ['location', '/' + n] }) : ({}); return (await fetch('http://a')).url === 'http://a/20'",
    ]);
    fails_with(
        "globalThis.server = () => ({ status: 302, headers: ['location', '/x'] }); await fetch('http://a'); return true",
        "Too many redirects: more than 20",
    );
    fails_with(
        "globalThis.server = () => ({ status: 302, headers: ['location', '/x'] }); await fetch('http://a', { redirect: 'error' }); return true",
        "was redirected",
    );
    fails_with(
        "globalThis.server = () => ({ status: 302, headers: ['location', 'http://'] }); await fetch('http://a'); return true",
        "Invalid Location header",
    );
    fails_with(
        "globalThis.server = () => ({ status: 307, headers: ['location', '/x'] }); await fetch('http://a', { method: 'POST', body: new ReadableStream() }); return true",
        "cannot be sent a second time",
    );
    fails_with(
        "globalThis.server = () => ({ status: 302, headers: ['location', 'file:///etc'] }); await fetch('http://a'); return true",
        "Fetch API cannot load: file:///etc",
    );
}

#[test]
fn an_abort_stops_the_request_and_the_body() {
    holds(&[
        "globalThis.server = () => new Promise(() => {}); const c = new AbortController(), p = fetch('http://a', { signal: c.signal }); c.abort('why'); try { await p; } catch (e) { return e === 'why' && globalThis.canceled === 'why'; }",
        "let asked = false; globalThis.server = () => { asked = true; return {}; }; try { await fetch('http://a', { signal: AbortSignal.abort() }); } catch (e) { return e.name === 'AbortError' && !asked; }",
        "let ended; globalThis.server = () => ({ body: { pull: () => new Promise(() => {}), cancel(r) { ended = r; } } }); const c = new AbortController(), r = await fetch('http://a', { signal: c.signal }), p = r.text(); c.abort('late'); try { await p; } catch (e) { return e === 'late' && ended === 'late'; }",
        "globalThis.server = () => ({ body: new Uint8Array([97]) }); const c = new AbortController(), r = await fetch('http://a', { signal: c.signal }); c.abort(); return await r.text() === 'a'",
    ]);
}
