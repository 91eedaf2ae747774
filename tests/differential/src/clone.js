import { errorName } from './show.js';

export const plain = () => structuredClone({ a: [1, 'x', null, undefined, true], b: { c: -0, d: NaN, e: 10n } });
export const kinds = () => structuredClone([new Date(5), /a+/giu, new Map([[1, { a: 2 }]]), new Set(['x']), new Uint16Array([1, 2]), new ArrayBuffer(2)]);
export const cycle = () => { const a = { name: 'a' }; a.self = a; const c = structuredClone(a); return [c.self === c, c !== a]; };
export const shared = () => { const x = {}; const [a, b] = structuredClone([x, x]); return a === b; };
export const errors = () => structuredClone([new TypeError('t'), new RangeError('r', { cause: 1 })]).map(e => [e.name, e.message, e instanceof Error]);
export const functions = () => errorName(() => structuredClone(() => 1));
export const symbols = () => errorName(() => structuredClone(Symbol('x')));
export const class_instances = () => { class A { x = 1; get y() { return 2; } } const c = structuredClone(new A()); return [c, c.constructor.name]; };
export const sparse = () => { const c = structuredClone([1, , 3]); return [c.length, 1 in c]; };
export const boxed = () => structuredClone([new Number(1), new String('s'), new Boolean(false)]).map(x => [typeof x, x.valueOf()]);
export const transfer = () => { const b = new ArrayBuffer(4); const c = structuredClone(b, { transfer: [b] }); return [b.byteLength, c.byteLength, b.detached]; };
export const views = () => { const buffer = new ArrayBuffer(8); const c = structuredClone([new Uint8Array(buffer, 2, 3), new DataView(buffer, 1)]); return [c[0].byteOffset, c[0].length, c[0].buffer === c[1].buffer]; };
