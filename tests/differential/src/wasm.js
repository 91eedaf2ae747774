import module from './module.wasm';
import starting from './start.wasm';

const imports = { env: { f: (...given) => given.reduce((sum, value) => sum + Number(value), 0), g: 7 } };
const instance = new WebAssembly.Instance(module, imports);
const { exports } = instance;
const fresh = (f = imports.env.f) => new WebAssembly.Instance(module, { env: { f, g: 7 } }).exports;

/** What is thrown: its name, its class, its message. */
const thrown = async run => {
  try {
    await run();
    return 'nothing was thrown';
  } catch (error) {
    return [error?.name, error?.constructor === globalThis[error?.name] || error?.constructor === WebAssembly[error?.name], error?.message];
  }
};
const names = async runs => Promise.all(runs.map(async run => (await thrown(run))[0]));
const EMPTY = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);

export const namespace = () => [
  Object.prototype.toString.call(WebAssembly), typeof WebAssembly,
  ['compile', 'validate', 'instantiate', 'Module', 'Instance', 'Table', 'Memory', 'Global', 'CompileError', 'LinkError', 'RuntimeError']
    .map(name => [name, WebAssembly[name].length, Object.getOwnPropertyDescriptor(WebAssembly, name).enumerable]),
];
export const module_class = () => [module instanceof WebAssembly.Module, Object.prototype.toString.call(module), Object.keys(module)];
export const no_code_at_run_time = async () => [
  await thrown(() => new WebAssembly.Module(EMPTY)), await thrown(() => WebAssembly.compile(EMPTY)),
  await thrown(() => WebAssembly.instantiate(EMPTY)), await thrown(() => WebAssembly.instantiate(1)),
];
export const validate = () => [WebAssembly.validate(EMPTY), WebAssembly.validate(EMPTY.buffer), WebAssembly.validate(new Uint8Array([1]))];
export const exports_of_module = () => WebAssembly.Module.exports(module);
export const imports_of_module = () => [WebAssembly.Module.imports(module), WebAssembly.Module.imports(starting)];
export const custom_sections = () => [
  WebAssembly.Module.customSections(module, 'meta').map(bytes => new TextDecoder().decode(bytes)),
  WebAssembly.Module.customSections(module, 'other'),
];
export const bad_module = async () => [await thrown(() => WebAssembly.Module.exports({})), await thrown(() => new WebAssembly.Instance({}))];
export const missing_imports = async () => Promise.all([
  undefined, null, 1, {}, { env: {} }, { env: { f: 1 } }, { env: { f() {}, g: 'x' } }, { env: { f() {}, g: 1n } },
].map(given => thrown(() => new WebAssembly.Instance(module, given))));
export const missing_imports_later = () => thrown(() => WebAssembly.instantiate(module, { env: {} }));
export const instantiate = async () => {
  const made = await WebAssembly.instantiate(module, imports);
  return [made instanceof WebAssembly.Instance, made.exports.add(40, 2)];
};
export const exports_object = () => [Object.getPrototypeOf(exports), Object.isFrozen(exports), Object.keys(exports)];
export const functions = () => [exports.add.name, exports.add.length, exports.two.name, typeof exports.add, 'prototype' in exports.add, exports.add === instance.exports.add];
export const not_a_constructor = async () => (await thrown(() => new exports.add()))[0];
export const arguments_are_converted = () => [
  exports.add(2, 3), exports.add('2', { valueOf: () => 4 }), exports.add(2), exports.add(2 ** 32 + 1, 1.9), exports.add(1, 2, 3), exports.add(NaN, null),
];
export const arguments_that_cannot = async () => names([() => exports.add(2n, 1), () => exports.add(Symbol(), 1), () => exports.inc64(41), () => exports.inc64()]);
export const big_integers = () => [exports.inc64(41n), exports.inc64('5'), exports.inc64(2n ** 63n - 1n), exports.inc64(2n ** 64n), exports.inc64(true)].map(String);
export const several_results = () => [exports.two(1, 2), Array.isArray(exports.two(1, 2))];
export const floats = () => [exports.f32id(1.1), exports.f64id('1.5'), exports.f64id(-0), exports.f64id(), exports.f32id(1e300)].map(String);
export const traps = () => Promise.all([
  () => exports.trap(), () => exports.div(1, 0), () => exports.load(1e9), () => exports.load(-1), () => exports.trunc(NaN), () => exports.callat(3),
  () => exports.callat(300), () => exports.callat(1), () => exports.fill(1e9), () => exports.tset(99),
].map(thrown));
export const trap_of_a_remainder = () => thrown(() => exports.rem(1, 0));
export const trap_of_a_quotient = () => thrown(() => exports.div(-(2 ** 31), -1));
export const trap_of_a_large_float = () => thrown(() => exports.trunc(1e30));
export const deep_recursion = async () => [await thrown(() => exports.deep(1e7)), exports.deep(1000)];
export const indirect = () => exports.callat(0);
export const imported_function = () => exports.callf(5);
export const imported_function_sees = () => {
  let seen;
  const made = fresh(function (...given) {
    seen = [this === undefined, given.map(value => [typeof value, String(value)])];
    return '12';
  });
  return [made.callf(-1), seen];
};
export const exceptions_pass_through = async () => {
  const error = new TypeError('mine');
  const made = fresh(() => { throw error; });
  let same = false;
  try { made.callf(1); } catch (caught) { same = caught === error; }
  let plain;
  try { fresh(() => { throw 5; }).callf(1); } catch (caught) { plain = caught; }
  return [same, plain];
};
export const calls_nest = () => {
  let depth = 0;
  const made = fresh(left => { depth++; return left > 0 ? made.callf(left - 1) + 1 : 0; });
  return [made.callf(10), depth];
};
export const memory = () => {
  const { memory } = fresh();
  return [memory instanceof WebAssembly.Memory, memory.buffer.byteLength, memory.buffer === memory.buffer, Object.prototype.toString.call(memory)];
};
export const memory_is_shared = () => {
  const made = fresh();
  new Int32Array(made.memory.buffer)[4] = 77;
  made.fill(0);
  return [made.load(16), [...new Uint8Array(made.memory.buffer, 0, 12)]];
};
export const memory_grows = () => {
  const { memory, size } = fresh();
  const { buffer } = memory;
  const view = new Uint8Array(buffer);
  view[3] = 5;
  const before = memory.grow(1);
  return [before, buffer.byteLength, view.length, view[3], memory.buffer.byteLength, new Uint8Array(memory.buffer)[3], size(), memory.buffer === buffer];
};
export const memory_grows_inside = () => {
  const { memory, grow, size } = fresh();
  const { buffer } = memory;
  const view = new DataView(buffer);
  const before = grow(2);
  let error;
  try { view.getUint8(0); } catch (caught) { error = caught.name; }
  return [before, buffer.byteLength, error, memory.buffer.byteLength, size(), grow(1000)];
};
export const memory_grows_under_an_import = () => {
  const seen = [];
  const made = fresh(() => {
    const { buffer } = made.memory;
    made.memory.grow(1);
    new Uint8Array(made.memory.buffer)[70_000] = 9;
    seen.push(buffer.byteLength, made.memory.buffer.byteLength);
    return 1;
  });
  made.callf(1);
  return [seen, made.load(70_000)];
};
export const memory_bounds = async () => Promise.all([
  () => fresh().memory.grow(100), () => fresh().memory.grow(-1), () => fresh().memory.grow(), () => new WebAssembly.Memory(),
  () => new WebAssembly.Memory({}), () => new WebAssembly.Memory({ initial: 2, maximum: 1 }), () => new WebAssembly.Memory({ initial: 70_000 }),
  () => WebAssembly.Memory({ initial: 1 }),
].map(async run => (await thrown(run)).slice(0, 2)));
export const memory_is_kept = async () => names([
  () => fresh().memory.buffer.transfer(), () => { const { buffer } = fresh().memory; structuredClone(buffer, { transfer: [buffer] }); },
]);
export const memory_is_copied = () => { const { memory } = fresh(); new Uint8Array(memory.buffer)[1] = 3; return new Uint8Array(structuredClone(memory.buffer))[1]; };
export const table = () => {
  const made = fresh();
  const { table } = made;
  return [table.length, table.get(1) === made.add, table.get(3), table.get(0)(), Object.prototype.toString.call(table)];
};
export const table_changes = () => {
  const made = fresh();
  const before = made.table.grow(2, made.callat);
  made.table.set(3, made.size);
  made.table.set(0);
  return [before, made.table.length, made.table.get(4) === made.callat, made.callat(3), made.table.get(0)];
};
export const table_of_ours = () => {
  const table = new WebAssembly.Table({ element: 'externref', initial: 2, maximum: 3 }, 'first');
  const value = { is: 1 };
  table.set(0, value);
  return [table.get(0) === value, table.get(1), table.grow(1), table.get(2), table.length];
};
export const table_bounds = () => Promise.all([
  () => new WebAssembly.Table({ element: 'x', initial: 2 }), () => new WebAssembly.Table({ element: 'anyfunc' }),
  () => new WebAssembly.Table({ element: 'anyfunc', initial: 2 }).get(2), () => new WebAssembly.Table({ element: 'anyfunc', initial: 2 }).set(5, null),
  () => new WebAssembly.Table({ element: 'anyfunc', initial: 2, maximum: 3 }).grow(2), () => fresh().table.set(0, () => 1),
].map(async run => (await thrown(run)).slice(0, 2)));
export const global = () => {
  const made = fresh();
  const before = made.counter.value;
  made.counter.value = 12.7;
  return [made.g.value, before, made.counter.value, made.counter instanceof WebAssembly.Global, `${made.counter}`];
};
export const global_of_ours = () => [
  new WebAssembly.Global({ value: 'i32', mutable: true }, 5).value, new WebAssembly.Global({ value: 'i64' }).value, new WebAssembly.Global({ value: 'f32' }, 1.1).value,
  new WebAssembly.Global({ value: 'externref' }).value, new WebAssembly.Global({ value: 'anyfunc' }).value, new WebAssembly.Global({ value: 'externref' }, 'x').valueOf(),
].map(String);
export const global_bounds = () => names([
  () => { new WebAssembly.Global({ value: 'i32' }, 5).value = 1; }, () => new WebAssembly.Global({ value: 'x' }, 5), () => { fresh().g.value = 1; },
  () => new WebAssembly.Global({ value: 'i64' }, 5),
]);
export const references = () => {
  const value = {};
  return [exports.ref(value) === value, exports.ref(undefined), exports.ref(null), exports.ref('text'), exports.ref(exports.add) === exports.add];
};
export const start_and_linking = () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const table = new WebAssembly.Table({ element: 'anyfunc', initial: 2 });
  const base = new WebAssembly.Global({ value: 'i32', mutable: true }, 41);
  const seen = [];
  const made = new WebAssembly.Instance(starting, { env: { begin: value => seen.push(value), memory, table, base } });
  return [seen, base.value, new TextDecoder().decode(new Uint8Array(memory.buffer, 8, 5)), table.get(0) === made.exports.nine, table.get(0)(), table.get(1)];
};
export const start_that_throws = async () => {
  const env = () => ({
    memory: new WebAssembly.Memory({ initial: 1 }), table: new WebAssembly.Table({ element: 'anyfunc', initial: 2 }),
    base: new WebAssembly.Global({ value: 'i32', mutable: true }, 1),
  });
  return [
    await thrown(() => new WebAssembly.Instance(starting, { env: { ...env(), begin() { throw new RangeError('begun'); } } })),
    (await thrown(() => new WebAssembly.Instance(starting, { env: { ...env(), begin() {}, table: new WebAssembly.Table({ element: 'anyfunc', initial: 1 }) } }))).slice(0, 2),
    (await thrown(() => new WebAssembly.Instance(starting, { env: { ...env(), begin() {}, base: 1 } }))).slice(0, 2),
    (await thrown(() => new WebAssembly.Instance(starting, { env: { ...env(), begin() {}, memory: {} } }))).slice(0, 2),
  ];
};
export const errors = () => {
  const error = new WebAssembly.RuntimeError('x', { cause: 1 });
  return [error.name, error.message, error.cause, error instanceof Error, String(error), Object.getPrototypeOf(WebAssembly.LinkError) === Error,
    WebAssembly.CompileError('y') instanceof WebAssembly.CompileError];
};
