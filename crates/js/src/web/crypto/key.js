// Web Crypto, after the W3C recommendation: keys, and what checks them. The files of this folder but crypto.js and
// key_pairs.js are one module (see ../crypto.rs). A key's material is bytes in the form that the natives take: raw for secrets, the scalar or seed and the
// point for curves, DER for RSA.

let native;
let internals;
let DOMException;

const KEY = Symbol("internal construction");
const Bytes = Uint8Array;

const fail = (name, message) => new DOMException(message, name);
const syntaxError = (message) => fail("SyntaxError", message);
const dataError = (message) => fail("DataError", message);
const operationError = (message) => fail("OperationError", message);
const accessError = (message) => fail("InvalidAccessError", message);
const notSupported = (message) => fail("NotSupportedError", message);

// What a native answered, where `undefined` means that it refuses.
function accepted(buffer, error) {
  if (buffer === undefined) throw error();
  return new Bytes(buffer);
}

const ALL_USAGES = ["encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"];

// The usages of a call: known ones, once each, in the order of the specification.
function usagesOf(value) {
  if (value === undefined || value === null || typeof value[Symbol.iterator] !== "function") {
    throw new TypeError("keyUsages must be a sequence of key usages");
  }
  const given = [...value].map((usage) => `${usage}`);
  for (const usage of given) {
    if (!ALL_USAGES.includes(usage)) throw new TypeError(`"${usage}" is not a key usage`);
  }
  return ALL_USAGES.filter((usage) => given.includes(usage));
}

function onlyUsages(usages, allowed, what) {
  for (const usage of usages) {
    if (!allowed.includes(usage)) throw syntaxError(`A ${what} key cannot have the usage "${usage}".`);
  }
}

// The bytes of a BufferSource, as a view of them; a conversion of Web IDL.
function sourceBytes(value, what) {
  if (ArrayBuffer.isView(value)) return new Bytes(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Bytes(value);
  throw new TypeError(`${what} must be an ArrayBuffer or a view of one`);
}

// A copy, as the specification takes of every buffer before it goes on.
const copyBytes = (value, what) => sourceBytes(value, what).slice();

let keyOf;

class CryptoKey {
  #state;
  #algorithm = undefined;
  #usages = undefined;

  static {
    keyOf = (value, what) => {
      if (typeof value === "object" && value !== null && #state in value) return value.#state;
      throw new TypeError(`${what} must be a CryptoKey`);
    };
  }

  // `state`: { type, extractable, algorithm, usages, data }.
  constructor(key, state) {
    if (key !== KEY) throw new TypeError("Illegal constructor");
    this.#state = state;
  }

  get type() {
    return this.#state.type;
  }

  get extractable() {
    return this.#state.extractable;
  }

  // A copy of what the algorithms go by, and the same object each time.
  get algorithm() {
    return (this.#algorithm ??= copyAlgorithm(this.#state.algorithm));
  }

  get usages() {
    return (this.#usages ??= [...this.#state.usages]);
  }
}

function copyAlgorithm(algorithm) {
  const copy = { ...algorithm };
  if (copy.hash !== undefined) copy.hash = { ...copy.hash };
  if (copy.publicExponent !== undefined) copy.publicExponent = copy.publicExponent.slice();
  return copy;
}

function makeKey(type, extractable, algorithm, usages, data) {
  return { type, extractable, algorithm, usages, data };
}

const keyObject = (state) => new CryptoKey(KEY, state);

// ---- JSON Web Keys (RFC 7517, RFC 7518) ----

const toBase64Url = (bytes) => native.toBase64Url(bytes);

function fromBase64Url(jwk, name) {
  const text = jwk[name];
  if (typeof text !== "string") throw dataError(`The JWK has no "${name}".`);
  return accepted(native.fromBase64Url(text), () => dataError(`The JWK member "${name}" is not base64url.`));
}

// The dictionary JsonWebKey: strings are converted, others ignored.
const JWK_STRINGS = ["kty", "use", "alg", "crv", "x", "y", "d", "n", "e", "p", "q", "dp", "dq", "qi", "k"];

function jwkOf(value) {
  if (typeof value !== "object" && typeof value !== "function" || value === null) {
    throw new TypeError("A key of the format \"jwk\" must be an object");
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) throw new TypeError("A key of the format \"jwk\" must not be a buffer");
  const jwk = {};
  for (const name of JWK_STRINGS) {
    const member = value[name];
    if (member !== undefined) jwk[name] = `${member}`;
  }
  if (value.ext !== undefined) jwk.ext = Boolean(value.ext);
  if (value.key_ops !== undefined) jwk.key_ops = [...value.key_ops].map((usage) => `${usage}`);
  if (value.oth !== undefined) jwk.oth = value.oth;
  return jwk;
}

function checkJwk(jwk, kty, use, extractable, usages, algorithms) {
  if (jwk.kty !== kty) throw dataError(`The JWK's "kty" must be "${kty}".`);
  if (usages.length > 0 && jwk.use !== undefined && jwk.use !== use) throw dataError(`The JWK's "use" must be "${use}".`);
  if (jwk.key_ops !== undefined) {
    if (new Set(jwk.key_ops).size !== jwk.key_ops.length) throw dataError('The JWK\'s "key_ops" has a duplicate.');
    if (usages.some((usage) => !jwk.key_ops.includes(usage))) throw dataError('The JWK\'s "key_ops" does not have every usage asked for.');
  }
  if (jwk.ext === false && extractable) throw dataError('The JWK\'s "ext" does not let the key be extractable.');
  if (jwk.alg !== undefined && algorithms !== undefined && !algorithms.includes(jwk.alg)) {
    throw dataError(`The JWK's "alg" must be "${algorithms[0]}".`);
  }
}

const jwkFor = (key, members) => ({ ...members, key_ops: [...key.usages], ext: key.extractable });
