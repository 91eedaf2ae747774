
// ---- Writable streams ----

class WritableState {
  state = "writable";
  error = undefined;
  writer = undefined;
  controller = undefined;
  writeRequests = [];
  inFlightWrite = undefined;
  closeRequest = undefined;
  inFlightClose = undefined;
  pendingAbort = undefined;
  backpressure = false;
  #object = undefined;

  get object() {
    return (this.#object ??= new WritableStream(KEY, this));
  }

  adopt(object) {
    this.#object = object;
  }

  get isClosing() {
    return this.closeRequest !== undefined || this.inFlightClose !== undefined;
  }
}

function writableAbort(stream, reason) {
  if (stream.state === "closed" || stream.state === "errored") return resolved();
  stream.controller.signalAbort(reason);
  // A listener of the signal may have ended the stream.
  if (stream.state === "closed" || stream.state === "errored") return resolved();
  if (stream.pendingAbort !== undefined) return stream.pendingAbort.answer.promise;
  const wasErroring = stream.state === "erroring";
  const answer = deferred();
  stream.pendingAbort = { answer, reason: wasErroring ? undefined : reason, wasErroring };
  if (!wasErroring) startErroring(stream, reason);
  return answer.promise;
}

function writableClose(stream) {
  if (stream.state === "closed" || stream.state === "errored") {
    return rejected(new TypeError(stream.state === "closed" ? "This WritableStream has been closed." : "This WritableStream is errored."));
  }
  stream.closeRequest = deferred();
  const { promise } = stream.closeRequest;
  if (stream.writer !== undefined && stream.backpressure && stream.state === "writable") stream.writer.setReady();
  stream.controller.close();
  return promise;
}

function dealWithRejection(stream, error) {
  if (stream.state === "writable") startErroring(stream, error);
  else finishErroring(stream);
}

function startErroring(stream, reason) {
  stream.state = "erroring";
  stream.error = reason;
  stream.writer?.rejectReady(reason);
  const isInFlight = stream.inFlightWrite !== undefined || stream.inFlightClose !== undefined;
  if (!isInFlight && stream.controller.started) finishErroring(stream);
}

function finishErroring(stream) {
  stream.state = "errored";
  stream.controller.queue.clear();
  const { error, writeRequests, pendingAbort } = stream;
  stream.writeRequests = [];
  for (const request of writeRequests) request.reject(error);
  if (pendingAbort === undefined) {
    rejectCloseAndClosed(stream);
    return;
  }
  stream.pendingAbort = undefined;
  if (pendingAbort.wasErroring) {
    pendingAbort.answer.reject(error);
    rejectCloseAndClosed(stream);
    return;
  }
  then(
    stream.controller.abortSteps(pendingAbort.reason),
    () => {
      pendingAbort.answer.resolve();
      rejectCloseAndClosed(stream);
    },
    (reason) => {
      pendingAbort.answer.reject(reason);
      rejectCloseAndClosed(stream);
    },
  );
}

function rejectCloseAndClosed(stream) {
  if (stream.closeRequest !== undefined) {
    stream.closeRequest.reject(stream.error);
    stream.closeRequest = undefined;
  }
  stream.writer?.rejectClosed(stream.error);
}

function finishInFlightClose(stream) {
  stream.inFlightClose.resolve();
  stream.inFlightClose = undefined;
  if (stream.state === "erroring") {
    stream.error = undefined;
    stream.pendingAbort?.answer.resolve();
    stream.pendingAbort = undefined;
  }
  stream.state = "closed";
  stream.writer?.setClosed();
}

function finishInFlightCloseWithError(stream, error) {
  stream.inFlightClose.reject(error);
  stream.inFlightClose = undefined;
  stream.pendingAbort?.answer.reject(error);
  stream.pendingAbort = undefined;
  dealWithRejection(stream, error);
}

function updateBackpressure(stream, backpressure) {
  const { writer } = stream;
  if (writer !== undefined && backpressure !== stream.backpressure) {
    if (backpressure) writer.ready = deferred();
    else writer.setReady();
    writer.isReadyPending = backpressure;
  }
  stream.backpressure = backpressure;
}

const CLOSE = Symbol("close");

class WritableController {
  stream;
  write;
  sinkClose;
  sinkAbort;
  highWaterMark;
  size;
  started = false;
  queue = new Queue();
  #abortController = undefined;
  #abort = undefined;
  #object = undefined;

  // `sink` is { write(chunk), close(), abort(reason) } that answer promises and never throw, { highWaterMark, size }.
  constructor(stream, sink) {
    this.stream = stream;
    this.write = sink.write;
    this.sinkClose = sink.close;
    this.sinkAbort = sink.abort;
    this.highWaterMark = sink.highWaterMark;
    this.size = sink.size;
    stream.controller = this;
  }

  get object() {
    return (this.#object ??= new WritableStreamDefaultController(KEY, this));
  }

  begin(start) {
    const { stream } = this;
    updateBackpressure(stream, this.hasBackpressure);
    then(
      resolved(start()),
      () => {
        this.started = true;
        this.advance();
      },
      (error) => {
        this.started = true;
        dealWithRejection(stream, error);
      },
    );
  }

  // A signal is made when somebody asks for it.
  get signal() {
    if (this.#abortController === undefined) {
      internals.load("abort");
      this.#abortController = new internals.AbortController();
      if (this.#abort !== undefined) this.#abortController.abort(this.#abort.reason);
    }
    return this.#abortController.signal;
  }

  signalAbort(reason) {
    this.#abort ??= { reason };
    this.#abortController?.abort(reason);
  }

  get desiredSize() {
    return this.highWaterMark - this.queue.total;
  }

  get hasBackpressure() {
    return this.desiredSize <= 0;
  }

  clear() {
    this.write = undefined;
    this.sinkClose = undefined;
    this.sinkAbort = undefined;
    this.size = undefined;
  }

  close() {
    this.queue.push(CLOSE, 0);
    this.advance();
  }

  abortSteps(reason) {
    const { sinkAbort } = this;
    const aborted = sinkAbort(reason);
    this.clear();
    return aborted;
  }

  errorIfNeeded(error) {
    if (this.stream.state !== "writable") return;
    this.clear();
    startErroring(this.stream, error);
  }

  sizeOf(chunk) {
    const { size } = this;
    if (size === undefined) return 1;
    try {
      return +size(chunk);
    } catch (error) {
      this.errorIfNeeded(error);
      return 1;
    }
  }

  enqueue(chunk, size) {
    const { stream } = this;
    try {
      this.queue.push(chunk, size);
    } catch (error) {
      this.errorIfNeeded(error);
      return;
    }
    if (!stream.isClosing && stream.state === "writable") updateBackpressure(stream, this.hasBackpressure);
    this.advance();
  }

  advance() {
    const { stream, queue } = this;
    if (!this.started || stream.inFlightWrite !== undefined) return;
    if (stream.state === "erroring") {
      finishErroring(stream);
      return;
    }
    if (queue.isEmpty || stream.state !== "writable") return;
    if (queue.head.value === CLOSE) this.processClose();
    else this.processWrite(queue.head.value);
  }

  processClose() {
    const { stream } = this;
    stream.inFlightClose = stream.closeRequest;
    stream.closeRequest = undefined;
    this.queue.shift();
    const { sinkClose } = this;
    const closed = sinkClose();
    this.clear();
    then(
      closed,
      () => finishInFlightClose(stream),
      (error) => finishInFlightCloseWithError(stream, error),
    );
  }

  processWrite(chunk) {
    const { stream, write } = this;
    stream.inFlightWrite = stream.writeRequests.shift();
    then(
      write(chunk),
      () => {
        stream.inFlightWrite.resolve();
        stream.inFlightWrite = undefined;
        this.queue.shift();
        if (!stream.isClosing && stream.state === "writable") updateBackpressure(stream, this.hasBackpressure);
        this.advance();
      },
      (error) => {
        if (stream.state === "writable") this.clear();
        stream.inFlightWrite.reject(error);
        stream.inFlightWrite = undefined;
        dealWithRejection(stream, error);
      },
    );
  }
}

let writableState;

class WritableStream {
  #state;
  static {
    writableState = (object, name) => {
      if (typeof object === "object" && object !== null && #state in object) return object.#state;
      throw name === undefined ? illegalInvocation() : new TypeError(`${name} must be a WritableStream`);
    };
  }

  constructor(sink = undefined, strategy = {}) {
    if (sink === KEY) {
      this.#state = strategy;
      return;
    }
    if (sink === undefined) sink = null;
    else if ((typeof sink !== "object" && typeof sink !== "function") || sink === null) {
      throw new TypeError("underlyingSink must be an object");
    }
    const converted = strategyOf(strategy);
    const dictionary = sinkOf(sink);
    this.#state = new WritableState();
    this.#state.adopt(this);
    const size = sizeOf(converted);
    setUpWritableFromSink(this.#state, sink, dictionary, highWaterMarkOf(converted, 1), size);
  }

  get locked() {
    return writableState(this).writer !== undefined;
  }

  abort(reason = undefined) {
    try {
      const stream = writableState(this);
      if (stream.writer !== undefined) throw new TypeError("This WritableStream is currently locked to a writer.");
      return writableAbort(stream, reason);
    } catch (error) {
      return rejected(error);
    }
  }

  close() {
    try {
      const stream = writableState(this);
      if (stream.writer !== undefined) throw new TypeError("This WritableStream is currently locked to a writer.");
      if (stream.isClosing) throw new TypeError("This WritableStream has been closed.");
      return writableClose(stream);
    } catch (error) {
      return rejected(error);
    }
  }

  getWriter() {
    writableState(this);
    return new WritableStreamDefaultWriter(this);
  }
}

function sinkOf(sink) {
  if (sink === null) return {};
  const abort = callbackOf(sink, "abort", "underlyingSink");
  const close = callbackOf(sink, "close", "underlyingSink");
  const start = callbackOf(sink, "start", "underlyingSink");
  if (sink.type !== undefined) throw new RangeError("underlyingSink.type must be undefined");
  return { abort, close, start, write: callbackOf(sink, "write", "underlyingSink") };
}

function setUpWritableFromSink(stream, sink, { abort, close, start, write }, highWaterMark, size) {
  const controller = new WritableController(stream, {
    write: write === undefined ? () => resolved() : (chunk) => promiseCall(write, sink, chunk, controller.object),
    close: close === undefined ? () => resolved() : () => promiseCall(close, sink),
    abort: abort === undefined ? () => resolved() : (reason) => promiseCall(abort, sink, reason),
    highWaterMark,
    size,
  });
  controller.begin(start === undefined ? noop : () => apply(start, sink, [controller.object]));
}

class WritableStreamDefaultController {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }

  constructor(key, state) {
    illegalUnless(key);
    this.#state = state;
  }

  get signal() {
    return WritableStreamDefaultController.#of(this).signal;
  }

  error(error = undefined) {
    WritableStreamDefaultController.#of(this).errorIfNeeded(error);
  }
}
