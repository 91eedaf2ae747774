
// ---- Readable streams: the stream and its readers ----

class ReadableState {
  state = "readable";
  error = undefined;
  reader = undefined;
  disturbed = false;
  controller = undefined;
  length = undefined;
  #object = undefined;

  get object() {
    return (this.#object ??= new ReadableStream(KEY, this));
  }

  adopt(object) {
    this.#object = object;
  }

  get isLocked() {
    return this.reader !== undefined;
  }
}

class ReaderState {
  stream = undefined;
  closed = undefined;
  requests = [];
  isByob = false;
}

function readableCancel(stream, reason) {
  stream.disturbed = true;
  if (stream.state === "closed") return resolved();
  if (stream.state === "errored") return rejected(stream.error);
  readableClose(stream);
  const { reader } = stream;
  if (reader?.isByob) {
    for (const request of takeRequests(reader)) request.close(undefined);
  }
  return then(stream.controller.cancelSteps(reason), noop);
}

function takeRequests(reader) {
  const { requests } = reader;
  reader.requests = [];
  return requests;
}

function readableClose(stream) {
  stream.state = "closed";
  const { reader } = stream;
  if (reader === undefined) return;
  reader.closed.resolve();
  if (!reader.isByob) {
    for (const request of takeRequests(reader)) request.close();
  }
}

function readableError(stream, error) {
  stream.state = "errored";
  stream.error = error;
  const { reader } = stream;
  if (reader === undefined) return;
  reader.closed.reject(error);
  handled(reader.closed.promise);
  for (const request of takeRequests(reader)) request.error(error);
}

function hasDefaultRequests({ reader }) {
  return reader !== undefined && !reader.isByob && reader.requests.length > 0;
}

function acquireReader(stream, isByob, reader = new ReaderState()) {
  if (stream.isLocked) throw new TypeError("This ReadableStream is currently locked to a reader.");
  if (isByob && !(stream.controller instanceof ByteController)) {
    throw new TypeError("This ReadableStream does not support BYOB reads.");
  }
  reader.isByob = isByob;
  reader.stream = stream;
  stream.reader = reader;
  if (stream.state === "readable") reader.closed = deferred();
  else if (stream.state === "closed") reader.closed = settled(resolved());
  else reader.closed = settled(handled(rejected(stream.error)));
  return reader;
}

function readerRelease(reader) {
  const { stream } = reader;
  const error = new TypeError("This ReadableStream reader has been released.");
  if (stream.state === "readable") reader.closed.reject(error);
  else reader.closed = settled(rejected(error));
  handled(reader.closed.promise);
  stream.controller.releaseSteps();
  stream.reader = undefined;
  reader.stream = undefined;
  for (const request of takeRequests(reader)) request.error(error);
}

// ReadableStreamDefaultReaderRead: `request` is { chunk(value), close(), error(reason) }.
function readerRead(reader, request) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === "closed") request.close();
  else if (stream.state === "errored") request.error(stream.error);
  else stream.controller.pullSteps(request);
}

function readerReadInto(reader, view, min, request) {
  const { stream } = reader;
  stream.disturbed = true;
  if (stream.state === "errored") request.error(stream.error);
  else stream.controller.pullInto(view, min, request);
}

// A read whose answer is the promise of an iterator's result.
class ReadRequest {
  answer = deferred();

  chunk(value) {
    this.answer.resolve({ value, done: false });
  }

  close(value) {
    this.answer.resolve({ value, done: true });
  }

  error(error) {
    this.answer.reject(error);
  }
}

function promisedRead(start) {
  const request = new ReadRequest();
  start(request);
  return request.answer.promise;
}

class ReadableStreamDefaultReader {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }

  constructor(stream) {
    this.#state = acquireReader(readableState(stream, "stream"), false);
  }

  get closed() {
    try {
      return ReadableStreamDefaultReader.#of(this).closed.promise;
    } catch (error) {
      return rejected(error);
    }
  }

  cancel(reason = undefined) {
    try {
      return cancelOfReader(ReadableStreamDefaultReader.#of(this), reason);
    } catch (error) {
      return rejected(error);
    }
  }

  read() {
    try {
      const reader = ReadableStreamDefaultReader.#of(this);
      if (reader.stream === undefined) throw releasedError();
      return promisedRead((request) => readerRead(reader, request));
    } catch (error) {
      return rejected(error);
    }
  }

  releaseLock() {
    const reader = ReadableStreamDefaultReader.#of(this);
    if (reader.stream !== undefined) readerRelease(reader);
  }
}

const releasedError = () => new TypeError("This ReadableStream reader has been released.");

function cancelOfReader(reader, reason) {
  if (reader.stream === undefined) throw releasedError();
  return readableCancel(reader.stream, reason);
}

class ReadableStreamBYOBReader {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }

  constructor(stream) {
    this.#state = acquireReader(readableState(stream, "stream"), true);
  }

  get closed() {
    try {
      return ReadableStreamBYOBReader.#of(this).closed.promise;
    } catch (error) {
      return rejected(error);
    }
  }

  cancel(reason = undefined) {
    try {
      return cancelOfReader(ReadableStreamBYOBReader.#of(this), reason);
    } catch (error) {
      return rejected(error);
    }
  }

  read(view, options = {}) {
    try {
      const reader = ReadableStreamBYOBReader.#of(this);
      viewOf(view, "view");
      const given = dictionaryOf(options, "options").min;
      return readInto(reader, view, given === undefined ? 1 : enforceRange(given, "min"));
    } catch (error) {
      return rejected(error);
    }
  }

  // Of workerd: at least so many bytes, fewer only at the end.
  readAtLeast(min, view) {
    try {
      return readInto(ReadableStreamBYOBReader.#of(this), viewOf(view, "view"), enforceRange(min, "minBytes"));
    } catch (error) {
      return rejected(error);
    }
  }

  releaseLock() {
    const reader = ReadableStreamBYOBReader.#of(this);
    if (reader.stream !== undefined) readerRelease(reader);
  }
}

function readInto(reader, view, min) {
  if (view.byteLength === 0) throw new TypeError("You must call read() on a \"byob\" reader with a positive-sized TypedArray object.");
  if (view.buffer.detached) throw new TypeError("view has a detached buffer");
  if (min === 0) throw new TypeError("min must be over 0");
  if (min > (view.length ?? view.byteLength)) throw new RangeError("min must not be over the length of view");
  if (reader.stream === undefined) throw releasedError();
  return promisedRead((request) => readerReadInto(reader, view, min, request));
}

let readableState;

class ReadableStream {
  #state;
  static {
    readableState = (object, name) => {
      if (typeof object === "object" && object !== null && #state in object) return object.#state;
      throw name === undefined ? illegalInvocation() : new TypeError(`${name} must be a ReadableStream`);
    };
  }

  constructor(source = undefined, strategy = {}) {
    if (source === KEY) {
      this.#state = strategy;
      return;
    }
    if (source === undefined) source = null;
    else if ((typeof source !== "object" && typeof source !== "function") || source === null) {
      throw new TypeError("underlyingSource must be an object");
    }
    const converted = strategyOf(strategy);
    const dictionary = sourceOf(source);
    this.#state = new ReadableState();
    this.#state.adopt(this);
    if (dictionary.type === "bytes") {
      if (converted.size !== undefined) throw new RangeError("A byte stream has no strategy.size");
      setUpByteFromSource(this.#state, source, dictionary, highWaterMarkOf(converted, 0));
    } else {
      const size = sizeOf(converted);
      setUpDefaultFromSource(this.#state, source, dictionary, highWaterMarkOf(converted, 1), size);
    }
  }

  static from(asyncIterable) {
    return readableFrom(asyncIterable).object;
  }

  get locked() {
    return readableState(this).isLocked;
  }

  cancel(reason = undefined) {
    try {
      const stream = readableState(this);
      if (stream.isLocked) throw new TypeError("This ReadableStream is currently locked to a reader.");
      return readableCancel(stream, reason);
    } catch (error) {
      return rejected(error);
    }
  }

  getReader(options = {}) {
    readableState(this);
    const { mode } = dictionaryOf(options, "options");
    if (mode === undefined) return new ReadableStreamDefaultReader(this);
    if (`${mode}` !== "byob") throw new TypeError("mode must be undefined or 'byob' in call to getReader().");
    return new ReadableStreamBYOBReader(this);
  }

  pipeThrough(transform, options = {}) {
    const stream = readableState(this);
    const pair = dictionaryOf(transform, "transform");
    const { readable } = pair;
    readableState(readable, "transform.readable");
    const writable = pipes().writableState(pair.writable, "transform.writable");
    const converted = pipeOptionsOf(options);
    if (stream.isLocked) throw new TypeError("This ReadableStream is currently locked to a reader.");
    if (writable.writer !== undefined) throw new TypeError("This WritableStream is currently locked to a writer.");
    handled(pipes().pipe(stream, writable, converted));
    return readable;
  }

  pipeTo(destination, options = {}) {
    try {
      const stream = readableState(this);
      const writable = pipes().writableState(destination, "destination");
      const converted = pipeOptionsOf(options);
      if (stream.isLocked) throw new TypeError("This ReadableStream is currently locked to a reader.");
      if (writable.writer !== undefined) throw new TypeError("This WritableStream is currently locked to a writer.");
      return pipes().pipe(stream, writable, converted);
    } catch (error) {
      return rejected(error);
    }
  }

  tee() {
    const [first, second] = readableTee(readableState(this));
    return [first.object, second.object];
  }

  values(options = {}) {
    const stream = readableState(this);
    const preventCancel = Boolean(dictionaryOf(options, "options").preventCancel);
    return new StreamIterator(acquireReader(stream, false), preventCancel);
  }
}

// The part that has pipes and their destinations.
function pipes() {
  internals.load("writable-streams");
  return internals.pipes;
}

function isAbortSignal(value) {
  internals.load("abort");
  return internals.isAbortSignal(value);
}

function pipeOptionsOf(options) {
  const { preventAbort, preventCancel, preventClose, signal } = dictionaryOf(options, "options");
  if (signal !== undefined && !isAbortSignal(signal)) throw new TypeError("options.signal must be an AbortSignal");
  return {
    preventAbort: Boolean(preventAbort),
    preventCancel: Boolean(preventCancel),
    preventClose: Boolean(preventClose),
    signal,
  };
}

// The dictionary UnderlyingSource.
function sourceOf(source) {
  if (source === null) return {};
  const { autoAllocateChunkSize } = source;
  const size = autoAllocateChunkSize === undefined ? undefined : enforceRange(autoAllocateChunkSize, "autoAllocateChunkSize");
  const cancel = callbackOf(source, "cancel", "underlyingSource");
  const pull = callbackOf(source, "pull", "underlyingSource");
  const start = callbackOf(source, "start", "underlyingSource");
  let { type } = source;
  if (type !== undefined && (type = `${type}`) !== "bytes") {
    throw new TypeError(`"${type}" is not a valid type of ReadableStream.`);
  }
  return { autoAllocateChunkSize: size, cancel, pull, start, type };
}

// ---- Asynchronous iteration ----

const AsyncIteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype);

class StreamIterator {
  #reader;
  #preventCancel;
  #ongoing = undefined;
  #finished = false;

  constructor(reader, preventCancel) {
    this.#reader = reader;
    this.#preventCancel = preventCancel;
  }

  next() {
    if (typeof this !== "object" || this === null || !(#ongoing in this)) return rejected(illegalInvocation());
    return this.#after(() => this.#next());
  }

  return(value) {
    if (typeof this !== "object" || this === null || !(#ongoing in this)) return rejected(illegalInvocation());
    return then(
      this.#after(() => this.#return(value)),
      () => ({ value, done: true }),
    );
  }

  // Calls queue behind one another, whatever the one before ended with.
  #after(step) {
    this.#ongoing = this.#ongoing === undefined ? step() : then(this.#ongoing, step, step);
    return this.#ongoing;
  }

  #next() {
    if (this.#finished) return resolved({ value: undefined, done: true });
    const reader = this.#reader;
    const next = promisedRead((request) => readerRead(reader, request));
    return then(
      next,
      (result) => {
        this.#ongoing = undefined;
        if (result.done) this.#finish();
        return result;
      },
      (error) => {
        this.#ongoing = undefined;
        this.#finish();
        throw error;
      },
    );
  }

  #finish() {
    this.#finished = true;
    readerRelease(this.#reader);
  }

  #return(value) {
    if (this.#finished) return resolved();
    const cancelled = this.#preventCancel ? resolved() : readableCancel(this.#reader.stream, value);
    this.#finish();
    return cancelled;
  }
}
Object.setPrototypeOf(StreamIterator.prototype, AsyncIteratorPrototype);

// ---- ReadableStream.from ----

function methodOf(object, name) {
  const method = object[name];
  if (method === undefined || method === null) return undefined;
  if (typeof method !== "function") throw new TypeError(`${String(name)} is not a function`);
  return method;
}

function objectResult(value) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    throw new TypeError("The result of an iterator must be an object");
  }
  return value;
}

// GetIterator(iterable, async): what answers { next(), return(value) } of promises of iterator results.
function asyncIteratorOf(iterable) {
  if (iterable === undefined || iterable === null) throw new TypeError("asyncIterable is not iterable");
  const asynchronous = methodOf(iterable, Symbol.asyncIterator);
  const method = asynchronous ?? methodOf(iterable, Symbol.iterator);
  if (method === undefined) throw new TypeError("asyncIterable is not iterable");
  const iterator = objectResult(apply(method, iterable, []));
  const { next } = iterator;
  if (asynchronous !== undefined) {
    return { next: () => apply(next, iterator, []), methodForReturn: () => methodOf(iterator, "return"), iterator };
  }
  const unwrap = (result) => {
    const { done, value } = objectResult(result);
    return then(resolved(value), (awaited) => ({ done, value: awaited }));
  };
  return {
    next: () => unwrap(apply(next, iterator, [])),
    methodForReturn: () => {
      const method = methodOf(iterator, "return");
      return method && ((reason) => unwrap(apply(method, iterator, [reason])));
    },
    iterator,
  };
}

function readableFrom(iterable) {
  const record = asyncIteratorOf(iterable);
  const stream = new ReadableState();
  const pull = () => {
    const next = promiseCall(record.next);
    return then(next, (result) => {
      if (objectResult(result).done) stream.controller.close();
      else stream.controller.enqueue(result.value);
    });
  };
  const cancel = (reason) => {
    let method;
    try {
      method = record.methodForReturn();
    } catch (error) {
      return rejected(error);
    }
    if (method === undefined) return resolved();
    return then(promiseCall(method, record.iterator, reason), (result) => {
      objectResult(result);
    });
  };
  new DefaultController(stream, { pull, cancel, highWaterMark: 0, size: sizeOne }).begin(noop);
  return stream;
}
