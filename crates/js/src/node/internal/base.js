// What the modules of Node are written with: their errors, the checks of arguments, and the way to the prelude.
import { internals, native } from 'node:internal/bridge';

export { internals, native };

internals.builtins ??= Object.create(null);

/** Gives a module out to whoever has no import: globals, `process.getBuiltinModule`. Answers its exports. */
export function provide(name, exports) {
  internals.builtins[name] = exports;
  return exports;
}

/** An error as Node makes its own: with a code, which its text shows. */
export function coded(error, code) {
  error.code = code;
  const value = function toString() {
    return `${this.name} [${code}]: ${this.message}`;
  };
  return Object.defineProperty(error, 'toString', { value, writable: true, configurable: true });
}

/** What a wrong argument was, as the end of a message. */
export function received(value) {
  if (value === null || value === undefined) return ` Received ${value}`;
  if (typeof value === 'function' && value.name) return ` Received function ${value.name}`;
  if (typeof value === 'object' && value.constructor?.name) return ` Received an instance of ${value.constructor.name}`;
  internals.load('inspect');
  const text = internals.inspect(value);
  if (typeof value === 'object') return ` Received ${text}`;
  return ` Received type ${typeof value} (${text.length > 28 ? `${text.slice(0, 25)}...` : text})`;
}

const primitives = ['string', 'function', 'number', 'object', 'boolean', 'bigint', 'symbol'];

function oneOf(names) {
  if (names.length === 1) return names[0];
  if (names.length === 2) return `${names[0]} or ${names[1]}`;
  return `${names.slice(0, -1).join(', ')}, or ${names.at(-1)}`;
}

/** `expected`: names of types and of classes. */
export function wrongType(name, expected, value) {
  const all = [expected].flat();
  const types = all.filter(each => primitives.includes(each));
  const classes = all.filter(each => !primitives.includes(each));
  const parts = [];
  if (types.length > 0) parts.push(`${types.length > 1 ? 'one of type' : 'of type'} ${oneOf(types)}`);
  if (classes.length > 0) parts.push(`an instance of ${oneOf(classes)}`);
  const what = name.endsWith(' argument') ? `The ${name}` : `The "${name}" ${name.includes('.') ? 'property' : 'argument'}`;
  return coded(new TypeError(`${what} must be ${parts.join(' or ')}.${received(value)}`), 'ERR_INVALID_ARG_TYPE');
}

export function wrongValue(name, value, reason = 'is invalid') {
  internals.load('inspect');
  const what = name.includes('.') ? 'property' : 'argument';
  return coded(new TypeError(`The ${what} '${name}' ${reason}. Received ${internals.inspect(value)}`), 'ERR_INVALID_ARG_VALUE');
}

function grouped(value) {
  const text = String(value);
  const digits = text.startsWith('-') ? text.slice(1) : text;
  return (text.startsWith('-') ? '-' : '') + digits.replace(/\B(?=(\d{3})+$)/g, '_');
}

/** `range` is the middle of the message: what the value must be. */
export function outOfRange(name, range, value) {
  let text = typeof value === 'bigint' ? `${value}n` : String(value);
  if (Number.isInteger(value) && Math.abs(value) > 2 ** 32) text = grouped(value);
  else if (typeof value === 'bigint' && (value > 2n ** 32n || value < -(2n ** 32n))) text = `${grouped(value)}n`;
  return coded(new RangeError(`The value of "${name}" is out of range. It must be ${range}. Received ${text}`), 'ERR_OUT_OF_RANGE');
}

export function notImplemented(name) {
  return coded(new Error(`The ${name} method is not implemented`), 'ERR_METHOD_NOT_IMPLEMENTED');
}

export function requireText(value, name) {
  if (typeof value !== 'string') throw wrongType(name, 'string', value);
}

export function requireFunction(value, name) {
  if (typeof value !== 'function') throw wrongType(name, 'function', value);
}

export function requireObject(value, name) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw wrongType(name, 'object', value);
}

export function requireBoolean(value, name) {
  if (typeof value !== 'boolean') throw wrongType(name, 'boolean', value);
}

export function requireNumber(value, name, min = undefined, max = undefined) {
  if (typeof value !== 'number') throw wrongType(name, 'number', value);
  if ((min !== undefined && value < min) || (max !== undefined && value > max)
    || ((min !== undefined || max !== undefined) && Number.isNaN(value))) {
    throw outOfRange(name, boundsOf(min, max), value);
  }
}

function boundsOf(min, max) {
  const parts = [];
  if (min !== undefined) parts.push(`>= ${min}`);
  if (max !== undefined) parts.push(`<= ${max}`);
  return parts.join(' && ');
}

export function requireInteger(value, name, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== 'number') throw wrongType(name, 'number', value);
  if (!Number.isInteger(value)) throw outOfRange(name, 'an integer', value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
}

export const requireInt32 = (value, name, min = -(2 ** 31), max = 2 ** 31 - 1) => requireInteger(value, name, min, max);

export const requireUint32 = (value, name, isPositive = false) => requireInteger(value, name, isPositive ? 1 : 0, 2 ** 32 - 1);

export function requireSignal(signal, name = 'options.signal') {
  if (signal === undefined) return;
  if (signal === null || typeof signal !== 'object' || !('aborted' in signal)) throw wrongType(name, 'AbortSignal', signal);
}

/** What Node rejects with when a signal aborts. */
export function abortError(signal) {
  const error = new Error('The operation was aborted', signal?.reason === undefined ? undefined : { cause: signal.reason });
  return Object.defineProperty(coded(error, 'ABORT_ERR'), 'name', { value: 'AbortError', writable: true, configurable: true });
}
