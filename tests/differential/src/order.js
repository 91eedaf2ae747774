// What runs before what.
const wait = ms => new Promise(done => setTimeout(done, ms));
export const microtasks = async () => { const seen = []; setTimeout(() => seen.push('timer'), 0); queueMicrotask(() => seen.push('micro')); Promise.resolve().then(() => seen.push('promise')); seen.push('now'); await wait(5); return seen; };
export const timers = async () => { const seen = []; setTimeout(() => seen.push(3), 6); setTimeout(() => seen.push(1), 1); setTimeout(() => seen.push(2), 3); await wait(20); return seen; };
export const cleared = async () => { let n = 0; clearTimeout(setTimeout(() => n++, 1)); await wait(5); return n; };
export const interval = async () => { let n = 0; await new Promise(done => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); done(); } }, 1); }); return n; };
export const arguments_of_timers = async () => new Promise(done => setTimeout((a, b) => done([a, b]), 1, 'x', 2));
export const scheduler_wait = async () => { await scheduler.wait(1); return 'woken'; };
export const await_order = async () => { const seen = []; const a = async n => { seen.push(`a${n}`); await null; seen.push(`b${n}`); }; await Promise.all([a(1), a(2)]); return seen; };
export const all_settled = async () => (await Promise.allSettled([1, Promise.reject(new RangeError('x'))])).map(r => [r.status, r.value, r.reason?.name]);
export const navigator_agent = () => typeof navigator.userAgent;
export const globals = () => ['fetch', 'crypto', 'caches', 'self', 'structuredClone', 'queueMicrotask', 'performance', 'URLPattern', 'WebSocketPair', 'window', 'document', 'process', 'Buffer', 'require'].map(name => [name, typeof globalThis[name] !== 'undefined']);
