import { thrown, errorName, chunks } from './show.js';

export const response = () => new Response('hello');
export const response_json = () => Response.json({ a: [1, null] }, { status: 201, headers: { 'x-a': 'b' } });
export const response_null = () => new Response(null, { status: 204, statusText: 'Gone Quiet' });
export const response_statuses = () => Promise.all([199, 600, 101, 1000].map(status => errorName(() => new Response(null, { status }))));
export const response_null_body = () => errorName(() => new Response('x', { status: 204 }));
export const response_redirect = () => Response.redirect('https://a.example/b', 303);
export const response_redirect_bad = () => errorName(() => Response.redirect('https://a.example/', 200));
export const response_error = () => { const r = Response.error(); return [r.type, r.status, r.ok]; };
export const response_flags = () => { const r = new Response('x', { status: 299 }); return [r.ok, r.type, r.redirected, r.url, r.bodyUsed, r.body instanceof ReadableStream]; };
export const response_clone = async () => { const r = new Response('abc', { headers: { a: 'b' } }); const c = r.clone(); return [await r.text(), await c.text(), c.headers]; };
export const body_used = async () => { const r = new Response('x'); await r.text(); return [r.bodyUsed, await errorName(() => r.text()), await errorName(() => r.clone())]; };
export const body_kinds = async () => Promise.all([
  'text', new Uint8Array([1, 2]), new Uint8Array([3, 4]).buffer, new Blob(['blob'], { type: 'a/b' }), new URLSearchParams({ a: 'b c' }),
].map(body => { const r = new Response(body); return r.arrayBuffer().then(bytes => [r.headers.get('content-type'), bytes]); }));
export const body_json = async () => [await new Response('{"a":1}').json(), await errorName(() => new Response('{').json())];
export const body_bytes = async () => new Response('é').bytes();
export const body_blob = async () => { const b = await new Response('x', { headers: { 'content-type': 'text/css' } }).blob(); return [b.type, b.size]; };
export const body_stream = async () => chunks(new Response('streamed').body);
export const body_of_stream = async () => new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array([104, 105])); c.close(); } })).text();
export const body_of_strings = () => errorName(() => new Response(new ReadableStream({ start(c) { c.enqueue('text'); c.close(); } })).text());
export const request = () => new Request('https://a.example/b', { method: 'post', body: 'x', headers: { a: 'b' } });
export const request_of_request = async () => { const first = new Request('https://a.example/', { method: 'PUT', body: 'first' }); return [new Request(first, { headers: { n: '1' } }), first.bodyUsed]; };
export const request_methods = () => ['get', 'Post', 'patch', 'PATCH'].map(method => new Request('http://a/', { method }).method);
export const request_get_body = () => errorName(() => new Request('http://a/', { body: 'x' }));
export const request_bad_url = () => errorName(() => new Request('nowhere'));
export const request_bad_method = () => Promise.all(['CONNECT', 'TRACE', 'a b'].map(method => errorName(() => new Request('http://a/', { method }))));
export const request_flags = () => { const r = new Request('http://a/', { redirect: 'manual' }); return [r.redirect, r.body, r.bodyUsed, r.signal instanceof AbortSignal]; };
export const request_clone = async () => { const r = new Request('http://a/', { method: 'POST', body: 'abc' }); const c = r.clone(); return [await r.text(), await c.text()]; };
export const request_fragment = () => new Request('http://a/b#c').url;
export const request_json_type = () => new Request('http://a/', { method: 'POST', body: new FormData() }).headers.get('content-type').replace(/boundary=.*/, 'boundary');
export const aborted_fetch = () => errorName(() => fetch('http://a.example/', { signal: AbortSignal.abort() }));
export const fetch_scheme = () => errorName(() => fetch('ftp://a.example/'));
export const response_headers_of_init = () => new Response('x', { headers: new Headers({ 'content-type': 'a/b' }) }).headers;
export const response_of_response = async () => { const r = new Response('body', { status: 404 }); return new Response(r.body, r); };
