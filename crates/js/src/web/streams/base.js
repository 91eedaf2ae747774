// Streams of the Web platform, after the WHATWG Streams Standard; the functions keep the names and the order of its
// algorithms so that they can be read beside it. The files of this folder are three modules (see ../streams.rs), so that
// a body that is read costs no writable streams.
//
// Each public object (a ReadableStream, a reader, a controller, …) has one private field that holds its *state*, an
// object of a class of this module. The algorithms know states alone; a state makes its public object when a handler
// first sees it. So a stream that a part uses inside costs no wrapper, and a handler cannot patch what we rely on.
//
// What other parts use, as `internals.streams` after `internals.load("streams")` (the names are the contract; `stream` is a public ReadableStream):
//   isReadableStream(value)
//   isLocked(stream), isDisturbed(stream)
//   byteStream({ pull(): Promise<Uint8Array | undefined>, cancel(reason) }, { length })
//       a byte stream over a pull source: `pull` answers a chunk, or undefined at the end; it is asked once at a time,
//       and only when someone reads. `length` is the known number of bytes, if it is known.
//   bytesStream(Uint8Array): a byte stream of bytes that are there already
//   expectedLength(stream): bytes that it will give, or undefined (FixedLengthStream, `length` of byteStream)
//   reader(stream): locks it; { read(): Promise<Uint8Array | undefined>, cancel(reason), release() }, where a chunk that
//       is not bytes makes `read` reject with a TypeError and cancels the stream
//   readAll(stream, limit): Promise<Uint8Array>; more than `limit` bytes reject with a TypeError
//   tee(stream): [stream, stream], where byte streams are copied for the second branch
//   cancel(stream, reason): as the method, whether it is locked or not
// and after `internals.load("writable-streams")`, as `internals.pipes`: isWritableStream(value), WritableStream,
// writableState(stream), writableClose(state), writableAbort(state, reason).

const KEY = Symbol("internal construction");
const { apply } = Reflect;
const { call } = Function.prototype;
const PromiseOf = Promise;
const noop = () => {};

let internals;

const then = call.bind(Promise.prototype.then);
const nativeResolve = call.bind(Promise.resolve);
const withResolvers = call.bind(Promise.withResolvers);
const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
// `Promise.resolve` hands a promise through, and so would be earlier than the standard by two jobs.
const resolved = (value) =>
  isObject(value) ? new PromiseOf((resolve) => resolve(value)) : nativeResolve(PromiseOf, value);
const rejected = (reason) => new PromiseOf((_, reject) => reject(reason));
// A rejection that nobody has to look at is not "unhandled".
const handled = (promise) => (then(promise, undefined, noop), promise);

// { promise, resolve, reject }
const deferred = () => withResolvers(PromiseOf);

function settled(promise) {
  return { promise, resolve: noop, reject: noop };
}

// A function of a handler that the standard lets answer a promise.
function promiseCall(method, self, ...arguments_) {
  try {
    return resolved(apply(method, self, arguments_));
  } catch (error) {
    return rejected(error);
  }
}

// A member of a Web IDL dictionary that is a callback.
function callbackOf(dictionary, name, of) {
  const value = dictionary[name];
  if (value !== undefined && typeof value !== "function") {
    throw new TypeError(`${of}.${name} must be a function`);
  }
  return value;
}

function dictionaryOf(value, of) {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" && typeof value !== "function") throw new TypeError(`${of} must be an object`);
  return value;
}

function illegalUnless(key) {
  if (key !== KEY) throw new TypeError("Illegal constructor");
}

const illegalInvocation = () => new TypeError("Illegal invocation");

// A queue with sizes: a list, so that a long queue costs nothing to take from.
class Queue {
  // Fields are declared in all classes of states, so that none is ever looked for on Object.prototype.
  head = undefined;
  tail = undefined;
  total = 0;

  push(value, size) {
    if (typeof size !== "number" || !(size >= 0) || size === Infinity) {
      throw new RangeError("The size of a chunk must be a finite number that is not negative");
    }
    const entry = { value, size, next: undefined };
    if (this.tail === undefined) this.head = entry;
    else this.tail.next = entry;
    this.tail = entry;
    this.total += size;
  }

  shift() {
    const entry = this.head;
    this.head = entry.next;
    if (this.head === undefined) this.tail = undefined;
    this.total -= entry.size;
    // The sum of fractions can end a little under nothing.
    if (this.total < 0) this.total = 0;
    return entry.value;
  }

  get isEmpty() {
    return this.head === undefined;
  }

  clear() {
    this.head = undefined;
    this.tail = undefined;
    this.total = 0;
  }
}

// The dictionary QueuingStrategy, as it is converted before a constructor begins.
function strategyOf(value) {
  const strategy = dictionaryOf(value, "strategy");
  const given = strategy.highWaterMark;
  const highWaterMark = given === undefined ? undefined : +given;
  return { highWaterMark, size: callbackOf(strategy, "size", "strategy") };
}

function highWaterMarkOf({ highWaterMark }, fallback) {
  if (highWaterMark === undefined) return fallback;
  if (highWaterMark !== highWaterMark || highWaterMark < 0) {
    throw new RangeError("highWaterMark must be a number that is not negative");
  }
  return highWaterMark;
}

const sizeOne = () => 1;

function sizeOf({ size }) {
  return size === undefined ? sizeOne : (chunk) => size(chunk);
}

// What signals with an `EnforceRange` unsigned long long: finite, and in the range of a safe integer.
function enforceRange(value, name) {
  const number = Math.trunc(+value);
  if (!(number >= 0 && number <= Number.MAX_SAFE_INTEGER)) {
    throw new TypeError(`${name} must be an integer from 0 to 2^53 - 1`);
  }
  return number;
}

const typedArrayName = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
).get;
const viewConstructors = { Uint8Array, Int8Array, Uint8ClampedArray, Uint16Array, Int16Array, Uint32Array, Int32Array };
for (const constructor of [Float32Array, Float64Array, BigInt64Array, BigUint64Array, globalThis.Float16Array]) {
  if (constructor !== undefined) viewConstructors[constructor.name] = constructor;
}

const Bytes = Uint8Array;
const viewConstructorOf = (view) => viewConstructors[apply(typedArrayName, view, [])] ?? DataView;

// An ArrayBufferView of the Web IDL kind: not shared memory.
function viewOf(value, what) {
  if (!ArrayBuffer.isView(value)) throw new TypeError(`${what} must be an ArrayBufferView`);
  if (!(value.buffer instanceof ArrayBuffer)) throw new TypeError(`${what} must not be shared memory`);
  return value;
}

// The bytes of a BufferSource, without a copy; undefined for anything else.
function bytesOf(value) {
  if (ArrayBuffer.isView(value)) return new Bytes(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Bytes(value);
  return undefined;
}

// Operations and attributes are enumerable and classes carry their name, as Web IDL has it.
function expose(classes) {
  for (const [name, of] of Object.entries(classes)) {
    const { prototype } = of;
    for (const key of Reflect.ownKeys(prototype)) {
      if (key !== "constructor") Object.defineProperty(prototype, key, { enumerable: true });
    }
    Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
  }
}
