// Writable streams, pipes and transform streams: the second of the modules (see base.js).

let internals;
let acquireReader, apply, ByteController, callbackOf, DefaultController, deferred, expose, handled,
  highWaterMarkOf, illegalInvocation, illegalUnless, KEY, noop, promiseCall, Queue, queueJob, ReadableState, readableCancel,
  readerRead, readerRelease, rejected, resolved, settled, sizeOf, strategyOf, then;
