
// ---- Pipes ----

// ReadableStreamPipeTo: no chunk that was read is lost, and an error goes both ways unless an option prevents it.
function pipe(source, destination, { preventAbort, preventCancel, preventClose, signal }) {
  const reader = acquireReader(source, false);
  const writer = acquireWriter(destination);
  source.disturbed = true;
  const answer = deferred();
  let isShuttingDown = false;
  let stopListening;
  let lastWrite = resolved();

  function finalize(outcome) {
    writerRelease(writer);
    readerRelease(reader);
    stopListening?.();
    if (outcome === undefined) answer.resolve();
    else answer.reject(outcome.error);
  }

  function writesFinished() {
    const seen = lastWrite;
    const next = () => (seen === lastWrite ? undefined : writesFinished());
    return then(seen, next, next);
  }

  // `outcome` is { error }, or undefined for a clean end.
  function shutdown(outcome, action) {
    if (isShuttingDown) return;
    isShuttingDown = true;
    const finish = () => {
      if (action === undefined) {
        finalize(outcome);
        return;
      }
      then(
        action(),
        () => finalize(outcome),
        (error) => finalize({ error }),
      );
    };
    if (destination.state === "writable" && !destination.isClosing) then(writesFinished(), finish);
    else finish();
  }

  function onAbort() {
    const error = internals.abortReason(signal);
    const action = () => {
      const aborted = preventAbort || destination.state !== "writable" ? resolved() : writableAbort(destination, error);
      const cancelled = preventCancel || source.state !== "readable" ? resolved() : readableCancel(source, error);
      return both(aborted, cancelled);
    };
    shutdown({ error }, action);
  }

  function onSourceError(error) {
    shutdown({ error }, preventAbort ? undefined : () => writableAbort(destination, error));
  }

  function onDestinationError(error) {
    shutdown({ error }, preventCancel ? undefined : () => readableCancel(source, error));
  }

  function onSourceClose() {
    shutdown(undefined, preventClose ? undefined : () => writerCloseWithErrors(writer));
  }

  function step() {
    if (isShuttingDown) return;
    then(
      writer.ready.promise,
      () => {
        if (isShuttingDown) return;
        readerRead(reader, {
          // A read must not call the sink within the source's enqueue.
          chunk: (value) => {
            lastWrite = queueJob(() => {
              // The writer has gone if the destination failed in between.
              if (writer.stream !== undefined) lastWrite = handled(writerWrite(writer, value));
              step();
            });
          },
          close: noop,
          error: noop,
        });
      },
      noop,
    );
  }

  if (signal !== undefined) {
    if (signal.aborted) {
      onAbort();
      return answer.promise;
    }
    stopListening = internals.onAbort(signal, onAbort);
  }
  if (source.state === "errored") onSourceError(source.error);
  else then(reader.closed.promise, onSourceClose, onSourceError);
  if (destination.state === "errored") onDestinationError(destination.error);
  else then(writer.closed.promise, undefined, onDestinationError);
  if (source.state === "closed") onSourceClose();
  if (destination.isClosing || destination.state === "closed") {
    onDestinationError(new TypeError("The destination of the pipe is closing or closed"));
  }
  step();
  return answer.promise;
}

function both(first, second) {
  return then(first, () => second, (error) => (handled(second), rejected(error)));
}
