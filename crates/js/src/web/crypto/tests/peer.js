// What one side makes and the other checks: keys in every format, signatures, ciphertexts, derived bits. Both functions
// run unchanged in an isolate and in Node.

const { subtle } = crypto;
const text = "What one side signs, the other verifies.";
const data = Uint8Array.from(text, (character) => character.charCodeAt(0));
const toHex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const fromHex = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const serial = (exported) => (exported instanceof ArrayBuffer ? { hex: toHex(exported) } : { jwk: exported });
const parsed = (value) => (value.hex === undefined ? value.jwk : fromHex(value.hex));

const HASHES = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];
const CURVES = ["P-256", "P-384", "P-521"];
const exponent = [1, 0, 1];

function signatures() {
  const list = [["Ed25519", { name: "Ed25519" }, { name: "Ed25519" }]];
  for (const hash of HASHES) {
    for (const namedCurve of CURVES) list.push([`ECDSA ${namedCurve} ${hash}`, { name: "ECDSA", namedCurve }, { name: "ECDSA", hash }]);
    list.push([`PKCS1 ${hash}`, { name: "RSASSA-PKCS1-v1_5", hash, modulusLength: 2048 }, { name: "RSASSA-PKCS1-v1_5" }]);
    for (const saltLength of [0, 20, 32]) {
      list.push([`PSS ${hash} ${saltLength}`, { name: "RSA-PSS", hash, modulusLength: 2048 }, { name: "RSA-PSS", saltLength }]);
    }
  }
  return list;
}

const generated = (algorithm) => (algorithm.modulusLength ? { ...algorithm, publicExponent: Uint8Array.from(exponent) } : algorithm);
// One RSA key serves all schemes: a key takes its time.
let rsaKey;

async function pairFor(algorithm, usages) {
  if (algorithm.modulusLength === undefined) return subtle.generateKey(algorithm, true, usages);
  if (rsaKey === undefined) {
    const made = await subtle.generateKey(generated({ ...algorithm, name: "RSA-PSS" }), true, ["sign", "verify"]);
    rsaKey = { private: await subtle.exportKey("pkcs8", made.privateKey), public: await subtle.exportKey("spki", made.publicKey) };
  }
  const privateUsages = usages.filter((usage) => usage === "sign" || usage === "decrypt");
  const publicUsages = usages.filter((usage) => usage === "verify" || usage === "encrypt");
  return {
    privateKey: await subtle.importKey("pkcs8", rsaKey.private, algorithm, true, privateUsages),
    publicKey: await subtle.importKey("spki", rsaKey.public, algorithm, true, publicUsages),
  };
}

async function exportedPair(pair, hasRaw) {
  const exported = { private: {}, public: {} };
  for (const format of ["pkcs8", "jwk"]) exported.private[format] = serial(await subtle.exportKey(format, pair.privateKey));
  for (const format of hasRaw ? ["spki", "jwk", "raw"] : ["spki", "jwk"]) {
    exported.public[format] = serial(await subtle.exportKey(format, pair.publicKey));
  }
  return exported;
}

async function makeSignatures(vectors) {
  for (const [name, algorithm, how] of signatures()) {
    const pair = await pairFor(algorithm, ["sign", "verify"]);
    const keys = await exportedPair(pair, algorithm.modulusLength === undefined);
    vectors.push({ kind: "signature", name, algorithm, how, keys, signature: toHex(await subtle.sign(how, pair.privateKey, data)) });
  }
  for (const hash of HASHES) {
    const key = await subtle.generateKey({ name: "HMAC", hash }, true, ["sign", "verify"]);
    const jwk = await subtle.exportKey("jwk", key);
    vectors.push({ kind: "mac", name: `HMAC ${hash}`, algorithm: { name: "HMAC", hash }, jwk, signature: toHex(await subtle.sign("HMAC", key, data)) });
  }
}

function ciphers() {
  const list = [];
  for (const length of [128, 192, 256]) {
    list.push([{ name: "AES-CBC", length }, { iv: "000102030405060708090a0b0c0d0e0f" }]);
    for (const bits of [8, 64, 128]) list.push([{ name: "AES-CTR", length }, { counter: "ffffffffffffffffffffffffffffffff", length: bits }]);
    for (const iv of ["00".repeat(16), "000102030405060708090a0b", "00".repeat(40)]) {
      for (const tagLength of [32, 96, 128]) list.push([{ name: "AES-GCM", length }, { iv, additionalData: "0102", tagLength }]);
    }
  }
  return list;
}

const cipherHow = (name, { iv, counter, additionalData, ...rest }) => ({
  name,
  ...rest,
  ...(iv !== undefined && { iv: fromHex(iv) }),
  ...(counter !== undefined && { counter: fromHex(counter) }),
  ...(additionalData !== undefined && { additionalData: fromHex(additionalData) }),
});

async function makeCiphertexts(vectors) {
  for (const [algorithm, how] of ciphers()) {
    const key = await subtle.generateKey(algorithm, true, ["encrypt", "decrypt"]);
    const sealed = toHex(await subtle.encrypt(cipherHow(algorithm.name, how), key, data));
    const name = `${algorithm.name} ${algorithm.length} ${JSON.stringify(how)}`;
    vectors.push({ kind: "cipher", name, algorithm, how, jwk: await subtle.exportKey("jwk", key), sealed });
  }
  for (const hash of HASHES) {
    for (const label of ["", "0102"]) {
      const algorithm = { name: "RSA-OAEP", hash, modulusLength: 2048 };
      const pair = await pairFor(algorithm, ["encrypt", "decrypt"]);
      const how = { name: "RSA-OAEP", label: fromHex(label) };
      const sealed = toHex(await subtle.encrypt(how, pair.publicKey, data));
      vectors.push({ kind: "oaep", name: `RSA-OAEP ${hash} ${label}`, algorithm, label, keys: await exportedPair(pair, false), sealed });
    }
  }
  for (const length of [128, 192, 256]) {
    const wrapping = await subtle.generateKey({ name: "AES-KW", length }, true, ["wrapKey", "unwrapKey"]);
    const key = await subtle.generateKey({ name: "AES-CBC", length: 256 }, true, ["encrypt"]);
    const wrapped = toHex(await subtle.wrapKey("raw", key, wrapping, "AES-KW"));
    const raw = toHex(await subtle.exportKey("raw", key));
    vectors.push({ kind: "wrap", name: `AES-KW ${length}`, jwk: await subtle.exportKey("jwk", wrapping), wrapped, raw });
  }
}

async function derived(hash) {
  const salt = fromHex("0102030405060708");
  const hkdf = await subtle.importKey("raw", data, "HKDF", false, ["deriveBits"]);
  const pbkdf2 = await subtle.importKey("raw", data, "PBKDF2", false, ["deriveBits"]);
  return [
    toHex(await subtle.deriveBits({ name: "HKDF", hash, salt, info: fromHex("0a0b") }, hkdf, 4096)),
    toHex(await subtle.deriveBits({ name: "PBKDF2", hash, salt, iterations: 1000 }, pbkdf2, 1024)),
    toHex(await subtle.digest(hash, data)),
  ];
}

async function makeDerivations(vectors) {
  for (const hash of HASHES) vectors.push({ kind: "derivation", name: `HKDF, PBKDF2, digest ${hash}`, hash, expected: await derived(hash) });
  const agreements = CURVES.map((namedCurve) => ({ name: "ECDH", namedCurve }));
  for (const algorithm of [...agreements, { name: "X25519" }]) {
    const mine = await subtle.generateKey(algorithm, true, ["deriveBits"]);
    const theirs = await subtle.generateKey(algorithm, true, ["deriveBits"]);
    const bits = algorithm.namedCurve === "P-521" ? 528 : algorithm.namedCurve === "P-384" ? 384 : 256;
    const secret = await subtle.deriveBits({ name: algorithm.name, public: theirs.publicKey }, mine.privateKey, bits);
    const name = `${algorithm.name} ${algorithm.namedCurve ?? ""}`;
    const keys = [await exportedPair(mine, true), await exportedPair(theirs, true)];
    vectors.push({ kind: "agreement", name, algorithm, bits, mine: keys[0], theirs: keys[1], secret: toHex(secret) });
  }
}

async function makeAll() {
  const vectors = [];
  await makeSignatures(vectors);
  await makeCiphertexts(vectors);
  await makeDerivations(vectors);
  return JSON.stringify(vectors);
}

const MEMBERS = ["x", "y", "d", "n", "e", "p", "q", "dp", "dq", "qi", "crv", "kty"];

async function everyFormat(keys, algorithm, usages, use) {
  for (const [format, value] of Object.entries(keys)) {
    const key = await subtle.importKey(format, parsed(value), algorithm, true, usages);
    await use(key, format);
    const again = serial(await subtle.exportKey(format, key));
    // Older Nodes give the keys of Curve25519 no `alg`.
    const members = algorithm.name === "Ed25519" ? MEMBERS : ["alg", ...MEMBERS];
    const isSame = value.hex === undefined ? members.every((name) => value.jwk[name] === again.jwk[name]) : value.hex === again.hex;
    if (!isSame) throw new Error(`${format} is exported differently: ${JSON.stringify(value)} ${JSON.stringify(again)}`);
  }
}

function expect(is, wanted, what) {
  if (is !== wanted) throw new Error(`${what}: ${is} instead of ${wanted}`);
}

const checks = {
  async signature({ algorithm, how, keys, signature }) {
    await everyFormat(keys.public, algorithm, ["verify"], async (key, format) => {
      expect(await subtle.verify(how, key, fromHex(signature), data), true, `verified by ${format}`);
      expect(await subtle.verify(how, key, fromHex(signature), data.slice(1)), false, `another text by ${format}`);
    });
    const verifier = await subtle.importKey("spki", parsed(keys.public.spki), algorithm, true, ["verify"]);
    await everyFormat(keys.private, algorithm, ["sign"], async (key, format) => {
      expect(await subtle.verify(how, verifier, await subtle.sign(how, key, data), data), true, `signed again by ${format}`);
    });
  },
  async mac({ algorithm, jwk, signature }) {
    const key = await subtle.importKey("jwk", jwk, algorithm, true, ["sign", "verify"]);
    expect(toHex(await subtle.sign("HMAC", key, data)), signature, "the signature");
  },
  async cipher({ algorithm, how, jwk, sealed }) {
    const key = await subtle.importKey("jwk", jwk, algorithm, true, ["encrypt", "decrypt"]);
    const parameters = cipherHow(algorithm.name, how);
    expect(toHex(await subtle.encrypt(parameters, key, data)), sealed, "the ciphertext");
    expect(toHex(await subtle.decrypt(parameters, key, fromHex(sealed))), toHex(data), "the text");
  },
  async oaep({ algorithm, label, keys, sealed }) {
    await everyFormat(keys.private, algorithm, ["decrypt"], async (key, format) => {
      const opened = await subtle.decrypt({ name: "RSA-OAEP", label: fromHex(label) }, key, fromHex(sealed));
      expect(toHex(opened), toHex(data), `the text by ${format}`);
    });
  },
  async wrap({ jwk, wrapped, raw }) {
    const wrapping = await subtle.importKey("jwk", jwk, "AES-KW", true, ["wrapKey", "unwrapKey"]);
    const key = await subtle.unwrapKey("raw", fromHex(wrapped), wrapping, "AES-KW", "AES-CBC", true, ["encrypt"]);
    expect(toHex(await subtle.exportKey("raw", key)), raw, "the key");
    expect(toHex(await subtle.wrapKey("raw", key, wrapping, "AES-KW")), wrapped, "the wrapped key");
  },
  async derivation({ hash, expected }) {
    expect(JSON.stringify(await derived(hash)), JSON.stringify(expected), "what is derived");
  },
  async agreement({ algorithm, bits, mine, theirs, secret }) {
    await everyFormat(theirs.public, algorithm, [], async (publicKey, publicFormat) => {
      await everyFormat(mine.private, algorithm, ["deriveBits"], async (privateKey, format) => {
        const agreed = await subtle.deriveBits({ name: algorithm.name, public: publicKey }, privateKey, bits);
        expect(toHex(agreed), secret, `the secret by ${publicFormat} and ${format}`);
      });
    });
  },
};

async function checkAll(vectors) {
  const failures = [];
  for (const vector of JSON.parse(vectors)) {
    try {
      await checks[vector.kind](vector);
    } catch (error) {
      failures.push(`${vector.name}: ${error}`);
    }
  }
  return `${JSON.parse(vectors).length} checked, failed: ${failures.join("; ") || "none"}`;
}
