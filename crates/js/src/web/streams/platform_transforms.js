// Queuing strategies and the transform streams that the platform has: the third of the modules (see base.js).

let internals;
let natives;
let TransformState;
let Bytes, bytesOf, enforceRange, expose, highWaterMarkOf, illegalInvocation, promiseCall, resolved, sizeOne,
  strategyOf;

// ---- Transform streams that are made here ----

// `make` gets the state and answers { transform(chunk), flush(), cancel(reason) }, which may throw.
function ownTransform(make, { isByte = false, writable, readable } = {}) {
  const algorithms = {};
  const state = new TransformState(
    {
      transform: (chunk) => promiseCall(algorithms.transform, undefined, chunk),
      flush: () => (algorithms.flush === undefined ? resolved() : promiseCall(algorithms.flush)),
      cancel: (reason) => (algorithms.cancel === undefined ? resolved() : promiseCall(algorithms.cancel, undefined, reason)),
    },
    { highWaterMark: 1, size: sizeOne, ...writable },
    { highWaterMark: 0, size: sizeOne, ...readable },
    isByte,
  );
  Object.assign(algorithms, make(state));
  state.begin(() => (algorithms.start === undefined ? undefined : algorithms.start()));
  return state;
}

// Puts the state of a transform on an object, as a private field of a class that handlers cannot reach: so the classes
// below have no parent whose constructor a handler could replace.
const itself = function (object) {
  return object;
};
let transformOf;

class Stamp extends itself {
  #transform;
  static {
    transformOf = (object) => {
      if (typeof object !== "object" || object === null || !(#transform in object)) throw illegalInvocation();
      return object.#transform;
    };
  }

  constructor(object, transform) {
    super(object);
    this.#transform = transform;
  }
}

// The mixin GenericTransformStream.
const genericTransform = Object.getOwnPropertyDescriptors({
  get readable() {
    return transformOf(this).readable.object;
  },
  get writable() {
    return transformOf(this).writable.object;
  },
});

// ---- Queuing strategies ----

function highWaterMarkOption(init, name) {
  if (typeof init !== "object" && typeof init !== "function" || init === null) {
    throw new TypeError(`${name} takes an object with highWaterMark`);
  }
  const { highWaterMark } = init;
  if (highWaterMark === undefined) throw new TypeError(`${name}: highWaterMark is required`);
  return +highWaterMark;
}

// One function for all strategies of an isolate, as the standard has it.
const byteLengthSize = { size: (chunk) => chunk.byteLength }.size;
const countSize = { size: () => 1 }.size;

class ByteLengthQueuingStrategy {
  #highWaterMark;

  constructor(init) {
    this.#highWaterMark = highWaterMarkOption(init, "ByteLengthQueuingStrategy");
  }

  get highWaterMark() {
    return this.#highWaterMark;
  }

  get size() {
    this.#highWaterMark;
    return byteLengthSize;
  }
}

class CountQueuingStrategy {
  #highWaterMark;

  constructor(init) {
    this.#highWaterMark = highWaterMarkOption(init, "CountQueuingStrategy");
  }

  get highWaterMark() {
    return this.#highWaterMark;
  }

  get size() {
    this.#highWaterMark;
    return countSize;
  }
}

// ---- Bytes as they are ----

const NOT_BYTES =
  "This TransformStream is being used as a byte stream, but received an object of non-ArrayBuffer/ArrayBufferView type on its writable side.";
// The bytes of a chunk; as in workerd a string is its UTF-8.
function chunkBytes(chunk) {
  if (typeof chunk === "string") return utf8(chunk);
  const bytes = bytesOf(chunk);
  if (bytes === undefined) throw new TypeError(NOT_BYTES);
  return bytes;
}

const utf8 = (text) => new Bytes(natives.utf8(text.toWellFormed()));

function identityTransform(expected, writable) {
  const make = (state) => {
    let left = expected;
    return {
      transform(chunk) {
        const bytes = chunkBytes(chunk);
        if (left !== undefined && bytes.length > left) {
          throw new TypeError("Attempt to write too many bytes through a FixedLengthStream.");
        }
        if (left !== undefined) left -= bytes.length;
        if (bytes.length === 0) return undefined;
        state.enqueue(bytes.slice());
        // A write ends when all of it has been read.
        return state.readableController.drainPromise;
      },
      flush() {
        if (left > 0) throw new TypeError("FixedLengthStream did not see all expected bytes before close().");
      },
    };
  };
  const state = ownTransform(make, { isByte: true, writable });
  state.readable.length = expected;
  return state;
}

// Of workerd: bytes go through as they are, and a write ends when they are read.
class IdentityTransformStream {
  constructor(strategy = {}) {
    new Stamp(this, identityTransform(undefined, byteStrategyOf(strategy)));
  }
}

// Of workerd: as IdentityTransformStream, for a body whose length is known before.
class FixedLengthStream {
  constructor(expectedLength, strategy = {}) {
    const isNumber = typeof expectedLength === "number" || typeof expectedLength === "bigint";
    const length = isNumber ? enforceRange(Number(expectedLength), "expectedLength") : undefined;
    if (length === undefined) throw new TypeError("expectedLength must be a number or a bigint");
    new Stamp(this, identityTransform(length, byteStrategyOf(strategy)));
  }
}

function byteStrategyOf(strategy) {
  const converted = strategyOf(strategy);
  if (converted.highWaterMark === undefined) return {};
  return { highWaterMark: highWaterMarkOf(converted, 1), size: (chunk) => chunk?.byteLength ?? 1 };
}

// ---- Text ----

// UTF-16 to UTF-8, where a pair of surrogates may lie in two chunks.
class TextEncoderStream {
  constructor() {
    const make = (state) => {
      let high = "";
      return {
        transform(chunk) {
          let text = high + `${chunk}`;
          high = "";
          const last = text.charCodeAt(text.length - 1);
          if (last >= 0xd800 && last <= 0xdbff) {
            high = text[text.length - 1];
            text = text.slice(0, -1);
          }
          if (text !== "") state.enqueue(utf8(text));
        },
        flush() {
          if (high !== "") state.enqueue(new Bytes([0xef, 0xbf, 0xbd]));
        },
      };
    };
    new Stamp(this, ownTransform(make));
  }

  get encoding() {
    transformOf(this);
    return "utf-8";
  }
}

class TextDecoderStream {
  #decoder;

  constructor(label = "utf-8", options = {}) {
    internals.load("encoding");
    const decoder = new internals.TextDecoder(label, options);
    const make = (state) => {
      const decode = (bytes, stream) => {
        const text = decoder.decode(bytes, { stream });
        if (text !== "") state.enqueue(text);
      };
      return {
        transform(chunk) {
          const bytes = bytesOf(chunk);
          if (bytes === undefined) throw new TypeError("This TransformStream is being used as a byte stream, but received a value that is not a BufferSource.");
          decode(bytes, true);
        },
        flush: () => decode(undefined, false),
      };
    };
    new Stamp(this, ownTransform(make));
    this.#decoder = decoder;
  }

  get encoding() {
    return this.#decoder.encoding;
  }

  get fatal() {
    return this.#decoder.fatal;
  }

  get ignoreBOM() {
    return this.#decoder.ignoreBOM;
  }
}

// ---- Compression ----

const FORMATS = ["deflate", "deflate-raw", "gzip"];

// `codec` is { push(bytes), finish(), next() }: `next` answers an ArrayBuffer of bounded size while there is output.
function codecTransform(codec) {
  const make = (state) => {
    const drain = async () => {
      let output = codec.next();
      while (output !== undefined && state.readable.state === "readable") {
        state.enqueue(new Bytes(output));
        output = codec.next();
        // Only what is left waits for room: the write that brought the last of it is done.
        if (output !== undefined) await state.roomPromise;
      }
    };
    return {
      transform(chunk) {
        codec.push(chunkBytes(chunk));
        return drain();
      },
      flush() {
        codec.finish();
        return drain();
      },
    };
  };
  return ownTransform(make, { isByte: true });
}

function formatOf(format) {
  format = `${format}`;
  if (!FORMATS.includes(format)) {
    throw new TypeError("The compression format must be either 'deflate', 'deflate-raw' or 'gzip'.");
  }
  return format;
}

class CompressionStream {
  constructor(format) {
    new Stamp(this, codecTransform(natives.compressor(formatOf(format))));
  }
}

class DecompressionStream {
  constructor(format) {
    new Stamp(this, codecTransform(natives.decompressor(formatOf(format))));
  }
}

// ---- The part ----

const publicClasses = {
  ByteLengthQueuingStrategy,
  CompressionStream,
  CountQueuingStrategy,
  DecompressionStream,
  FixedLengthStream,
  IdentityTransformStream,
  TextDecoderStream,
  TextEncoderStream,
};

export default function (native, shared) {
  natives = native;
  internals = shared;
  internals.load("writable-streams");
  ({
    Bytes, bytesOf, enforceRange, expose, highWaterMarkOf, illegalInvocation, promiseCall,
    resolved, sizeOne, strategyOf,
  } = internals.streams.base);
  ({ TransformState } = internals.pipes);
  for (const name of Object.keys(publicClasses)) {
    if (name.endsWith("Stream")) Object.defineProperties(publicClasses[name].prototype, genericTransform);
  }
  expose(publicClasses);
  return publicClasses;
}
