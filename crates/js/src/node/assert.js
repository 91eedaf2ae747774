// `node:assert`: as Workers have it, whose loose comparisons are strict ones.
import { coded, provide, received, requireFunction, requireObject, wrongType } from 'node:internal/base';
import { isDeepStrictEqual } from 'node:internal/deep_equal';
import { inspect } from 'node:internal/inspect';

export class AssertionError extends Error {
  constructor(options) {
    requireObject(options, 'options');
    const { message, actual, expected, operator } = options;
    const isOwn = message !== undefined && message !== null;
    super(isOwn ? String(message) : made(operator, actual, expected));
    this.generatedMessage = !isOwn;
    this.code = 'ERR_ASSERTION';
    this.actual = actual;
    this.expected = expected;
    this.operator = operator;
  }
  toString() {
    return `${this.name} [${this.code}]: ${this.message}`;
  }
}
Object.defineProperty(AssertionError.prototype, 'name', { value: 'AssertionError', writable: true, configurable: true });

const shown = value => inspect(value, { compact: false, sorted: true, depth: 1000, maxArrayLength: Infinity });

/** What two values differ in, line by line. */
function difference(actual, expected) {
  const rows = (text, mark) => text.split('\n').map(line => `${mark}   ${line}`).join('\n');
  return `\n\n\n[Diff] Actual / Expected\n\n\n${rows(shown(actual), '-')}\n${rows(shown(expected), '+')}\n`;
}

function made(operator, actual, expected) {
  switch (operator) {
    case 'deepStrictEqual': return `Expected values to be strictly deep-equal:${difference(actual, expected)}`;
    case 'strictEqual': return `Values are not strictly equal:${difference(actual, expected)}`;
    default: return `${inspect(actual)} ${operator} ${inspect(expected)}`;
  }
}

/** Throws for a comparison that did not hold. `text` is what is said where the caller says nothing. */
function failed(operator, actual, expected, message, text = undefined) {
  throw new AssertionError({ actual, expected, operator, message: message === undefined || message === null ? text : message });
}

export function ok(...args) {
  const [value, message] = args;
  if (args.length === 0) throw new AssertionError({ message: 'No value argument passed to `assert.ok()`' });
  if (value) return;
  if (message instanceof Error) throw message;
  failed('==', value, true, message);
}

export function fail(message = undefined) {
  if (message instanceof Error) throw message;
  throw new AssertionError({ message: message ?? 'Failed', operator: 'fail' });
}

export function strictEqual(actual, expected, message = undefined) {
  if (!Object.is(actual, expected)) failed('strictEqual', actual, expected, message, made('strictEqual', actual, expected));
}

export function notStrictEqual(actual, expected, message = undefined) {
  if (Object.is(actual, expected)) failed('notStrictEqual', actual, expected, message, 'Expected actual to be strictly unequal to expected');
}

export function deepStrictEqual(actual, expected, message = undefined) {
  if (!isDeepStrictEqual(actual, expected)) failed('deepStrictEqual', actual, expected, message);
}

export function notDeepStrictEqual(actual, expected, message = undefined) {
  if (isDeepStrictEqual(actual, expected)) {
    failed('notDeepStrictEqual', actual, expected, message, 'Expected actual not to be strictly deep-equal to expected');
  }
}

export { strictEqual as equal, notStrictEqual as notEqual, deepStrictEqual as deepEqual, notDeepStrictEqual as notDeepEqual };

const isObject = value => value !== null && typeof value === 'object';

/** Whether all that `expected` has is in `actual` too. */
function holds(actual, expected) {
  if (!isObject(actual) || !isObject(expected)) return Object.is(actual, expected);
  if (Object.getPrototypeOf(actual) !== Object.getPrototypeOf(expected)) return false;
  if (expected instanceof Set) return [...expected].every(item => actual.has(item) || [...actual].some(other => holds(other, item)));
  if (expected instanceof Map) return [...expected].every(([key, value]) => actual.has(key) && holds(actual.get(key), value));
  if (expected instanceof Date || expected instanceof RegExp || ArrayBuffer.isView(expected)) return isDeepStrictEqual(actual, expected);
  return Reflect.ownKeys(expected).every(key => Object.hasOwn(actual, key) && holds(actual[key], expected[key]));
}

export function partialDeepStrictEqual(actual, expected, message = undefined) {
  if (!holds(actual, expected)) failed('partialDeepStrictEqual', actual, expected, message);
}

export function match(actual, expected, message = undefined) {
  if (!expected.test(actual)) failed('match', actual, expected, message, `actual: "${actual}" expected to match: "${expected}"`);
}

export function doesNotMatch(actual, expected, message = undefined) {
  if (expected.test(actual)) failed('doesNotMatch', actual, expected, message, `actual: "${actual}" expected to not match: "${expected}"`);
}

export function ifError(value) {
  if (value === null || value === undefined) return;
  const text = typeof value === 'object' && typeof value.message === 'string' ? value.message || value.constructor?.name : inspect(value);
  failed('ifError', value, null, `ifError got unwanted exception: ${text}`);
}

// ---- What is thrown.

/** Throws unless an error is what was expected. */
function requireExpected(error, expected, message, operator) {
  if (expected === undefined) return;
  const refuse = text => {
    if (message instanceof Error) throw message;
    const wrong = new AssertionError({ actual: error, expected, operator, message: message ?? text });
    wrong.generatedMessage = message === undefined;
    throw wrong;
  };
  if (expected instanceof RegExp) {
    if (!expected.test(String(error))) refuse(`The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(String(error))}\n`);
  } else if (typeof expected === 'function') {
    if (expected.prototype !== undefined && error instanceof expected) return;
    if (Error.isPrototypeOf(expected) || expected === Error) {
      refuse(`The error is expected to be an instance of "${expected.name}". Received "${error?.constructor?.name}"\n\nError message:\n\n${error?.message}`);
    } else if (Reflect.apply(expected, {}, [error]) !== true) {
      const name = expected.name === '' ? '' : `"${expected.name}" `;
      refuse(`The ${name}validation function is expected to return "true". Received ${inspect(false)}\n\nCaught error:\n\n${error}`);
    }
  } else {
    const keys = expected instanceof Error ? [...Object.keys(expected), 'name', 'message'] : Object.keys(expected);
    if (keys.length === 0) {
      throw coded(new TypeError("The argument 'error' may not be an empty object. Received {}"), 'ERR_INVALID_ARG_VALUE');
    }
    for (const key of keys) {
      const isText = expected[key] instanceof RegExp && typeof error[key] === 'string';
      if (isText ? !expected[key].test(error[key]) : !isDeepStrictEqual(error[key], expected[key])) {
        if (message instanceof Error) throw message;
        const wrong = new AssertionError({ actual: error[key], expected: expected[key], operator: 'deepStrictEqual', message });
        throw wrong;
      }
    }
  }
}

/** What `throws` and its kin take: `(expected, message)`, of which the first may be left out. */
function expectation(error, message) {
  if (typeof error === 'string') return { expected: undefined, message: error, isText: true };
  if (error !== undefined && typeof error !== 'function' && (error === null || typeof error !== 'object')) {
    throw wrongType('error', ['function', 'Error', 'RegExp', 'Object'], error);
  }
  return { expected: error, message };
}

function judged(attempt, error, message, operator, kind) {
  const { expected, message: own, isText } = expectation(error, message);
  if (!attempt.threw) {
    const name = expected?.name ? ` (${expected.name})` : '';
    const text = `Missing expected ${kind}${name}${own === undefined ? '.' : `: ${own}`}`;
    throw new AssertionError({ actual: undefined, expected, operator, message: text });
  }
  if (isText) {
    const said = isObject(attempt.error) ? attempt.error.message : attempt.error;
    if (said === own) {
      const text = `The "error/message" argument is ambiguous. The error message "${own}" is identical to the message.`;
      throw coded(new TypeError(text), 'ERR_AMBIGUOUS_ARGUMENT');
    }
    return;
  }
  requireExpected(attempt.error, expected, own, operator);
}

function refused(attempt, error, message, operator) {
  if (!attempt.threw) return;
  const { expected, message: own } = expectation(error, message);
  if (expected !== undefined && !(typeof expected === 'function' && attempt.error instanceof expected)) throw attempt.error;
  const text = `Got unwanted exception${own === undefined ? '.' : `: ${own}`}\nActual message: "${attempt.error?.message}"`;
  throw new AssertionError({ actual: undefined, expected: undefined, operator, message: text });
}

function tried(body) {
  requireFunction(body, 'fn');
  try {
    body();
    return { threw: false };
  } catch (error) {
    return { threw: true, error };
  }
}

async function awaited(body) {
  let promise = body;
  if (typeof body === 'function') {
    promise = body();
    if (typeof promise?.then !== 'function') {
      const got = promise !== null && typeof promise === 'object' ? `an instance of ${promise.constructor?.name}` : received(promise).replace(/^ Received /, '');
      throw coded(new TypeError(`Expected instance of Promise to be returned from the "promiseFn" function but got ${got}.`), 'ERR_INVALID_RETURN_VALUE');
    }
  } else if (typeof body?.then !== 'function') {
    throw wrongType('promiseFn', ['function', 'Promise'], body);
  }
  try {
    await promise;
    return { threw: false };
  } catch (error) {
    return { threw: true, error };
  }
}

export function throws(body, error = undefined, message = undefined) {
  judged(tried(body), error, message, 'throws', 'exception');
}

export function doesNotThrow(body, error = undefined, message = undefined) {
  refused(tried(body), error, message, 'doesNotThrow');
}

export async function rejects(body, error = undefined, message = undefined) {
  judged(await awaited(body), error, message, 'rejects', 'rejection');
}

export async function doesNotReject(body, error = undefined, message = undefined) {
  refused(await awaited(body), error, message, 'doesNotReject');
}

// ---- The module is a function.

function assert(...args) {
  ok(...args);
}

export function strict(...args) {
  ok(...args);
}

const members = {
  AssertionError, deepEqual: deepStrictEqual, deepStrictEqual, doesNotMatch, doesNotReject, doesNotThrow, equal: strictEqual, fail,
  ifError, match, notDeepEqual: notDeepStrictEqual, notDeepStrictEqual, notEqual: notStrictEqual, notStrictEqual, ok,
  partialDeepStrictEqual, rejects, strictEqual, throws,
};
Object.assign(assert, members, { strict });
Object.assign(strict, members, { strict });

export default provide('node:assert', assert);
