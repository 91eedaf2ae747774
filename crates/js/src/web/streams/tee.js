
// ---- Tee ----

function readableTee(stream) {
  return stream.controller instanceof ByteController ? byteTee(stream) : defaultTee(stream);
}

// What both kinds share: a source is cancelled when both branches are, with both reasons.
function teeCancels(cancelSource) {
  const answer = deferred();
  const isCancelled = [false, false];
  const reasons = [undefined, undefined];
  const cancelOf = (branch) => (reason) => {
    isCancelled[branch] = true;
    reasons[branch] = reason;
    if (isCancelled[1 - branch]) answer.resolve(cancelSource([reasons[0], reasons[1]]));
    return answer.promise;
  };
  return { answer, isCancelled, cancelOf };
}

function defaultTee(stream) {
  const reader = acquireReader(stream, false);
  let reading = false;
  let readAgain = false;
  const { answer, isCancelled, cancelOf } = teeCancels((reasons) => readableCancel(stream, reasons));
  const branches = [];

  function pull() {
    if (reading) {
      readAgain = true;
      return resolved();
    }
    reading = true;
    readerRead(reader, {
      // After a microtask, so that an error that the same turn brings is seen first.
      chunk: (value) =>
        queueJob(() => {
          readAgain = false;
          for (const [index, branch] of branches.entries()) {
            if (!isCancelled[index]) branch.controller.enqueue(value);
          }
          reading = false;
          if (readAgain) pull();
        }),
      close: () => {
        reading = false;
        for (const [index, branch] of branches.entries()) {
          if (!isCancelled[index]) branch.controller.close();
        }
        if (!isCancelled[0] || !isCancelled[1]) answer.resolve();
      },
      error: () => {
        reading = false;
      },
    });
    return resolved();
  }

  for (const index of [0, 1]) {
    const branch = new ReadableState();
    const source = { pull, cancel: cancelOf(index), highWaterMark: 1, size: sizeOne };
    new DefaultController(branch, source).begin(noop);
    branches.push(branch);
  }
  then(reader.closed.promise, undefined, (error) => {
    for (const branch of branches) branch.controller.error(error);
    if (!isCancelled[0] || !isCancelled[1]) answer.resolve();
  });
  return branches;
}

const queueJob = (job) => then(resolved(), job);

function byteTee(stream) {
  let reader = acquireReader(stream, false);
  let reading = false;
  const readAgain = [false, false];
  const { answer, isCancelled, cancelOf } = teeCancels((reasons) => readableCancel(stream, reasons));
  const branches = [];

  function forwardError(thisReader) {
    then(thisReader.closed.promise, undefined, (error) => {
      if (thisReader !== reader) return;
      for (const branch of branches) branch.controller.error(error);
      if (!isCancelled[0] || !isCancelled[1]) answer.resolve();
    });
  }

  function switchTo(isByob) {
    if (reader.isByob === isByob) return;
    readerRelease(reader);
    reader = acquireReader(stream, isByob);
    forwardError(reader);
  }

  function ended(error) {
    for (const branch of branches) branch.controller.error(error);
    answer.resolve(readableCancel(stream, error));
  }

  function copyOf(chunk) {
    return new Bytes(chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.byteLength));
  }

  function afterChunk() {
    reading = false;
    if (readAgain[0]) pullOf(0)();
    else if (readAgain[1]) pullOf(1)();
  }

  function pullWithDefault() {
    switchTo(false);
    readerRead(reader, {
      chunk: (value) =>
        queueJob(() => {
          readAgain.fill(false);
          let second = value;
          if (!isCancelled[0] && !isCancelled[1]) {
            try {
              second = copyOf(value);
            } catch (error) {
              ended(error);
              return;
            }
          }
          if (!isCancelled[0]) branches[0].controller.enqueue(value);
          if (!isCancelled[1]) branches[1].controller.enqueue(second);
          afterChunk();
        }),
      close: () => {
        reading = false;
        for (const [index, branch] of branches.entries()) {
          if (!isCancelled[index]) branch.controller.close();
        }
        for (const branch of branches) {
          if (branch.controller.pendingPullIntos.length > 0) branch.controller.respond(0);
        }
        if (!isCancelled[0] || !isCancelled[1]) answer.resolve();
      },
      error: () => {
        reading = false;
      },
    });
  }

  function pullWithByob(view, index) {
    switchTo(true);
    const byobController = branches[index].controller;
    const otherController = branches[1 - index].controller;
    readerReadInto(reader, view, 1, {
      chunk: (value) =>
        queueJob(() => {
          readAgain.fill(false);
          const byobCancelled = isCancelled[index];
          const otherCancelled = isCancelled[1 - index];
          if (!otherCancelled) {
            let copy;
            try {
              copy = copyOf(value);
            } catch (error) {
              ended(error);
              return;
            }
            if (!byobCancelled) byobController.respondWithNewView(value);
            otherController.enqueue(copy);
          } else if (!byobCancelled) {
            byobController.respondWithNewView(value);
          }
          afterChunk();
        }),
      close: (value) => {
        reading = false;
        const byobCancelled = isCancelled[index];
        const otherCancelled = isCancelled[1 - index];
        if (!byobCancelled) byobController.close();
        if (!otherCancelled) otherController.close();
        if (value !== undefined) {
          if (!byobCancelled) byobController.respondWithNewView(value);
          if (!otherCancelled && otherController.pendingPullIntos.length > 0) otherController.respond(0);
        }
        if (!byobCancelled || !otherCancelled) answer.resolve();
      },
      error: () => {
        reading = false;
      },
    });
  }

  const pullOf = (index) => () => {
    if (reading) {
      readAgain[index] = true;
      return resolved();
    }
    reading = true;
    const request = branches[index].controller.currentRequest;
    if (request === undefined) pullWithDefault();
    else pullWithByob(request.view, index);
    return resolved();
  };

  for (const index of [0, 1]) {
    const branch = new ReadableState();
    new ByteController(branch, { pull: pullOf(index), cancel: cancelOf(index), highWaterMark: 0 }).begin(noop);
    branches.push(branch);
  }
  forwardError(reader);
  return branches;
}
