
// ---- The part ----

const publicClasses = {
  TransformStream,
  TransformStreamDefaultController,
  WritableStream,
  WritableStreamDefaultController,
  WritableStreamDefaultWriter,
};

export default function (native, shared) {
  internals = shared;
  internals.load("streams");
  ({
    acquireReader, apply, ByteController, callbackOf, DefaultController, deferred, expose, handled,
    highWaterMarkOf, illegalInvocation, illegalUnless, KEY, noop, promiseCall, Queue, queueJob, ReadableState,
    readableCancel, readerRead, readerRelease, rejected, resolved, settled, sizeOf, strategyOf, then,
  } = internals.streams.base);
  expose(publicClasses);
  const isWritableStream = (value) => {
    try {
      return writableState(value) !== undefined;
    } catch {
      return false;
    }
  };
  internals.pipes = { isWritableStream, pipe, TransformState, writableAbort, writableClose, writableState, WritableStream };
  return publicClasses;
}
