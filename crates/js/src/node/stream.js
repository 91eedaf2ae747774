// `node:stream`: Node's own streams (`stream/readable_stream.js`), and what they lack here.
import { provide, requireObject } from 'node:internal/base';
import process from 'node:process';
import Stream from 'node:internal/readable_stream';
import {
  duplexFromWeb, duplexToWeb, readableFromWeb, readableToWeb, writableFromWeb, writableToWeb,
} from 'node:internal/web_streams';

const { Duplex, Readable, Writable, Transform, PassThrough } = Stream;
const define = (target, properties) => {
  for (const [name, value] of Object.entries(properties)) {
    Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
  }
};

// As in the Node that `process.version` names; the library is of one before.
Stream.setDefaultHighWaterMark(false, 65_536);

define(Readable, { fromWeb: readableFromWeb, toWeb: readableToWeb });
define(Writable, { fromWeb: writableFromWeb, toWeb: writableToWeb });
define(Duplex, { fromWeb: duplexFromWeb, toWeb: duplexToWeb });

// One end of a pair: what is written to it the other reads.
class PairedDuplex extends Duplex {
  other;
  #taken;

  _read() {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  _write(chunk, encoding, callback) {
    if (chunk.length === 0) process.nextTick(callback);
    else this.other.#give(chunk, callback);
  }

  _final(callback) {
    this.other.on('end', callback);
    this.other.push(null);
  }

  #give(chunk, callback) {
    this.push(chunk);
    this.#taken = callback;
  }
}

export function duplexPair(options = {}) {
  requireObject(options, 'options');
  const [first, second] = [new PairedDuplex(options), new PairedDuplex(options)];
  first.other = second;
  second.other = first;
  return [first, second];
}

const isArrayBufferView = ArrayBuffer.isView;
define(Stream, { duplexPair, _isArrayBufferView: isArrayBufferView });

export const {
  _isUint8Array, _uint8ArrayToBuffer, addAbortSignal, compose, destroy, finished, getDefaultHighWaterMark, isDestroyed,
  isDisturbed, isErrored, isReadable, isWritable, pipeline, promises, setDefaultHighWaterMark,
} = Stream;
export { Duplex, PassThrough, Readable, Stream, Transform, Writable, isArrayBufferView as _isArrayBufferView };
export default provide('node:stream', Stream);
