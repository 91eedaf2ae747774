// `node:events`: emitters of Node's kind. Of `EventTarget`s `once` alone knows; `on` (an async iterator) is not there.
import { coded, provide } from 'node:internal/base';

const own = Object.prototype.hasOwnProperty;
// Listeners of one event beyond which a warning tells of a leak.
let defaultMax = 10;

function shown(value) {
  if (value === null || value === undefined) return `Received ${value}`;
  if (typeof value === 'function') return `Received function ${value.name}`;
  if (typeof value === 'object') return `Received an instance of ${value.constructor?.name ?? 'Object'}`;
  if (typeof value === 'string') return `Received type string ('${value}')`;
  return `Received type ${typeof value} (${String(value)}${typeof value === 'bigint' ? 'n' : ''})`;
}

function requireListener(value) {
  if (typeof value === 'function') return;
  const message = `The "listener" argument must be of type function. ${shown(value)}`;
  throw coded(new TypeError(message), 'ERR_INVALID_ARG_TYPE');
}

function requireCount(value, name) {
  if (typeof value !== 'number') {
    throw coded(new TypeError(`The "${name}" argument must be of type number. ${shown(value)}`), 'ERR_INVALID_ARG_TYPE');
  }
  if (value >= 0) return;
  const message = `The value of "${name}" is out of range. It must be >= 0. Received ${value}`;
  throw coded(new RangeError(message), 'ERR_OUT_OF_RANGE');
}

/** The lists of an emitter: an array of listeners by event. Made here too where a constructor did not run. */
function eventsOf(emitter) {
  if (!own.call(emitter, '_events') || emitter._events === undefined) {
    emitter._events = Object.create(null);
    emitter._eventsCount = 0;
  }
  return emitter._events;
}

/** The listener that a wrapper of `once` calls. */
const inner = listener => listener.listener ?? listener;

function add(emitter, name, listener, atFront) {
  requireListener(listener);
  const events = eventsOf(emitter);
  if (events.newListener !== undefined) emitter.emit('newListener', name, inner(listener));
  const list = events[name];
  if (list === undefined) {
    events[name] = [listener];
    emitter._eventsCount += 1;
  } else {
    // A copy: an `emit` that is under way goes through what there was.
    events[name] = atFront ? [listener, ...list] : [...list, listener];
    warn(emitter, name, events[name]);
  }
  return emitter;
}

function warn(emitter, name, list) {
  const max = emitter.getMaxListeners();
  if (max === 0 || list.length <= max || list.warned) return;
  list.warned = true;
  if (list.length !== max + 1) return;
  console.warn(`MaxListenersExceededWarning: Possible EventEmitter memory leak detected. ${list.length} ${String(name)} `
    + `listeners added to an ${emitter.constructor.name}. Use emitter.setMaxListeners() to increase limit`);
}

function wrapOnce(emitter, name, listener) {
  requireListener(listener);
  let fired = false;
  const wrapper = (...args) => {
    if (fired) return undefined;
    fired = true;
    emitter.removeListener(name, wrapper);
    return listener.apply(emitter, args);
  };
  wrapper.listener = listener;
  return wrapper;
}

/** What `emit('error')` throws where nobody listens. */
function unheard(value) {
  if (value instanceof Error) return value;
  const text = typeof value === 'string' ? `'${value}'` : String(value);
  const error = coded(new Error(`Unhandled error. (${text})`), 'ERR_UNHANDLED_ERROR');
  error.context = value;
  return error;
}

// A function, not a class: older libraries call it without `new`, and inherit by `util.inherits`.
export function EventEmitter() {
  if (!own.call(this, '_events')) this._events = undefined;
  eventsOf(this);
  this._maxListeners = this._maxListeners || undefined;
}

const methods = {
  setMaxListeners(count) {
    requireCount(count, 'setMaxListeners');
    this._maxListeners = count;
    return this;
  },

  getMaxListeners() {
    return this._maxListeners ?? defaultMax;
  },

  emit(name, ...args) {
    const events = eventsOf(this);
    if (name === 'error' && events[errorMonitor] !== undefined) this.emit(errorMonitor, ...args);
    const list = events[name];
    if (list === undefined) {
      if (name === 'error') throw unheard(args[0]);
      return false;
    }
    for (const listener of list) listener.apply(this, args);
    return true;
  },

  on(name, listener) {
    return add(this, name, listener, false);
  },

  prependListener(name, listener) {
    return add(this, name, listener, true);
  },

  once(name, listener) {
    return this.on(name, wrapOnce(this, name, listener));
  },

  prependOnceListener(name, listener) {
    return this.prependListener(name, wrapOnce(this, name, listener));
  },

  off(name, listener) {
    requireListener(listener);
    const events = eventsOf(this);
    const list = events[name];
    if (list === undefined) return this;
    const at = list.findLastIndex(each => each === listener || each.listener === listener);
    if (at < 0) return this;
    const kept = list.toSpliced(at, 1);
    if (kept.length > 0) {
      events[name] = kept;
    } else {
      delete events[name];
      this._eventsCount -= 1;
    }
    if (events.removeListener !== undefined) this.emit('removeListener', name, inner(list[at]));
    return this;
  },

  removeAllListeners(...names) {
    const events = eventsOf(this);
    if (events.removeListener === undefined) {
      for (const name of names.length > 0 ? names.slice(0, 1) : Reflect.ownKeys(events)) {
        if (events[name] === undefined) continue;
        delete events[name];
        this._eventsCount -= 1;
      }
      return this;
    }
    if (names.length === 0) {
      for (const name of Reflect.ownKeys(events)) if (name !== 'removeListener') this.removeAllListeners(name);
      return this.removeAllListeners('removeListener');
    }
    for (const listener of (events[names[0]] ?? []).toReversed()) this.removeListener(names[0], listener);
    return this;
  },

  listeners(name) {
    return (eventsOf(this)[name] ?? []).map(inner);
  },

  rawListeners(name) {
    return [...(eventsOf(this)[name] ?? [])];
  },

  listenerCount(name, listener) {
    const list = eventsOf(this)[name] ?? [];
    return listener === undefined ? list.length : list.filter(each => inner(each) === listener).length;
  },

  eventNames() {
    return Reflect.ownKeys(eventsOf(this));
  },
};
methods.addListener = methods.on;
methods.removeListener = methods.off;
Object.assign(EventEmitter.prototype, methods);

export const errorMonitor = Symbol('events.errorMonitor');

/** A promise of the arguments of the next `name`; an `error` before it, and a signal, reject it. */
export async function once(emitter, name, options = {}) {
  const signal = options?.signal;
  const aborted = () => {
    const error = new Error('The operation was aborted', { cause: signal.reason });
    return Object.assign(coded(error, 'ABORT_ERR'), { name: 'AbortError' });
  };
  if (signal?.aborted) throw aborted();
  const isTarget = typeof emitter.addEventListener === 'function' && typeof emitter.on !== 'function';
  return new Promise((resolve, reject) => {
    const onEvent = (...args) => settle(resolve, args);
    const onError = error => settle(reject, error);
    const onAbort = () => settle(reject, aborted());
    const settle = (how, value) => {
      signal?.removeEventListener('abort', onAbort);
      if (isTarget) {
        emitter.removeEventListener(name, onEvent);
      } else {
        emitter.removeListener(name, onEvent);
        if (name !== 'error') emitter.removeListener('error', onError);
      }
      how(value);
    };
    if (isTarget) {
      emitter.addEventListener(name, onEvent, { once: true });
    } else {
      emitter.on(name, onEvent);
      if (name !== 'error') emitter.on('error', onError);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

export function listenerCount(emitter, name) {
  return emitter.listenerCount(name);
}

export function getEventListeners(emitter, name) {
  return emitter.listeners(name);
}

export function getMaxListeners(emitter) {
  return emitter.getMaxListeners();
}

export function setMaxListeners(count = defaultMax, ...emitters) {
  requireCount(count, 'setMaxListeners');
  if (emitters.length === 0) defaultMax = count;
  for (const emitter of emitters) emitter.setMaxListeners(count);
}

Object.assign(EventEmitter, {
  EventEmitter, errorMonitor, once, listenerCount, getEventListeners, getMaxListeners, setMaxListeners,
});
Object.defineProperty(EventEmitter, 'defaultMaxListeners', {
  enumerable: true,
  get: () => defaultMax,
  set(count) {
    requireCount(count, 'defaultMaxListeners');
    defaultMax = count;
  },
});
export default provide('node:events', EventEmitter);
