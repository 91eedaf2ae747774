
// ---- SubtleCrypto ----

const SECRET_KEYS = {
  "AES-CTR": aesCtr,
  "AES-CBC": aesCbc,
  "AES-GCM": aesGcm,
  "AES-KW": aesKw,
  HMAC: hmacAlgorithm,
  HKDF: hkdf,
  PBKDF2: pbkdf2,
};

function algorithmOf(name) {
  if (Object.hasOwn(SECRET_KEYS, name)) return SECRET_KEYS[name];
  internals.load("key-pairs");
  return internals.keyPairs[name];
}

const FORMATS = ["raw", "pkcs8", "spki", "jwk"];

function formatOf(value) {
  const format = `${value}`;
  if (!FORMATS.includes(format)) throw new TypeError(`"${format}" is not a key format: raw, pkcs8, spki or jwk`);
  return format;
}

function keyDataOf(format, value) {
  return format === "jwk" ? jwkOf(value) : copyBytes(value, "keyData");
}

// That `key` may do `usage` by the algorithm `name`.
function permit(key, name, usage) {
  if (key.algorithm.name !== name) throw accessError(`Requested algorithm "${name}" does not match this CryptoKey's algorithm "${key.algorithm.name}".`);
  if (!key.usages.includes(usage)) throw accessError(`Requested key usage "${usage}" does not match any usage listed in this CryptoKey.`);
}

function importInto(normalized, format, keyData, extractable, usages) {
  const key = algorithmOf(normalized.name).importKey(normalized, format, keyData, extractable, usages);
  if (key.type !== "public" && key.usages.length === 0) {
    throw syntaxError("Secret/private CryptoKeys must have at least one usage.");
  }
  return key;
}

function exportFrom(format, key) {
  const { exportKey } = algorithmOf(key.algorithm.name);
  if (exportKey === undefined) throw notSupported(`Keys of ${key.algorithm.name} cannot be exported.`);
  if (!key.extractable) throw accessError(`Attempt to export non-extractable ${key.algorithm.name} key.`);
  return exportKey(format, key);
}

// What wraps as well as encrypts.
function normalizeWrap(operation, otherwise, algorithm) {
  try {
    return [operation, normalize(operation, algorithm)];
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    return [otherwise, normalize(otherwise, algorithm)];
  }
}

function requireArguments(given, count, method) {
  if (given < count) {
    throw new TypeError(`Failed to execute '${method}' on 'SubtleCrypto': ${count} arguments required, but only ${given} present.`);
  }
}

class SubtleCrypto {
  #brand = true;

  constructor(key) {
    if (key !== KEY) throw new TypeError("Illegal constructor");
  }

  async encrypt(algorithm, key, data) {
    this.#brand;
    requireArguments(arguments.length, 3, "encrypt");
    return SubtleCrypto.#crypt("encrypt", algorithm, key, data);
  }

  async decrypt(algorithm, key, data) {
    this.#brand;
    requireArguments(arguments.length, 3, "decrypt");
    return SubtleCrypto.#crypt("decrypt", algorithm, key, data);
  }

  static #crypt(operation, algorithm, cryptoKey, data) {
    const key = keyOf(cryptoKey, "key");
    const bytes = sourceBytes(data, "data");
    const normalized = normalize(operation, algorithm);
    permit(key, normalized.name, operation);
    return algorithmOf(normalized.name)[operation](normalized, key, bytes);
  }

  async sign(algorithm, key, data) {
    this.#brand;
    requireArguments(arguments.length, 3, "sign");
    const state = keyOf(key, "key");
    const bytes = sourceBytes(data, "data");
    const normalized = normalize("sign", algorithm);
    permit(state, normalized.name, "sign");
    return algorithmOf(normalized.name).sign(normalized, state, bytes);
  }

  async verify(algorithm, key, signature, data) {
    this.#brand;
    requireArguments(arguments.length, 4, "verify");
    const state = keyOf(key, "key");
    const signed = sourceBytes(signature, "signature");
    const bytes = sourceBytes(data, "data");
    const normalized = normalize("verify", algorithm);
    permit(state, normalized.name, "verify");
    return algorithmOf(normalized.name).verify(normalized, state, signed, bytes);
  }

  async digest(algorithm, data) {
    this.#brand;
    requireArguments(arguments.length, 2, "digest");
    const bytes = sourceBytes(data, "data");
    return native.digest(normalize("digest", algorithm).name, bytes);
  }

  async generateKey(algorithm, extractable, keyUsages) {
    this.#brand;
    requireArguments(arguments.length, 3, "generateKey");
    const usages = usagesOf(keyUsages);
    const normalized = normalize("generateKey", algorithm);
    const made = algorithmOf(normalized.name).generateKey(normalized, Boolean(extractable), usages);
    if (made.privateKey !== undefined) {
      return { publicKey: keyObject(made.publicKey), privateKey: keyObject(made.privateKey) };
    }
    if (made.usages.length === 0) throw syntaxError("Secret/private CryptoKeys must have at least one usage.");
    return keyObject(made);
  }

  async deriveKey(algorithm, baseKey, derivedKeyType, extractable, keyUsages) {
    this.#brand;
    requireArguments(arguments.length, 5, "deriveKey");
    const base = keyOf(baseKey, "baseKey");
    const usages = usagesOf(keyUsages);
    const derivation = normalize("deriveBits", algorithm);
    const imported = normalize("importKey", derivedKeyType);
    const lengthOf = normalize("get key length", derivedKeyType);
    permit(base, derivation.name, "deriveKey");
    const length = algorithmOf(lengthOf.name).getKeyLength(lengthOf);
    const bits = new Bytes(algorithmOf(derivation.name).deriveBits(derivation, base, length));
    return keyObject(importInto(imported, "raw", bits, Boolean(extractable), usages));
  }

  async deriveBits(algorithm, baseKey, length = null) {
    this.#brand;
    requireArguments(arguments.length, 2, "deriveBits");
    const base = keyOf(baseKey, "baseKey");
    const bits = length === null ? null : integerOf(length, LONG_MAX, "length");
    const normalized = normalize("deriveBits", algorithm);
    permit(base, normalized.name, "deriveBits");
    return algorithmOf(normalized.name).deriveBits(normalized, base, bits);
  }

  async importKey(format, keyData, algorithm, extractable, keyUsages) {
    this.#brand;
    requireArguments(arguments.length, 5, "importKey");
    const kind = formatOf(format);
    const usages = usagesOf(keyUsages);
    const data = keyDataOf(kind, keyData);
    const normalized = normalize("importKey", algorithm);
    return keyObject(importInto(normalized, kind, data, Boolean(extractable), usages));
  }

  async exportKey(format, key) {
    this.#brand;
    requireArguments(arguments.length, 2, "exportKey");
    return exportFrom(formatOf(format), keyOf(key, "key"));
  }

  async wrapKey(format, key, wrappingKey, wrapAlgorithm) {
    this.#brand;
    requireArguments(arguments.length, 4, "wrapKey");
    const kind = formatOf(format);
    const state = keyOf(key, "key");
    const wrapping = keyOf(wrappingKey, "wrappingKey");
    const [operation, normalized] = normalizeWrap("wrapKey", "encrypt", wrapAlgorithm);
    permit(wrapping, normalized.name, "wrapKey");
    const exported = exportFrom(kind, state);
    const bytes = kind === "jwk" ? new Bytes(native.utf8(JSON.stringify(exported))) : new Bytes(exported);
    return algorithmOf(normalized.name)[operation](normalized, wrapping, bytes);
  }

  async unwrapKey(format, wrappedKey, unwrappingKey, unwrapAlgorithm, unwrappedKeyAlgorithm, extractable, keyUsages) {
    this.#brand;
    requireArguments(arguments.length, 7, "unwrapKey");
    const kind = formatOf(format);
    const wrapped = sourceBytes(wrappedKey, "wrappedKey");
    const unwrapping = keyOf(unwrappingKey, "unwrappingKey");
    const usages = usagesOf(keyUsages);
    const [operation, normalized] = normalizeWrap("unwrapKey", "decrypt", unwrapAlgorithm);
    const imported = normalize("importKey", unwrappedKeyAlgorithm);
    permit(unwrapping, normalized.name, "unwrapKey");
    const bytes = new Bytes(algorithmOf(normalized.name)[operation](normalized, unwrapping, wrapped));
    const data = kind === "jwk" ? parsedJwk(bytes) : bytes;
    return keyObject(importInto(imported, kind, data, Boolean(extractable), usages));
  }

  // Of workerd.
  timingSafeEqual(first, second) {
    this.#brand;
    const [a, b] = [sourceBytes(first, "a"), sourceBytes(second, "b")];
    if (a.length !== b.length) throw new TypeError("Input buffers must have the same byte length.");
    return native.equal(a, b);
  }
}

function parsedJwk(bytes) {
  const text = native.fromUtf8(bytes);
  try {
    return jwkOf(JSON.parse(text));
  } catch {
    throw dataError("The unwrapped bytes are not a JWK.");
  }
}

// The class is made when someone asks for it: it is the only thing here that needs streams.
function makeDigestStream() {
  internals.load("writable-streams");
  const { WritableStream } = internals.pipes;
  const digests = new WeakMap();
  return class DigestStream extends WritableStream {
    constructor(algorithm) {
      const { name } = normalize("digest", algorithm);
      const hasher = native.hasher(name);
      const state = { bytes: 0, digest: Promise.withResolvers() };
      // A stream that is aborted and whose digest nobody reads is no unhandled rejection.
      state.digest.promise.catch(() => {});
      super({
        write(chunk) {
          const bytes = typeof chunk === "string" ? new Bytes(native.utf8(chunk.toWellFormed())) : streamBytes(chunk);
          state.bytes += bytes.length;
          hasher.update(bytes);
        },
        close: () => state.digest.resolve(hasher.finish()),
        abort: (reason) => state.digest.reject(reason),
      });
      digests.set(this, state);
    }

    get digest() {
      return digests.get(this).digest.promise;
    }

    get bytesWritten() {
      return BigInt(digests.get(this).bytes);
    }
  };
}

function streamBytes(chunk) {
  if (ArrayBuffer.isView(chunk) || chunk instanceof ArrayBuffer) return sourceBytes(chunk, "chunk");
  throw new TypeError(
    "DigestStream is a byte stream but received an object of non-ArrayBuffer/ArrayBufferView/string type on its writable side.",
  );
}

// Operations and attributes are enumerable and classes carry their name, as Web IDL has it.
function expose({ name, prototype }) {
  for (const key of Object.getOwnPropertyNames(prototype)) {
    if (key !== "constructor") Object.defineProperty(prototype, key, { enumerable: true });
  }
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
}

export default function (natives, shared) {
  native = natives;
  internals = shared;
  DOMException = internals.DOMException ?? globalThis.DOMException;
  internals.keyBase = {
    accepted, accessError, checkJwk, Bytes, dataError, failed, fromBase64Url, jwkFor, makeKey, NO_BYTES,
    notSupported, onlyUsages, operationError, syntaxError, toBase64Url, trimBits,
  };
  for (const of of [CryptoKey, SubtleCrypto]) expose(of);
  internals.subtle = new SubtleCrypto(KEY);
  internals.digestStream = makeDigestStream;
  internals.isCryptoKey = (value) => {
    try {
      return keyOf(value) !== undefined;
    } catch {
      return false;
    }
  };
  return { CryptoKey, SubtleCrypto };
}
