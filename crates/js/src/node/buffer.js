// `node:buffer`: bytes with Node's methods. A `Buffer` is a `Uint8Array` whose prototype has them; what walks over many
// bytes is done by the host.
import {
  coded, native, outOfRange, provide, received, requireInteger, requireNumber, requireText, wrongType,
} from 'node:internal/base';

const { encode, decode, utf8Len, compare: compareBytes, indexOf: find, fill: fillBytes, swap, isUtf8: checkUtf8, isAscii: checkAscii } = native('buffer');

export const kMaxLength = 2 ** 31 - 1;
export const kStringMaxLength = 2 ** 29 - 24;
export const constants = { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: kStringMaxLength };
export const INSPECT_MAX_BYTES = 50;
const customInspect = Symbol.for('nodejs.util.inspect.custom');

// ---- Encodings, by the numbers that the host knows.

const UTF8 = 0, UTF16LE = 1, LATIN1 = 2, ASCII = 3, BASE64 = 4, BASE64URL = 5, HEX = 6;
const ENCODINGS = {
  __proto__: null,
  utf8: UTF8, 'utf-8': UTF8, ucs2: UTF16LE, 'ucs-2': UTF16LE, utf16le: UTF16LE, 'utf-16le': UTF16LE,
  latin1: LATIN1, binary: LATIN1, ascii: ASCII, base64: BASE64, base64url: BASE64URL, hex: HEX,
};

const unknown = encoding => coded(new TypeError(`Unknown encoding: ${String(encoding)}`), 'ERR_UNKNOWN_ENCODING');

/** The number of an encoding; undefined for what is none. */
function numberOf(name) {
  return typeof name === 'string' ? ENCODINGS[name] ?? ENCODINGS[name.toLowerCase()] : undefined;
}

function encodingOf(name) {
  if (name === undefined || name === '') return UTF8;
  const found = numberOf(name);
  if (found === undefined) throw unknown(name);
  return found;
}

const bytesOfText = (text, encoding, max = kMaxLength) => new FastBuffer(encode(text, encoding, max));

// ---- What bytes are made of.

class FastBuffer extends Uint8Array {}

const isBytes = value => value instanceof Uint8Array;
const isMemory = value => value instanceof ArrayBuffer || (typeof SharedArrayBuffer !== 'undefined' && value instanceof SharedArrayBuffer);

/** Any view as bytes, without a copy. */
const viewed = view => isBytes(view) ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

function requireBytes(value, name, shown = value) {
  if (!isBytes(value)) throw wrongType(name, ['Buffer', 'Uint8Array'], shown);
}

function requireSize(size) {
  if (typeof size !== 'number') throw wrongType('size', 'number', size);
  if (Number.isNaN(size)) throw coded(new RangeError("The argument 'size' is invalid. Received NaN"), 'ERR_INVALID_ARG_VALUE');
  if (size < 0 || size > kMaxLength) throw outOfRange('size', `0 to ${kMaxLength}`, size);
}

const outside = name => coded(new RangeError(name === undefined
  ? 'Attempt to access memory outside buffer bounds' : `"${name}" is outside of buffer bounds`), 'ERR_BUFFER_OUT_OF_BOUNDS');

function fromMemory(memory, offset, length) {
  const start = offset === undefined ? 0 : Number.isNaN(+offset) ? 0 : +offset;
  const room = memory.byteLength - start;
  if (room < 0) throw outside('offset');
  const count = length === undefined ? room : +length > 0 ? +length : 0;
  if (count > room) throw outside('length');
  return new FastBuffer(memory, start, count);
}

function fromList(list) {
  const made = new FastBuffer(list.length > 0 ? Math.min(Math.trunc(list.length), kMaxLength) : 0);
  for (let at = 0; at < made.length; at += 1) made[at] = list[at];
  return made;
}

function fromObject(value) {
  if (value.length !== undefined || isMemory(value.buffer)) return typeof value.length === 'number' ? fromList(value) : new FastBuffer(0);
  if (value.type === 'Buffer' && Array.isArray(value.data)) return fromList(value.data);
  return undefined;
}

function from(value, encodingOrOffset, length) {
  if (typeof value === 'string') return bytesOfText(value, encodingOf(encodingOrOffset));
  if (typeof value === 'object' && value !== null) {
    if (isMemory(value)) return fromMemory(value, encodingOrOffset, length);
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return new FastBuffer(value);
    const inner = value.valueOf?.();
    if (inner !== null && inner !== undefined && inner !== value && (typeof inner === 'string' || typeof inner === 'object')) {
      return from(inner, encodingOrOffset, length);
    }
    const made = fromObject(value);
    if (made !== undefined) return made;
    if (typeof value[Symbol.toPrimitive] === 'function') {
      const primitive = value[Symbol.toPrimitive]('string');
      if (typeof primitive === 'string') return from(primitive, encodingOrOffset);
    }
  }
  const expected = 'string or an instance of Buffer, TypedArray, ArrayBuffer, SharedArrayBuffer, or Array or an Array-like Object';
  throw coded(new TypeError(`The first argument must be of type ${expected}.${received(value)}`), 'ERR_INVALID_ARG_TYPE');
}

// A function, not a class: older code calls it without `new`.
export function Buffer(value, encodingOrOffset, length) {
  if (typeof value !== 'number') return from(value, encodingOrOffset, length);
  if (typeof encodingOrOffset === 'string') throw wrongType('string', 'string', value);
  return Buffer.alloc(value);
}
Object.setPrototypeOf(Buffer, Uint8Array);
Object.defineProperty(Buffer, 'prototype', { value: FastBuffer.prototype });

Object.assign(Buffer, {
  poolSize: 0,
  from,
  of: (...values) => fromList(values),
  alloc(size, value = undefined, encoding = undefined) {
    requireSize(size);
    const made = new FastBuffer(size);
    if (value === undefined || value === 0 || size === 0) return made;
    if (encoding !== undefined) requireText(encoding, 'encoding');
    return made.fill(value, encoding);
  },
  allocUnsafe(size) {
    requireSize(size);
    return new FastBuffer(size);
  },
  allocUnsafeSlow(size) {
    requireSize(size);
    return new FastBuffer(size);
  },
  isBuffer: value => value instanceof Buffer,
  isEncoding: name => numberOf(name) !== undefined,
  compare(first, second) {
    requireBytes(first, 'a', typeof first);
    requireBytes(second, 'b', typeof second);
    return compareBytes(first, second);
  },
  concat(list, length = undefined) {
    if (!Array.isArray(list)) {
      throw coded(new TypeError(`The "list" argument must be an (Buffer|Uint8Array)[].${received(list)}`), 'ERR_INVALID_ARG_TYPE');
    }
    if (length !== undefined) requireInteger(length, 'length', 0);
    list.forEach((each, at) => {
      if (!isBytes(each)) throw new TypeError(`Incorrect type for array element ${at}: the provided value is not of type 'Uint8Array'.`);
    });
    const made = Buffer.alloc(length ?? list.reduce((sum, each) => sum + each.length, 0));
    let at = 0;
    for (const each of list) {
      if (at >= made.length) break;
      made.set(at + each.length > made.length ? each.subarray(0, made.length - at) : each, at);
      at += each.length;
    }
    return made;
  },
  byteLength(value, encoding = undefined) {
    if (typeof value !== 'string') {
      if (ArrayBuffer.isView(value) || isMemory(value)) return value.byteLength;
      throw wrongType('string', ['string', 'Buffer', 'ArrayBuffer'], value);
    }
    switch (numberOf(encoding) ?? UTF8) {
      case UTF16LE: return value.length * 2;
      case LATIN1: case ASCII: return value.length;
      case HEX: return value.length >>> 1;
      case BASE64: case BASE64URL: {
        const end = value.endsWith('==') ? value.length - 2 : value.endsWith('=') ? value.length - 1 : value.length;
        return Math.floor(end * 3 / 4);
      }
      default: return utf8Len(value);
    }
  },
});

// ---- Numbers in bytes.

const scratch = new DataView(new ArrayBuffer(8));

function refuseOffset(value, last, name = 'offset', from = 0) {
  if (Math.floor(value) !== value) {
    requireNumber(value, name);
    return outOfRange(name, 'an integer', value);
  }
  return last < 0 ? outside() : outOfRange(name, `>= ${from} and <= ${last}`, value);
}

/** Throws unless `width` bytes are at `offset`. */
function requireRoom(bytes, offset, width) {
  requireInteger(offset, 'offset', 0, Math.max(bytes.length, 0));
  if (offset + width > bytes.length) throw refuseOffset(offset, bytes.length - width);
}

function requireWidth(width) {
  if (width === undefined) throw outOfRange('byteLength', 'an integer', width);
  if (typeof width !== 'number') throw wrongType('byteLength', 'number', width);
  if (!Number.isInteger(width)) throw outOfRange('byteLength', 'an integer', width);
  if (width < 1 || width > 6) throw outOfRange('byteLength', '>= 1 and <= 6', width);
}

function requireFit(value, min, max, width) {
  if (value <= max && value >= min) return;
  const n = typeof min === 'bigint' ? 'n' : '';
  const bits = width * 8;
  const isUnsigned = min === 0 || min === 0n;
  const range = width <= 4 ? `>= ${min}${n} and <= ${max}${n}`
    : isUnsigned ? `>= 0${n} and < 2${n} ** ${bits}${n}`
    : `>= -(2${n} ** ${bits - 1}${n}) and < 2${n} ** ${bits - 1}${n}`;
  throw outOfRange('value', range, value);
}

const viewOf = bytes => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const methods = {};

/** A method under its names: `UInt` and `Uint`, `BigUInt` and `BigUint`. */
function named(name, method) {
  Object.defineProperty(method, 'name', { value: name });
  methods[name] = method;
  if (name.includes('UInt')) methods[name.replace('UInt', 'Uint')] = method;
}

function fixed(kind, width, view, min, max) {
  const isBig = typeof min === 'bigint';
  for (const order of width === 1 ? [''] : ['LE', 'BE']) {
    const isLittle = order === 'LE';
    named(`read${kind}${order}`, function (offset = 0) {
      requireRoom(this, offset, width);
      return viewOf(this)[`get${view}`](offset, isLittle);
    });
    named(`write${kind}${order}`, function (value, offset = 0) {
      const number = isBig ? value : +value;
      if (min !== undefined) {
        if (isBig && typeof number !== 'bigint') throw new TypeError('Cannot mix BigInt and other types, use explicit conversions');
        if (number === number) requireFit(number, min, max, width);
      }
      requireRoom(this, offset, width);
      viewOf(this)[`set${view}`](offset, number, isLittle);
      return offset + width;
    });
  }
}

for (const bits of [8, 16, 32]) {
  fixed(`UInt${bits}`, bits / 8, `Uint${bits}`, 0, 2 ** bits - 1);
  fixed(`Int${bits}`, bits / 8, `Int${bits}`, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1);
}
fixed('BigUInt64', 8, 'BigUint64', 0n, 2n ** 64n - 1n);
fixed('BigInt64', 8, 'BigInt64', -(2n ** 63n), 2n ** 63n - 1n);
fixed('Float', 4, 'Float32');
fixed('Double', 8, 'Float64');

for (const order of ['LE', 'BE']) {
  const isLittle = order === 'LE';
  const read = (bytes, offset, width) => {
    if (offset === undefined) throw wrongType('offset', 'number', offset);
    requireWidth(width);
    requireRoom(bytes, offset, width);
    let value = 0;
    for (let at = 0; at < width; at += 1) value = value * 256 + bytes[offset + (isLittle ? width - 1 - at : at)];
    return value;
  };
  named(`readUInt${order}`, function (offset, width) {
    return read(this, offset, width);
  });
  named(`readInt${order}`, function (offset, width) {
    const value = read(this, offset, width);
    return value >= 2 ** (8 * width - 1) ? value - 2 ** (8 * width) : value;
  });
  const write = (bytes, value, offset, width, min, max) => {
    const number = +value;
    requireFit(number, min, max, width);
    requireRoom(bytes, offset, width);
    let rest = number < 0 ? number + 2 ** (8 * width) : number;
    for (let at = 0; at < width; at += 1) {
      bytes[offset + (isLittle ? at : width - 1 - at)] = rest % 256;
      rest = Math.floor(rest / 256);
    }
    return offset + width;
  };
  named(`writeUInt${order}`, function (value, offset, width) {
    requireWidth(width);
    return write(this, value, offset, width, 0, 2 ** (8 * width) - 1);
  });
  named(`writeInt${order}`, function (value, offset, width) {
    requireWidth(width);
    return write(this, value, offset, width, -(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1);
  });
}

// ---- Texts in bytes.

const NAMES = { utf8: UTF8, ucs2: UTF16LE, utf16le: UTF16LE, latin1: LATIN1, ascii: ASCII, base64: BASE64, base64url: BASE64URL, hex: HEX };
for (const [name, encoding] of Object.entries(NAMES)) {
  methods[`${name}Slice`] = function (start = 0, end = this.length) {
    return decode(this, encoding, start, end);
  };
  methods[`${name}Write`] = function (text, offset = 0, length = this.length - offset) {
    return writeText(this, text, offset, length, encoding);
  };
}

function writeText(bytes, text, offset, length, encoding) {
  const written = new Uint8Array(encode(text, encoding, Math.min(length, bytes.length - offset)));
  bytes.set(written, offset);
  return written.length;
}

/** An index as Node takes it: of the start where it is none, and from the end where it is negative. */
function clamped(value, length, missing) {
  if (value === undefined) return missing;
  const number = Math.trunc(+value) || 0;
  if (number < 0) return Math.max(number + length, 0);
  return Math.min(number, length);
}

function search(bytes, value, offset, encoding, isForward) {
  if (typeof offset === 'string') {
    encoding = offset;
    offset = undefined;
  }
  let number = offset === undefined ? NaN : +offset;
  if (Number.isNaN(number)) number = isForward ? 0 : bytes.length;
  number = Math.trunc(Math.max(Math.min(number, 2 ** 31 - 1), -(2 ** 31)));
  if (number < 0) number += bytes.length;
  if (number < 0) {
    if (!isForward) return -1;
    number = 0;
  }
  let needle;
  let step = 1;
  if (typeof value === 'number') {
    needle = new Uint8Array([value]);
  } else if (typeof value === 'string') {
    const kind = encodingOf(encoding);
    step = kind === UTF16LE ? 2 : 1;
    needle = bytesOfText(value, kind);
  } else if (isBytes(value)) {
    needle = value;
    if (numberOf(encoding) === UTF16LE) step = 2;
  } else {
    throw wrongType('value', ['number', 'string', 'Buffer', 'Uint8Array'], value);
  }
  if (needle.length === 0) return Math.min(number, bytes.length);
  return find(bytes, needle, number, isForward, step);
}

Object.assign(methods, {
  toString(encoding = undefined, start = undefined, end = undefined) {
    if (arguments.length === 0) return decode(this, UTF8, 0, this.length);
    const kind = encodingOf(encoding);
    const from = start === undefined || !(+start > 0) ? 0 : Math.min(Math.trunc(+start), this.length);
    const to = end === undefined ? this.length : Math.min(Math.trunc(+end) || 0, this.length);
    return to <= from ? '' : decode(this, kind, from, to);
  },
  toJSON() {
    return { type: 'Buffer', data: Array.from(this) };
  },
  equals(other) {
    requireBytes(other, 'b', typeof other);
    return this === other || (this.byteLength === other.byteLength && compareBytes(this, other) === 0);
  },
  compare(target, targetStart = 0, targetEnd = undefined, sourceStart = 0, sourceEnd = undefined) {
    requireBytes(target, 'target');
    requireInteger(targetStart, 'targetStart', 0);
    if (targetEnd !== undefined) requireInteger(targetEnd, 'targetEnd', 0, target.length);
    requireInteger(sourceStart, 'sourceStart', 0);
    if (sourceEnd !== undefined) requireInteger(sourceEnd, 'sourceEnd', 0, this.length);
    const own = Uint8Array.prototype.subarray.call(this, sourceStart, sourceEnd ?? this.length);
    const theirs = Uint8Array.prototype.subarray.call(target, targetStart, targetEnd ?? target.length);
    return compareBytes(own, theirs);
  },
  indexOf(value, offset = undefined, encoding = undefined) {
    return search(this, value, offset, encoding, true);
  },
  lastIndexOf(value, offset = undefined, encoding = undefined) {
    return search(this, value, offset, encoding, false);
  },
  includes(value, offset = undefined, encoding = undefined) {
    return this.indexOf(value, offset, encoding) !== -1;
  },
  fill(value, offset = undefined, end = undefined, encoding = undefined) {
    if (typeof value === 'string') {
      if (typeof offset === 'string') [encoding, offset, end] = [offset, undefined, undefined];
      else if (typeof end === 'string') [encoding, end] = [end, undefined];
    }
    const kind = encodingOf(encoding);
    if (offset === undefined) {
      offset = 0;
      end = this.length;
    } else {
      requireNumber(offset, 'offset');
      if (end === undefined) end = this.length;
      else requireNumber(end, 'end');
      if (offset < 0) throw outOfRange('start', '0 to end', offset);
      if (end < 0 || end > this.length) throw outOfRange('end', `0 to ${this.length}`, end);
    }
    if (offset >= end) return this;
    let pattern;
    if (typeof value === 'string') {
      pattern = value === '' ? new Uint8Array(1) : bytesOfText(value, kind);
      if (pattern.length === 0 && kind === HEX) throw new TypeError('The text is not valid hex');
    } else if (isBytes(value)) {
      pattern = value;
    } else if (ArrayBuffer.isView(value)) {
      pattern = viewed(value);
    } else {
      pattern = new Uint8Array([+value & 255]);
    }
    if (pattern.length === 0) throw coded(new TypeError("The argument 'value' is invalid. Received 'zero-length'"), 'ERR_INVALID_ARG_VALUE');
    fillBytes(this, pattern, offset, end);
    return this;
  },
  slice(start = undefined, end = undefined) {
    const from = clamped(start, this.length, 0);
    const to = clamped(end, this.length, this.length);
    return new FastBuffer(this.buffer, this.byteOffset + from, Math.max(to - from, 0));
  },
  copy(target, targetStart = undefined, sourceStart = undefined, sourceEnd = undefined) {
    requireBytes(target, 'target');
    const index = (value, name, missing) => {
      if (value === undefined) return missing;
      const number = Math.trunc(+value) || 0;
      if (number < 0) throw outOfRange(name, '>= 0', number);
      return number;
    };
    const to = index(targetStart, 'targetStart', 0);
    const from = index(sourceStart, 'sourceStart', 0);
    const end = index(sourceEnd, 'sourceEnd', this.length);
    if (to >= target.length || from >= end || from >= this.length) return 0;
    const count = Math.min(end - from, target.length - to, this.length - from);
    Uint8Array.prototype.set.call(target, Uint8Array.prototype.subarray.call(this, from, from + count), to);
    return count;
  },
  write(text, offset = undefined, length = undefined, encoding = undefined) {
    if (typeof offset === 'string') [encoding, offset, length] = [offset, undefined, undefined];
    else if (typeof length === 'string') [encoding, length] = [length, undefined];
    if (offset === undefined) offset = 0;
    else requireInteger(offset, 'offset', 0, this.length);
    const rest = this.length - offset;
    if (length === undefined) length = rest;
    else requireInteger(length, 'length', 0, this.length);
    return writeText(this, `${text}`, offset, Math.min(length, rest), encodingOf(encoding));
  },
  [customInspect](depth, options, inspect) {
    void depth, options, inspect;
    const shown = decode(this, HEX, 0, INSPECT_MAX_BYTES).replace(/(.{2})(?=.)/g, '$1 ');
    const rest = this.length - INSPECT_MAX_BYTES;
    const more = rest > 0 ? ` ... ${rest} more byte${rest > 1 ? 's' : ''}` : '';
    return `<${this.constructor.name}${shown === '' ? '' : ' '}${shown}${more}>`;
  },
});
for (const width of [16, 32, 64]) {
  methods[`swap${width}`] = function () {
    if (this.length % (width / 8) !== 0) {
      throw coded(new RangeError(`Buffer size must be a multiple of ${width}-bits`), 'ERR_INVALID_BUFFER_SIZE');
    }
    swap(this, width / 8);
    return this;
  };
}
methods.toLocaleString = methods.toString;
const members = Object.defineProperties(methods, Object.getOwnPropertyDescriptors({
  get parent() {
    return this instanceof Buffer ? this.buffer : undefined;
  },
  get offset() {
    return this instanceof Buffer ? this.byteOffset : undefined;
  },
}));
for (const key of Reflect.ownKeys(members)) {
  Object.defineProperty(Buffer.prototype, key, { ...Object.getOwnPropertyDescriptor(members, key), enumerable: false });
}
Object.defineProperty(Buffer.prototype, 'constructor', { value: Buffer, writable: true, enumerable: false, configurable: true });

// ---- What else the module has.

export function SlowBuffer(size) {
  return Buffer.allocUnsafeSlow(size);
}

function requireView(value) {
  if (ArrayBuffer.isView(value)) return viewed(value);
  if (isMemory(value)) return new Uint8Array(value);
  throw wrongType('input', ['ArrayBuffer', 'Buffer', 'TypedArray'], value);
}

export const isUtf8 = value => checkUtf8(requireView(value));
export const isAscii = value => checkAscii(requireView(value));

export function transcode(source, from, to) {
  if (!isBytes(source)) throw wrongType('source', ['Buffer', 'Uint8Array'], source);
  const [read, write] = [numberOf(from), numberOf(to)];
  if (read === undefined || write === undefined || read > ASCII || write > ASCII) {
    throw coded(new Error('Unable to transcode Buffer [U_ILLEGAL_ARGUMENT_ERROR]'), 'U_ILLEGAL_ARGUMENT_ERROR');
  }
  const text = decode(source, read, 0, source.length);
  const max = write === LATIN1 ? 0xff : write === ASCII ? 0x7f : 0xffff;
  const fitting = max === 0xffff ? text : text.replace(/[^]/gu, char => char.codePointAt(0) > max ? '?' : char);
  return bytesOfText(fitting, write);
}

export function resolveObjectURL(id) {
  requireText(id, 'id');
  return undefined;
}

const { atob, btoa, Blob, File } = globalThis;
export { atob, btoa, Blob, File };

export default provide('node:buffer', {
  Buffer, SlowBuffer, Blob, File, INSPECT_MAX_BYTES, atob, btoa, constants, isAscii, isUtf8, kMaxLength, kStringMaxLength,
  resolveObjectURL, transcode,
});
