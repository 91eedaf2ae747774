// `node:util`.
import { coded, provide, requireBoolean, requireFunction, requireObject, requireSignal, requireText, wrongType, wrongValue } from 'node:internal/base';
import { isDeepStrictEqual } from 'node:internal/deep_equal';
import { colors, format, formatWithOptions, inspect, stripColors } from 'node:internal/inspect';
import types from 'node:util/types';

export { format, formatWithOptions, inspect, isDeepStrictEqual, types };
export const { TextEncoder, TextDecoder } = globalThis;

// ---- Functions.

const customPromisify = Symbol.for('nodejs.util.promisify.custom');

export function promisify(original) {
  requireFunction(original, 'original');
  const own = original[customPromisify];
  if (own) {
    requireFunction(own, 'util.promisify.custom');
    return Object.defineProperty(own, customPromisify, { value: own, enumerable: false, writable: false, configurable: true });
  }
  function promised(...args) {
    return new Promise((resolve, reject) => {
      Reflect.apply(original, this, [...args, (error, ...values) => {
        if (error) reject(error);
        else resolve(values[0]);
      }]);
    });
  }
  Object.setPrototypeOf(promised, Object.getPrototypeOf(original));
  Object.defineProperty(promised, customPromisify, { value: promised, enumerable: false, writable: false, configurable: true });
  return Object.defineProperties(promised, Object.getOwnPropertyDescriptors(original));
}
promisify.custom = customPromisify;

export function callbackify(original) {
  requireFunction(original, 'original');
  function called(...args) {
    const callback = args.pop();
    if (typeof callback !== 'function') {
      const error = wrongType('last argument', 'function', callback);
      throw error;
    }
    const tell = (...results) => queueMicrotask(() => Reflect.apply(callback, this, results));
    Reflect.apply(original, this, args).then(value => tell(null, value), reason => {
      tell(reason || Object.assign(coded(new Error('Promise was rejected with falsy value'), 'ERR_FALSY_VALUE_REJECTION'), { reason }));
    });
  }
  const descriptors = Object.getOwnPropertyDescriptors(original);
  if (typeof descriptors.length?.value === 'number') descriptors.length.value += 1;
  if (typeof descriptors.name?.value === 'string') descriptors.name.value += 'Callbackified';
  delete descriptors.prototype;
  return Object.defineProperties(called, descriptors);
}

export function inherits(constructor, parent) {
  requireFunction(constructor, 'ctor');
  if (parent === undefined || parent === null) throw wrongType('superCtor', 'function', parent);
  if (parent.prototype === undefined) throw wrongType('superCtor.prototype', 'object', parent.prototype);
  Object.defineProperty(constructor, 'super_', { value: parent, writable: true, configurable: true });
  Object.setPrototypeOf(constructor.prototype, parent.prototype);
}

const warned = new Set();

export function deprecate(original, message, code = undefined) {
  let hasWarned = false;
  function deprecated(...args) {
    if (!hasWarned) {
      hasWarned = true;
      if (code === undefined || !warned.has(code)) {
        if (code !== undefined) warned.add(code);
        console.warn(`DeprecationWarning: ${message}`);
      }
    }
    return new.target ? Reflect.construct(original, args, new.target) : Reflect.apply(original, this, args);
  }
  if (typeof original !== 'function') return original;
  Object.setPrototypeOf(deprecated, original);
  if (original.prototype) deprecated.prototype = original.prototype;
  return Object.defineProperties(deprecated, {
    name: { value: original.name, configurable: true }, length: { value: original.length, configurable: true },
  });
}

export function debuglog() {
  return Object.defineProperty(() => {}, 'enabled', { get: () => true });
}
export { debuglog as debug };

// ---- Texts.

export function stripVTControlCharacters(text) {
  requireText(text, 'str');
  return stripColors(text);
}

export const toUSVString = text => `${text}`.toWellFormed();

export function styleText(format, text, { validateStream = true } = {}) {
  requireText(text, 'text');
  requireBoolean(validateStream, 'options.validateStream');
  return [format].flat().reduceRight((inner, name) => {
    const codes = colors[name];
    if (codes === undefined) throw wrongValue('format', name, `must be one of: ${Object.keys(colors).map(each => `'${each}'`).join(', ')}`);
    return `\u001b[${codes[0]}m${inner}\u001b[${codes[1]}m`;
  }, text);
}

// ---- Signals.

export function aborted(signal, resource) {
  requireSignal(signal, 'signal');
  requireObject(resource, 'resource');
  if (signal.aborted) return Promise.resolve(new Event('abort'));
  return new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
}

export const transferableAbortController = () => new AbortController();
export const transferableAbortSignal = signal => signal;


// ---- What Node has kept from its beginnings.

export const isArray = Array.isArray;
export const isBoolean = value => typeof value === 'boolean';
export const isNull = value => value === null;
export const isNullOrUndefined = value => value === null || value === undefined;
export const isNumber = value => typeof value === 'number';
export const isString = value => typeof value === 'string';
export const isSymbol = value => typeof value === 'symbol';
export const isUndefined = value => value === undefined;
export const isRegExp = types.isRegExp;
export const isObject = value => value !== null && typeof value === 'object';
export const isDate = types.isDate;
export const isError = value => types.isNativeError(value) || value instanceof Error;
export const isFunction = value => typeof value === 'function';
export const isPrimitive = value => value === null || (typeof value !== 'object' && typeof value !== 'function');
export const log = (...args) => console.log('%s - %s', new Date().toLocaleString(), format(...args));

export function _extend(target, source) {
  if (source === null || typeof source !== 'object') return target;
  return Object.assign(target, source);
}

export default provide('node:util', {
  TextDecoder, TextEncoder, _extend, aborted, callbackify, debug: debuglog, debuglog, deprecate, format, formatWithOptions, inherits,
  inspect, isArray, isBoolean, isDate, isDeepStrictEqual, isError, isFunction, isNull, isNullOrUndefined, isNumber, isObject,
  isPrimitive, isRegExp, isString, isSymbol, isUndefined, log, promisify, stripVTControlCharacters, styleText, toUSVString,
  transferableAbortController, transferableAbortSignal, types,
});
