//! DOM standard: events, targets, abort signals; and the environment of a handler.

use super::holds;
use crate::testing::{fails, run};

#[test]
fn listeners_are_called_in_order_once_and_until_they_are_removed() {
    holds(&[
        "const t = new EventTarget(), seen = [], f = () => seen.push('f'); t.addEventListener('x', f); t.addEventListener('x', f); t.addEventListener('x', () => seen.push('g'), { once: true }); t.dispatchEvent(new Event('x')); t.dispatchEvent(new Event('x')); t.removeEventListener('x', f); t.dispatchEvent(new Event('x')); return seen.join() === 'f,g,f'",
        "const t = new EventTarget(); let self; t.addEventListener('x', { handleEvent(e) { self = this; this.type = e.type; } }); t.dispatchEvent(new Event('x')); return self.type === 'x'",
        "const t = new EventTarget(), seen = []; t.addEventListener('x', e => { seen.push(1); e.stopImmediatePropagation(); }); t.addEventListener('x', () => seen.push(2)); t.dispatchEvent(new Event('x')); return seen.join() === '1'",
        "const t = new EventTarget(), seen = [], g = () => seen.push('g'); t.addEventListener('x', () => { seen.push('f'); t.removeEventListener('x', g); }); t.addEventListener('x', g); t.dispatchEvent(new Event('x')); return seen.join() === 'f'",
        "const t = new EventTarget(), seen = []; t.addEventListener('x', () => t.addEventListener('x', () => seen.push('late'))); t.dispatchEvent(new Event('x')); return seen.length === 0",
        "const t = new EventTarget(); t.addEventListener('x', e => e.preventDefault()); return !t.dispatchEvent(new Event('x', { cancelable: true })) && t.dispatchEvent(new Event('x'))",
        "const t = new EventTarget(); t.addEventListener('x', e => e.preventDefault(), { passive: true }); return t.dispatchEvent(new Event('x', { cancelable: true }))",
        "const t = new EventTarget(), c = new AbortController(); let n = 0; t.addEventListener('x', () => n++, { signal: c.signal }); t.dispatchEvent(new Event('x')); c.abort(); t.dispatchEvent(new Event('x')); return n === 1",
        "const t = new EventTarget(); t.addEventListener('x', null); return true",
        "class Mine extends EventTarget {}; const m = new Mine(); let target; m.addEventListener('x', e => { target = e.target === m && e.currentTarget === m && e.eventPhase === 2; }); const e = new Event('x'); m.dispatchEvent(e); return target && e.currentTarget === null && e.target === m && e.eventPhase === 0",
        "let seen; addEventListener('mine', e => { seen = e.target === globalThis; }); dispatchEvent(new Event('mine')); return seen",
    ]);
}

#[test]
fn events_have_the_members_of_their_interfaces() {
    holds(&[
        "const e = new Event('x', { bubbles: true }); return e.type === 'x' && e.bubbles && !e.cancelable && e.isTrusted === false && Object.prototype.toString.call(e) === '[object Event]'",
        "new CustomEvent('x', { detail: 5 }).detail === 5 && new CustomEvent('x').detail === null",
        "const e = new CloseEvent('close', { code: 1000, reason: 'r', wasClean: true }); return e.code === 1000 && e.reason === 'r' && e.wasClean && e instanceof Event",
        "const e = new MessageEvent('message', { data: [1] }); return e.data[0] === 1 && e.origin === '' && e.ports.length === 0",
        "const e = new ErrorEvent('error', { error: 1, message: 'm' }); return e.error === 1 && e.message === 'm' && e.lineno === 0",
        "const p = Promise.resolve(); const e = new PromiseRejectionEvent('x', { promise: p, reason: 1 }); return e.promise === p && e.reason === 1",
        "Event.AT_TARGET === 2 && new Event('x').BUBBLING_PHASE === 3",
        "Object.keys(Event.prototype).includes('preventDefault')",
    ]);
    assert_eq!(
        fails("new Event()"),
        "TypeError: Failed to execute 'new Event': 1 argument required, but only 0 present."
    );
    assert_eq!(
        fails("new EventTarget().dispatchEvent({})"),
        "TypeError: Failed to execute 'dispatchEvent' on 'EventTarget': parameter 1 is not of type 'Event'."
    );
    assert_eq!(fails("Event.prototype.type"), "TypeError: Illegal invocation");
    assert!(fails("const t = new EventTarget(), e = new Event('x'); let error; t.addEventListener('x', () => { try { t.dispatchEvent(e); } catch (caught) { error = caught; } }); t.dispatchEvent(e); throw error").starts_with("InvalidStateError"));
}

#[test]
fn an_error_of_a_listener_is_reported_and_stops_no_other() {
    holds(&[
        "const seen = []; addEventListener('error', e => { seen.push(e.error.message); e.preventDefault(); }); const t = new EventTarget(); t.addEventListener('x', () => { throw new Error('one'); }); t.addEventListener('x', () => seen.push('two')); t.dispatchEvent(new Event('x')); return seen.join() === 'one,two'",
        "let seen; addEventListener('error', e => { seen = e.isTrusted && e.message === 'Uncaught Error: x'; e.preventDefault(); }); reportError(new Error('x')); return seen",
    ]);
}

#[test]
fn an_abort_is_seen_once_with_its_reason() {
    holds(&[
        "const c = new AbortController(); let n = 0; c.signal.onabort = e => { n += e.isTrusted ? 1 : 0; }; c.abort(); c.abort('later'); return n === 1 && c.signal.aborted && c.signal.reason.name === 'AbortError' && c.signal.reason instanceof DOMException",
        "AbortSignal.abort('why').reason === 'why'",
        "const c = new AbortController(); c.abort('r'); try { c.signal.throwIfAborted(); } catch (e) { return e === 'r'; }",
        "new AbortController().signal.throwIfAborted() === undefined",
        "const a = new AbortController(), b = new AbortController(), s = AbortSignal.any([a.signal, b.signal]); let n = 0; s.addEventListener('abort', () => n++); b.abort('b'); a.abort('a'); return s.reason === 'b' && n === 1",
        "AbortSignal.any([]).aborted === false && AbortSignal.any([AbortSignal.abort(1)]).reason === 1",
        "const a = new AbortController(), s = AbortSignal.any([AbortSignal.any([a.signal])]), t = AbortSignal.any([s]); let seen; a.signal.onabort = () => { seen = s.aborted && t.aborted; }; a.abort(); return seen",
        "const s = AbortSignal.timeout(50); await new Promise(resolve => { s.onabort = resolve; }); return s.reason.name === 'TimeoutError' && s.reason.code === 23",
        "const c = new AbortController(), s = c.signal; s.onabort = 5; return s.onabort === null",
    ]);
    assert_eq!(fails("new AbortSignal()"), "TypeError: Illegal constructor");
    assert!(fails("AbortSignal.any([1])").starts_with("TypeError"));
    assert!(fails("AbortSignal.timeout(-1)").starts_with("TypeError"));
}

#[test]
fn a_dom_exception_has_its_name_code_and_stack() {
    holds(&[
        "const e = new DOMException('m', 'AbortError'); return e.name === 'AbortError' && e.code === 20 && e.message === 'm' && e instanceof Error && DOMException.ABORT_ERR === 20 && typeof e.stack === 'string'",
        "String(new DOMException('m', 'DataCloneError')) === 'DataCloneError: m' && new DOMException().name === 'Error' && new DOMException('x', 'Mine').code === 0",
    ]);
}

#[test]
fn the_environment_names_itself() {
    assert_eq!(run("return navigator.userAgent"), "Cloudflare-Workers");
    holds(&["Object.prototype.toString.call(navigator) === '[object Navigator]'"]);
    assert_eq!(fails("new Navigator()"), "TypeError: Illegal constructor");
    assert_eq!(
        fails("Object.getOwnPropertyDescriptor(Navigator.prototype, 'userAgent').get.call({})"),
        "TypeError: Illegal invocation"
    );
}
