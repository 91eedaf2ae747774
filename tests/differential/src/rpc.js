// Functions, RpcTargets and streams over RPC.
import { RpcStub, RpcTarget } from 'cloudflare:workers';
import { Counter } from './remote.js';
import { chunks, errorName, thrown } from './show.js';

const remote = ({ env, request }, more = '') => env.REMOTE.getByName(new URL(request.url).pathname + more + crypto.randomUUID());
const text = new TextEncoder();
const decode = list => list.map(chunk => new TextDecoder().decode(chunk));

// Results.
export const target = async it => { const c = await remote(it).counter(5); return [await c.increment(), await c.increment(2), await c.value]; };
export const target_shape = async it => { const c = await remote(it).counter(5); return [typeof c, c instanceof RpcStub, typeof c.dup, typeof c[Symbol.dispose], typeof c.increment, c.then, Object.prototype.toString.call(c)]; };
export const target_own_property = async it => { const c = await remote(it).counter(5); return [await thrown(() => c.own), await thrown(() => c.own())]; };
export const target_missing = async it => { const c = await remote(it).counter(5); return [await thrown(() => c.missing()), await thrown(() => c.missing), await thrown(() => c.value()), await thrown(() => c())]; };
export const target_throws = async it => { const c = await remote(it).counter(5); const e = await thrown(() => c.fail('why')); return [e, e instanceof RangeError, e.remote]; };
export const target_deep = async it => { const c = await remote(it).counter(5); return [await c.deep.list, await c.deep.inner.increment(), await c.deep.inner.value]; };
export const target_child = async it => { const c = await remote(it).counter(5); const d = await c.child(7); return [await d.increment(), await c.increment()]; };
export const targets = async it => { const [one, { two }, three] = await remote(it).counters(); return [await one.value, await two.value, await three.get('three').value]; };
export const fn = async it => { const add = await remote(it).adder(3); return [await add(4), await add(5), typeof add]; };
export const functions = async it => { const o = await remote(it).withFunctions(); return [o.name, await o.add(1, 2), await o.nested.twice(4), Object.keys(o), typeof o[Symbol.dispose]]; };
export const same_twice = async it => { const [f, g] = await remote(it).same(); return [f === g, await f(), await g()]; };
export const plain_instance = it => thrown(() => remote(it).plainInstance());
export const property = async it => { const r = remote(it); return [await r.property, await thrown(() => r.missing), await thrown(() => r.kept)]; };
export const property_target = async it => { const r = remote(it); return [await r.targetProperty.increment(), await r.targetProperty.value]; };
export const pipelined = async it => { const r = remote(it); return [await r.counter(5).increment(), await r.counter(5).value, await r.adder(3)(4), await r.withFunctions().nested.twice(2), await r.counter(1).child(9).increment(1)]; };
export const pipelined_throws = it => thrown(() => remote(it).counter(5).fail('pipelined'));
export const pipelined_missing = async it => [await thrown(() => remote(it).echo(1).missing()), await thrown(() => remote(it).echo({ a: 1 }).missing()), await thrown(() => remote(it).echo({ a: 1 }).a()), await remote(it).echo({ a: 1 }).a];
export const promise_shape = async it => { const p = remote(it).counter(5); const seen = [typeof p, p instanceof Promise, typeof p.then, typeof p.catch, typeof p.finally, typeof p.increment]; await p; return seen; };
export const promise_methods = async it => [await remote(it).echo(1).then(v => v + 1), await remote(it).echo(1).finally(() => {}), await remote(it).counter(1).fail('x').catch(e => e.message)];
export const echo_function = async it => { const f = await remote(it).echo(x => x + 1); return [typeof f, await f(1)]; };
export const dup = async it => { const c = await remote(it).counter(5); const d = c.dup(); c[Symbol.dispose](); return [await d.increment(), await thrown(() => c.increment())]; };
export const disposed = async it => { const c = await remote(it).counter(5); c[Symbol.dispose](); c[Symbol.dispose](); return [await thrown(() => c.increment()), await thrown(() => c.value)]; };
export const disposer = async it => { const r = remote(it); const c = await r.counter(5); const before = await r.disposals(); c[Symbol.dispose](); await c; await scheduler.wait(20); return [before, await r.disposals()]; };
export const disposer_of_result = async it => { const r = remote(it); const result = await r.echo({ a: 1 }); return [typeof result[Symbol.dispose], Object.getOwnPropertySymbols(result).length, (await r.echo([1]))[Symbol.dispose] === undefined]; };
export const dispose_result = async it => { const o = await remote(it).withFunctions(); o[Symbol.dispose](); return thrown(() => o.add(1, 2)); };
export const promised = it => thrown(() => remote(it).promised());
export const overlapping = async it => { const c = await remote(it).counter(0); return Promise.all([c.slow('a'), c.increment(), c.increment(), c.slow('b')]); };

// Arguments.
export const callback = it => remote(it).call((a, b) => a + b, 1, 2);
export const callback_async = it => remote(it).call(async a => { await scheduler.wait(1); return a * 2; }, 4);
export const callback_twice = it => remote(it).callTwice(value => value * 3);
export const callback_throws = it => thrown(() => remote(it).call(() => { throw new TypeError('in the callback'); }));
export const callback_caught = it => remote(it).catching(() => { throw new RangeError('in the callback'); });
export const callback_state = async it => { let sum = 0; await remote(it).callTwice(value => { sum += value; }); return sum; };
export const callback_gives_function = async it => { const f = await remote(it).call(() => x => x + 1); return f(1); };
export const target_argument = it => remote(it).callMethod(new Counter(7), 'increment', 3);
export const target_argument_property = it => remote(it).read(new Counter(7), 'value');
export const target_argument_own = it => thrown(() => remote(it).read(new Counter(7), 'own'));
export const argument_shape = it => Promise.all([remote(it).shapeOf(() => 1), remote(it).shapeOf(new Counter(1))]);
export const callback_after = async it => { const r = remote(it); await r.callLater(() => 'called'); return thrown(() => r.callKept()); };
export const callback_dup = async it => { const r = remote(it); await r.callDup(value => `called ${value}`); const seen = [await r.callKept(1), await r.callKept(2)]; await r.releaseKept(); return seen; };
export const stub_argument = async it => { const r = remote(it, 'a'); const c = await r.counter(5); return [await remote(it, 'b').callMethod(c, 'increment', 2), await c.value]; };
export const unclonable = async it => [await errorName(() => remote(it).echo(Symbol('x'))), await thrown(() => remote(it).echo(new (class Own {})())), await thrown(() => remote(it).echo(Promise.resolve(1))), await thrown(() => remote(it).echo(new WeakMap()))];
export const local_stub = async () => { const s = new RpcStub(new Counter(3)); return [await s.increment(), await s.value, typeof s, s instanceof RpcStub]; };
export const local_stub_function = async () => { const s = new RpcStub(value => value + 1); return s(1); };
export const local_stub_bad = async () => [await thrown(() => new RpcStub(1)), await thrown(() => new RpcStub({ a: 1 })), await thrown(() => new RpcStub())];

// Streams.
export const stream = async it => decode(await chunks(await remote(it).stream('one ', 'two'))).join('');
export const byte_stream = async it => decode(await chunks(await remote(it).byteStream('one ', 'two'))).join('');
export const stream_shape = async it => { const s = await remote(it).byteStream('x'); const seen = [s instanceof ReadableStream, s.locked]; await s.cancel(); return seen; };
export const broken_stream = async it => thrown(async () => { for await (const chunk of await remote(it).brokenStream()) void chunk; });
export const stream_argument = it => remote(it).readStream(ReadableStream.from([text.encode('to '), text.encode('it')]));
export const stream_echo = async it => { const s = await remote(it).echo(new Response('there and back').body); return new Response(s).text(); };
export const sink = async it => { const r = remote(it); const writer = (await r.sink()).getWriter(); await writer.write(text.encode('one')); await writer.write(text.encode('two')); await writer.close(); return r.seenBySink(); };
export const sink_argument = async it => { const { readable, writable } = new TransformStream(); const read = new Response(readable).text(); return [await remote(it).writeTo(writable, 'a', 'b'), await read]; };
export const large_stream = async it => { const s = await remote(it).echo(new Response('x'.repeat(300000)).body); return (await new Response(s).text()).length; };

// Requests and responses.
export const request = it => remote(it).request(new Request('http://x/y?z', { method: 'POST', body: 'a body', headers: { 'x-a': 'a' } }));
export const request_bare = it => remote(it).request(new Request('http://x/'));
export const response = it => remote(it).response(new Response('a body', { status: 202, headers: { 'x-a': 'a' } }));
export const headers = it => remote(it).headers(new Headers({ b: '2', a: '1' }));
export const make_response = async it => { const r = await remote(it).makeResponse(); return [r instanceof Response, r.status, r.headers.get('x-b'), await r.text()]; };
export const make_request = async it => { const r = await remote(it).makeRequest(); return [r instanceof Request, r.method, r.url, r.headers.get('x-b'), await r.text()]; };
export const make_headers = async it => [...await remote(it).makeHeaders()];
export const not_serializable = async it => [await thrown(() => remote(it).blobs()), await thrown(() => remote(it).form()), await thrown(() => remote(it).pair())];

// Order.
export const order = async it => { const r = remote(it); await Promise.all(Array.from({ length: 100 }, (_, index) => r.note(index))); return r.noted(); };
export const order_of_kinds = async it => { const r = remote(it); await Promise.all([r.note('a'), r.callTwice(value => value), r.note('b'), r.call(() => {}), r.note('c')]); return r.noted(); };
