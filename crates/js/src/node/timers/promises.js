// `node:timers/promises`.
import { abortError, provide, requireBoolean, requireNumber, requireObject, requireSignal } from 'node:internal/base';

const { setTimeout: start, clearTimeout: stop } = globalThis;

function requireOptions(options) {
  requireObject(options, 'options');
  requireSignal(options.signal);
  if (options.ref !== undefined) requireBoolean(options.ref, 'options.ref');
}

function after(delay, value, { signal }) {
  if (signal?.aborted) return Promise.reject(abortError(signal));
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      stop(timer);
      reject(abortError(signal));
    };
    const timer = start(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve(value);
    }, delay);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

export async function setTimeout(delay = undefined, value = undefined, options = {}) {
  if (delay !== undefined) requireNumber(delay, 'delay');
  requireOptions(options);
  return await after(delay, value, options);
}

export async function setImmediate(value = undefined, options = {}) {
  requireOptions(options);
  return await after(0, value, options);
}

export async function* setInterval(delay = undefined, value = undefined, options = {}) {
  if (delay !== undefined) requireNumber(delay, 'delay');
  requireOptions(options);
  for (;;) {
    await after(delay, undefined, options);
    yield value;
  }
}

export const scheduler = {
  wait: (delay, options = {}) => setTimeout(delay, undefined, options),
  yield: () => setImmediate(),
};

export default provide('node:timers/promises', { setTimeout, setImmediate, setInterval, scheduler });
