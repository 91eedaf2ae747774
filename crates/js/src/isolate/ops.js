// How code is entered: the scope that a callback belongs to, the input gate in front of it, and the promises of
// operations. A scope is what one event may use: { event: its number or 0, … }; the part `events` adds to it.
export default function (native, internals) {
  // Work that belongs to no event: the modules as they load.
  const outside = { event: 0 };
  let current = outside;

  /** The scope that runs. */
  internals.scope = () => current;

  // The input gate. While `holder` is a scope, only what was started within it is entered; the rest waits in order.
  let holder = null;
  const waiting = [];

  function run(scope, callback) {
    current = scope;
    native.setEvent(scope.event);
    try {
      callback();
    } catch (error) {
      internals.reportError(error);
    }
  }

  /** Calls back within `scope` as soon as the gate allows. Exceptions go to the log. */
  internals.enter = (scope, callback) => {
    if (holder !== null && scope.section !== holder) waiting.push({ scope, callback });
    else run(scope, callback);
  };

  /** Closes the gate for all but what begins within `section`, which runs from here on. */
  internals.closeGate = section => {
    holder = section;
    current = { ...current, section, __proto__: null };
    return current;
  };

  /** Opens the gate; what waits is entered one by one, each with the jobs of the one before done. */
  internals.openGate = (scope, outer) => {
    holder = outer;
    current = scope;
    if (waiting.length > 0) native.resumeSoon();
  };

  /** Called by the host when no job is left and the gate was opened. */
  internals.resume = () => {
    const index = waiting.findIndex(({ scope }) => holder === null || scope.section === holder);
    if (index < 0) return;
    const [{ scope, callback }] = waiting.splice(index, 1);
    run(scope, callback);
    if (waiting.length > 0) native.resumeSoon();
  };

  const pending = new Map();

  /** The promise of an operation that a native has started. */
  internals.wait = op => new Promise((resolve, reject) => {
    pending.set(op, { resolve, reject, scope: current });
  });

  /** Stops an operation: its promise is rejected with `reason`. */
  internals.cancel = (op, reason) => {
    const waiter = pending.get(op);
    if (waiter === undefined) return;
    pending.delete(op);
    native.cancel(op);
    waiter.reject(reason);
  };

  /** Stops what an event that is done still waits for: its promises stay as they are, for ever. */
  internals.cancelAllOf = isOver => {
    for (const [op, { scope }] of pending) {
      if (!isOver(scope)) continue;
      pending.delete(op);
      native.cancel(op);
    }
  };

  const errors = { Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError };

  /** An error from outside, as Cloudflare shows it: of its class where it is a built-in one, with flags. */
  internals.errorFrom = ({ name, message, remote, retryable, overloaded, durableObjectReset }) => {
    const known = Object.hasOwn(errors, name);
    const error = known ? new errors[name](message) : new Error(message);
    if (!known) error.name = name;
    if (remote) error.remote = true;
    if (retryable) error.retryable = true;
    if (overloaded) error.overloaded = true;
    if (durableObjectReset) error.durableObjectReset = true;
    return error;
  };

  /** Called by the host with the end of an operation. */
  internals.settle = (op, isOk, value) => {
    const waiter = pending.get(op);
    if (waiter === undefined) return;
    pending.delete(op);
    internals.enter(waiter.scope, () => {
      if (isOk) waiter.resolve(value);
      else waiter.reject(internals.errorFrom(value));
    });
  };

  /** The next chunk of a body from outside; undefined at its end. */
  internals.readBody = body => internals.wait(native.readBody(body));
  internals.cancelBody = body => native.cancelBody(body);
}
