
// ---- Algorithms: names, parameters and what each can do ----

const HASHES = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];
const HASH_BYTES = { "SHA-1": 20, "SHA-256": 32, "SHA-384": 48, "SHA-512": 64 };
const HASH_BLOCK_BITS = { "SHA-1": 512, "SHA-256": 512, "SHA-384": 1024, "SHA-512": 1024 };

// Members of dictionaries. Each takes the value, or throws as Web IDL does.
function requiredOf(dictionary, name, of) {
  const value = dictionary[name];
  if (value === undefined) throw new TypeError(`${of}: the member "${name}" is required`);
  return value;
}

function integerOf(value, max, what) {
  const number = Math.trunc(+value);
  if (!(number >= 0 && number <= max)) throw new TypeError(`${what} must be an integer from 0 to ${max}`);
  return number;
}

const OCTET_MAX = 255;
const SHORT_MAX = 65535;
const LONG_MAX = 4294967295;

function hashOf(dictionary, of) {
  const { name } = normalize("digest", requiredOf(dictionary, "hash", of));
  if (!HASHES.includes(name)) throw notSupported(`${of} does not take the hash ${name}.`);
  return { name };
}

const none = () => ({});
const bytesMember = (dictionary, name, of) => copyBytes(requiredOf(dictionary, name, of), `${of}: ${name}`);
const optionalBytes = (dictionary, name, of) =>
  dictionary[name] === undefined ? undefined : copyBytes(dictionary[name], `${of}: ${name}`);
const optionalInteger = (dictionary, name, max) =>
  dictionary[name] === undefined ? undefined : integerOf(dictionary[name], max, name);
const withHash = (dictionary, of) => ({ hash: hashOf(dictionary, of) });
const withCurve = (dictionary, of) => ({ namedCurve: `${requiredOf(dictionary, "namedCurve", of)}` });
const withLength = (dictionary, of) => ({ length: integerOf(requiredOf(dictionary, "length", of), SHORT_MAX, "length") });
const withPublic = (dictionary, of) => ({ public: keyOf(requiredOf(dictionary, "public", of), `${of}: public`) });

function rsaKeyGen(dictionary, of) {
  const modulusLength = integerOf(requiredOf(dictionary, "modulusLength", of), LONG_MAX, "modulusLength");
  const publicExponent = requiredOf(dictionary, "publicExponent", of);
  if (!(publicExponent instanceof Bytes)) throw new TypeError("publicExponent must be a Uint8Array");
  return { hash: hashOf(dictionary, of), modulusLength, publicExponent: publicExponent.slice() };
}

function hmacParameters(dictionary, of) {
  return { hash: hashOf(dictionary, of), length: optionalInteger(dictionary, "length", LONG_MAX) };
}

function gcmParameters(dictionary, of) {
  return {
    additionalData: optionalBytes(dictionary, "additionalData", of),
    iv: bytesMember(dictionary, "iv", of),
    tagLength: optionalInteger(dictionary, "tagLength", OCTET_MAX),
  };
}

function ctrParameters(dictionary, of) {
  return {
    counter: bytesMember(dictionary, "counter", of),
    length: integerOf(requiredOf(dictionary, "length", of), OCTET_MAX, "length"),
  };
}

function hkdfParameters(dictionary, of) {
  return { hash: hashOf(dictionary, of), info: bytesMember(dictionary, "info", of), salt: bytesMember(dictionary, "salt", of) };
}

function pbkdf2Parameters(dictionary, of) {
  const hash = hashOf(dictionary, of);
  const iterations = integerOf(requiredOf(dictionary, "iterations", of), LONG_MAX, "iterations");
  return { hash, iterations, salt: bytesMember(dictionary, "salt", of) };
}

const cbcParameters = (dictionary, of) => ({ iv: bytesMember(dictionary, "iv", of) });
const oaepParameters = (dictionary, of) => ({ label: optionalBytes(dictionary, "label", of) });
const pssParameters = (dictionary, of) => ({
  saltLength: integerOf(requiredOf(dictionary, "saltLength", of), LONG_MAX, "saltLength"),
});

// For every algorithm the operations that it has, with what reads their parameters.
const rsaSigning = { sign: none, verify: none, generateKey: rsaKeyGen, importKey: withHash, exportKey: none };
const aesWith = (parameters) => ({
  encrypt: parameters,
  decrypt: parameters,
  generateKey: withLength,
  importKey: none,
  exportKey: none,
  "get key length": withLength,
});
const REGISTRY = {
  "RSASSA-PKCS1-v1_5": rsaSigning,
  "RSA-PSS": { ...rsaSigning, sign: pssParameters, verify: pssParameters },
  "RSA-OAEP": { encrypt: oaepParameters, decrypt: oaepParameters, generateKey: rsaKeyGen, importKey: withHash, exportKey: none },
  ECDSA: { sign: withHash, verify: withHash, generateKey: withCurve, importKey: withCurve, exportKey: none },
  ECDH: { generateKey: withCurve, importKey: withCurve, exportKey: none, deriveBits: withPublic },
  Ed25519: { sign: none, verify: none, generateKey: none, importKey: none, exportKey: none },
  X25519: { generateKey: none, importKey: none, exportKey: none, deriveBits: withPublic },
  "AES-CTR": aesWith(ctrParameters),
  "AES-CBC": aesWith(cbcParameters),
  "AES-GCM": aesWith(gcmParameters),
  "AES-KW": {
    wrapKey: none,
    unwrapKey: none,
    generateKey: withLength,
    importKey: none,
    exportKey: none,
    "get key length": withLength,
  },
  HMAC: {
    sign: none,
    verify: none,
    generateKey: hmacParameters,
    importKey: hmacParameters,
    exportKey: none,
    "get key length": hmacParameters,
  },
  HKDF: { importKey: none, deriveBits: hkdfParameters, "get key length": none },
  PBKDF2: { importKey: none, deriveBits: pbkdf2Parameters, "get key length": none },
  "SHA-1": { digest: none },
  "SHA-256": { digest: none },
  "SHA-384": { digest: none },
  "SHA-512": { digest: none },
  // Of workerd, for digests alone.
  MD5: { digest: none },
};
const NAMES = new Map(Object.keys(REGISTRY).map((name) => [name.toLowerCase(), name]));

// "Normalize an algorithm": { name, … } with the parameters of `operation`.
function normalize(operation, algorithm) {
  const dictionary = typeof algorithm === "string" ? { name: algorithm } : algorithm;
  if ((typeof dictionary !== "object" && typeof dictionary !== "function") || dictionary === null) {
    throw new TypeError("An algorithm must be a string or an object");
  }
  const given = `${requiredOf(dictionary, "name", "algorithm")}`;
  const name = NAMES.get(given.toLowerCase());
  const parameters = name === undefined ? undefined : REGISTRY[name][operation];
  if (parameters === undefined) {
    if (operation === "digest") throw notSupported("Unrecognized or unimplemented digest algorithm requested.");
    throw notSupported(`Unrecognized or unimplemented algorithm "${given}" for the operation "${operation}".`);
  }
  return { name, ...parameters(dictionary, name) };
}
