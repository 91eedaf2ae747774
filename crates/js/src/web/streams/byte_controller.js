
// ---- Byte streams ----

// A read into memory of the reader ("pull-into descriptor"): `offset` and `length` in bytes within `buffer`, `filled`
// of them filled, at least `minimum` wanted; `make` the constructor of the view to answer, of elements of `unit` bytes.
// `type` is "byob", "default" (memory that autoAllocateChunkSize made) or "none" (its reader has gone).
function newPullInto(buffer, offset, length, minimum, unit, make, type) {
  return { buffer, capacity: buffer.byteLength, offset, length, filled: 0, minimum, unit, make, type };
}

class ByteController extends Controller {
  pendingPullIntos = [];
  byobRequest = undefined;
  autoAllocate;
  // When someone waits for the queue to be read: a deferred.
  drained = undefined;
  #object = undefined;

  constructor(stream, source) {
    super(stream, source);
    this.autoAllocate = source.autoAllocate;
  }

  get object() {
    return (this.#object ??= new ReadableByteStreamController(KEY, this));
  }

  shouldPull() {
    const { stream } = this;
    if (stream.state !== "readable" || this.closeRequested || !this.started) return false;
    if (hasDefaultRequests(stream)) return true;
    if (stream.reader?.isByob && stream.reader.requests.length > 0) return true;
    return this.desiredSize > 0;
  }

  cancelSteps(reason) {
    this.clearPending();
    this.queue.clear();
    return this.cancelOnce(reason);
  }

  releaseSteps() {
    if (this.pendingPullIntos.length === 0) return;
    const [first] = this.pendingPullIntos;
    first.type = "none";
    this.pendingPullIntos = [first];
  }

  pullSteps(request) {
    if (!this.queue.isEmpty) {
      const entry = this.queue.shift();
      this.handleDrain();
      request.chunk(new Bytes(entry.buffer, entry.offset, entry.length));
      return;
    }
    if (this.autoAllocate !== undefined) {
      let buffer;
      try {
        buffer = new ArrayBuffer(this.autoAllocate);
      } catch (error) {
        request.error(error);
        return;
      }
      this.pendingPullIntos.push(newPullInto(buffer, 0, this.autoAllocate, 1, 1, Bytes, "default"));
    }
    this.stream.reader.requests.push(request);
    this.callPull();
  }

  clearPending() {
    this.settleDrained();
    this.invalidateRequest();
    this.pendingPullIntos = [];
  }

  invalidateRequest() {
    this.byobRequest?.invalidate();
    this.byobRequest = undefined;
  }

  get currentRequest() {
    if (this.byobRequest === undefined && this.pendingPullIntos.length > 0) {
      const [first] = this.pendingPullIntos;
      const view = new Bytes(first.buffer, first.offset + first.filled, first.length - first.filled);
      this.byobRequest = new ByobRequestState(this, view);
    }
    return this.byobRequest;
  }

  close() {
    if (this.closeRequested || this.stream.state !== "readable") return;
    if (this.queue.total > 0) {
      this.closeRequested = true;
      return;
    }
    if (this.pendingPullIntos.length > 0) {
      const [first] = this.pendingPullIntos;
      if (first.filled % first.unit !== 0) {
        const error = new TypeError("The stream was closed in the middle of an element of the reader's view");
        this.error(error);
        throw error;
      }
    }
    this.clear();
    readableClose(this.stream);
  }

  error(error) {
    if (this.stream.state !== "readable") return;
    this.clearPending();
    this.queue.clear();
    this.clear();
    readableError(this.stream, error);
  }

  // Fulfils when all that was enqueued has been read, or will never be.
  get drainPromise() {
    if (this.queue.total === 0 || this.stream.state !== "readable") return resolved();
    this.drained ??= deferred();
    return this.drained.promise;
  }

  settleDrained() {
    this.drained?.resolve();
    this.drained = undefined;
  }

  handleDrain() {
    if (this.queue.total === 0) this.settleDrained();
    if (this.queue.total === 0 && this.closeRequested) {
      this.clear();
      readableClose(this.stream);
    } else {
      this.callPull();
    }
  }

  enqueue(chunk) {
    const { stream } = this;
    if (this.closeRequested || stream.state !== "readable") return;
    const { byteOffset: offset, byteLength: length } = chunk;
    if (chunk.buffer.detached) throw new TypeError("chunk has a detached buffer");
    const buffer = chunk.buffer.transfer();
    if (this.pendingPullIntos.length > 0) {
      const [first] = this.pendingPullIntos;
      if (first.buffer.detached) throw new TypeError("The buffer of the pending read has been detached");
      this.invalidateRequest();
      first.buffer = first.buffer.transfer();
      if (first.type === "none") this.enqueueDetached(first);
    }
    const { reader } = stream;
    if (reader !== undefined && !reader.isByob) {
      this.fillDefaultRequests();
      if (reader.requests.length === 0) {
        this.push(buffer, offset, length);
      } else {
        // Memory that was made for the read is not needed: the chunk itself answers it.
        if (this.pendingPullIntos.length > 0) this.shiftPending();
        reader.requests.shift().chunk(new Bytes(buffer, offset, length));
      }
    } else {
      this.push(buffer, offset, length);
      if (reader !== undefined) this.commitAll(this.fillPendingFromQueue());
    }
    this.callPull();
  }

  push(buffer, offset, length) {
    this.queue.push({ buffer, offset, length }, length);
  }

  pushCopy(buffer, offset, length) {
    let copy;
    try {
      copy = buffer.slice(offset, offset + length);
    } catch (error) {
      this.error(error);
      throw error;
    }
    this.push(copy, 0, length);
  }

  // What a reader that went away left half filled goes to the queue.
  enqueueDetached(pullInto) {
    if (pullInto.filled > 0) this.pushCopy(pullInto.buffer, pullInto.offset, pullInto.filled);
    this.shiftPending();
  }

  shiftPending() {
    return this.pendingPullIntos.shift();
  }

  fillDefaultRequests() {
    const { reader } = this.stream;
    while (reader.requests.length > 0 && this.queue.total > 0) {
      const entry = this.queue.shift();
      const request = reader.requests.shift();
      this.handleDrain();
      request.chunk(new Bytes(entry.buffer, entry.offset, entry.length));
    }
  }

  // Moves bytes of the queue into the read; true when it has what it waits for.
  fillFromQueue(pullInto) {
    const maxBytes = Math.min(this.queue.total, pullInto.length - pullInto.filled);
    const maxFilled = pullInto.filled + maxBytes;
    const maxAligned = maxFilled - (maxFilled % pullInto.unit);
    const isReady = maxAligned >= pullInto.minimum;
    let left = isReady ? maxAligned - pullInto.filled : maxBytes;
    while (left > 0) {
      const entry = this.queue.head.value;
      const taken = Math.min(left, entry.length);
      const target = new Bytes(pullInto.buffer, pullInto.offset + pullInto.filled, taken);
      target.set(new Bytes(entry.buffer, entry.offset, taken));
      if (taken === entry.length) {
        this.queue.shift();
      } else {
        entry.offset += taken;
        entry.length -= taken;
        this.queue.head.size -= taken;
        this.queue.total -= taken;
      }
      this.invalidateRequest();
      pullInto.filled += taken;
      left -= taken;
    }
    return isReady;
  }

  fillPendingFromQueue() {
    const filled = [];
    while (this.pendingPullIntos.length > 0 && this.queue.total > 0) {
      const [first] = this.pendingPullIntos;
      if (!this.fillFromQueue(first)) break;
      this.shiftPending();
      filled.push(first);
    }
    return filled;
  }

  commitAll(pullIntos) {
    for (const pullInto of pullIntos) this.commit(pullInto);
  }

  commit(pullInto) {
    const { stream } = this;
    const isDone = stream.state === "closed";
    const view = filledView(pullInto);
    const request = stream.reader.requests.shift();
    if (!isDone) request.chunk(view);
    else request.close(view);
  }

  pullInto(view, min, request) {
    const { stream } = this;
    const make = viewConstructorOf(view);
    const unit = make === DataView ? 1 : make.BYTES_PER_ELEMENT;
    const { byteOffset, byteLength } = view;
    let buffer;
    try {
      buffer = view.buffer.transfer();
    } catch (error) {
      request.error(error);
      return;
    }
    const pullInto = newPullInto(buffer, byteOffset, byteLength, min * unit, unit, make, "byob");
    if (this.pendingPullIntos.length > 0) {
      this.pendingPullIntos.push(pullInto);
      stream.reader.requests.push(request);
      return;
    }
    if (stream.state === "closed") {
      request.close(new make(pullInto.buffer, pullInto.offset, 0));
      return;
    }
    if (this.queue.total > 0) {
      if (this.fillFromQueue(pullInto)) {
        const filled = filledView(pullInto);
        this.handleDrain();
        request.chunk(filled);
        return;
      }
      if (this.closeRequested) {
        const error = new TypeError("The stream was closed in the middle of an element of the reader's view");
        this.error(error);
        request.error(error);
        return;
      }
    }
    this.pendingPullIntos.push(pullInto);
    stream.reader.requests.push(request);
    this.callPull();
  }

  respond(bytesWritten) {
    const [first] = this.pendingPullIntos;
    if (this.stream.state === "closed") {
      if (bytesWritten !== 0) throw new TypeError("bytesWritten must be 0: the stream is closed");
    } else {
      if (bytesWritten === 0) throw new TypeError("bytesWritten must be over 0: the stream is readable");
      if (first.filled + bytesWritten > first.length) throw new RangeError("bytesWritten is over the length of the view");
    }
    first.buffer = first.buffer.transfer();
    this.respondInternal(bytesWritten);
  }

  respondWithNewView(view) {
    const [first] = this.pendingPullIntos;
    const { byteLength } = view;
    if (this.stream.state === "closed") {
      if (byteLength !== 0) throw new TypeError("view must be empty: the stream is closed");
    } else if (byteLength === 0) {
      throw new TypeError("view must not be empty: the stream is readable");
    }
    if (first.offset + first.filled !== view.byteOffset) throw new RangeError("view begins elsewhere than the request's view");
    if (first.capacity !== view.buffer.byteLength) throw new RangeError("view has a buffer of another length than the request's view");
    if (first.filled + byteLength > first.length) throw new RangeError("view is longer than the request's view");
    first.buffer = view.buffer.transfer();
    this.respondInternal(byteLength);
  }

  respondInternal(bytesWritten) {
    const [first] = this.pendingPullIntos;
    this.invalidateRequest();
    if (this.stream.state === "closed") {
      if (first.type === "none") this.shiftPending();
      this.respondClosed();
    } else {
      this.respondReadable(bytesWritten, first);
    }
    this.callPull();
  }

  respondClosed() {
    const { reader } = this.stream;
    if (reader === undefined || !reader.isByob) return;
    const ended = [];
    while (ended.length < reader.requests.length) ended.push(this.shiftPending());
    this.commitAll(ended);
  }

  respondReadable(bytesWritten, pullInto) {
    pullInto.filled += bytesWritten;
    if (pullInto.type === "none") {
      this.enqueueDetached(pullInto);
      this.commitAll(this.fillPendingFromQueue());
      return;
    }
    if (pullInto.filled < pullInto.minimum) return;
    this.shiftPending();
    const rest = pullInto.filled % pullInto.unit;
    if (rest > 0) {
      const end = pullInto.offset + pullInto.filled;
      this.pushCopy(pullInto.buffer, end - rest, rest);
    }
    pullInto.filled -= rest;
    const filled = this.fillPendingFromQueue();
    this.commit(pullInto);
    this.commitAll(filled);
  }
}

function filledView({ make, buffer, offset, filled, unit }) {
  return new make(buffer.transfer(), offset, filled / unit);
}

function setUpByteFromSource(stream, source, dictionary, highWaterMark) {
  const { start, autoAllocateChunkSize: autoAllocate } = dictionary;
  if (autoAllocate === 0) throw new TypeError("autoAllocateChunkSize must be over 0");
  const algorithms = algorithmsOf(source, dictionary, () => controller.object);
  const controller = new ByteController(stream, { ...algorithms, highWaterMark, autoAllocate });
  controller.begin(start === undefined ? noop : () => apply(start, source, [controller.object]));
}

class ReadableByteStreamController {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }

  constructor(key, state) {
    illegalUnless(key);
    this.#state = state;
  }

  get byobRequest() {
    return ReadableByteStreamController.#of(this).currentRequest?.object ?? null;
  }

  get desiredSize() {
    return ReadableByteStreamController.#of(this).desiredSize;
  }

  close() {
    const controller = ReadableByteStreamController.#of(this);
    if (controller.closeRequested || controller.stream.state !== "readable") {
      throw new TypeError("This ReadableStream is closed.");
    }
    controller.close();
  }

  enqueue(chunk) {
    const controller = ReadableByteStreamController.#of(this);
    viewOf(chunk, "chunk");
    if (chunk.byteLength === 0) throw new TypeError("Cannot enqueue a zero-length ArrayBuffer.");
    if (chunk.buffer.byteLength === 0) throw new TypeError("chunk must have a buffer with bytes");
    if (controller.closeRequested || controller.stream.state !== "readable") {
      throw new TypeError("Unable to enqueue");
    }
    controller.enqueue(chunk);
  }

  error(error = undefined) {
    ReadableByteStreamController.#of(this).error(error);
  }
}

class ByobRequestState {
  controller;
  view;
  #object = undefined;

  constructor(controller, view) {
    this.controller = controller;
    this.view = view;
  }

  get object() {
    return (this.#object ??= new ReadableStreamBYOBRequest(KEY, this));
  }

  invalidate() {
    this.controller = undefined;
    this.view = null;
  }
}

class ReadableStreamBYOBRequest {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }

  constructor(key, state) {
    illegalUnless(key);
    this.#state = state;
  }

  get view() {
    return ReadableStreamBYOBRequest.#of(this).view;
  }

  // Of workerd: how many bytes the reader still wants.
  get atLeast() {
    const request = ReadableStreamBYOBRequest.#of(this);
    if (request.view === null) return null;
    const [first] = request.controller.pendingPullIntos;
    return Math.max(first.minimum - first.filled, 1);
  }

  respond(bytesWritten) {
    const request = ReadableStreamBYOBRequest.#of(this);
    if (arguments.length === 0) throw new TypeError("bytesWritten is required");
    const count = enforceRange(bytesWritten, "bytesWritten");
    if (request.controller === undefined) throw invalidatedError();
    if (request.view.buffer.detached) throw new TypeError("The view of this request has a detached buffer");
    request.controller.respond(count);
  }

  respondWithNewView(view) {
    const request = ReadableStreamBYOBRequest.#of(this);
    viewOf(view, "view");
    if (request.controller === undefined) throw invalidatedError();
    if (view.buffer.detached) throw new TypeError("view has a detached buffer");
    request.controller.respondWithNewView(view);
  }
}

const invalidatedError = () => new TypeError("This ReadableStreamBYOBRequest has been invalidated");
