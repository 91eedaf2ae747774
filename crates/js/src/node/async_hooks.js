// `node:async_hooks`: stores that follow what is asynchronous. `current` is the frame of the code that runs. A callback
// keeps the frame that it was given in: of `then` by a wrapper, of timers and `queueMicrotask` by `bindContext`. What
// goes on after an `await` has no callback, and the engine's hooks do not tell of it: right in front of its job another
// one is queued, which enters the frame of the `await`. Jobs run in the order they are queued in, so nothing comes
// between the two. Where that job is queued:
// - `await` of a promise: the engine looks up `constructor` of it first, which is a getter here; the reaction that is
//   added then comes before that of the `await`.
// - `await` of a value or of a thenable: the engine makes a promise, and tells when it is made and fulfilled. A thenable
//   that rejects mostly hands on to a promise: then what its `then` was given queues the job.
// The price: a rejected promise whose `constructor` a program reads counts as waited for, and is not told of.
// A frame stays entered until another one is, or the turn ends; code that is entered without one leaves all
// (`withoutContext`). The hook must not fail: what it did not note would go on in the frame of another.
import { internals, native, provide } from 'node:internal/base';

const { apply, defineProperty, getPrototypeOf } = Reflect;
const { defineProperties, getOwnPropertyDescriptors } = Object;
const { isPromise, watch } = native('hooks');

class Frame {
  constructor(stores) {
    this.stores = stores;
    this.enter = () => {
      current = this;
    };
  }

  with(storage, store) {
    return new Frame(new Map(this.stores).set(storage, store));
  }

  run(callback, self, args) {
    const before = current;
    current = this;
    try {
      return apply(callback, self, args);
    } finally {
      current = before;
    }
  }
}

let current;
const nothing = new Frame(new Map());
current = nothing;

// ---- Promises.

const nativeThen = Promise.prototype.then;
const { queueJob } = internals;
// The engine's own look at `constructor` as `nativeThen` runs.
let isOwnLook = false;
// A `then` of what a promise takes its value from runs now.
let isHandingOn = false;

function addReactions(promise, onFulfilled, onRejected) {
  isOwnLook = true;
  try {
    return apply(nativeThen, promise, [onFulfilled, onRejected]);
  } finally {
    isOwnLook = false;
  }
}

function kept(callback, frame, handsOn) {
  if (typeof callback !== 'function') return callback;
  return value => {
    const before = current;
    current = frame;
    if (handsOn) queueJob(frame.enter);
    try {
      return callback(value);
    } finally {
      current = before;
    }
  };
}

defineProperty(Promise.prototype, 'then', {
  value: { then(onFulfilled, onRejected) {
    return addReactions(this, kept(onFulfilled, current, isHandingOn), kept(onRejected, current, isHandingOn));
  } }.then,
  writable: true, enumerable: false, configurable: true,
});

const { constructor } = Promise.prototype;
defineProperty(Promise.prototype, 'constructor', {
  get() {
    if (isOwnLook) isOwnLook = false;
    else if (isPromise(this)) addReactions(this, current.enter, current.enter);
    return constructor;
  },
  set(value) {
    defineProperty(this, 'constructor', { value, writable: true, enumerable: true, configurable: true });
  },
  enumerable: false, configurable: true,
});

// With methods of their own, which no handler replaces.
const own = collection => defineProperties(collection, getOwnPropertyDescriptors(getPrototypeOf(collection)));

// The frames that promises were made in, but for `nothing`.
const homes = own(new WeakMap());
// Those that take their value from a thenable.
const taking = own(new WeakSet());
let lastMade;
const MADE = 0, THEN_BEGINS = 1, THEN_ENDS = 2;

watch((happening, promise) => {
  if (happening === MADE) {
    lastMade = promise;
    if (current !== nothing) homes.set(promise, current);
  } else if (happening === THEN_BEGINS) {
    taking.add(promise);
    current = homes.get(promise) ?? nothing;
    isHandingOn = true;
  } else if (happening === THEN_ENDS) {
    isHandingOn = false;
  } else if (promise === lastMade || taking.has(promise)) {
    lastMade = undefined;
    queueJob((homes.get(promise) ?? nothing).enter);
  }
});

// ---- What else calls back.

internals.bindContext = callback => {
  const frame = current;
  return (...args) => frame.run(callback, undefined, args);
};
internals.withoutContext = callback => nothing.run(callback, undefined, []);
/** Called by the host as a turn begins. */
internals.beginTurnWithoutContext = () => {
  current = nothing;
};

// ---- What is exported.

function requireFunction(value, method, position) {
  if (typeof value === 'function') return;
  const [on, name] = method.split('.');
  const type = name === 'bind' ? 'Function' : 'function';
  throw new TypeError(`Failed to execute '${name}' on '${on}': parameter ${position} is not of type '${type}'.`);
}

/** Calls a function with the receiver that workerd gives it. */
const call = (frame, callback, args) => frame.run(callback, globalThis, args);

export class AsyncLocalStorage {
  #name;
  #default;
  constructor(options = undefined) {
    this.#name = `${options?.name ?? ''}`;
    this.#default = options?.defaultValue;
  }
  run(store, callback, ...args) {
    requireFunction(callback, 'AsyncLocalStorage.run', 2);
    return call(current.with(this, store), callback, args);
  }
  exit(callback, ...args) {
    requireFunction(callback, 'AsyncLocalStorage.exit', 1);
    return this.run(undefined, callback, ...args);
  }
  getStore() {
    return current.stores.has(this) ? current.stores.get(this) : this.#default;
  }
  enterWith() {
    throw new Error('asyncLocalStorage.enterWith() is not implemented');
  }
  disable() {
    throw new Error('asyncLocalStorage.disable() is not implemented');
  }
  get name() {
    return this.#name;
  }
  static bind(callback) {
    requireFunction(callback, 'AsyncLocalStorage.bind', 1);
    const frame = current;
    return (...args) => call(frame, callback, args);
  }
  static snapshot() {
    const frame = current;
    return (callback, ...args) => {
      if (typeof callback !== 'function') throw new TypeError('The first argument must be a function');
      return call(frame, callback, args);
    };
  }
}

export class AsyncResource {
  #frame = current;
  asyncId() {
    void this.#frame;
    return 0;
  }
  triggerAsyncId() {
    void this.#frame;
    return 0;
  }
  bind(callback, self = undefined) {
    requireFunction(callback, 'AsyncResource.bind', 1);
    const frame = this.#frame;
    const bound = (...args) => frame.run(callback, self ?? globalThis, args);
    return defineProperty(bound, 'asyncResource', { value: this, writable: true, enumerable: true, configurable: true }) && bound;
  }
  runInAsyncScope(callback, self = undefined, ...args) {
    requireFunction(callback, 'AsyncResource.runInAsyncScope', 1);
    return this.#frame.run(callback, self ?? globalThis, args);
  }
  emitDestroy() {
    void this.#frame;
  }
  static bind(callback, type, self = undefined) {
    return new AsyncResource(type).bind(callback, self);
  }
}

// ---- What Node tells of its own asynchronous work: nothing is told here.

class AsyncHook {
  enable() {
    return this;
  }
  disable() {
    return this;
  }
}

export function createHook() {
  return new AsyncHook();
}

export const executionAsyncId = () => 0;
export const triggerAsyncId = () => 0;
export const executionAsyncResource = () => Object.create(null);
export const asyncWrapProviders = Object.freeze({ __proto__: null, NONE: 0 });

export default provide('node:async_hooks', {
  AsyncLocalStorage, AsyncResource, asyncWrapProviders, createHook, executionAsyncId, executionAsyncResource, triggerAsyncId,
});
