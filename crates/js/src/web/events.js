// Events and their targets (DOM standard, section 2), without a tree: a target has no parent.
export default function (native, internals) {
  const { DOMException, needArguments, toDictionary, illegalInvocation } = internals;
  const clock = globalThis.performance;
  const NONE = 0;
  const AT_TARGET = 2;
  let stateOf;

  class Event {
    #state;
    static {
      stateOf = (event) => {
        if (event === null || typeof event !== 'object' || !(#state in event)) throw illegalInvocation();
        return event.#state;
      };
    }
    constructor(type, init) {
      needArguments(arguments.length, 1, `new ${new.target.name}`);
      const { bubbles, cancelable, composed } = toDictionary(init, 'new Event');
      this.#state = {
        type: `${type}`,
        bubbles: Boolean(bubbles),
        cancelable: Boolean(cancelable),
        composed: Boolean(composed),
        target: null,
        currentTarget: null,
        phase: NONE,
        stopped: false,
        stoppedNow: false,
        canceled: false,
        passive: false,
        dispatching: false,
        trusted: false,
        timeStamp: clock.now(),
      };
      Object.defineProperty(this, 'isTrusted', { get: isTrusted, enumerable: true, configurable: false });
    }
    get type() { return stateOf(this).type; }
    get target() { return stateOf(this).target; }
    get srcElement() { return stateOf(this).target; }
    get currentTarget() { return stateOf(this).currentTarget; }
    get eventPhase() { return stateOf(this).phase; }
    get bubbles() { return stateOf(this).bubbles; }
    get cancelable() { return stateOf(this).cancelable; }
    get composed() { return stateOf(this).composed; }
    get defaultPrevented() { return stateOf(this).canceled; }
    get timeStamp() { return stateOf(this).timeStamp; }
    get returnValue() { return !stateOf(this).canceled; }
    set returnValue(value) { if (!value) cancel(stateOf(this)); }
    get cancelBubble() { return stateOf(this).stopped; }
    set cancelBubble(value) { if (value) stateOf(this).stopped = true; }
    composedPath() {
      const { currentTarget } = stateOf(this);
      return currentTarget === null ? [] : [currentTarget];
    }
    stopPropagation() { stateOf(this).stopped = true; }
    stopImmediatePropagation() {
      const state = stateOf(this);
      state.stopped = true;
      state.stoppedNow = true;
    }
    preventDefault() { cancel(stateOf(this)); }
  }
  function isTrusted() { return stateOf(this).trusted; }
  function cancel(state) {
    if (state.cancelable && !state.passive) state.canceled = true;
  }
  internals.interface(Event, { NONE, CAPTURING_PHASE: 1, AT_TARGET, BUBBLING_PHASE: 3 });

  // One listener is { callback, capture, once, passive, signal, removed }.
  let listenersOf;
  class EventTarget {
    #listeners = new Map();
    static {
      listenersOf = (target) => {
        if (target === null || typeof target !== 'object' || !(#listeners in target)) throw illegalInvocation();
        return target.#listeners;
      };
    }
    addEventListener(type, callback, options) {
      const listeners = listenersOf(receiver(this));
      needArguments(arguments.length, 2, 'addEventListener\' on \'EventTarget');
      addListener(listeners, `${type}`, callback, options);
    }
    removeEventListener(type, callback, options) {
      const listeners = listenersOf(receiver(this));
      needArguments(arguments.length, 2, 'removeEventListener\' on \'EventTarget');
      const capture = Boolean(typeof options === 'object' && options !== null ? options.capture : options);
      const list = listeners.get(`${type}`);
      const listener = list?.find((one) => one.callback === callback && one.capture === capture);
      if (listener !== undefined) removeListener(listeners, `${type}`, listener);
    }
    dispatchEvent(event) {
      const target = receiver(this);
      listenersOf(target);
      needArguments(arguments.length, 1, 'dispatchEvent\' on \'EventTarget');
      if (!(event instanceof Event)) {
        throw new TypeError("Failed to execute 'dispatchEvent' on 'EventTarget': parameter 1 is not of type 'Event'.");
      }
      const state = stateOf(event);
      if (state.dispatching) {
        throw new DOMException('The event is already being dispatched.', 'InvalidStateError');
      }
      state.trusted = false;
      return dispatch(target, event);
    }
  }
  internals.interface(EventTarget);

  // `addEventListener(...)` without a receiver speaks to the global scope, which is a target too.
  const globalTarget = new EventTarget();
  const receiver = (self) => (self === undefined || self === globalThis ? globalTarget : self);

  function addListener(listeners, type, callback, options) {
    const given = typeof options === 'object' && options !== null ? options : { capture: options };
    const { signal } = given;
    const listener = {
      callback,
      capture: Boolean(given.capture),
      once: Boolean(given.once),
      passive: Boolean(given.passive),
      removed: false,
    };
    if (signal !== undefined && !internals.isAbortSignal?.(signal)) {
      throw new TypeError("Failed to execute 'addEventListener' on 'EventTarget': member signal is not of type 'AbortSignal'.");
    }
    if (callback === null || callback === undefined) return;
    if (typeof callback !== 'function' && typeof callback !== 'object') {
      throw new TypeError("Failed to execute 'addEventListener' on 'EventTarget': parameter 2 is not of type 'EventListener'.");
    }
    if (signal?.aborted) return;
    const list = listeners.get(type) ?? [];
    if (list.some((one) => one.callback === callback && one.capture === listener.capture)) return;
    // A copy for each change: a dispatch that goes on keeps the list it began with.
    listeners.set(type, [...list, listener]);
    if (signal !== undefined) internals.onAbort(signal, () => removeListener(listeners, type, listener));
  }

  function removeListener(listeners, type, listener) {
    listener.removed = true;
    const rest = (listeners.get(type) ?? []).filter((one) => one !== listener);
    if (rest.length === 0) listeners.delete(type);
    else listeners.set(type, rest);
  }

  function dispatch(target, event) {
    const state = stateOf(event);
    const shown = target === globalTarget ? globalThis : target;
    state.dispatching = true;
    state.target = shown;
    state.currentTarget = shown;
    state.phase = AT_TARGET;
    const listeners = listenersOf(target);
    const list = listeners.get(state.type) ?? [];
    for (const capture of [true, false]) {
      if (state.stopped) break;
      for (const listener of list) {
        if (listener.capture !== capture || listener.removed) continue;
        if (listener.once) removeListener(listeners, state.type, listener);
        state.passive = listener.passive;
        call(listener.callback, shown, event);
        state.passive = false;
        if (state.stoppedNow) break;
      }
    }
    state.phase = NONE;
    state.currentTarget = null;
    state.dispatching = false;
    state.stopped = false;
    state.stoppedNow = false;
    return !state.canceled;
  }

  function call(callback, target, event) {
    try {
      if (typeof callback === 'function') {
        callback.call(target, event);
        return;
      }
      const { handleEvent } = callback;
      if (typeof handleEvent !== 'function') throw new TypeError('EventListener.handleEvent is not a function');
      handleEvent.call(callback, event);
    } catch (error) {
      internals.reportException(error);
    }
  }

  /** Dispatches an event of the platform's own. */
  internals.dispatchTrusted = (target, event) => {
    stateOf(event).trusted = true;
    return dispatch(receiver(target), event);
  };

  /** Defines `on<type>` on an interface: its handler keeps the place where it was first set. */
  internals.eventHandler = (Class, type) => {
    const handlers = new WeakMap();
    const name = `on${type}`;
    Object.defineProperty(Class.prototype, name, {
      get: Object.getOwnPropertyDescriptor({ get [name]() {
        listenersOf(this);
        return handlers.get(this)?.handler ?? null;
      } }, name).get,
      set: Object.getOwnPropertyDescriptor({ set [name](value) {
        const listeners = listenersOf(this);
        const handler = typeof value === 'function' || (typeof value === 'object' && value !== null) ? value : null;
        const held = handlers.get(this);
        if (held !== undefined) {
          held.handler = handler;
          return;
        }
        if (handler === null) return;
        const entry = { handler };
        handlers.set(this, entry);
        addListener(listeners, type, function (event) {
          if (typeof entry.handler === 'function' && entry.handler.call(this, event) === false) event.preventDefault();
        });
      } }, name).set,
      enumerable: true,
      configurable: true,
    });
  };

  /** An Event subclass whose init members are read-only attributes. */
  function eventWith(name, members, required = []) {
    const values = new WeakMap();
    const Class = { [name]: class extends Event {
      constructor(type, init) {
        needArguments(arguments.length, required.length > 0 ? 2 : 1, `new ${name}`);
        super(type, init);
        const given = toDictionary(init, `new ${name}`);
        const held = {};
        for (const key of Object.keys(members)) {
          if (given[key] === undefined && required.includes(key)) {
            throw new TypeError(`Failed to construct '${name}': required member ${key} is undefined.`);
          }
          held[key] = given[key] === undefined ? members[key].value() : members[key].convert(given[key]);
        }
        values.set(this, held);
      }
    } }[name];
    for (const key of Object.keys(members)) {
      const accessor = { get [key]() {
        const held = values.get(this);
        if (held === undefined) throw illegalInvocation();
        return held[key];
      } };
      Object.defineProperty(Class.prototype, key, Object.getOwnPropertyDescriptor(accessor, key));
    }
    return internals.interface(Class);
  }
  const member = (value, convert = (given) => given) => ({ value: () => value, convert });
  const text = member('', (given) => `${given}`);

  const CustomEvent = eventWith('CustomEvent', { detail: member(null) });
  const ErrorEvent = eventWith('ErrorEvent', {
    message: text,
    filename: text,
    lineno: member(0, (given) => given >>> 0),
    colno: member(0, (given) => given >>> 0),
    error: member(undefined),
  });
  const MessageEvent = eventWith('MessageEvent', {
    data: member(null),
    origin: text,
    lastEventId: text,
    source: member(null),
    ports: { value: () => Object.freeze([]), convert: (given) => Object.freeze([...given]) },
  });
  const CloseEvent = eventWith('CloseEvent', {
    wasClean: member(false, Boolean),
    code: member(0, (given) => given & 0xffff),
    reason: text,
  });
  const PromiseRejectionEvent = eventWith('PromiseRejectionEvent', {
    promise: member(undefined),
    reason: member(undefined),
  }, ['promise']);

  /** An error that nobody caught: an `error` event first, the log if no listener prevents it. */
  let isReporting = false;
  internals.reportException = (error) => {
    let isNews = true;
    if (!isReporting && listenersOf(globalTarget).has('error')) {
      isReporting = true;
      const event = new ErrorEvent('error', { error, message: describe(error), cancelable: true });
      isNews = internals.dispatchTrusted(globalTarget, event);
      isReporting = false;
    }
    if (isNews) internals.reportError(error);
  };
  function describe(error) {
    try {
      return `Uncaught ${error}`;
    } catch {
      return 'Uncaught exception';
    }
  }

  Object.assign(internals, { Event, EventTarget, ErrorEvent, MessageEvent, CloseEvent, PromiseRejectionEvent, globalTarget });
  const { addEventListener, removeEventListener, dispatchEvent } = EventTarget.prototype;
  return {
    Event, EventTarget, CustomEvent, ErrorEvent, MessageEvent, CloseEvent, PromiseRejectionEvent,
    addEventListener, removeEventListener, dispatchEvent,
    reportError(error) {
      needArguments(arguments.length, 1, 'reportError');
      internals.reportException(error);
    },
  };
}
