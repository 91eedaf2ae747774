// WebSockets to a server outside: this application itself, by its public address.
import { thrown } from './show.js';

const base = ({ request }, scheme = 'ws') => `${scheme}://${new URL(request.url).host}/outside`;
const seen = (socket, until = 'close') => new Promise(done => {
  const events = [];
  const note = (type, what) => {
    events.push([type, ...what]);
    if (type === until || type === 'close') done(events);
  };
  socket.addEventListener('open', () => note('open', [socket.readyState]));
  socket.addEventListener('message', ({ data }) => note('message', [typeof data === 'string' ? data : data.constructor.name]));
  socket.addEventListener('error', ({ error }) => note('error', [error?.name]));
  socket.addEventListener('close', ({ code, reason, wasClean }) => note('close', [code, reason, wasClean]));
});
const upgrade = async (it, path = '/echo', headers = {}) => fetch(`${base(it, 'http')}${path}`, { headers: { Upgrade: 'websocket', ...headers } });
const accepted = async (it, path) => {
  const { webSocket } = await upgrade(it, path);
  webSocket.accept();
  return webSocket;
};

export const constructed = async it => { const s = new WebSocket(`${base(it)}/echo`); const before = [s.readyState, s.url === `${base(it)}/echo`, s.protocol, s.extensions, s.binaryType]; s.addEventListener('open', () => { s.send('hello'); s.send(new Uint8Array([1, 2])); s.send('close'); }); return [before, await seen(s), s.readyState]; };
export const too_early = async it => { const s = new WebSocket(`${base(it)}/echo`); const errors = [await thrown(() => s.send('x')), await thrown(() => s.accept())]; s.addEventListener('open', () => s.close()); await seen(s); return errors; };
export const protocol = async it => { const s = new WebSocket(`${base(it)}/protocol`, ['a', 'b']); await seen(s, 'open'); const { protocol } = s; s.close(); return protocol; };
export const protocol_as_text = async it => { const s = new WebSocket(`${base(it)}/protocol`, 'b'); await seen(s, 'open'); const { protocol } = s; s.close(); return protocol; };
export const not_a_socket = async it => { const s = new WebSocket(`${base(it)}/none`); const error = new Promise(done => s.addEventListener('error', done)); const events = await seen(s); const { message, error: { message: inner } } = await error; return [events, message, inner, s.readyState]; };
export const not_there = async () => { const s = new WebSocket('ws://127.0.0.1:1/'); return [await seen(s), s.readyState]; };
export const abandoned = async it => { const s = new WebSocket(`${base(it)}/echo`); s.close(); return [await seen(s), s.readyState]; };
export const urls = async () => ['nonsense', '/x', 'http://127.0.0.1:1/', 'ws://127.0.0.1:1/#', 'ws://127.0.0.1:1/#x'].reduce(async (all, url) => [...await all, await thrown(() => new WebSocket(url))], []);
export const protocols = async () => [[''], ['a b'], ['a', 'a'], '', 'a,b'].reduce(async (all, names) => [...await all, await thrown(() => new WebSocket('ws://127.0.0.1:1/', names))], []);
export const fetched = async it => { const r = await upgrade(it); const s = r.webSocket; const before = [r.status, r.statusText, s instanceof WebSocket, s.readyState, s.url, s.protocol, r.body]; s.accept(); const events = seen(s); s.send('x'); s.send('close'); return [before, await events, s.readyState]; };
export const fetched_protocol = async it => { const r = await upgrade(it, '/protocol', { 'Sec-WebSocket-Protocol': 'a, b' }); r.webSocket.accept(); r.webSocket.close(); return r.headers.get('sec-websocket-protocol'); };
export const fetched_plain = async it => { const r = await upgrade(it, '/none'); return [r.status, r.webSocket, await r.text()]; };
export const fetched_scheme = it => thrown(() => fetch('ws://127.0.0.1:1/echo', { headers: { Upgrade: 'websocket' } }).catch(e => { throw new Error(e.name); }));
export const not_accepted = async it => { const { webSocket } = await upgrade(it); return thrown(() => webSocket.send('x')); };
export const close = async it => { const s = await accepted(it, '/echo'); const events = seen(s); s.close(4001, 'bye'); return [await events, s.readyState]; };
export const close_bare = async it => { const s = await accepted(it, '/echo'); const events = seen(s); s.close(); return [await events, s.readyState]; };
export const closed_bare = async it => { const s = await accepted(it, '/echo'); const events = seen(s); s.send('close bare'); return [await events, s.readyState]; };
export const in_order = async it => { const s = await accepted(it, '/echo'); const events = seen(s); s.send('many'); s.send('close'); return events; };
export const large = async it => { const s = await accepted(it, '/echo'); s.binaryType = 'arraybuffer'; const got = new Promise(done => s.addEventListener('message', ({ data }) => done([data.byteLength, new Uint8Array(data)[700_000]]))); s.send(new Uint8Array(1_000_000).fill(7)); const seen = await got; s.close(); return seen; };
export const empty = async it => { const s = await accepted(it, '/echo'); const events = seen(s); s.send(''); s.send(new Uint8Array(0)); s.send('close'); return events; };
