// Streams of Node as streams of the Web, and the other way: what `toWeb` and `fromWeb` of `node:stream` do. The library that
// the rest of `node:stream` is has none of it.
import { Buffer } from 'node:buffer';
import { abortError, coded, received, requireObject, wrongType } from 'node:internal/base';
import Stream from 'node:internal/readable_stream';

const { Duplex, Readable, Writable, finished, isDestroyed, isReadable, isWritable } = Stream;
const ignore = () => {};

const isPremature = error => error?.code === 'ERR_STREAM_PREMATURE_CLOSE';
const premature = () => coded(new Error('Premature close'), 'ERR_STREAM_PREMATURE_CLOSE');
// What the stream ended too early for.
const shown = error => (isPremature(error) ? abortError({ reason: error }) : error);

const notOfNode = (name, kind, value) =>
  coded(new TypeError(`The "${name}" argument must be an stream.${kind}.${received(value)}`), 'ERR_INVALID_ARG_TYPE');

function destroy(stream, error) {
  if (!isDestroyed(stream)) stream.destroy(error);
}

const bytesOf = chunk => new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);

// ---- To the Web.

export function readableToWeb(stream, options = {}) {
  if (typeof stream?._readableState !== 'object') throw notOfNode('streamReadable', 'Readable', stream);
  requireObject(options, 'options');
  if (isDestroyed(stream) || !isReadable(stream)) {
    const readable = new ReadableStream();
    readable.cancel();
    return readable;
  }
  const isOfObjects = stream.readableObjectMode;
  const highWaterMark = stream.readableHighWaterMark;
  const counting = isOfObjects ? new CountQueuingStrategy({ highWaterMark }) : new ByteLengthQueuingStrategy({ highWaterMark });
  const strategy = options.strategy ?? counting;
  let controller;
  stream.pause();
  const forget = finished(stream, error => {
    forget();
    // Whoever destroys it with an error afterwards is heard by nobody.
    stream.on('error', ignore);
    if (error) return controller.error(shown(error));
    return controller.close();
  });
  stream.on('data', chunk => {
    controller.enqueue(Buffer.isBuffer(chunk) && !isOfObjects ? bytesOf(chunk) : chunk);
    if (controller.desiredSize <= 0) stream.pause();
  });
  return new ReadableStream({
    start(given) { controller = given; },
    pull() { stream.resume(); },
    cancel(reason) { destroy(stream, reason); },
  }, strategy);
}

export function writableToWeb(stream) {
  if (typeof stream?._writableState !== 'object') throw notOfNode('streamWritable', 'Writable', stream);
  if (isDestroyed(stream) || !isWritable(stream)) {
    const writable = new WritableStream();
    writable.close();
    return writable;
  }
  const highWaterMark = stream.writableHighWaterMark;
  const strategy = stream.writableObjectMode ? new CountQueuingStrategy({ highWaterMark }) : { highWaterMark };
  let controller;
  let drained;
  let closed;
  const forget = finished(stream, error => {
    forget();
    stream.on('error', ignore);
    if (error) {
      drained?.reject(shown(error));
      closed?.reject(shown(error));
      controller.error(shown(error));
    } else if (closed === undefined) {
      controller.error(abortError());
    }
    closed?.resolve();
  });
  stream.on('drain', () => drained?.resolve());
  const drain = () => {
    drained = Promise.withResolvers();
    return drained.promise.finally(() => { drained = undefined; });
  };
  // Where the application has filled the stream itself, the chunk waits for room. (Node drops it.)
  const put = chunk => {
    if (stream.writableNeedDrain) return drain().then(() => put(chunk));
    return stream.write(chunk) ? undefined : drain();
  };
  return new WritableStream({
    start(given) { controller = given; },
    write: put,
    abort(reason) { destroy(stream, reason); },
    close() {
      closed = Promise.withResolvers();
      if (!stream.writableEnded) stream.end();
      if (stream.writableFinished) closed.resolve();
      return closed.promise;
    },
  }, strategy);
}

export function duplexToWeb(duplex) {
  if (typeof duplex?._writableState !== 'object' || typeof duplex._readableState !== 'object') {
    throw notOfNode('duplex', 'Duplex', duplex);
  }
  return { writable: writableToWeb(duplex), readable: readableToWeb(duplex) };
}

// ---- From the Web. Each gives a part of the options of a stream of Node, and looks after the end of the other stream.

function source(readable) {
  const reader = readable.getReader();
  let isOver = false;
  return {
    options: {
      read() {
        reader.read().then(
          ({ value, done }) => { this.push(done ? null : value); },
          error => destroy(this, error),
        );
      },
    },
    watch(stream) {
      reader.closed.then(() => { isOver = true; }, error => {
        isOver = true;
        destroy(stream, error);
      });
    },
    end: error => (isOver ? undefined : reader.cancel(error)),
  };
}

function sink(writable, { decodeStrings = true, objectMode = false }) {
  const writer = writable.getWriter();
  let isOver = false;
  const chunkOf = (chunk, encoding) =>
    (typeof chunk === 'string' && decodeStrings && !objectMode ? bytesOf(Buffer.from(chunk, encoding)) : chunk);
  return {
    options: {
      write(chunk, encoding, callback) {
        writer.ready.then(() => writer.write(chunkOf(chunk, encoding))).then(() => callback(), callback);
      },
      final(callback) {
        if (isOver) callback();
        else writer.close().then(() => callback(), callback);
      },
    },
    watch(stream) {
      writer.closed.then(() => {
        isOver = true;
        if (!stream.writableEnded) destroy(stream, premature());
      }, error => {
        isOver = true;
        destroy(stream, error);
      });
    },
    end(error) {
      if (isOver) return undefined;
      return error ? writer.abort(error) : writer.close();
    },
  };
}

function build(Class, sides, chosen) {
  const destroyed = (error, callback) => {
    const done = () => callback(error);
    Promise.all(sides.map(side => side.end(error))).then(done, done);
  };
  const stream = new Class({ ...chosen, ...Object.assign({}, ...sides.map(side => side.options)), destroy: destroyed });
  for (const side of sides) side.watch(stream);
  return stream;
}

export function readableFromWeb(readable, options = {}) {
  if (!(readable instanceof ReadableStream)) throw wrongType('readableStream', 'ReadableStream', readable);
  requireObject(options, 'options');
  const { highWaterMark, encoding, objectMode = false, signal } = options;
  return build(Readable, [source(readable)], { highWaterMark, encoding, objectMode, signal });
}

export function writableFromWeb(writable, options = {}) {
  if (!(writable instanceof WritableStream)) throw wrongType('writableStream', 'WritableStream', writable);
  requireObject(options, 'options');
  const { highWaterMark, decodeStrings, objectMode = false, signal } = options;
  return build(Writable, [sink(writable, options)], { highWaterMark, decodeStrings, objectMode, signal });
}

export function duplexFromWeb(pair, options = {}) {
  requireObject(pair, 'pair');
  const { readable, writable } = pair;
  if (!(readable instanceof ReadableStream)) throw wrongType('pair.readable', 'ReadableStream', readable);
  if (!(writable instanceof WritableStream)) throw wrongType('pair.writable', 'WritableStream', writable);
  requireObject(options, 'options');
  const { allowHalfOpen = false, objectMode = false, encoding, decodeStrings, highWaterMark, signal } = options;
  const chosen = {
    allowHalfOpen, encoding, decodeStrings, highWaterMark, signal,
    readableObjectMode: objectMode, writableObjectMode: objectMode,
  };
  return build(Duplex, [source(readable), sink(writable, options)], chosen);
}
