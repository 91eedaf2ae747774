// Whether two values are the same all the way down, as `util.isDeepStrictEqual` and `assert.deepStrictEqual` have it.
import {
  isAnyArrayBuffer, isArrayBufferView, isBoxedPrimitive, isDate, isMap, isNativeError, isRegExp, isSet, isTypedArray,
} from 'node:util/types';

const { is, keys, getPrototypeOf, getOwnPropertySymbols, prototype: { hasOwnProperty, propertyIsEnumerable, toString } } = Object;
const own = (value, key) => hasOwnProperty.call(value, key);
const symbols = value => getOwnPropertySymbols(value).filter(key => propertyIsEnumerable.call(value, key));
const isObject = value => typeof value === 'object' && value !== null;

function sameBytes(first, second) {
  const view = value => isAnyArrayBuffer(value) ? new Uint8Array(value) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  const [a, b] = [view(first), view(second)];
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

function sameInside(first, second, seen) {
  if (isDate(first)) return isDate(second) && is(first.getTime(), second.getTime());
  if (isRegExp(first)) {
    return isRegExp(second) && first.source === second.source && first.flags === second.flags && first.lastIndex === second.lastIndex;
  }
  if (isNativeError(first) || first instanceof Error) {
    if (first.message !== second.message || first.name !== second.name) return false;
    return ['cause', 'errors'].every(key => own(first, key) === own(second, key) && same(first[key], second[key], seen));
  }
  if (isArrayBufferView(first)) {
    if (!isArrayBufferView(second) || first.byteLength !== second.byteLength) return false;
    return isTypedArray(first) ? first.every((item, at) => is(item, second[at])) : sameBytes(first, second);
  }
  if (isAnyArrayBuffer(first)) return isAnyArrayBuffer(second) && sameBytes(first, second);
  if (isBoxedPrimitive(first)) return isBoxedPrimitive(second) && is(first.valueOf(), second.valueOf());
  if (isSet(first)) return isSet(second) && sameSets(first, second, seen);
  if (isMap(first)) return isMap(second) && sameMaps(first, second, seen);
  return ![isDate, isRegExp, isBoxedPrimitive, isSet, isMap, isArrayBufferView, isAnyArrayBuffer].some(check => check(second));
}

/** Pairs each of `left` with one of `right`, which is emptied. */
function pairUp(left, right, seen, isSame) {
  for (const item of left) {
    const at = right.findIndex(other => isSame(item, other));
    if (at < 0) return false;
    right.splice(at, 1);
  }
  return true;
}

function sameSets(first, second, seen) {
  if (first.size !== second.size) return false;
  const left = [...first].filter(item => !second.has(item));
  if (left.some(item => !isObject(item))) return false;
  return pairUp(left, [...second].filter(item => isObject(item) && !first.has(item)), seen, (a, b) => same(a, b, seen));
}

function sameMaps(first, second, seen) {
  if (first.size !== second.size) return false;
  const left = [];
  for (const [key, value] of first) {
    if (second.has(key)) {
      if (!same(value, second.get(key), seen)) return false;
    } else if (isObject(key)) {
      left.push([key, value]);
    } else {
      return false;
    }
  }
  const right = [...second].filter(([key]) => isObject(key) && !first.has(key));
  return pairUp(left, right, seen, (a, b) => same(a[0], b[0], seen) && same(a[1], b[1], seen));
}

function sameProperties(first, second, seen) {
  const names = [...keys(first), ...symbols(first)];
  if (names.length !== keys(second).length + symbols(second).length) return false;
  return names.every(name => propertyIsEnumerable.call(second, name) && same(first[name], second[name], seen));
}

/** `seen`: pairs that are being compared, further out. */
function same(first, second, seen) {
  if (is(first, second)) return true;
  if (!isObject(first) || !isObject(second)) return false;
  if (getPrototypeOf(first) !== getPrototypeOf(second) || toString.call(first) !== toString.call(second)) return false;
  if (Array.isArray(first) !== Array.isArray(second) || (Array.isArray(first) && first.length !== second.length)) return false;
  if (seen.some(([a, b]) => a === first && b === second)) return true;
  seen.push([first, second]);
  try {
    return sameInside(first, second, seen) && sameProperties(first, second, seen);
  } finally {
    seen.pop();
  }
}

export const isDeepStrictEqual = (first, second) => same(first, second, []);
