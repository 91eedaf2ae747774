// TCP to a server outside: this application itself, by its public address, spoken to in HTTP by hand.
import { connect } from 'cloudflare:sockets';

import { errorName, thrown } from './show.js';

const host = ({ request }) => new URL(request.url).host;
const encode = text => new TextEncoder().encode(text);
const asked = (it, path = '/outside/none', more = '') => encode(`GET ${path} HTTP/1.1\r\nHost: ${host(it)}\r\n${more}\r\n`);
const CLOSE = 'Connection: close\r\n';
// What is the same of both servers: the status, and the last line of the body.
const gist = text => [text.slice(0, 12), text.trimEnd().split('\n').at(-1)];
const outcome = promise => promise.then(value => ['ok', value], error => ['error', error?.name, error?.message]);
const say = async (socket, bytes) => {
  const writer = socket.writable.getWriter();
  await writer.write(bytes);
  writer.releaseLock();
};
const isOpenInfo = it => ({ remoteAddress, ...rest }) => [remoteAddress === host(it), rest];

export const whole = async it => { const s = connect(host(it)); await say(s, asked(it, undefined, CLOSE)); return gist(await new Response(s.readable).text()); };
export const by_parts = async it => { const { hostname, port } = new URL(it.request.url); const s = connect({ hostname, port: Number(port) }); await say(s, asked(it, undefined, CLOSE)); return gist(await new Response(s.readable).text()); };
export const port_as_text = async it => { const { hostname, port } = new URL(it.request.url); const s = connect({ hostname, port }); await say(s, asked(it, undefined, CLOSE)); return gist(await new Response(s.readable).text()); };
export const opened = async it => { const s = connect(host(it)); const info = await s.opened; await s.close(); return isOpenInfo(it)(info); };
export const shape = async it => { const s = connect(host(it)); const seen = [s.constructor.name, Object.prototype.toString.call(s), s.readable instanceof ReadableStream, s.writable instanceof WritableStream, s.opened instanceof Promise, s.closed instanceof Promise, s.upgraded, s.secureTransport, s.readable === s.readable, Object.keys(Object.getPrototypeOf(s)).sort()]; await s.close(); return seen; };
export const made_by_hand = async it => { const s = connect(host(it)); const error = await thrown(() => new s.constructor()); await s.close(); return error; };
export const kinds = async it => { const seen = []; for (const secureTransport of ['off', 'starttls', undefined]) { const s = connect(host(it), { secureTransport }); seen.push(s.secureTransport); await s.close(); } return seen; };
export const closed = async it => { const s = connect(host(it)); const answer = outcome(s.close()); return [await answer, await outcome(s.closed), await outcome(s.close())]; };
export const read_after_close = async it => { const s = connect(host(it)); await s.opened; await s.close(); return outcome(s.readable.getReader().read()); };
export const write_after_close = async it => { const s = connect(host(it)); await s.opened; await s.close(); return outcome(s.writable.getWriter().write(encode('x'))); };
export const read_as_it_closes = async it => { const s = connect(host(it)); await s.opened; const r = s.readable.getReader(); const read = outcome(r.read()); await s.close(); return read; };
export const written_then_closed = async it => { const s = connect(host(it)); const w = s.writable.getWriter(); const written = outcome(w.write(asked(it))); await s.close(); return [await written, await outcome(s.closed)]; };
export const half_open = async it => { const s = connect(host(it), { allowHalfOpen: true }); const w = s.writable.getWriter(); await w.write(asked(it, undefined, CLOSE)); const text = gist(await new Response(s.readable).text()); const end = outcome(w.close()); return [text, await end]; };
export const two_requests = async it => { const s = connect(host(it)); const w = s.writable.getWriter(); w.write(asked(it)); w.write(asked(it, undefined, CLOSE)); const text = await new Response(s.readable).text(); return text.split('plain').length - 1; };
export const piped = async it => { const s = connect(host(it)); const { readable, writable } = new IdentityTransformStream(); const w = writable.getWriter(); w.write(asked(it, undefined, CLOSE)); w.close(); const done = outcome(readable.pipeTo(s.writable, { preventClose: true })); return [gist(await new Response(s.readable).text()), await done]; };
export const text = async it => { const s = connect(host(it)); const error = await outcome(s.writable.getWriter().write('text')); await s.close(); return error; };
export const object = async it => { const s = connect(host(it)); const error = await outcome(s.writable.getWriter().write({})); await s.close(); return error; };
export const views = async it => { const s = connect(host(it)); const w = s.writable.getWriter(); const bytes = asked(it, undefined, CLOSE); await w.write(bytes.subarray(0, 3)); await w.write(bytes.slice(3, 8).buffer); await w.write(new DataView(bytes.buffer, 8)); return gist(await new Response(s.readable).text()); };
export const empty = async it => { const s = connect(host(it)); const w = s.writable.getWriter(); const first = await outcome(w.write(new Uint8Array())); await w.write(asked(it, undefined, CLOSE)); return [first, gist(await new Response(s.readable).text())]; };
export const byob = async it => { const s = connect(host(it)); await say(s, asked(it, undefined, CLOSE)); const r = s.readable.getReader({ mode: 'byob' }); const { value, done } = await r.read(new Uint8Array(4)); await s.close(); return [new TextDecoder().decode(value), done]; };
export const iterated = async it => { const s = connect(host(it)); await say(s, asked(it, undefined, CLOSE)); let text = ''; for await (const chunk of s.readable) text += new TextDecoder().decode(chunk); return gist(text); };
export const cancelled = async it => { const s = connect(host(it)); await s.opened; const end = await outcome(s.readable.cancel('enough')); await say(s, asked(it, undefined, CLOSE)); await s.close(); return [end, await outcome(s.closed)]; };
export const aborted = async it => { const s = connect(host(it)); await s.opened; const end = await outcome(s.writable.abort(new Error('enough'))); const again = await outcome(s.writable.getWriter().write(encode('x'))); await s.close(); return [end, again]; };
export const not_there = async () => { const s = connect('127.0.0.1:1'); return [await outcome(s.opened), await outcome(s.closed)]; };
export const http_port = async () => { const s = connect('127.0.0.1:80'); return outcome(s.opened); };
export const tls_closed = async it => { const s = connect(host(it), { secureTransport: 'starttls' }); await s.close(); return thrown(() => s.startTls()); };
export const not_there_read = async () => { const s = connect('127.0.0.1:1'); return outcome(s.readable.getReader().read()); };
export const not_there_written = async () => { const s = connect('127.0.0.1:1'); return outcome(s.writable.getWriter().write(encode('x'))); };
export const not_there_closed = async () => { const s = connect('127.0.0.1:1'); return [await outcome(s.close()), await outcome(s.closed)]; };
export const addresses = async () => { const seen = []; for (const address of ['', 'localhost', ':1', 'a b:1', 'a/b:1', 'x:99999', 'exa$mple.com:1', `${'a'.repeat(300)}:1`, 5, {}, { hostname: 'x' }, { port: 1 }, { hostname: '', port: 1 }, { hostname: 'a b', port: 1 }, { hostname: 'x', port: 65536 }, { hostname: 'x', port: -1 }, { hostname: 'x', port: 'y' }]) seen.push(await thrown(() => connect(address))); return seen; };
export const no_address = async () => errorName(() => connect());
export const bad_options = async () => [await thrown(() => connect('127.0.0.1:1', { secureTransport: 'maybe' })), await thrown(() => connect('127.0.0.1:1', 5))];
export const tls_of_plain = async it => { const s = connect(host(it)); const error = await thrown(() => s.startTls()); await s.close(); return error; };
export const tls_twice = async it => { const s = connect(host(it), { secureTransport: 'on' }); s.opened.catch(() => {}); s.closed.catch(() => {}); return thrown(() => s.startTls()); };
export const start_tls = async it => { const s = connect(host(it), { secureTransport: 'starttls' }); await s.opened; const t = s.startTls(); const seen = [t.constructor.name, t.secureTransport, t === s]; await s.closed; return [seen, s.upgraded, t.upgraded, (await outcome(t.opened))[0]]; };
