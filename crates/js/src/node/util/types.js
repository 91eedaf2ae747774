// `node:util/types`: what a value is, whatever it says of itself.
import { native, provide } from 'node:internal/base';
import * as ownNamespace from 'node:internal/base';

const { classOf, proxied } = native('util');

/** A check for the engine's class of these samples. */
function like(...samples) {
  const classes = samples.map(classOf);
  return value => (typeof value === 'object' || typeof value === 'function') && value !== null && classes.includes(classOf(value));
}

const view = Object.getPrototypeOf(Uint8Array.prototype);
const viewName = Object.getOwnPropertyDescriptor(view, Symbol.toStringTag).get;
const named = name => value => viewName.call(value) === name;
const some = (...checks) => value => checks.some(check => check(value));

export const isArrayBuffer = like(new ArrayBuffer(0));
export const isSharedArrayBuffer = typeof SharedArrayBuffer === 'undefined' ? () => false : like(new SharedArrayBuffer(0));
export const isAnyArrayBuffer = some(isArrayBuffer, isSharedArrayBuffer);
export const isArrayBufferView = value => ArrayBuffer.isView(value);
export const isTypedArray = value => viewName.call(value) !== undefined;
export const isUint8Array = named('Uint8Array');
export const isUint8ClampedArray = named('Uint8ClampedArray');
export const isUint16Array = named('Uint16Array');
export const isUint32Array = named('Uint32Array');
export const isInt8Array = named('Int8Array');
export const isInt16Array = named('Int16Array');
export const isInt32Array = named('Int32Array');
export const isFloat16Array = named('Float16Array');
export const isFloat32Array = named('Float32Array');
export const isFloat64Array = named('Float64Array');
export const isBigInt64Array = named('BigInt64Array');
export const isBigUint64Array = named('BigUint64Array');
export const isDataView = like(new DataView(new ArrayBuffer(0)));
export const isDate = like(new Date());
export const isRegExp = like(/a/);
export const isMap = like(new Map());
export const isSet = like(new Set());
export const isWeakMap = like(new WeakMap());
export const isWeakSet = like(new WeakSet());
export const isMapIterator = like(new Map().entries());
export const isSetIterator = like(new Set().values());
export const isPromise = like(Promise.resolve());
export const isNativeError = like(new Error());
export const isGeneratorFunction = like(function* () {}, async function* () {});
export const isAsyncFunction = like(async () => {}, async function* () {});
export const isGeneratorObject = like((function* () {})(), (async function* () {})());
const sloppyArguments = Function('return arguments')();
export const isArgumentsObject = like((function () { return arguments; })(), sloppyArguments);
export const isNumberObject = like(Object(1));
export const isStringObject = like(Object(''));
export const isBooleanObject = like(Object(true));
export const isBigIntObject = like(Object(1n));
export const isSymbolObject = like(Object(Symbol.iterator));
export const isBoxedPrimitive = some(isNumberObject, isStringObject, isBooleanObject, isBigIntObject, isSymbolObject);
export const isModuleNamespaceObject = like(ownNamespace);
export const isProxy = value => (typeof value === 'object' || typeof value === 'function') && value !== null && proxied(value) !== undefined;
export const isExternal = () => false;
export const isKeyObject = () => false;
export const isCryptoKey = value => Object.prototype.toString.call(value) === '[object CryptoKey]' && value instanceof CryptoKey;

export default provide('node:util/types', {
  isExternal, isDate, isArgumentsObject, isBigIntObject, isBooleanObject, isNumberObject, isStringObject, isSymbolObject,
  isBoxedPrimitive, isNativeError, isRegExp, isAsyncFunction, isGeneratorFunction, isGeneratorObject, isPromise, isMap, isSet,
  isMapIterator, isSetIterator, isWeakMap, isWeakSet, isArrayBuffer, isDataView, isSharedArrayBuffer, isProxy,
  isModuleNamespaceObject, isAnyArrayBuffer, isCryptoKey, isKeyObject, isArrayBufferView, isBigInt64Array, isBigUint64Array,
  isFloat16Array, isFloat32Array, isFloat64Array, isInt8Array, isInt16Array, isInt32Array, isTypedArray, isUint8Array,
  isUint8ClampedArray, isUint16Array, isUint32Array,
});
