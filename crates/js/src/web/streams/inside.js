
// ---- What other parts use ----

function byteStream(source, { length } = {}) {
  const stream = new ReadableState();
  stream.length = length;
  stream.promised = source.promised;
  const pull = () =>
    then(promiseCall(source.pull, source), (bytes) => {
      const { controller } = stream;
      if (stream.state !== "readable") return;
      if (bytes !== undefined) {
        controller.enqueue(bytes);
        return;
      }
      controller.close();
      if (controller.pendingPullIntos.length > 0) controller.respond(0);
    });
  const cancel = (reason) => (source.cancel === undefined ? resolved() : promiseCall(source.cancel, source, reason));
  new ByteController(stream, { pull, cancel, highWaterMark: 0 }).begin(noop);
  return stream.object;
}

function bytesStream(bytes) {
  let rest = bytes.length === 0 ? undefined : bytes;
  const pull = () => {
    const taken = rest;
    rest = undefined;
    return taken;
  };
  return byteStream({ pull }, { length: bytes.length });
}

// Reads bytes, whatever kind the stream has.
function insideReader(stream) {
  const state = readableState(stream, "stream");
  const reader = acquireReader(state, false);
  const read = () => {
    const answer = deferred();
    readerRead(reader, {
      chunk: (chunk) => {
        const bytes = bytesOf(chunk);
        if (bytes !== undefined) {
          answer.resolve(bytes);
          return;
        }
        const error = new TypeError("This ReadableStream did not return bytes.");
        handled(readableCancel(state, error));
        answer.reject(error);
      },
      close: () => answer.resolve(undefined),
      error: answer.reject,
    });
    return answer.promise;
  };
  return { read, cancel: (reason) => readableCancel(state, reason), release: () => readerRelease(reader) };
}

async function readAll(stream, limit = Infinity) {
  const reader = insideReader(stream);
  const chunks = [];
  let total = 0;
  for (let bytes; (bytes = await reader.read()) !== undefined; ) {
    total += bytes.length;
    if (total > limit) {
      const error = new TypeError(`The body is longer than ${limit} bytes`);
      handled(reader.cancel(error));
      throw error;
    }
    chunks.push(bytes);
  }
  reader.release();
  if (chunks.length === 1) return chunks[0];
  const whole = new Bytes(total);
  let at = 0;
  for (const bytes of chunks) {
    whole.set(bytes, at);
    at += bytes.length;
  }
  return whole;
}

function isOf(accessor) {
  return (value) => {
    try {
      accessor(value);
      return true;
    } catch {
      return false;
    }
  };
}

const publicClasses = {
  ReadableByteStreamController,
  ReadableStream,
  ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest,
  ReadableStreamDefaultController,
  ReadableStreamDefaultReader,
};

// What the modules of the other parts take from this one.
const base = {
  acquireReader,
  apply,
  ByteController,
  Bytes,
  bytesOf,
  callbackOf,
  DefaultController,
  deferred,
  dictionaryOf,
  enforceRange,
  expose,
  handled,
  highWaterMarkOf,
  illegalInvocation,
  illegalUnless,
  KEY,
  noop,
  promiseCall,
  Queue,
  queueJob,
  ReadableState,
  readableCancel,
  readerRead,
  readerRelease,
  rejected,
  resolved,
  settled,
  sizeOf,
  sizeOne,
  strategyOf,
  then,
};

export default function (native, shared) {
  internals = shared;
  expose(publicClasses);
  delete StreamIterator.prototype.constructor;
  for (const name of ["next", "return"]) Object.defineProperty(StreamIterator.prototype, name, { enumerable: true });
  Object.defineProperty(StreamIterator.prototype, Symbol.toStringTag, {
    value: "ReadableStream AsyncIterator",
    configurable: true,
  });
  Object.defineProperty(ReadableStream.prototype, Symbol.asyncIterator, {
    value: ReadableStream.prototype.values,
    writable: true,
    configurable: true,
  });
  Object.defineProperty(ReadableStream, "from", { enumerable: true });
  internals.streams = {
    base,
    isReadableStream: isOf((value) => readableState(value)),
    isLocked: (stream) => readableState(stream).isLocked,
    isDisturbed: (stream) => readableState(stream).disturbed,
    expectedLength: (stream) => readableState(stream).length,
    /** How long it is, or how long its sender said that it is. */
    promisedLength: (stream) => readableState(stream).length ?? readableState(stream).promised,
    byteStream,
    bytesStream,
    reader: insideReader,
    readAll,
    tee: (stream) => readableTee(readableState(stream)).map((branch) => branch.object),
    cancel: (stream, reason) => readableCancel(readableState(stream), reason),
  };
  return publicClasses;
}
