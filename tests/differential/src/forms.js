import { errorName } from './show.js';

const form = () => { const f = new FormData(); f.append('a', '1'); f.append('a', '2'); f.append('f', new File(['text'], 'name.txt', { type: 'text/plain' })); return f; };
export const fields = () => { const f = form(); return [f.get('a'), f.getAll('a'), f.has('f'), [...f.keys()]]; };
export const change = () => { const f = form(); f.set('a', 'x'); f.delete('f'); return f; };
export const files = () => form().get('f');
export const blob_becomes_file = () => { const f = new FormData(); f.append('b', new Blob(['x'])); f.append('c', new Blob(['y']), 'other'); return [f.get('b').name, f.get('c').name]; };
export const round_trip = async () => new Response(form()).formData();
export const urlencoded = async () => new Response('a=1&b=%C3%BC+x&a=2', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }).formData();
export const multipart = async () => new Response('--b\r\nContent-Disposition: form-data; name="x"\r\n\r\none\r\n--b\r\nContent-Disposition: form-data; name="f"; filename="q\\"uote.bin"\r\nContent-Type: a/b\r\n\r\ntwo\r\n--b--\r\n', { headers: { 'content-type': 'multipart/form-data; boundary=b' } }).formData();
export const multipart_broken = () => errorName(() => new Response('nothing', { headers: { 'content-type': 'multipart/form-data; boundary=b' } }).formData());
export const no_form = () => errorName(() => new Response('x', { headers: { 'content-type': 'text/plain' } }).formData());
export const blob = async () => { const b = new Blob(['ab', new Uint8Array([99]), new Blob(['d'])], { type: 'Text/Plain' }); return [b.size, b.type, await b.text(), await b.slice(1, 3, 'x/y').text(), b.slice(-1).size]; };
export const blob_buffer = async () => new Blob(['é']).arrayBuffer();
export const blob_stream = async () => new Response(new Blob(['streamed']).stream()).text();
export const file = () => { const f = new File(['x'], 'a/b.txt', { type: 't/u', lastModified: 5 }); return [f.name, f.type, f.lastModified, f.size, f instanceof Blob]; };
