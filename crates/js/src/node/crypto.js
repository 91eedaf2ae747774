// `node:crypto`: hashes, keyed ones, random values, keys from passwords, and Web Crypto. What is missing says so.
import { Buffer } from 'node:buffer';
import {
  coded, native, notImplemented, outOfRange, provide, requireFunction, requireInteger, requireObject, requireText,
  wrongType,
} from 'node:internal/base';

const { hasher, hmac, pbkdf2: derivePbkdf2, hkdf: deriveHkdf, random, equal, pbkdf2Work } = native('crypto');
const { crypto: platform } = globalThis;

const HASHES = ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha512-224', 'sha512-256'];
const BYTES_MAX = 2 ** 31 - 1;

/** The name of a hash as the host knows it. */
const hashName = name => name.toLowerCase().replace(/^rsa-/, '');

/** Bytes of a text or of any view or memory; undefined for anything else. */
function bytesOf(value, encoding = undefined) {
  if (typeof value === 'string') return Buffer.from(value, encoding === 'buffer' ? 'utf8' : encoding);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return undefined;
}

function requireData(value, encoding) {
  const bytes = value instanceof ArrayBuffer ? undefined : bytesOf(value, encoding);
  if (bytes === undefined) throw wrongType('data', ['string', 'Buffer', 'TypedArray', 'DataView'], value);
  return bytes;
}

const encoded = (memory, encoding) => encoding === undefined || encoding === 'buffer' ? Buffer.from(memory) : Buffer.from(memory).toString(encoding);
const unsupported = () => new Error('Digest method not supported');
const finished = () => coded(new Error('Digest already called'), 'ERR_CRYPTO_HASH_FINALIZED');

// ---- Hashes.

export class Hash {
  #state;
  #isFinished = false;
  constructor(algorithm, state = undefined) {
    if (state === undefined) requireText(algorithm, 'algorithm');
    this.#state = state ?? hasher(hashName(algorithm));
    if (this.#state === undefined) throw unsupported();
  }
  update(data, encoding = undefined) {
    const bytes = requireData(data, encoding);
    if (this.#isFinished) throw finished();
    this.#state.update(bytes);
    return this;
  }
  digest(encoding = undefined) {
    if (this.#isFinished) throw finished();
    this.#isFinished = true;
    return encoded(this.#state.finish(), encoding);
  }
  copy() {
    if (this.#isFinished) throw finished();
    return new Hash(undefined, this.#state.copy());
  }
}

export class Hmac {
  #state;
  #isFinished = false;
  constructor(algorithm, key) {
    requireText(algorithm, 'hmac');
    const bytes = bytesOf(key);
    if (bytes === undefined) throw wrongType('key', ['string', 'ArrayBuffer', 'Buffer', 'ArrayBufferView', 'KeyObject', 'CryptoKey'], key);
    this.#state = hmac(hashName(algorithm), bytes);
    if (this.#state === undefined) throw unsupported();
  }
  update(data, encoding = undefined) {
    const bytes = requireData(data, encoding);
    if (this.#isFinished) throw finished();
    this.#state.update(bytes);
    return this;
  }
  digest(encoding = undefined) {
    // As Node has it: of a second time nothing comes.
    if (this.#isFinished) return encoded(new ArrayBuffer(0), encoding);
    this.#isFinished = true;
    return encoded(this.#state.finish(), encoding);
  }
}

export const createHash = algorithm => new Hash(algorithm);
export const createHmac = (algorithm, key) => new Hmac(algorithm, key);
export const hash = (algorithm, data, encoding = 'hex') => new Hash(algorithm).update(data).digest(encoding);
export const getHashes = () => [...HASHES];

export function timingSafeEqual(first, second) {
  const sides = [first, second].map((value, at) => {
    const bytes = typeof value === 'string' ? undefined : bytesOf(value);
    if (bytes !== undefined) return bytes;
    throw new TypeError(`Failed to execute 'timingSafeEqual' on 'SubtleCrypto': parameter ${at + 1} is not of type 'BufferSource'.`);
  });
  if (sides[0].length !== sides[1].length) throw new TypeError('Input buffers must have the same byte length.');
  return equal(...sides);
}

// ---- Random values.

/** Calls back later with what `make` gives. */
function later(callback, make) {
  queueMicrotask(() => {
    let value;
    try {
      value = make();
    } catch (error) {
      callback(error);
      return;
    }
    callback(null, value);
  });
}

export function randomFillSync(buffer, offset = 0, size = undefined) {
  const bytes = typeof buffer === 'string' ? undefined : bytesOf(buffer);
  if (bytes === undefined) throw wrongType('buffer', ['TypedArray', 'DataView', 'ArrayBuffer', 'SharedArrayBuffer'], buffer);
  const width = buffer.BYTES_PER_ELEMENT ?? 1;
  requireInteger(offset, 'offset', 0, bytes.length / width);
  const count = size ?? bytes.length / width - offset;
  requireInteger(count, 'size', 0, bytes.length / width - offset);
  random(bytes.subarray(offset * width, (offset + count) * width));
  return buffer;
}

export function randomFill(buffer, ...rest) {
  const callback = rest.pop();
  requireFunction(callback, 'callback');
  later(callback, () => randomFillSync(buffer, ...rest));
}

export function randomBytes(size, ...rest) {
  requireInteger(size, 'size', 0, BYTES_MAX);
  const [callback] = rest;
  if (callback === undefined) return randomFillSync(Buffer.alloc(size));
  requireFunction(callback, 'callback');
  later(callback, () => randomFillSync(Buffer.alloc(size)));
  return undefined;
}
export { randomBytes as pseudoRandomBytes };

const INTEGER_MAX = 2 ** 48 - 1;

export function randomInt(...args) {
  const callback = typeof args.at(-1) === 'function' ? args.pop() : undefined;
  const [min, max] = args.length > 1 ? args : [0, args[0]];
  for (const [name, value] of [['min', min], ['max', max]]) {
    if (typeof value !== 'number') throw wrongType(name, 'number', value);
    if (!Number.isSafeInteger(value)) throw wrongType(name, 'a safe integer', value);
  }
  if (max <= min) throw outOfRange('min', 'min < max', min);
  const range = max - min;
  if (range > INTEGER_MAX) throw outOfRange(min === 0 ? 'max' : 'max - min', `<= ${INTEGER_MAX}`, range);
  const draw = () => {
    // Numbers that would make some results likelier than others are drawn again.
    const limit = 2 ** 48 - 2 ** 48 % range;
    for (;;) {
      const drawn = randomBytes(6).readUIntBE(0, 6);
      if (drawn < limit) return min + drawn % range;
    }
  };
  if (callback === undefined) return draw();
  later(callback, draw);
  return undefined;
}

export function randomUUID(options = undefined) {
  if (options !== undefined) requireObject(options, 'options');
  return platform.randomUUID();
}

export const getRandomValues = array => platform.getRandomValues(array);

// ---- Keys from secrets.

function requireSecret(value, name, expected) {
  const bytes = bytesOf(value);
  if (bytes === undefined) throw wrongType(name, expected, value);
  // A copy: what is derived later is derived from what was given, whatever its owner does with it meanwhile.
  return new Uint8Array(bytes);
}

const SECRETS = ['string', 'ArrayBuffer', 'Buffer', 'TypedArray', 'DataView'];

function pbkdf2Arguments(password, salt, iterations, keylen, digest) {
  requireText(digest, 'digest');
  const secret = requireSecret(password, 'password', SECRETS);
  const salted = requireSecret(salt, 'salt', SECRETS);
  requireInteger(iterations, 'iterations', 1, BYTES_MAX);
  requireInteger(keylen, 'keylen', 0, BYTES_MAX);
  return () => {
    const derived = derivePbkdf2(hashName(digest), secret, salted, iterations, keylen);
    if (derived !== undefined) return Buffer.from(derived);
    if (HASHES.includes(hashName(digest))) throw new RangeError(`Pbkdf2 failed: more than ${pbkdf2Work} iterations times blocks of output.`);
    throw new TypeError(`Invalid Pbkdf2 digest: ${digest}.`);
  };
}

export function pbkdf2Sync(password, salt, iterations, keylen, digest) {
  return pbkdf2Arguments(password, salt, iterations, keylen, digest)();
}

export function pbkdf2(password, salt, iterations, keylen, digest, callback) {
  if (typeof digest === 'function') [digest, callback] = [undefined, digest];
  const derive = pbkdf2Arguments(password, salt, iterations, keylen, digest);
  requireFunction(callback, 'callback');
  later(callback, derive);
}

function hkdfArguments(digest, secret, salt, info, length) {
  requireText(digest, 'digest');
  const key = requireSecret(secret, 'ikm', ['string', 'SecretKeyObject', 'ArrayBuffer', 'TypedArray', 'DataView', 'Buffer']);
  const salted = requireSecret(salt, 'salt', SECRETS);
  const context = requireSecret(info, 'info', SECRETS);
  requireInteger(length, 'length', 0, BYTES_MAX);
  if (context.length > 1024) throw outOfRange('info', 'must not contain more than 1024 bytes', context.length);
  if (!HASHES.includes(hashName(digest))) throw new TypeError(`Invalid Hkdf digest: ${digest}`);
  return () => {
    const derived = deriveHkdf(hashName(digest), key, salted, context, length);
    if (derived === undefined) throw new RangeError('Invalid Hkdf key length');
    return derived;
  };
}

export function hkdfSync(digest, secret, salt, info, length) {
  return hkdfArguments(digest, secret, salt, info, length)();
}

export function hkdf(digest, secret, salt, info, length, callback) {
  const derive = hkdfArguments(digest, secret, salt, info, length);
  requireFunction(callback, 'callback');
  later(callback, derive);
}

// ---- What is missing.

const missing = {};
for (const name of [
  'createCipheriv', 'createDecipheriv', 'createDiffieHellman', 'createDiffieHellmanGroup', 'createECDH', 'createPrivateKey',
  'createPublicKey', 'createSecretKey', 'createSign', 'createVerify', 'checkPrime', 'checkPrimeSync', 'diffieHellman', 'generateKey',
  'generateKeyPair', 'generateKeyPairSync', 'generateKeySync', 'generatePrime', 'generatePrimeSync', 'getCipherInfo',
  'getDiffieHellman', 'privateDecrypt', 'privateEncrypt', 'publicDecrypt', 'publicEncrypt', 'scrypt', 'scryptSync', 'sign', 'verify',
]) {
  missing[name] = { [name]() { throw notImplemented(`crypto.${name}`); } }[name];
}
export const {
  createCipheriv, createDecipheriv, createDiffieHellman, createDiffieHellmanGroup, createECDH, createPrivateKey, createPublicKey,
  createSecretKey, createSign, createVerify, checkPrime, checkPrimeSync, diffieHellman, generateKey, generateKeyPair,
  generateKeyPairSync, generateKeySync, generatePrime, generatePrimeSync, getCipherInfo, getDiffieHellman, privateDecrypt,
  privateEncrypt, publicDecrypt, publicEncrypt, scrypt, scryptSync, sign, verify,
} = missing;

export const getCiphers = () => [];
export const getCurves = () => [];
export const constants = {};
export const webcrypto = platform;
export const { subtle } = platform;

export default provide('node:crypto', {
  ...missing, Hash, Hmac, constants, createHash, createHmac, getCiphers, getCurves, getHashes, getRandomValues, hash, hkdf, hkdfSync,
  pbkdf2, pbkdf2Sync, pseudoRandomBytes: randomBytes, randomBytes, randomFill, randomFillSync, randomInt, randomUUID, subtle,
  timingSafeEqual, webcrypto,
});
