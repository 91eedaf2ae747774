// `node:stream/consumers`: all of a stream, of either kind, or of what can be iterated.
import { Buffer } from 'node:buffer';
import { provide } from 'node:internal/base';

const bytesOf = chunk => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk);

export async function blob(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return new Blob(chunks);
}

export async function buffer(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(bytesOf(chunk));
  return Buffer.concat(chunks);
}

export async function arrayBuffer(stream) {
  const { buffer: memory, byteOffset, byteLength } = await buffer(stream);
  return memory.slice(byteOffset, byteOffset + byteLength);
}

export async function text(stream) {
  const decoder = new TextDecoder();
  let all = '';
  for await (const chunk of stream) all += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
  return all + decoder.decode();
}

export async function json(stream) {
  return JSON.parse(await text(stream));
}

export default provide('node:stream/consumers', { arrayBuffer, blob, buffer, json, text });
