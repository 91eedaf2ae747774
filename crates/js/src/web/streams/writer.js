
// ---- Writers ----

class WriterState {
  stream = undefined;
  ready = undefined;
  isReadyPending = false;
  closed = undefined;
  isClosedPending = false;

  setReady() {
    this.ready.resolve();
    this.isReadyPending = false;
  }

  rejectReady(error) {
    if (this.isReadyPending) this.ready.reject(error);
    else this.ready = settled(rejected(error));
    this.isReadyPending = false;
    handled(this.ready.promise);
  }

  setClosed() {
    this.closed.resolve();
    this.isClosedPending = false;
  }

  rejectClosed(error) {
    this.closed.reject(error);
    this.isClosedPending = false;
    handled(this.closed.promise);
  }

  releaseClosed(error) {
    if (this.isClosedPending) this.closed.reject(error);
    else this.closed = settled(rejected(error));
    this.isClosedPending = false;
    handled(this.closed.promise);
  }
}

function acquireWriter(stream, writer = new WriterState()) {
  if (stream.writer !== undefined) throw new TypeError("This WritableStream is currently locked to a writer.");
  writer.stream = stream;
  stream.writer = writer;
  const { state, error } = stream;
  if (state === "writable" && !stream.isClosing && stream.backpressure) {
    writer.ready = deferred();
    writer.isReadyPending = true;
  } else if (state === "writable" || state === "closed") {
    writer.ready = settled(resolved());
  } else {
    writer.ready = settled(handled(rejected(error)));
  }
  if (state === "closed") writer.closed = settled(resolved());
  else if (state === "errored") writer.closed = settled(handled(rejected(error)));
  else writer.closed = deferred();
  writer.isClosedPending = state === "writable" || state === "erroring";
  return writer;
}

function writerRelease(writer) {
  const { stream } = writer;
  const error = releasedWriterError();
  writer.rejectReady(error);
  writer.releaseClosed(error);
  stream.writer = undefined;
  writer.stream = undefined;
}

const releasedWriterError = () => new TypeError("This WritableStream writer has been released.");

function writerWrite(writer, chunk) {
  const { stream } = writer;
  const size = stream.controller.sizeOf(chunk);
  if (stream !== writer.stream) return rejected(releasedWriterError());
  const { state } = stream;
  if (state === "errored") return rejected(stream.error);
  if (stream.isClosing || state === "closed") {
    return rejected(new TypeError("This WritableStream has been closed."));
  }
  if (state === "erroring") return rejected(stream.error);
  const request = deferred();
  stream.writeRequests.push(request);
  stream.controller.enqueue(chunk, size);
  return request.promise;
}

function writerCloseWithErrors(writer) {
  const { stream } = writer;
  if (stream.isClosing || stream.state === "closed") return resolved();
  if (stream.state === "errored") return rejected(stream.error);
  return writableClose(stream);
}

class WritableStreamDefaultWriter {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }
  static #lockedOf(object) {
    const writer = WritableStreamDefaultWriter.#of(object);
    if (writer.stream === undefined) throw releasedWriterError();
    return writer;
  }

  constructor(stream) {
    this.#state = acquireWriter(writableState(stream, "stream"));
  }

  get closed() {
    try {
      return WritableStreamDefaultWriter.#of(this).closed.promise;
    } catch (error) {
      return rejected(error);
    }
  }

  get desiredSize() {
    const { stream } = WritableStreamDefaultWriter.#lockedOf(this);
    if (stream.state === "errored" || stream.state === "erroring") return null;
    return stream.state === "closed" ? 0 : stream.controller.desiredSize;
  }

  get ready() {
    try {
      return WritableStreamDefaultWriter.#of(this).ready.promise;
    } catch (error) {
      return rejected(error);
    }
  }

  abort(reason = undefined) {
    try {
      return writableAbort(WritableStreamDefaultWriter.#lockedOf(this).stream, reason);
    } catch (error) {
      return rejected(error);
    }
  }

  close() {
    try {
      const { stream } = WritableStreamDefaultWriter.#lockedOf(this);
      if (stream.isClosing) throw new TypeError("This WritableStream has been closed.");
      return writableClose(stream);
    } catch (error) {
      return rejected(error);
    }
  }

  releaseLock() {
    const writer = WritableStreamDefaultWriter.#of(this);
    if (writer.stream !== undefined) writerRelease(writer);
  }

  write(chunk = undefined) {
    try {
      return writerWrite(WritableStreamDefaultWriter.#lockedOf(this), chunk);
    } catch (error) {
      return rejected(error);
    }
  }
}
