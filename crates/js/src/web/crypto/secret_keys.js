
// ---- Secret keys: HMAC, AES, HKDF, PBKDF2 ----

const bitsToBytes = (bits) => Math.ceil(bits / 8);
const HMAC_BITS_MAX = 65536;
const hmacJwkName = (hash) => `HS${hash.name === "SHA-1" ? "1" : hash.name.slice(4)}`;

function hmacLength({ hash, length }) {
  if (length === undefined) return HASH_BLOCK_BITS[hash.name];
  return length;
}

const hmacAlgorithm = {
  generateKey({ name, hash, length }, extractable, usages) {
    onlyUsages(usages, ["sign", "verify"], "HMAC");
    const bits = hmacLength({ hash, length });
    if (bits === 0 || bits > HMAC_BITS_MAX) throw operationError(`length must be from 1 to ${HMAC_BITS_MAX} bits.`);
    const data = trimBits(new Bytes(native.random(bitsToBytes(bits))), bits);
    return makeKey("secret", extractable, { name, hash, length: bits }, usages, data);
  },
  importKey({ name, hash, length }, format, keyData, extractable, usages) {
    onlyUsages(usages, ["sign", "verify"], "HMAC");
    const bytes = secretBytes(format, keyData, (jwk) =>
      checkJwk(jwk, "oct", "sig", extractable, usages, [hmacJwkName(hash)]));
    const available = bytes.length * 8;
    if (available === 0) throw dataError("An HMAC key must not be empty.");
    const bits = length ?? available;
    if (bits > available || bits <= available - 8) throw dataError("length does not fit the key data.");
    return makeKey("secret", extractable, { name, hash, length: bits }, usages, trimBits(bytes, bits));
  },
  exportKey(format, key) {
    return exportSecret(format, key, hmacJwkName(key.algorithm.hash));
  },
  sign: (parameters, key, data) => native.hmac(key.algorithm.hash.name, key.data, data),
  verify: (parameters, key, signature, data) => native.hmacVerify(key.algorithm.hash.name, key.data, data, signature),
  getKeyLength(parameters) {
    const bits = hmacLength(parameters);
    if (bits === 0) throw new TypeError("length must be over 0");
    return bits;
  },
};

// The bits of the last byte that are over the length are 0.
function trimBits(bytes, bits) {
  const whole = bytes.slice(0, bitsToBytes(bits));
  if (bits % 8 !== 0) whole[whole.length - 1] &= 0xff00 >> bits % 8;
  return whole;
}

function secretBytes(format, keyData, check) {
  if (format === "raw") return keyData;
  if (format !== "jwk") throw notSupported(`A secret key has no format "${format}".`);
  check(keyData);
  return fromBase64Url(keyData, "k");
}

function exportSecret(format, key, alg) {
  if (format === "raw") return key.data.slice().buffer;
  if (format !== "jwk") throw notSupported(`A secret key has no format "${format}".`);
  return jwkFor(key, { kty: "oct", k: toBase64Url(key.data), alg });
}

const AES_BITS = [128, 192, 256];

function aesBits(length, error) {
  if (!AES_BITS.includes(length)) throw error(`Imported AES key length must be 128, 192, or 256 bits but provided ${length}.`);
  return length;
}

function aesAlgorithm(allowed, operations) {
  const jwkName = ({ name, length }) => `A${length}${name.slice(4)}`;
  return {
    generateKey({ name, length }, extractable, usages) {
      onlyUsages(usages, allowed, name);
      const data = new Bytes(native.random(aesBits(length, operationError) / 8));
      return makeKey("secret", extractable, { name, length }, usages, data);
    },
    importKey({ name }, format, keyData, extractable, usages) {
      onlyUsages(usages, allowed, name);
      let bytes;
      if (format === "jwk") {
        checkJwk(keyData, "oct", "enc", extractable, usages);
        bytes = fromBase64Url(keyData, "k");
      } else {
        bytes = secretBytes(format, keyData);
      }
      const length = aesBits(bytes.length * 8, dataError);
      const alg = format === "jwk" ? keyData.alg : undefined;
      if (alg !== undefined && alg !== jwkName({ name, length })) {
        throw dataError(`The JWK's "alg" must be "${jwkName({ name, length })}".`);
      }
      return makeKey("secret", extractable, { name, length }, usages, bytes.slice());
    },
    exportKey: (format, key) => exportSecret(format, key, jwkName(key.algorithm)),
    getKeyLength: ({ length }) => aesBits(length, operationError),
    ...operations,
  };
}

const BLOCK_BYTES = 16;

function blockOf(bytes, what) {
  if (bytes.length !== BLOCK_BYTES) throw operationError(`${what} must be ${BLOCK_BYTES} bytes, not ${bytes.length}.`);
  return bytes;
}

const failed = (what) => () => operationError(`${what} failed.`);
const encryption = ["encrypt", "decrypt", "wrapKey", "unwrapKey"];

const aesCbc = aesAlgorithm(encryption, {
  encrypt: ({ iv }, key, data) => accepted(native.aesCbcEncrypt(key.data, blockOf(iv, "iv"), data), failed("Encryption")).buffer,
  decrypt: ({ iv }, key, data) => accepted(native.aesCbcDecrypt(key.data, blockOf(iv, "iv"), data), failed("Decryption")).buffer,
});

function aesCtrCrypt({ counter, length }, key, data) {
  blockOf(counter, "counter");
  if (length === 0 || length > 128) throw operationError(`length must be from 1 to 128 bits, not ${length}.`);
  const error = () => operationError("The data is longer than the counter can count.");
  return accepted(native.aesCtr(key.data, counter, length, data), error).buffer;
}

const aesCtr = aesAlgorithm(encryption, { encrypt: aesCtrCrypt, decrypt: aesCtrCrypt });

const GCM_TAG_BITS = [32, 64, 96, 104, 112, 120, 128];
const NO_BYTES = new Bytes(0);

function gcmTagBytes({ iv, tagLength = 128 }) {
  if (!GCM_TAG_BITS.includes(tagLength)) throw operationError(`tagLength must be one of ${GCM_TAG_BITS.join(", ")}, not ${tagLength}.`);
  if (iv.length === 0) throw operationError("AES-GCM IV must not be empty.");
  return tagLength / 8;
}

const aesGcm = aesAlgorithm(encryption, {
  encrypt(parameters, key, data) {
    const tagBytes = gcmTagBytes(parameters);
    const { iv, additionalData = NO_BYTES } = parameters;
    return accepted(native.aesGcmEncrypt(key.data, iv, additionalData, tagBytes, data), failed("Encryption")).buffer;
  },
  decrypt(parameters, key, data) {
    const tagBytes = gcmTagBytes(parameters);
    const { iv, additionalData = NO_BYTES } = parameters;
    return accepted(native.aesGcmDecrypt(key.data, iv, additionalData, tagBytes, data), failed("Decryption")).buffer;
  },
});

const aesKw = aesAlgorithm(["wrapKey", "unwrapKey"], {
  wrapKey(parameters, key, data) {
    const error = () => operationError("AES-KW wraps a multiple of 8 bytes, at least 16.");
    return accepted(native.aesWrap(key.data, data), error).buffer;
  },
  unwrapKey: (parameters, key, data) => accepted(native.aesUnwrap(key.data, data), failed("Unwrapping")).buffer,
});

// HKDF and PBKDF2: the secret is a key that goes nowhere.
function derivationAlgorithm(derive) {
  return {
    importKey({ name }, format, keyData, extractable, usages) {
      if (format !== "raw") throw notSupported(`${name} has no format "${format}".`);
      onlyUsages(usages, ["deriveKey", "deriveBits"], name);
      if (extractable) throw syntaxError(`A key of ${name} must not be extractable.`);
      return makeKey("secret", false, { name }, usages, keyData.slice());
    },
    deriveBits(parameters, key, length) {
      if (length === null || length === undefined || length % 8 !== 0) {
        throw operationError(`${parameters.name} derives a multiple of 8 bits.`);
      }
      return derive(parameters, key, length / 8);
    },
    getKeyLength: () => null,
  };
}

const hkdf = derivationAlgorithm(({ hash, salt, info }, key, bytes) => {
  const error = () => operationError(`HKDF with ${hash.name} derives at most ${255 * HASH_BYTES[hash.name]} bytes.`);
  return accepted(native.hkdf(hash.name, key.data, salt, info, bytes), error).buffer;
});

const pbkdf2 = derivationAlgorithm(({ hash, salt, iterations }, key, bytes) => {
  if (iterations === 0) throw operationError(`PBKDF2 requires a positive iteration count (requested ${iterations}).`);
  if (iterations > native.pbkdf2Iterations) {
    throw notSupported(
      `Pbkdf2 failed: iteration counts above ${native.pbkdf2Iterations} are not supported (requested ${iterations}).`,
    );
  }
  const work = iterations * Math.ceil(bytes / HASH_BYTES[hash.name]);
  if (work > native.pbkdf2Work) {
    throw notSupported(
      `Pbkdf2 failed: iterations times blocks of output above ${native.pbkdf2Work} are not supported (requested ${work}).`,
    );
  }
  return accepted(native.pbkdf2(hash.name, key.data, salt, iterations, bytes), failed("PBKDF2")).buffer;
});
