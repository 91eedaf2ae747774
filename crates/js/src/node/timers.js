// `node:timers`: timers that are objects, over those of the platform.
import { provide, requireFunction } from 'node:internal/base';
import promises from 'node:timers/promises';

const platform = { setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval, clear: globalThis.clearTimeout };

export class Timeout {
  #id;
  #start;
  #hasRef = true;
  constructor(start) {
    this.#start = start;
    this.#id = start();
  }
  refresh() {
    platform.clear(this.#id);
    this.#id = this.#start();
    return this;
  }
  ref() {
    this.#hasRef = true;
    return this;
  }
  unref() {
    this.#hasRef = false;
    return this;
  }
  hasRef() {
    return this.#hasRef;
  }
  close() {
    platform.clear(this.#id);
    return this;
  }
  [Symbol.toPrimitive]() {
    return this.#id;
  }
  [Symbol.dispose]() {
    platform.clear(this.#id);
  }
}

export class Immediate {
  #id;
  #hasRef = true;
  constructor(id) {
    this.#id = id;
  }
  ref() {
    this.#hasRef = true;
    return this;
  }
  unref() {
    this.#hasRef = false;
    return this;
  }
  hasRef() {
    return this.#hasRef;
  }
  static idOf(value) {
    return typeof value === 'object' && value !== null && #id in value ? value.#id : undefined;
  }
  [Symbol.dispose]() {
    platform.clear(this.#id);
  }
}
const { idOf } = Immediate;
delete Immediate.idOf;

export function setTimeout(callback, delay = undefined, ...args) {
  requireFunction(callback, 'callback');
  return new Timeout(() => platform.setTimeout(callback, delay, ...args));
}

export function setInterval(callback, delay = undefined, ...args) {
  requireFunction(callback, 'callback');
  return new Timeout(() => platform.setInterval(callback, delay, ...args));
}

export function setImmediate(callback, ...args) {
  if (typeof callback !== 'function') {
    throw new TypeError("Failed to execute 'setImmediate' on 'ServiceWorkerGlobalScope': parameter 1 is not of type 'function'.");
  }
  return new Immediate(platform.setTimeout(callback, 0, ...args));
}

export function clearTimeout(timer) {
  if (timer instanceof Timeout) timer.close();
  else platform.clear(timer);
}

export function clearImmediate(immediate = undefined) {
  platform.clear(idOf(immediate));
}

export { clearTimeout as clearInterval, promises };

// What Node has kept from its beginnings.
export const active = timer => timer?.refresh?.();
export const enroll = () => {};
export const unenroll = timer => timer?.close?.();

for (const [start, name] of [[setTimeout, 'setTimeout'], [setImmediate, 'setImmediate']]) {
  Object.defineProperty(start, Symbol.for('nodejs.util.promisify.custom'), { get: () => promises[name], configurable: true });
}

export default provide('node:timers', {
  setTimeout, clearTimeout, setInterval, clearInterval: clearTimeout, setImmediate, clearImmediate, promises, active, enroll, unenroll,
  Timeout,
});
