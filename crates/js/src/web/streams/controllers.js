
// ---- Controllers of readable streams ----

// What both kinds share: when to pull. `source` is { pull(), cancel(reason) } that never throw, { highWaterMark, size }.
class Controller {
  stream;
  pull;
  cancel;
  highWaterMark;
  size;
  started = false;
  closeRequested = false;
  pulling = false;
  pullAgain = false;
  queue = new Queue();

  constructor(stream, source) {
    this.stream = stream;
    this.pull = source.pull;
    this.cancel = source.cancel;
    this.highWaterMark = source.highWaterMark;
    stream.controller = this;
  }

  begin(start) {
    then(
      resolved(start()),
      () => {
        this.started = true;
        this.callPull();
      },
      (error) => this.error(error),
    );
  }

  callPull() {
    if (!this.shouldPull()) return;
    if (this.pulling) {
      this.pullAgain = true;
      return;
    }
    this.pulling = true;
    then(
      this.pull(),
      () => {
        this.pulling = false;
        if (this.pullAgain) {
          this.pullAgain = false;
          this.callPull();
        }
      },
      (error) => this.error(error),
    );
  }

  get desiredSize() {
    const { state } = this.stream;
    if (state === "errored") return null;
    if (state === "closed") return 0;
    return this.highWaterMark - this.queue.total;
  }

  // So that what the source holds can be freed.
  clear() {
    this.pull = undefined;
    this.cancel = undefined;
    this.size = undefined;
  }

  cancelOnce(reason) {
    const { cancel } = this;
    const cancelled = cancel(reason);
    this.clear();
    return cancelled;
  }
}

class DefaultController extends Controller {
  #object = undefined;

  constructor(stream, source) {
    super(stream, source);
    this.size = source.size;
  }

  get object() {
    return (this.#object ??= new ReadableStreamDefaultController(KEY, this));
  }

  get canCloseOrEnqueue() {
    return !this.closeRequested && this.stream.state === "readable";
  }

  shouldPull() {
    if (!this.canCloseOrEnqueue || !this.started) return false;
    return hasDefaultRequests(this.stream) || this.desiredSize > 0;
  }

  close() {
    if (!this.canCloseOrEnqueue) return;
    this.closeRequested = true;
    if (this.queue.isEmpty) {
      this.clear();
      readableClose(this.stream);
    }
  }

  enqueue(chunk) {
    if (!this.canCloseOrEnqueue) return;
    const { stream } = this;
    if (hasDefaultRequests(stream)) {
      stream.reader.requests.shift().chunk(chunk);
    } else {
      try {
        this.queue.push(chunk, +this.size(chunk));
      } catch (error) {
        this.error(error);
        throw error;
      }
    }
    this.callPull();
  }

  error(error) {
    if (this.stream.state !== "readable") return;
    this.queue.clear();
    this.clear();
    readableError(this.stream, error);
  }

  cancelSteps(reason) {
    this.queue.clear();
    return this.cancelOnce(reason);
  }

  pullSteps(request) {
    const { stream, queue } = this;
    if (queue.isEmpty) {
      stream.reader.requests.push(request);
      this.callPull();
      return;
    }
    const chunk = queue.shift();
    if (this.closeRequested && queue.isEmpty) {
      this.clear();
      readableClose(stream);
    } else {
      this.callPull();
    }
    request.chunk(chunk);
  }

  releaseSteps() {}
}

// The algorithms of a source that a handler gave; `controller` is made by then.
function algorithmsOf(source, { pull, cancel }, controllerObject) {
  return {
    pull: pull === undefined ? () => resolved() : () => promiseCall(pull, source, controllerObject()),
    cancel: cancel === undefined ? () => resolved() : (reason) => promiseCall(cancel, source, reason),
  };
}

function setUpDefaultFromSource(stream, source, dictionary, highWaterMark, size) {
  const algorithms = algorithmsOf(source, dictionary, () => controller.object);
  const controller = new DefaultController(stream, { ...algorithms, highWaterMark, size });
  const { start } = dictionary;
  controller.begin(start === undefined ? noop : () => apply(start, source, [controller.object]));
}

class ReadableStreamDefaultController {
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
    return ReadableStreamDefaultController.#of(this).desiredSize;
  }

  close() {
    const controller = ReadableStreamDefaultController.#of(this);
    if (!controller.canCloseOrEnqueue) throw new TypeError("This ReadableStream is closed.");
    controller.close();
  }

  enqueue(chunk = undefined) {
    const controller = ReadableStreamDefaultController.#of(this);
    if (!controller.canCloseOrEnqueue) throw new TypeError("Unable to enqueue");
    controller.enqueue(chunk);
  }

  error(error = undefined) {
    ReadableStreamDefaultController.#of(this).error(error);
  }
}
