// `crypto`: random values, and the door to `crypto.subtle`, whose part is loaded when that is first read.

const RANDOM_BYTES_MAX = 65536;
const integerArrays = new Set([
  "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
  "BigInt64Array", "BigUint64Array",
]);
const typedArrayName = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
).get;

// Operations and attributes are enumerable and classes carry their name, as Web IDL has it.
function expose({ name, prototype }) {
  for (const key of Object.getOwnPropertyNames(prototype)) {
    if (key !== "constructor") Object.defineProperty(prototype, key, { enumerable: true });
  }
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
}

export default function (native, internals) {
  // The one that a handler cannot have replaced, where it is kept.
  const DOMException = internals.DOMException ?? globalThis.DOMException;
  const KEY = Symbol("internal construction");
  let digestStream;

  class Crypto {
    #brand = true;

    constructor(key) {
      if (key !== KEY) throw new TypeError("Illegal constructor");
    }

    get subtle() {
      this.#brand;
      internals.load("subtle");
      return internals.subtle;
    }

    getRandomValues(array) {
      this.#brand;
      const isView = ArrayBuffer.isView(array);
      if (!isView) throw new TypeError("Failed to execute 'getRandomValues' on 'Crypto': parameter 1 is not of type 'ArrayBufferView'.");
      if (!integerArrays.has(typedArrayName.call(array))) {
        throw new DOMException("ArrayBufferView argument to getRandomValues() must be an integer-typed view.", "TypeMismatchError");
      }
      const { byteLength } = array;
      if (byteLength > RANDOM_BYTES_MAX) {
        throw new DOMException(
          `getRandomValues() only accepts buffers of size <= 64K but provided ${byteLength} bytes.`,
          "QuotaExceededError",
        );
      }
      new Uint8Array(array.buffer, array.byteOffset, byteLength).set(new Uint8Array(native.random(byteLength)));
      return array;
    }

    randomUUID() {
      this.#brand;
      return native.uuid();
    }

    // Of workerd: a WritableStream whose `digest` is the hash of what was written.
    get DigestStream() {
      this.#brand;
      internals.load("subtle");
      return (digestStream ??= internals.digestStream());
    }
  }

  expose(Crypto);
  return { Crypto, crypto: new Crypto(KEY) };
}
