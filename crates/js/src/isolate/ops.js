// How code is entered: the scope that a callback belongs to, the input gate in front of it, and the promises of
// operations. A scope is { event, section }: the event it belongs to (number 0: none), and the part of the object's
// life with the gate closed that it was started in.
export default function (native, internals) {
  // Work that belongs to no event: the modules as they load.
  const outside = { event: { number: 0, holds: 0 }, section: null };
  let current = outside;

  // The input gate. While `holder` is a section, only what was started within it is entered; the rest waits in order.
  let holder = null;
  const waiting = [];

  /** The scope of what is started now. With the gate closed nothing runs but what belongs to its holder. */
  internals.scope = () => (current.section === holder ? current : { event: current.event, section: holder });

  function run(scope, callback) {
    current = scope;
    native.setEvent(scope.event.number);
    try {
      // `node:async_hooks`: what begins has no store of what runs.
      if (internals.withoutContext === undefined) callback();
      else internals.withoutContext(callback);
    } catch (error) {
      internals.reportError(error);
    }
  }

  /** Calls back within `scope` as soon as the gate allows. Exceptions go to the log. */
  internals.enter = (scope, callback) => {
    if (holder !== null && scope.section !== holder) waiting.push({ scope, callback });
    else run(scope, callback);
  };

  /** Gives the gate to a section, or opens it for all with null. Answers who held it. */
  internals.holdGate = section => {
    const before = holder;
    holder = section;
    if (waiting.length > 0) native.resumeSoon();
    return before;
  };

  /** Called by the host when no job is left and the gate was opened: enters the first that may. */
  internals.resume = () => {
    const index = holder === null ? 0 : waiting.findIndex(({ scope }) => scope.section === holder);
    if (index < 0 || index >= waiting.length) return;
    const [{ scope, callback }] = waiting.splice(index, 1);
    run(scope, callback);
    if (waiting.length > 0) native.resumeSoon();
  };

  const pending = new Map();

  /** The promise of an operation that a native has started. `gone` is called where it stays as it is for ever. */
  internals.wait = (op, gone = undefined) => new Promise((resolve, reject) => {
    pending.set(op, { resolve, reject, scope: internals.scope(), gone });
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
  internals.cancelAllOf = event => {
    for (const [op, { scope, gone }] of pending) {
      if (scope.event !== event) continue;
      pending.delete(op);
      native.cancel(op);
      gone?.();
    }
  };

  // Promises that were rejected while nothing waited for them.
  const rejected = new Map();

  /** Called by the host when a promise is rejected that nothing waits for, and when something does after all. */
  internals.onRejection = (promise, reason, isHandled) => {
    if (isHandled) rejected.delete(promise);
    else rejected.set(promise, reason);
  };

  /** Called by the host when no job is left. */
  internals.reportRejections = () => {
    const reasons = [...rejected.values()];
    rejected.clear();
    for (const reason of reasons) internals.reportError(reason, 'Uncaught (in promise)');
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
