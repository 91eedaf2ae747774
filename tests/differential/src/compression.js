import { errorName } from './show.js';

const through = async (body, stream) => new Response(new Response(body).body.pipeThrough(stream)).bytes();
export const gzip = async () => new TextDecoder().decode(await through(await through('some text '.repeat(50), new CompressionStream('gzip')), new DecompressionStream('gzip')));
export const deflate = async () => new TextDecoder().decode(await through(await through('x'.repeat(999), new CompressionStream('deflate')), new DecompressionStream('deflate'))).length;
export const raw = async () => new TextDecoder().decode(await through(await through('raw', new CompressionStream('deflate-raw')), new DecompressionStream('deflate-raw')));
export const known = async () => new TextDecoder().decode(await through(new Uint8Array([0x4b, 0x4c, 0x4a, 0x06, 0x00]), new DecompressionStream('deflate-raw')));
export const broken = () => errorName(() => through(new Uint8Array([1, 2, 3]), new DecompressionStream('gzip')));
export const unknown = () => errorName(() => new CompressionStream('lzma'));
