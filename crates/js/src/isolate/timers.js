// Timers and the clock of the isolate. The host keeps deadlines, this keeps callbacks.
export default function (native, internals) {
  const queue = globalThis.queueMicrotask;
  const timers = new Map();
  let nextId = 1;

  /** Calls back after `delay` milliseconds, once or again and again. Throws RangeError beyond the bound of timers. */
  function startTimer(callback, delay, repeat) {
    const id = nextId;
    nextId = nextId === 0x7fffffff ? 1 : nextId + 1;
    native.schedule(id, delay);
    timers.set(id, { callback: internals.bindContext?.(callback) ?? callback, delay, repeat, scope: internals.scope() });
    return id;
  }

  function clearTimer(id) {
    if (timers.delete(id)) native.unschedule(id);
  }

  internals.queueJob = queue;
  internals.startTimer = startTimer;
  internals.clearTimer = clearTimer;

  /** Drops the timers of an event that is done. */
  internals.clearTimersOf = event => {
    for (const [id, timer] of timers) {
      if (timer.scope.event === event) clearTimer(id);
    }
  };

  /** Called by the host for a timer that is due. */
  internals.fireTimer = id => {
    const timer = timers.get(id);
    if (timer.repeat) native.schedule(id, timer.delay);
    else timers.delete(id);
    internals.enter(timer.scope, timer.callback);
  };

  function start(name, callback, delay, repeat, args) {
    if (typeof callback !== 'function') {
      throw new TypeError(`Failed to execute '${name}' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Function'.`);
    }
    const number = Number(delay);
    return startTimer(() => callback(...args), number === number ? number : 0, repeat);
  }

  const scheduler = new (class Scheduler {
    /** @returns {Promise<void>} after `delay` milliseconds; rejected when `options.signal` aborts. */
    wait(delay, options = undefined) {
      return new Promise((resolve, reject) => {
        const signal = options?.signal;
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = () => {
          clearTimer(id);
          reject(signal.reason);
        };
        const id = startTimer(() => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        }, Number(delay) || 0, false);
        signal?.addEventListener('abort', onAbort, { once: true });
      });
    }
  })();

  const performance = new (class Performance {
    get timeOrigin() {
      return native.timeOrigin;
    }
    now() {
      return native.elapsed();
    }
    toJSON() {
      return { timeOrigin: native.timeOrigin };
    }
  })();
  internals.define(performance.constructor.prototype, { [Symbol.toStringTag]: 'Performance' });

  return {
    setTimeout: function setTimeout(callback, delay = 0, ...args) {
      return start('setTimeout', callback, delay, false, args);
    },
    setInterval: function setInterval(callback, delay = 0, ...args) {
      return start('setInterval', callback, delay, true, args);
    },
    clearTimeout: function clearTimeout(id = undefined) {
      clearTimer(id);
    },
    clearInterval: function clearInterval(id = undefined) {
      clearTimer(id);
    },
    queueMicrotask: function queueMicrotask(callback) {
      if (typeof callback !== 'function') {
        throw new TypeError("Failed to execute 'queueMicrotask' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'Function'.");
      }
      const bound = internals.bindContext?.(callback) ?? callback;
      queue(() => {
        try {
          bound();
        } catch (error) {
          internals.reportError(error);
        }
      });
    },
    scheduler,
    performance,
    Performance: performance.constructor,
  };
}
