// `node:async_hooks`: what a store is after whatever lets other code run.
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { errorName, thrown } from './show.js';

const als = new AsyncLocalStorage();
const wait = ms => new Promise(done => setTimeout(done, ms));
const get = () => als.getStore();
// Runs `body` within a store, beside other code that is within another one and never rests.
const amid = async body => {
  let goes = true;
  const other = als.run('other', async () => { while (goes) { await null; await wait(1); } });
  try {
    return await als.run('mine', body);
  } finally {
    goes = false;
    await other;
  }
};

export const run = () => [get(), als.run(1, () => [get(), als.run(2, get), get()]), get()];
export const run_arguments = () => als.run('s', function (...args) { return [this === undefined, args, get()]; }, 1, 2);
export const run_throws = async () => [await errorName(() => als.run(1, () => { throw new RangeError('x'); })), get()];
export const exit = () => als.run(1, () => [als.exit((a, b) => [get(), a, b], 2, 3), get()]);
export const enter_with = async () => [await thrown(() => als.enterWith(1)), await thrown(() => als.disable()), get()];
export const two_storages = () => { const b = new AsyncLocalStorage(); return als.run(1, () => b.run(2, () => [get(), b.getStore(), als.exit(() => [get(), b.getStore()])])); };
export const options = () => { const named = new AsyncLocalStorage({ name: 'n', defaultValue: 7 }); return [named.name, named.getStore(), named.run(1, () => named.getStore()), new AsyncLocalStorage().name]; };
export const awaits = () => amid(async () => { const seen = []; await null; seen.push(get()); await wait(1); seen.push(get()); await Promise.resolve(); seen.push(get()); await 5; seen.push(get()); return seen; });
export const await_rejected = () => amid(async () => { const seen = []; try { await Promise.reject(1); } catch { seen.push(get()); } try { await wait(1).then(() => { throw 2; }); } catch { seen.push(get()); } return seen; });
export const await_thenable = () => amid(async () => { const seen = []; const lazy = { then(f) { seen.push(get()); setTimeout(f, 1, 'v'); } }; seen.push(await lazy, get()); await { then: f => f() }; seen.push(get()); return seen; });
export const await_thenable_rejects = () => amid(async () => { const seen = []; try { await { then: (f, r) => wait(1).then(() => r('x')) }; } catch (e) { seen.push(e, get()); } try { await { async then(f, r) { await wait(1); r('y'); } }; } catch (e) { seen.push(e, get()); } try { await { then(f, r) { return Promise.reject('z').then(f, r); } }; } catch (e) { seen.push(e, get()); } return seen; });
export const await_subclass = () => amid(async () => { class Mine extends Promise {} const seen = []; seen.push(await new Mine(f => setTimeout(f, 1, 1)), get()); try { await Mine.reject(2); } catch (e) { seen.push(e, get()); } return seen; });
export const then = () => amid(() => wait(1).then(() => get()).then(a => [a, get()]).finally(() => wait(1)).then(v => [v, get()]));
export const then_outside = async () => { const { promise, resolve } = Promise.withResolvers(); const inner = als.run('then', () => promise.then(() => get())); als.run('resolve', () => resolve()); return [await inner, await promise.then(get)]; };
export const await_outside = async () => { const { promise, resolve } = Promise.withResolvers(); const one = als.run('one', async () => { await promise; return get(); }); const two = als.run('two', async () => { await promise; return get(); }); als.run('resolve', () => resolve()); return [await one, await two, get()]; };
export const interleaved = async () => { const job = async n => als.run(n, async () => { const seen = []; for (let i = 0; i < 4; i++) { await (i % 2 ? wait(i) : i); seen.push(get()); } return seen; }); return await Promise.all([1, 2, 3].map(job)); };
export const all = () => amid(async () => { const r = await Promise.all([1, wait(1), Promise.resolve().then(get)]); const s = await Promise.allSettled([Promise.reject(1)]); await Promise.race([wait(1), wait(9)]); return [r, s.length, get()]; });
export const timers = () => amid(() => new Promise(done => { const seen = []; queueMicrotask(() => seen.push(get())); setTimeout(() => { seen.push(get()); const id = setInterval(() => { seen.push(get()); if (seen.length === 4) { clearInterval(id); done(seen); } }, 1); }, 1); }));
export const scheduler_wait = () => amid(async () => { await scheduler.wait(1); return get(); });
export const generators = () => amid(async () => { async function* g() { yield get(); await wait(1); yield get(); } const seen = []; for await (const v of g()) seen.push(v, get()); return seen; });
export const generator_of_another = async () => { async function* g() { yield get(); await null; yield get(); await null; yield get(); } const it = g(); const seen = []; seen.push((await als.run('a', () => it.next())).value); seen.push((await als.run('b', () => it.next())).value, get()); return seen; };
export const for_await_sync = () => amid(async () => { const seen = []; for await (const v of [wait(1), 2, Promise.resolve(3)]) seen.push(v, get()); return seen; });
export const emitter = () => { const e = new EventEmitter(); als.run(1, () => e.on('x', () => seen.push(get()))); const seen = []; als.run(2, () => e.emit('x')); e.emit('x'); return seen; };
export const event_target = () => { const e = new EventTarget(); const seen = []; als.run(1, () => e.addEventListener('x', () => seen.push(get()))); als.run(2, () => e.dispatchEvent(new Event('x'))); e.dispatchEvent(new Event('x')); return seen; };
export const abort = async () => { const c = new AbortController(); const seen = []; als.run(1, () => c.signal.addEventListener('abort', () => seen.push(get()))); als.run(2, () => c.abort()); return seen; };
export const readable_stream = () => amid(async () => { const seen = []; let n = 0; const s = new ReadableStream({ start() { seen.push(get()); }, async pull(c) { await null; seen.push(get()); if (++n === 3) c.close(); else c.enqueue(n); } }, { highWaterMark: 0 }); for await (const v of s) seen.push(v, get()); return seen; });
export const response_body = () => amid(async () => { const text = await new Response('abc').text(); return [text, get()]; });
export const transform_stream = () => amid(async () => { const seen = []; const t = new TransformStream({ transform(v, c) { seen.push(get()); c.enqueue(v); } }); const w = t.writable.getWriter(); w.write(1).then(() => seen.push(`w ${get()}`)); const v = await t.readable.getReader().read(); await wait(1); return [v.value, seen, get()]; });
export const bind = () => { const bound = als.run(1, () => AsyncLocalStorage.bind(function (a) { return [get(), a]; })); return [bound(5), als.run(2, () => bound(6)), bound.length]; };
export const snapshot = () => { const shot = als.run(1, () => AsyncLocalStorage.snapshot()); return [shot(get), als.run(2, () => shot((a, b) => [get(), a, b], 3, 4))]; };
export const bind_bad = async () => [await thrown(() => AsyncLocalStorage.bind(1)), (await thrown(() => AsyncLocalStorage.bind(1))).code];
export const resource = () => { const r = als.run(1, () => new AsyncResource('MINE')); return [als.run(2, () => r.runInAsyncScope(function (a, b) { return [this.me, get(), a, b]; }, { me: 1 }, 3, 4)), r.type, typeof r.asyncId(), typeof r.triggerAsyncId(), r.emitDestroy() === r]; };
export const resource_bind = () => { const r = als.run(1, () => new AsyncResource('MINE')); const b = r.bind(function (x) { return [get(), x, this === undefined]; }); const s = als.run(3, () => AsyncResource.bind(() => get(), 'T')); return [b(1), b.asyncResource === r, s()]; };
export const resource_bad = async () => [await thrown(() => new AsyncResource()), await thrown(() => new AsyncResource(5)), await thrown(() => new AsyncResource('x').bind(4))];
export const wait_until = async ({ ctx }) => { const seen = []; await als.run(1, async () => { const p = wait(1).then(() => seen.push(get())); ctx.waitUntil?.(p); await p; }); return seen; };
export const unset = () => als.run(undefined, () => [get(), als.run(null, get)]);
export const handlers_of_nothing = async () => als.run(1, async () => { const p = Promise.resolve(4); return [await p.then(), await p.then(null, null), await Promise.reject(2).catch(e => [e, get()])]; });
export const dynamic_import = () => amid(async () => { await import('node:events'); return get(); });
export const constructor_of_promises = () => { class Mine extends Promise {} const p = Mine.resolve(1); return [Promise.resolve().constructor === Promise, p.constructor === Mine, p.then(() => {}) instanceof Mine, Promise.prototype.then.length, Promise.prototype.then.name]; };
