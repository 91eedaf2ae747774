import { errorName, thrown } from './show.js';

export const dispatch = () => { const t = new EventTarget(); const seen = []; t.addEventListener('x', e => seen.push(e.type)); t.addEventListener('x', { handleEvent(e) { seen.push(e.target === t); } }); t.dispatchEvent(new Event('x')); return seen; };
export const once = () => { const t = new EventTarget(); let n = 0; t.addEventListener('x', () => n++, { once: true }); t.dispatchEvent(new Event('x')); t.dispatchEvent(new Event('x')); return n; };
export const remove = () => { const t = new EventTarget(); let n = 0; const f = () => n++; t.addEventListener('x', f); t.addEventListener('x', f); t.removeEventListener('x', f); t.dispatchEvent(new Event('x')); return n; };
export const prevent = () => { const t = new EventTarget(); t.addEventListener('x', e => e.preventDefault()); const e = new Event('x', { cancelable: true }); return [t.dispatchEvent(e), e.defaultPrevented]; };
export const stop = () => { const t = new EventTarget(); const seen = []; t.addEventListener('x', e => { seen.push(1); e.stopImmediatePropagation(); }); t.addEventListener('x', () => seen.push(2)); t.dispatchEvent(new Event('x')); return seen; };
export const custom = () => { const e = new CustomEvent('x', { detail: { a: 1 } }); return [e.detail, e.type, e instanceof Event]; };
export const abort = () => { const c = new AbortController(); let n = 0; c.signal.addEventListener('abort', () => n++); c.abort(); c.abort('again'); return [n, c.signal.aborted, c.signal.reason.name]; };
export const abort_reason = () => thrown(() => AbortSignal.abort(new RangeError('mine')).throwIfAborted());
export const any = () => { const c = new AbortController(); const s = AbortSignal.any([new AbortController().signal, c.signal]); c.abort('why'); return [s.aborted, s.reason]; };
export const timeout = async () => { const s = AbortSignal.timeout(1); await new Promise(done => s.addEventListener('abort', done)); return s.reason.name; };
export const listener_signal = () => { const t = new EventTarget(); const c = new AbortController(); let n = 0; t.addEventListener('x', () => n++, { signal: c.signal }); c.abort(); t.dispatchEvent(new Event('x')); return n; };
export const dom_exception = () => { const e = new DOMException('m', 'AbortError'); return [e.name, e.message, e.code, e instanceof Error, DOMException.ABORT_ERR]; };
export const redispatch = () => errorName(() => { const t = new EventTarget(); const e = new Event('x'); t.addEventListener('x', () => t.dispatchEvent(e)); t.dispatchEvent(e); });
