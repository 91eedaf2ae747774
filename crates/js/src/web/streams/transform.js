
// ---- Transform streams ----

class TransformState {
  transform;
  flush;
  cancel;
  writable;
  readable;
  writableController;
  readableController;
  backpressure = undefined;
  backpressureChange = undefined;
  finish = undefined;
  #object = undefined;

  // `transformer` is { transform(chunk), flush(), cancel(reason) } that answer promises and never throw; `readable` and
  // `writable` are { highWaterMark, size }, `isByte` asks for a readable side of bytes.
  constructor(transformer, writable, readable, isByte) {
    this.transform = transformer.transform;
    this.flush = transformer.flush;
    this.cancel = transformer.cancel;
    this.writable = new WritableState();
    this.readable = new ReadableState();
    const sink = {
      write: (chunk) => this.sinkWrite(chunk),
      close: () => this.sinkClose(),
      abort: (reason) => this.sinkAbort(reason),
    };
    this.writableController = new WritableController(this.writable, { ...sink, ...writable });
    const source = { pull: () => this.sourcePull(), cancel: (reason) => this.sourceCancel(reason), ...readable };
    const Kind = isByte ? ByteController : DefaultController;
    this.readableController = new Kind(this.readable, source);
  }

  get object() {
    return (this.#object ??= new TransformStreamDefaultController(KEY, this));
  }

  begin(start) {
    const started = deferred();
    this.writableController.begin(() => started.promise);
    this.readableController.begin(() => started.promise);
    this.setBackpressure(true);
    started.resolve(start());
  }

  setBackpressure(backpressure) {
    this.backpressureChange?.resolve();
    this.backpressureChange = deferred();
    this.backpressure = backpressure;
  }

  clear() {
    this.transform = undefined;
    this.flush = undefined;
    this.cancel = undefined;
  }

  enqueue(chunk) {
    const { readable, readableController: controller } = this;
    if (controller.closeRequested || readable.state !== "readable") {
      throw new TypeError("The readable side takes no chunks: it is closed or errored");
    }
    try {
      controller.enqueue(chunk);
    } catch (error) {
      this.errorWritable(error);
      throw readable.error;
    }
    const backpressure = !controller.shouldPull();
    if (backpressure !== this.backpressure) this.setBackpressure(backpressure);
  }

  // For transformers of ours that give many chunks for one: when the reader wants more, or has gone.
  get roomPromise() {
    return this.backpressure ? this.backpressureChange.promise : resolved();
  }

  error(error) {
    this.readableController.error(error);
    this.errorWritable(error);
  }

  errorWritable(error) {
    this.clear();
    this.writableController.errorIfNeeded(error);
    this.unblockWrite();
  }

  unblockWrite() {
    if (this.backpressure) this.setBackpressure(false);
  }

  terminate() {
    this.readableController.close();
    this.errorWritable(new TypeError("The transform stream has been terminated"));
  }

  sinkWrite(chunk) {
    if (!this.backpressure) return this.performTransform(chunk);
    return then(this.backpressureChange.promise, () => {
      if (this.writable.state === "erroring") throw this.writable.error;
      return this.performTransform(chunk);
    });
  }

  performTransform(chunk) {
    const { transform } = this;
    return then(transform(chunk), undefined, (error) => {
      this.error(error);
      throw error;
    });
  }

  // One end of the stream's life: `step` answers a promise, `done` is what follows it.
  finishWith(step, done, failed) {
    if (this.finish !== undefined) return this.finish.promise;
    const finish = deferred();
    this.finish = finish;
    const stepped = step();
    this.clear();
    then(
      stepped,
      () => done(finish),
      (error) => {
        failed(error);
        finish.reject(error);
      },
    );
    return finish.promise;
  }

  sinkAbort(reason) {
    const { readable, readableController, cancel } = this;
    return this.finishWith(
      () => cancel(reason),
      (finish) => {
        if (readable.state === "errored") {
          finish.reject(readable.error);
        } else {
          readableController.error(reason);
          finish.resolve();
        }
      },
      (error) => readableController.error(error),
    );
  }

  sinkClose() {
    const { readable, readableController, flush } = this;
    return this.finishWith(
      () => flush(),
      (finish) => {
        if (readable.state === "errored") {
          finish.reject(readable.error);
          return;
        }
        readableController.close();
        // A read into the reader's memory ends with the bytes that it has.
        if (readableController.pendingPullIntos?.length > 0) readableController.respond(0);
        finish.resolve();
      },
      (error) => readableController.error(error),
    );
  }

  sourcePull() {
    this.setBackpressure(false);
    return this.backpressureChange.promise;
  }

  sourceCancel(reason) {
    const { writable, writableController, cancel } = this;
    // A flush of ours that waits for room sees that nobody reads any more.
    if (this.finish !== undefined) this.unblockWrite();
    return this.finishWith(
      () => cancel(reason),
      (finish) => {
        if (writable.state === "errored") {
          finish.reject(writable.error);
        } else {
          writableController.errorIfNeeded(reason);
          this.unblockWrite();
          finish.resolve();
        }
      },
      (error) => {
        writableController.errorIfNeeded(error);
        this.unblockWrite();
      },
    );
  }
}

class TransformStream {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }

  constructor(transformer = undefined, writableStrategy = {}, readableStrategy = {}) {
    if (transformer === undefined) transformer = null;
    else if ((typeof transformer !== "object" && typeof transformer !== "function") || transformer === null) {
      throw new TypeError("transformer must be an object");
    }
    const writable = strategyOf(writableStrategy);
    const readable = strategyOf(readableStrategy);
    const dictionary = transformerOf(transformer);
    const readableSide = { highWaterMark: highWaterMarkOf(readable, 0), size: sizeOf(readable) };
    const writableSide = { highWaterMark: highWaterMarkOf(writable, 1), size: sizeOf(writable) };
    const state = transformFrom(transformer, dictionary, writableSide, readableSide);
    this.#state = state;
    const { start } = dictionary;
    state.begin(start === undefined ? noop : () => apply(start, transformer, [state.object]));
  }

  get readable() {
    return TransformStream.#of(this).readable.object;
  }

  get writable() {
    return TransformStream.#of(this).writable.object;
  }
}

function transformerOf(transformer) {
  if (transformer === null) return {};
  const cancel = callbackOf(transformer, "cancel", "transformer");
  const flush = callbackOf(transformer, "flush", "transformer");
  if (transformer.readableType !== undefined) throw new RangeError("transformer.readableType must be undefined");
  const start = callbackOf(transformer, "start", "transformer");
  const transform = callbackOf(transformer, "transform", "transformer");
  if (transformer.writableType !== undefined) throw new RangeError("transformer.writableType must be undefined");
  return { cancel, flush, start, transform };
}

function transformFrom(transformer, { cancel, flush, transform }, writable, readable) {
  const identity = (chunk) => {
    try {
      state.enqueue(chunk);
      return resolved();
    } catch (error) {
      return rejected(error);
    }
  };
  const algorithms = {
    transform: transform === undefined ? identity : (chunk) => promiseCall(transform, transformer, chunk, state.object),
    flush: flush === undefined ? () => resolved() : () => promiseCall(flush, transformer, state.object),
    cancel: cancel === undefined ? () => resolved() : (reason) => promiseCall(cancel, transformer, reason),
  };
  const state = new TransformState(algorithms, writable, readable, false);
  return state;
}

class TransformStreamDefaultController {
  #state;
  static #of(object) {
    if (typeof object !== "object" || object === null || !(#state in object)) throw illegalInvocation();
    return object.#state;
  }

  constructor(key, state) {
    illegalUnless(key);
    this.#state = state;
  }

  get desiredSize() {
    return TransformStreamDefaultController.#of(this).readableController.desiredSize;
  }

  enqueue(chunk = undefined) {
    TransformStreamDefaultController.#of(this).enqueue(chunk);
  }

  error(error = undefined) {
    TransformStreamDefaultController.#of(this).error(error);
  }

  terminate() {
    TransformStreamDefaultController.#of(this).terminate();
  }
}
