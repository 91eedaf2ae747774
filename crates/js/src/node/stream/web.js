// `node:stream/web`: the globals.
import { provide } from 'node:internal/base';

export const {
  ByteLengthQueuingStrategy, CompressionStream, CountQueuingStrategy, DecompressionStream, ReadableByteStreamController,
  ReadableStream, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController,
  ReadableStreamDefaultReader, TextDecoderStream, TextEncoderStream, TransformStream, TransformStreamDefaultController,
  WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter,
} = globalThis;

export default provide('node:stream/web', {
  ByteLengthQueuingStrategy, CompressionStream, CountQueuingStrategy, DecompressionStream, ReadableByteStreamController,
  ReadableStream, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController,
  ReadableStreamDefaultReader, TextDecoderStream, TextEncoderStream, TransformStream, TransformStreamDefaultController,
  WritableStream, WritableStreamDefaultController, WritableStreamDefaultWriter,
});
