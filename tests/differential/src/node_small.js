// `node:string_decoder`, `node:timers`, `node:timers/promises`, `node:process` and its global, `node:diagnostics_channel`.
import { StringDecoder } from 'node:string_decoder';
import timers, { setTimeout as timeout } from 'node:timers';
import { setTimeout as sleep, setImmediate as soon, setInterval as ticks, scheduler as schedule } from 'node:timers/promises';
import process, { env, nextTick } from 'node:process';
import { channel, hasSubscribers, subscribe, unsubscribe, tracingChannel, Channel } from 'node:diagnostics_channel';
import { AsyncLocalStorage } from 'node:async_hooks';
import { thrown } from './show.js';

const fails = async body => { const error = await thrown(body); return typeof error === 'string' ? error : `${error.name} ${error.code}: ${error.message}`; };
const all = async (...bodies) => { const results = []; for (const body of bodies) results.push(await fails(body)); return results; };
const pieces = (encoding, ...parts) => { const decoder = new StringDecoder(encoding); return [...parts.map(part => decoder.write(Buffer.from(part, 'hex'))), decoder.end()]; };

export const decoder_utf8 = () => [pieces('utf8', 'e2', '82', 'ac41'), pieces('utf8', 'f09f', '98', '80'), pieces('utf8', 'e282'), pieces('utf8', 'ff', 'c3', '41'), pieces(undefined, 'c3bc')];
export const decoder_utf16 = () => [pieces('utf16le', '61', '00', '3dd8', '00de'), pieces('utf16le', '3dd8'), pieces('ucs2', '6100', '62')];
export const decoder_base64 = () => [pieces('base64', '61', '6263', '64'), pieces('base64url', 'fb', 'ff'), pieces('hex', '61', '6263'), pieces('latin1', 'e9', 'ff'), pieces('ascii', '61')];
export const decoder_more = () => { const d = new StringDecoder('utf-8'); return [d.encoding, d.write(Buffer.from('e2', 'hex')), d.lastNeed, d.lastTotal, d.end(Buffer.from('82ac', 'hex')), d.write('text'), new StringDecoder('UCS-2').encoding, new StringDecoder('binary').encoding]; };
export const decoder_bad = () => all(() => new StringDecoder('nope'), () => new StringDecoder().write(5), () => new StringDecoder().write());
export const immediates = async () => { const seen = []; await new Promise(done => { const id = setImmediate(() => seen.push('cleared')); clearImmediate(id); setImmediate((a, b) => { seen.push('immediate', a, b); done(); }, 1, 2); Promise.resolve().then(() => seen.push('promise')); process.nextTick(() => seen.push('tick')); queueMicrotask(() => seen.push('micro')); seen.push('now'); }); return seen; };
export const timers_module = async () => [typeof timers.setTimeout, timeout === timers.setTimeout, await new Promise(done => timeout(done, 1, 'late'))];
export const timers_bad = () => all(() => setImmediate(), () => setImmediate(5), () => timeout('x', 1));
export const timers_promises = async () => { const seen = []; for await (const value of ticks(1, 'v')) { seen.push(value); if (seen.length === 3) break; } return [await sleep(1, 'a'), await soon('b'), await schedule.wait(1), await sleep(), seen, await schedule.yield()]; };
export const timers_aborted = async () => { const controller = new AbortController(); const waits = sleep(1000, 'x', { signal: controller.signal }); controller.abort('why'); const error = await thrown(() => waits); return [error.name, error.code, error.message, error.cause, (await thrown(() => sleep(1, 1, { signal: AbortSignal.abort() }))).code, (await thrown(() => soon(1, { signal: AbortSignal.abort() }))).code]; };
export const timers_promises_bad = () => all(() => sleep(1, 1, { signal: 5 }), () => sleep(1, 1, 5), () => sleep(1, 1, { ref: 5 }), () => sleep('x'));
export const process_env = ({ env: bindings }) => [process.env === env, env.TEXT, env.VALUE, typeof env.MISSING, 'TEXT' in env, Object.keys(bindings).includes('TEXT'), globalThis.process === process];
export const process_env_set = () => { env.SET = 5; const was = env.SET; delete env.SET; env.U = undefined; const u = env.U; delete env.U; return [was, 'SET' in env, u]; };
export const process_facts = () => [process.platform, process.arch, process.argv, process.execArgv, process.title, process.pid, process.ppid, process.cwd(), typeof process.version, typeof process.versions.node, process.release.name, process.exitCode, typeof process.uptime(), process.umask(), process.execPath, process.argv0];
export const process_clock = () => { const a = process.hrtime(); const b = process.hrtime(a); return [a.length, typeof a[0], b.length, typeof process.hrtime.bigint(), typeof process.memoryUsage().heapUsed, typeof process.memoryUsage.rss?.()]; };
export const process_ticks = async () => { const seen = []; await new Promise(done => { nextTick((a, b) => seen.push(a, b), 1, 2); nextTick(done); seen.push('now'); }); return seen; };
export const process_bad = () => all(() => nextTick(5), () => process.hrtime(5), () => process.chdir(5), () => process.umask('x'));
export const process_events = async () => { const seen = []; process.once('mine', value => seen.push(value)); process.emit('mine', 1); return [seen, process.listenerCount('mine'), typeof process.on, typeof process.emitWarning, process.features?.inspector, typeof process.stdout?.write, typeof process.getBuiltinModule]; };
export const process_builtin = async () => [process.getBuiltinModule('node:path') === (await import('node:path')).default, process.getBuiltinModule('path')?.join('a', 'b'), process.getBuiltinModule('nope')];
export const globals = () => ['process', 'Buffer', 'global', 'setImmediate', 'clearImmediate'].map(name => { return [name, typeof globalThis[name]]; }).concat([[global === globalThis]]);
export const channel_of_messages = async () => { const seen = []; const c = channel('a.b'); const on = (message, name) => seen.push(message, String(name)); const before = c.hasSubscribers; c.publish('lost'); subscribe('a.b', on); const during = [c.hasSubscribers, hasSubscribers('a.b')]; c.publish({ x: 1 }); const removed = [unsubscribe('a.b', on), unsubscribe('a.b', on)]; c.publish('lost'); return [before, during, seen, removed, c.name, channel('a.b') === c, c instanceof Channel, channel(Symbol.for('s')).name]; };
export const channel_stores = () => { const als = new AsyncLocalStorage(); const c = channel('stores'); c.bindStore(als, value => ({ of: value })); const seen = c.runStores('v', function (a) { return [this.me, als.getStore(), a]; }, { me: 1 }, 2); c.unbindStore(als); return [seen, c.runStores('v', () => als.getStore()), c.hasSubscribers]; };
export const channel_bad = () => all(() => channel(5), () => subscribe('x', 5), () => channel('y').subscribe('z'));
export const tracing = async () => { const seen = []; const t = tracingChannel('t'); const names = ['start', 'end', 'asyncStart', 'asyncEnd', 'error']; t.subscribe(Object.fromEntries(names.map(name => [name, message => seen.push(`${name} ${Object.keys(message).join()}`)]))); const results = [t.traceSync(a => a + 1, {}, undefined, 1), await t.tracePromise(async () => 'p', {})]; await thrown(() => t.traceSync(() => { throw new RangeError('x'); }, {})); await new Promise(done => t.traceCallback((a, cb) => setTimeout(cb, 1, null, a), 1, {}, undefined, 'v', (e, v) => { seen.push(v); done(); })); return [results, seen, t.hasSubscribers]; };
