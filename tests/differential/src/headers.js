import { thrown, errorName } from './show.js';

export const normal = () => new Headers({ 'X-B': ' padded ', 'x-a': '1', Accept: '*/*' });
export const append = () => { const h = new Headers([['a', '1'], ['A', '2']]); h.append('a', '3'); return [h.get('a'), [...h]]; };
export const set_cookie = () => { const h = new Headers(); h.append('set-cookie', 'a=1'); h.append('Set-Cookie', 'b=2'); return [h.getSetCookie(), h.get('set-cookie'), [...h]]; };
export const absent = () => { const h = new Headers(); return [h.get('a'), h.has('a'), h.delete('a')]; };
export const bad_name = () => errorName(() => new Headers({ 'a b': '1' }));
export const bad_value = () => errorName(() => new Headers({ a: 'x\ny' }));
export const from_headers = () => new Headers(new Headers({ a: 'b' }));
export const each = () => { const all = []; new Headers({ b: '2', a: '1' }).forEach((value, name) => all.push([name, value])); return all; };
export const iterate = () => { const h = new Headers({ b: '2', a: '1', c: '3' }); return [[...h.keys()], [...h.values()], [...h.entries()]]; };
export const numbers = () => new Headers({ a: 1, b: true, c: null });
export const immutable = async ({ env }) => errorName(async () => (await env.PARTNER.getByName('h').fetch('http://x/url')).headers.set('a', 'b'));
export const bad_pair = () => errorName(() => new Headers([['a']]));
export const deletes = () => { const h = new Headers({ a: '1', b: '2' }); h.delete('A'); h.set('b', '3'); return h; };
