// Key pairs: RSA, the NIST curves, Curve25519. A module of its own (see key.js), loaded when an algorithm of these is
// first used.

let native;
let accepted, accessError, checkJwk, Bytes, dataError, failed, fromBase64Url, jwkFor, makeKey, NO_BYTES,
  notSupported, onlyUsages, operationError, syntaxError, toBase64Url, trimBits;

function pairOf(privateKey, publicKey) {
  if (privateKey.usages.length === 0) throw syntaxError("Secret/private CryptoKeys must have at least one usage.");
  return { publicKey, privateKey };
}

const common = (usages, allowed) => usages.filter((usage) => allowed.includes(usage));

function needType(key, type) {
  if (key.type !== type) throw accessError(`The key must be a ${type} key, not a ${key.type} one.`);
}

const noFormat = (name, format) => notSupported(`${name} has no format "${format}".`);
const badKey = (format) => () => dataError(`The key is not valid ${format} for this algorithm.`);

// RSA. `publicUsages`, `privateUsages`; `jwkName(hash)`.
function rsaAlgorithm(publicUsages, privateUsages, jwkName, operations) {
  const describe = (name, hash, data, type) => {
    const numbers = type === "public" ? native.rsaPublicNumbers(data) : native.rsaPrivateNumbers(data);
    if (numbers === undefined) throw badKey("RSA")();
    const [n, e] = numbers;
    return { name, modulusLength: n.length * 8 - Math.clz32(n[0]) + 24, publicExponent: e, hash };
  };
  const make = (type, name, hash, extractable, usages, data) =>
    makeKey(type, extractable, describe(name, hash, data, type), usages, data);

  function importJwk(jwk, hash, extractable, usages) {
    const use = publicUsages.includes("verify") ? "sig" : "enc";
    const isPrivate = jwk.d !== undefined;
    onlyUsages(usages, isPrivate ? privateUsages : publicUsages, isPrivate ? "private" : "public");
    checkJwk(jwk, "RSA", use, extractable, usages, [jwkName(hash)]);
    const numbers = (names) => names.map((name) => fromBase64Url(jwk, name));
    if (!isPrivate) return ["public", accepted(native.rsaFromPublicNumbers(...numbers(["n", "e"])), badKey("JWK"))];
    if (jwk.oth !== undefined) throw notSupported("RSA keys of more than two primes are not supported.");
    numbers(["dp", "dq", "qi"]);
    return ["private", accepted(native.rsaFromPrivateNumbers(...numbers(["n", "e", "d", "p", "q"])), badKey("JWK"))];
  }

  return {
    generateKey({ name, modulusLength, publicExponent, hash }, extractable, usages) {
      onlyUsages(usages, [...publicUsages, ...privateUsages], name);
      if (modulusLength < native.rsaBitsMin || modulusLength > native.rsaGenerateBitsMax || modulusLength % 8 !== 0) {
        throw operationError(
          `modulusLength must be a multiple of 8 from ${native.rsaBitsMin} to ${native.rsaGenerateBitsMax} to generate a key, not ${modulusLength}.`,
        );
      }
      const exponent = publicExponent.reduce((sum, byte) => sum * 256 + byte, 0);
      if (exponent !== 3 && exponent !== 65537) throw operationError(`The "publicExponent" must be either 3 or 65537, but got ${exponent}.`);
      const data = accepted(native.rsaGenerate(modulusLength, exponent), failed("The generation of the key"));
      const privateKey = make("private", name, hash, extractable, common(usages, privateUsages), data);
      const publicData = accepted(native.rsaPublicOf(data), badKey("RSA"));
      return pairOf(privateKey, make("public", name, hash, true, common(usages, publicUsages), publicData));
    },
    importKey({ name, hash }, format, keyData, extractable, usages) {
      if (format === "spki") {
        onlyUsages(usages, publicUsages, "public");
        const data = accepted(native.rsaFromSpki(keyData), badKey("SubjectPublicKeyInfo"));
        return make("public", name, hash, extractable, usages, data);
      }
      if (format === "pkcs8") {
        onlyUsages(usages, privateUsages, "private");
        return make("private", name, hash, extractable, usages, accepted(native.rsaFromPkcs8(keyData), badKey("PKCS #8")));
      }
      if (format !== "jwk") throw noFormat(name, format);
      const [type, data] = importJwk(keyData, hash, extractable, usages);
      return make(type, name, hash, extractable, usages, data);
    },
    exportKey(format, key) {
      if (format === "spki" || format === "pkcs8") {
        needType(key, format === "spki" ? "public" : "private");
        return key.data.slice().buffer;
      }
      if (format !== "jwk") throw noFormat(key.algorithm.name, format);
      const numbers = key.type === "public" ? native.rsaPublicNumbers(key.data) : native.rsaPrivateNumbers(key.data);
      const [n, e, d, p, q, dp, dq, qi] = numbers.map(toBase64Url);
      const alg = jwkName(key.algorithm.hash);
      if (key.type === "public") return jwkFor(key, { kty: "RSA", alg, n, e });
      return jwkFor(key, { kty: "RSA", alg, n, e, d, p, q, dp, dq, qi });
    },
    ...operations,
  };
}

// `saltLength` is undefined for PKCS #1 v1.5.
const rsaSignatures = {
  sign({ saltLength }, key, data) {
    needType(key, "private");
    return accepted(native.rsaSign(key.data, key.algorithm.hash.name, saltLength, data), failed("Signing")).buffer;
  },
  verify({ saltLength }, key, signature, data) {
    needType(key, "public");
    return native.rsaVerify(key.data, key.algorithm.hash.name, saltLength, data, signature);
  },
};

const rsaPkcs1 = rsaAlgorithm(["verify"], ["sign"], ({ name }) => `RS${name.slice(4)}`, rsaSignatures);
const rsaPss = rsaAlgorithm(["verify"], ["sign"], ({ name }) => `PS${name.slice(4)}`, rsaSignatures);
const oaepJwkName = ({ name }) => (name === "SHA-1" ? "RSA-OAEP" : `RSA-OAEP-${name.slice(4)}`);
const rsaOaep = rsaAlgorithm(["encrypt", "wrapKey"], ["decrypt", "unwrapKey"], oaepJwkName, {
  encrypt({ label = NO_BYTES }, key, data) {
    needType(key, "public");
    return accepted(native.rsaEncrypt(key.data, key.algorithm.hash.name, label, data), failed("Encryption")).buffer;
  },
  decrypt({ label = NO_BYTES }, key, data) {
    needType(key, "private");
    return accepted(native.rsaDecrypt(key.data, key.algorithm.hash.name, label, data), failed("Decryption")).buffer;
  },
});

// Curves. `codec` has what the natives of the NIST curves and of Curve25519 name differently:
// publicOf(kind, d), fromPkcs8, toPkcs8, fromSpki, toSpki of (kind, bytes).
function curveAlgorithm(codec, publicUsages, privateUsages, operations) {
  const describe = (parameters) => codec.describe(parameters);
  return {
    generateKey(parameters, extractable, usages) {
      const kind = codec.kindOf(parameters);
      onlyUsages(usages, [...publicUsages, ...privateUsages], parameters.name);
      const data = codec.generate(kind);
      const publicData = accepted(codec.publicOf(kind, data), failed("The generation of the key"));
      const privateKey = makeKey("private", extractable, describe(parameters), common(usages, privateUsages), data);
      return pairOf(privateKey, makeKey("public", true, describe(parameters), common(usages, publicUsages), publicData));
    },
    importKey(parameters, format, keyData, extractable, usages) {
      const kind = codec.kindOf(parameters);
      const make = (type, data) => makeKey(type, extractable, describe(parameters), usages, data);
      switch (format) {
        case "raw":
          onlyUsages(usages, publicUsages, "public");
          return make("public", accepted(codec.fromRaw(kind, keyData), badKey("raw data")));
        case "spki":
          onlyUsages(usages, publicUsages, "public");
          return make("public", accepted(codec.fromSpki(kind, keyData), badKey("SubjectPublicKeyInfo")));
        case "pkcs8":
          onlyUsages(usages, privateUsages, "private");
          return make("private", accepted(codec.fromPkcs8(kind, keyData), badKey("PKCS #8")));
        case "jwk": {
          const type = keyData.d === undefined ? "public" : "private";
          onlyUsages(usages, type === "public" ? publicUsages : privateUsages, type);
          const use = publicUsages.includes("verify") ? "sig" : "enc";
          checkJwk(keyData, codec.kty, use, extractable, usages, codec.jwkNames(parameters));
          if (keyData.crv !== kind) throw dataError(`The JWK's "crv" must be "${kind}".`);
          const publicData = codec.publicFromJwk(kind, keyData);
          if (type === "public") return make(type, publicData);
          const data = fromBase64Url(keyData, "d");
          const expected = accepted(codec.publicOf(kind, data), badKey("JWK"));
          if (expected.length !== publicData.length || !native.equal(expected, publicData)) {
            throw dataError("The private and the public part of the JWK do not belong together.");
          }
          return make(type, data);
        }
        default:
          throw noFormat(parameters.name, format);
      }
    },
    exportKey(format, key) {
      const kind = codec.kindOf(key.algorithm);
      if (format === "raw" || format === "spki") needType(key, "public");
      if (format === "pkcs8") needType(key, "private");
      if (format === "raw") return key.data.slice().buffer;
      if (format === "spki") return accepted(codec.toSpki(kind, key.data), failed("The export")).buffer;
      if (format === "pkcs8") return accepted(codec.toPkcs8(kind, key.data), failed("The export")).buffer;
      if (format !== "jwk") throw noFormat(key.algorithm.name, format);
      const publicData = key.type === "public" ? key.data : accepted(codec.publicOf(kind, key.data), failed("The export"));
      const members = { kty: codec.kty, crv: kind, ...codec.publicToJwk(kind, publicData) };
      if (key.type === "private") members.d = toBase64Url(key.data);
      if (kind === "Ed25519") members.alg = "EdDSA";
      return jwkFor(key, members);
    },
    ...operations,
  };
}

const CURVE_BYTES = { "P-256": 32, "P-384": 48, "P-521": 66 };
const ECDSA_JWK = { "P-256": "ES256", "P-384": "ES384", "P-521": "ES512" };

const nistCodec = (jwkNames) => ({
  kty: "EC",
  describe: ({ name, namedCurve }) => ({ name, namedCurve }),
  kindOf({ namedCurve }) {
    if (!Object.hasOwn(CURVE_BYTES, namedCurve)) throw notSupported(`Unrecognized or unimplemented EC curve "${namedCurve}" requested.`);
    return namedCurve;
  },
  jwkNames,
  generate: (kind) => accepted(native.ecGenerate(kind), failed("The generation of the key")),
  publicOf: native.ecPublicOf,
  fromRaw: native.ecImportPoint,
  fromSpki: native.ecFromSpki,
  toSpki: native.ecToSpki,
  fromPkcs8: native.ecFromPkcs8,
  toPkcs8: native.ecToPkcs8,
  publicFromJwk(kind, jwk) {
    const [x, y] = [fromBase64Url(jwk, "x"), fromBase64Url(jwk, "y")];
    const bytes = CURVE_BYTES[kind];
    if (x.length !== bytes || y.length !== bytes) throw dataError(`"x" and "y" of the JWK must be ${bytes} bytes each.`);
    const point = new Bytes(1 + 2 * bytes);
    point[0] = 4;
    point.set(x, 1);
    point.set(y, 1 + bytes);
    return accepted(native.ecImportPoint(kind, point), badKey("JWK"));
  },
  publicToJwk(kind, point) {
    const bytes = CURVE_BYTES[kind];
    return { x: toBase64Url(point.slice(1, 1 + bytes)), y: toBase64Url(point.slice(1 + bytes)) };
  },
});

const octetCodec = (jwkNames) => ({
  kty: "OKP",
  describe: ({ name }) => ({ name }),
  kindOf: ({ name }) => name,
  jwkNames,
  generate: () => new Bytes(native.random(32)),
  publicOf: native.okpPublicOf,
  fromRaw: (kind, bytes) => (bytes.length === 32 ? bytes.slice().buffer : undefined),
  fromSpki: native.okpFromSpki,
  toSpki: native.okpToSpki,
  fromPkcs8: native.okpFromPkcs8,
  toPkcs8: native.okpToPkcs8,
  publicFromJwk(kind, jwk) {
    const x = fromBase64Url(jwk, "x");
    if (x.length !== 32) throw dataError('"x" of the JWK must be 32 bytes.');
    return x;
  },
  publicToJwk: (kind, bytes) => ({ x: toBase64Url(bytes) }),
});

// A secret that two keys agree on, cut to the bits asked for.
function agreement(agree) {
  return (parameters, key, length) => {
    const { public: publicKey, name } = parameters;
    needType(key, "private");
    needType(publicKey, "public");
    if (publicKey.algorithm.name !== name) throw accessError("The public key is of another algorithm.");
    if (publicKey.algorithm.namedCurve !== key.algorithm.namedCurve) throw accessError("The public key is of another curve.");
    const secret = accepted(agree(key, publicKey), failed("The agreement"));
    if (length === null || length === undefined) return secret.buffer;
    if (length > secret.length * 8) throw operationError(`The secret has ${secret.length * 8} bits, fewer than ${length}.`);
    return trimBits(secret, length).buffer;
  };
}

// By name; the algorithms of curves take natives, which are there by then.
function makeAlgorithms() {
  const ecdsa = curveAlgorithm(nistCodec(({ namedCurve }) => [ECDSA_JWK[namedCurve]]), ["verify"], ["sign"], {
    sign({ hash }, key, data) {
      needType(key, "private");
      return accepted(native.ecdsaSign(key.algorithm.namedCurve, key.data, hash.name, data), failed("Signing")).buffer;
    },
    verify({ hash }, key, signature, data) {
      needType(key, "public");
      return native.ecdsaVerify(key.algorithm.namedCurve, key.data, hash.name, data, signature);
    },
  });
  const ecdh = curveAlgorithm(nistCodec(() => undefined), [], ["deriveKey", "deriveBits"], {
    deriveBits: agreement((key, other) => native.ecdh(key.algorithm.namedCurve, key.data, other.data)),
  });
  const ed25519 = curveAlgorithm(octetCodec(() => ["EdDSA", "Ed25519"]), ["verify"], ["sign"], {
    sign(parameters, key, data) {
      needType(key, "private");
      return accepted(native.ed25519Sign(key.data, data), failed("Signing")).buffer;
    },
    verify(parameters, key, signature, data) {
      needType(key, "public");
      return native.ed25519Verify(key.data, data, signature);
    },
  });
  const x25519 = curveAlgorithm(octetCodec(() => undefined), [], ["deriveKey", "deriveBits"], {
    deriveBits: agreement((key, other) => native.x25519(key.data, other.data)),
  });
  return {
    "RSASSA-PKCS1-v1_5": rsaPkcs1,
    "RSA-PSS": rsaPss,
    "RSA-OAEP": rsaOaep,
    ECDSA: ecdsa,
    ECDH: ecdh,
    Ed25519: ed25519,
    X25519: x25519,
  };
}

export default function (natives, internals) {
  native = natives;
  ({
    accepted, accessError, checkJwk, Bytes, dataError, failed, fromBase64Url, jwkFor, makeKey, NO_BYTES,
    notSupported, onlyUsages, operationError, syntaxError, toBase64Url, trimBits,
  } = internals.keyBase);
  internals.keyPairs = makeAlgorithms();
}
