// AbortController and AbortSignal (DOM standard, section 3).
export default function (native, internals) {
  internals.load('event-target');
  const { DOMException, Event, EventTarget, illegalInvocation, needArguments } = internals;
  let allowed = false;
  let stateOf;

  class AbortSignal extends EventTarget {
    // `sources` and `dependents` are for `any`: a signal that depends has only sources that depend on nothing.
    #state = { aborted: false, reason: undefined, actions: [], sources: [], dependents: [], isDependent: false };
    static {
      stateOf = (signal) => {
        if (!isAbortSignal(signal)) throw illegalInvocation();
        return signal.#state;
      };
      internals.isAbortSignal = (value) => typeof value === 'object' && value !== null && #state in value;
    }
    constructor() {
      if (!allowed) throw new TypeError('Illegal constructor');
      super();
    }
    static abort(reason) {
      const signal = create();
      abortNow(signal, reason);
      return signal;
    }
    static timeout(milliseconds) {
      needArguments(arguments.length, 1, "timeout' on 'AbortSignal");
      const delay = Number(milliseconds);
      if (!Number.isFinite(delay) || delay < 0 || delay > Number.MAX_SAFE_INTEGER) {
        throw new TypeError("Failed to execute 'timeout' on 'AbortSignal': the value is outside of the range of milliseconds.");
      }
      const signal = create();
      internals.startTimer(() => abortNow(signal, new DOMException('The operation was aborted due to timeout', 'TimeoutError')), delay, false);
      return signal;
    }
    static any(signals) {
      needArguments(arguments.length, 1, "any' on 'AbortSignal");
      const list = [...signals];
      for (const one of list) {
        if (!isAbortSignal(one)) {
          throw new TypeError("Failed to execute 'any' on 'AbortSignal': failed to convert value to 'AbortSignal'.");
        }
      }
      return dependOn(list);
    }
    get aborted() { return stateOf(this).aborted; }
    get reason() { return stateOf(this).reason; }
    throwIfAborted() {
      const { aborted, reason } = stateOf(this);
      if (aborted) throw reason;
    }
  }
  const { isAbortSignal } = internals;
  internals.interface(AbortSignal);
  internals.eventHandler(AbortSignal, 'abort');

  function create() {
    allowed = true;
    try {
      return new AbortSignal();
    } finally {
      allowed = false;
    }
  }

  function dependOn(list) {
    const result = create();
    const state = stateOf(result);
    state.isDependent = true;
    const aborted = list.find((one) => stateOf(one).aborted);
    if (aborted !== undefined) {
      state.aborted = true;
      state.reason = stateOf(aborted).reason;
      return result;
    }
    for (const one of list) {
      const { isDependent, sources } = stateOf(one);
      for (const source of isDependent ? sources : [one]) {
        if (state.sources.includes(source)) continue;
        state.sources.push(source);
        stateOf(source).dependents.push(result);
      }
    }
    return result;
  }

  function abortNow(signal, reason) {
    const state = stateOf(signal);
    if (state.aborted) return;
    const given = reason === undefined ? new DOMException('The operation was aborted', 'AbortError') : reason;
    const together = [signal, ...state.dependents.filter((one) => !stateOf(one).aborted)];
    state.dependents = [];
    // All are aborted before anyone is told, so that every listener sees one state.
    for (const one of together) Object.assign(stateOf(one), { aborted: true, reason: given, sources: [] });
    for (const one of together) tell(one);
  }

  function tell(signal) {
    const { actions } = stateOf(signal);
    stateOf(signal).actions = [];
    for (const action of actions) action();
    internals.dispatchTrusted(signal, new Event('abort'));
  }

  /** Runs `action` before the event of an abort; the answer takes it back. */
  internals.onAbort = (signal, action) => {
    const state = stateOf(signal);
    state.actions.push(action);
    return () => {
      state.actions = state.actions.filter((one) => one !== action);
    };
  };
  internals.abortSignalAny = dependOn;
  internals.abortReason = (signal) => stateOf(signal).reason;

  let signalOf;
  class AbortController {
    #signal = create();
    static {
      signalOf = (controller) => {
        if (typeof controller !== 'object' || controller === null || !(#signal in controller)) throw illegalInvocation();
        return controller.#signal;
      };
    }
    get signal() { return signalOf(this); }
    abort(reason) { abortNow(signalOf(this), reason); }
  }
  internals.interface(AbortController);

  Object.assign(internals, { AbortSignal, AbortController });
  return { AbortSignal, AbortController };
}
