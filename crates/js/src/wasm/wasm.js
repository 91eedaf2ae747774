// The JavaScript interface of WebAssembly, as workerd has it: modules come from imports, never from bytes at run time.
// What the objects of a group share is its `state`; they know what they stand for by numbers.
const uncurry = method => Function.prototype.call.bind(method);
const { create, defineProperty, freeze, getOwnPropertyDescriptor, setPrototypeOf } = Object;
const { apply, construct, ownKeys } = Reflect;
const bind = uncurry(Function.prototype.bind);
const mapGet = uncurry(Map.prototype.get);
const mapSet = uncurry(Map.prototype.set);
const weakSetAdd = uncurry(WeakSet.prototype.add);
const weakSetHas = uncurry(WeakSet.prototype.has);
const deref = uncurry(WeakRef.prototype.deref);
const isDetached = uncurry(getOwnPropertyDescriptor(ArrayBuffer.prototype, 'detached').get);

const PAGES_MAX = 65_536;
const ELEMENTS_MAX = 10_000_000;
const DEFAULTS = { __proto__: null, i32: 0, i64: 0n, f32: 0, f64: 0, externref: undefined, anyfunc: null };

/** A list that has what is put into it alone: what an application does to `Array.prototype` changes nothing of it. */
const newList = () => setPrototypeOf([], null);

const isObject = value => (typeof value === 'object' && value !== null) || typeof value === 'function';

/** An error class of this namespace: as the engine's own ones, also callable without `new`. */
function errorClass(name) {
  function WasmError(message) {
    const given = message === undefined ? [] : [message, arguments[1]];
    return construct(Error, given, new.target ?? WasmError);
  }
  defineProperty(WasmError, 'name', { value: name, configurable: true });
  setPrototypeOf(WasmError, Error);
  const prototype = create(Error.prototype);
  for (const [key, value] of [['constructor', WasmError], ['name', name], ['message', '']]) {
    defineProperty(prototype, key, { value, writable: true, enumerable: false, configurable: true });
  }
  defineProperty(WasmError, 'prototype', { value: prototype, writable: false });
  return WasmError;
}

/** An unsigned long, as Web IDL enforces its range. */
function toIndex(value, what) {
  const number = +value;
  if (!Number.isFinite(number)) throw new TypeError(`${what} must be convertible to a valid number`);
  const index = Math.trunc(number);
  if (index < 0) throw new TypeError(`${what} must be non-negative`);
  if (index > 0xffff_ffff) throw new TypeError(`${what} must be in the unsigned long range`);
  return index + 0;
}

/** The bounds that a descriptor has. */
function toLimits(descriptor, max, what) {
  const bounded = (key, least, value) => {
    if (value === undefined) return undefined;
    const index = toIndex(value, `${what}: Property '${key}': value ${String(value)}`);
    if (index > max && key === 'initial') {
      throw new RangeError(`${what}: Property '${key}': value ${index} is above the upper bound ${max}`);
    }
    if (index < least) {
      throw new RangeError(`${what}: Property '${key}': value ${index} is below the lower bound ${least}`);
    }
    return index;
  };
  const initial = bounded('initial', 0, descriptor.initial);
  if (initial === undefined) throw new TypeError(`${what}: Property 'initial' is required`);
  return { initial, maximum: bounded('maximum', initial, descriptor.maximum) };
}

function toDescriptor(value, what, kind) {
  if (!isObject(value)) throw new TypeError(`${what}: Argument 0 must be a ${kind} descriptor`);
  return value;
}

export default function (native, internals) {
  const { define } = internals;
  const CompileError = errorClass('CompileError');
  const LinkError = errorClass('LinkError');
  const RuntimeError = errorClass('RuntimeError');
  // What only this part can give to constructors.
  const token = {};
  const memoryBuffers = new WeakSet();

  function newState() {
    return {
      __proto__: null,
      handle: native.group(),
      /** Functions that WebAssembly calls. */
      imports: newList(),
      /** Values that WebAssembly holds, and their numbers. */
      externs: newList(), externNumbers: new Map(),
      /** The objects of the group, by number. */
      functions: newList(), functionNumbers: new Map(), memories: newList(), tables: newList(), globals: newList(),
      /** The buffers of memories that show all of them. */
      buffers: newList(),
    };
  }

  // What one turn makes is one group, unless it is linked to older ones.
  let latest;
  let latestTurn;
  function currentState() {
    const turn = native.turn();
    let state = turn === latestTurn ? deref(latest) : undefined;
    if (state === undefined) {
      state = newState();
      latest = new WeakRef(state);
      latestTurn = turn;
    }
    return state;
  }

  /** The exported function of a number. */
  function functionOf(state, number) {
    let exported = state.functions[number];
    if (exported === undefined) {
      const { call, name, length } = native.function(state.handle, number);
      exported = bind(call, undefined, state);
      defineProperty(exported, 'name', { value: name, configurable: true });
      defineProperty(exported, 'length', { value: length, configurable: true });
      state.functions[number] = exported;
      mapSet(state.functionNumbers, exported, number);
    }
    return exported;
  }

  const functionNumber = (state, value) => mapGet(state.functionNumbers, value);

  function externNumber(state, value) {
    let number = mapGet(state.externNumbers, value);
    if (number === undefined) {
      number = state.externs.length;
      state.externs[number] = value;
      mapSet(state.externNumbers, value, number);
    }
    return number;
  }

  function listOf(value, length) {
    if (!isObject(value)) throw new TypeError('multi-return value must be iterable');
    const list = [...value];
    if (list.length !== length) throw new TypeError('multi-return length mismatch');
    return list;
  }

  // What stands behind the objects, which their classes alone can see.
  let handleOf;
  let ofMemory;
  let ofTable;
  let ofGlobal;

  const receiver = (of, what, name) => of ?? fail(`${what}: Receiver is not a WebAssembly.${name}`);
  function fail(message) {
    throw new TypeError(message);
  }

  function moduleOf(value, what) {
    return handleOf(value) ?? fail(`${what}: Argument 0 must be a WebAssembly.Module`);
  }

  class Module {
    #handle;

    constructor(source) {
      if (source !== token) {
        throw new CompileError('WebAssembly.Module(): Wasm code generation disallowed by embedder');
      }
      this.#handle = arguments[1];
    }

    static {
      handleOf = value => (isObject(value) && #handle in value ? value.#handle : undefined);
    }

    static exports(module) {
      return native.exports(moduleOf(module, 'WebAssembly.Module.exports()'));
    }

    static imports(module) {
      return native.imports(moduleOf(module, 'WebAssembly.Module.imports()'));
    }

    static customSections(module, sectionName) {
      const what = 'WebAssembly.Module.customSections()';
      const handle = moduleOf(module, what);
      if (sectionName === undefined) throw new TypeError(`${what}: Argument 1 is required`);
      return native.customSections(handle, internals.toUsvString(sectionName));
    }
  }

  function newMemory(descriptor) {
    const what = 'WebAssembly.Memory()';
    toDescriptor(descriptor, what, 'memory');
    const { initial, maximum } = toLimits(descriptor, PAGES_MAX, what);
    const state = currentState();
    const number = native.memory(state.handle, initial, maximum && Math.min(maximum, PAGES_MAX));
    if (number === undefined) throw new RangeError(`${what}: could not allocate memory`);
    return { state, number };
  }

  class Memory {
    #of;

    constructor(descriptor) {
      this.#of = descriptor === token ? arguments[1] : newMemory(descriptor);
      this.#of.state.memories[this.#of.number] = this;
    }

    static {
      ofMemory = value => (isObject(value) && #of in value ? value.#of : undefined);
    }

    get buffer() {
      const { state, number } = receiver(ofMemory(this), 'WebAssembly.Memory.buffer', 'Memory');
      let buffer = state.buffers[number];
      if (buffer === undefined || isDetached(buffer)) {
        buffer = native.buffer(state.handle, number);
        state.buffers[number] = buffer;
        weakSetAdd(memoryBuffers, buffer);
      }
      return buffer;
    }

    grow(delta) {
      const what = 'WebAssembly.Memory.grow()';
      const { state, number } = receiver(ofMemory(this), what, 'Memory');
      const before = native.grow(state.handle, state, number, toIndex(delta, `${what}: Argument 0`));
      if (before === undefined) throw new RangeError(`${what}: Maximum memory size exceeded`);
      return before;
    }
  }

  function newTable(descriptor, given) {
    const what = 'WebAssembly.Table()';
    toDescriptor(descriptor, what, 'table');
    const type = `${descriptor.element}`;
    if (type !== 'externref' && type !== 'anyfunc') {
      throw new TypeError(`${what}: Descriptor property 'element' must be a WebAssembly reference type`);
    }
    const { initial, maximum } = toLimits(descriptor, ELEMENTS_MAX, what);
    const state = currentState();
    const first = given[1] === undefined && type === 'anyfunc' ? null : given[1];
    const number = native.table(state.handle, state, type, initial, maximum, first);
    if (number === undefined) throw new RangeError(`${what}: could not allocate the table`);
    return { state, number };
  }

  class Table {
    #of;

    constructor(descriptor) {
      this.#of = descriptor === token ? arguments[1] : newTable(descriptor, arguments);
      this.#of.state.tables[this.#of.number] = this;
    }

    static {
      ofTable = value => (isObject(value) && #of in value ? value.#of : undefined);
    }

    get length() {
      const { state, number } = receiver(ofTable(this), 'WebAssembly.Table.length', 'Table');
      return native.tableLength(state.handle, number);
    }

    get(index) {
      const what = 'WebAssembly.Table.get()';
      const { state, number } = receiver(ofTable(this), what, 'Table');
      const at = toIndex(index, `${what}: Argument 0`);
      needPlace(state.handle, number, at, what);
      return native.tableGet(state.handle, state, number, at);
    }

    set(index) {
      const what = 'WebAssembly.Table.set()';
      const { state, number } = receiver(ofTable(this), what, 'Table');
      const at = toIndex(index, `${what}: Argument 0`);
      needPlace(state.handle, number, at, what);
      native.tableSet(state.handle, state, number, at, element(state.handle, number, arguments));
    }

    grow(delta) {
      const what = 'WebAssembly.Table.grow()';
      const { state, number } = receiver(ofTable(this), what, 'Table');
      const by = toIndex(delta, `${what}: Argument 0`);
      const before = native.tableGrow(state.handle, state, number, by, element(state.handle, number, arguments));
      if (before === undefined) throw new RangeError(`${what}: failed to grow table by ${by}`);
      return before;
    }
  }

  function needPlace(handle, number, index, what) {
    const size = native.tableLength(handle, number);
    if (index >= size) {
      const kind = native.tableHasFunctions(handle, number) ? 'funcref' : 'externref';
      throw new RangeError(`${what}: invalid address ${index} in ${kind} table of size ${size}`);
    }
  }

  /** What is to be put into a table: the second argument, or what a table has without. */
  function element(handle, number, given) {
    return given.length < 2 && native.tableHasFunctions(handle, number) ? null : given[1];
  }

  function newGlobal(descriptor, given) {
    const what = 'WebAssembly.Global()';
    toDescriptor(descriptor, what, 'global');
    const isMutable = !!descriptor.mutable;
    const type = `${descriptor.value}`;
    if (!(type in DEFAULTS)) {
      throw new TypeError(`${what}: Descriptor property 'value' must be a WebAssembly type`);
    }
    const value = given[1] === undefined ? DEFAULTS[type] : given[1];
    const state = currentState();
    return { state, number: native.global(state.handle, state, type, isMutable, value) };
  }

  class Global {
    #of;

    constructor(descriptor) {
      this.#of = descriptor === token ? arguments[1] : newGlobal(descriptor, arguments);
      this.#of.state.globals[this.#of.number] = this;
    }

    static {
      ofGlobal = value => (isObject(value) && #of in value ? value.#of : undefined);
    }

    get value() {
      const { state, number } = receiver(ofGlobal(this), 'get WebAssembly.Global.value', 'Global');
      return native.globalGet(state.handle, state, number);
    }

    set value(value) {
      const { state, number } = receiver(ofGlobal(this), 'set WebAssembly.Global.value', 'Global');
      if (!native.globalIsMutable(state.handle, number)) {
        throw new TypeError("set WebAssembly.Global.value: Can't set the value of an immutable global.");
      }
      native.globalSet(state.handle, state, number, value);
    }

    valueOf() {
      const { state, number } = receiver(ofGlobal(this), 'WebAssembly.Global.valueOf()', 'Global');
      return native.globalGet(state.handle, state, number);
    }
  }

  /** By the kinds of imports and exports. */
  const members = {
    __proto__: null,
    memory: { of: ofMemory, make: of => of.state.memories[of.number] ?? new Memory(token, of), name: 'Memory' },
    table: { of: ofTable, make: of => of.state.tables[of.number] ?? new Table(token, of), name: 'Table' },
    global: { of: ofGlobal, make: of => of.state.globals[of.number] ?? new Global(token, of), name: 'Global' },
  };

  /** What the imports object has for each import, and the group that this decides. */
  function resolve(module, imports, what) {
    const wanted = native.imports(module);
    if (imports !== undefined && !isObject(imports)) fail(`${what}: Argument 1 must be an object`);
    if (imports === undefined && wanted.length > 0) {
      fail(`${what}: Imports argument must be present and must be an object`);
    }
    let state;
    const found = newList();
    for (let index = 0; index < wanted.length; index++) {
      const { module: from, name, kind } = wanted[index];
      const namespace = imports[from];
      if (!isObject(namespace)) {
        fail(`${what}: Import #${index} "${from}": module is not an object or function`);
      }
      const value = namespace[name];
      const of = kind === 'function' ? undefined : members[kind].of(value);
      const refuse = text => new LinkError(`${what}: Import #${index} "${from}" "${name}": ${text}`);
      if (kind === 'function') {
        if (typeof value !== 'function') throw refuse('function import requires a callable');
      } else if (of !== undefined) {
        state ??= of.state;
        if (of.state !== state) {
          throw refuse('cannot be linked with the imports before it: make them in one turn, or take them from one instance');
        }
      } else if (kind !== 'global') {
        throw refuse(`${kind} import must be a WebAssembly.${members[kind].name} object`);
      }
      found[index] = { kind, value, of, refuse };
    }
    return { state: state ?? currentState(), found };
  }

  /** What an import is for the engine. */
  function item(state, module, index, { kind, value, of, refuse }) {
    if (of !== undefined) return [kind, of.number];
    if (kind === 'function') {
      const number = functionNumber(state, value);
      if (number !== undefined) return ['function', number];
      state.imports[state.imports.length] = value;
      return ['import', state.imports.length - 1];
    }
    const { type, isMutable } = native.importedGlobal(module, index);
    const isFit = {
      __proto__: null,
      i64: () => typeof value === 'bigint',
      anyfunc: () => value === null || functionNumber(state, value) !== undefined,
      externref: () => true,
    }[type] ?? (() => typeof value === 'number');
    if (isMutable || !isFit()) {
      throw refuse('global import must be a number, valid Wasm reference, or WebAssembly.Global object');
    }
    return ['value', value];
  }

  function instantiate(module, imports, what) {
    const { state, found } = resolve(module, imports, what);
    const items = newList();
    for (let index = 0; index < found.length; index++) items[index] = item(state, module, index, found[index]);
    const { entries, start } = native.instantiate(state.handle, state, module, items, what);
    const exports = create(null);
    for (let index = 0; index < entries.length; index++) {
      const { name, kind, number } = entries[index];
      const value = kind === 'function' ? functionOf(state, number) : members[kind].make({ state, number });
      defineProperty(exports, name, { value, enumerable: true, writable: true, configurable: true });
    }
    freeze(exports);
    if (start !== undefined) functionOf(state, start)();
    return exports;
  }

  class Instance {
    #exports;

    constructor(module) {
      const what = 'WebAssembly.Instance()';
      this.#exports = module === token ? arguments[1] : instantiate(moduleOf(module, what), arguments[1], what);
    }

    get exports() {
      if (!isObject(this) || !(#exports in this)) {
        throw new TypeError('WebAssembly.Instance.exports: Receiver is not a WebAssembly.Instance');
      }
      return this.#exports;
    }
  }

  const noCode = what => new CompileError(`${what}: Wasm code generation disallowed by embedder`);

  const functions = {
    // eslint-disable-next-line no-unused-vars
    async compile(bytes) {
      throw noCode('WebAssembly.compile()');
    },
    validate(bytes) {
      const given = internals.bytesOf(bytes);
      if (given === undefined) fail('WebAssembly.validate(): Argument 0 must be a buffer source');
      return native.validate(given);
    },
    async instantiate(source) {
      const what = 'WebAssembly.instantiate()';
      const handle = handleOf(source);
      if (handle !== undefined) return new Instance(token, instantiate(handle, arguments[1], what));
      if (internals.bytesOf(source) !== undefined) throw noCode(what);
      return fail(`${what}: Argument 0 must be a buffer source or a WebAssembly.Module object`);
    },
  };

  // A memory's buffer belongs to the memory: nobody may take it over.
  const prototype = ArrayBuffer.prototype;
  for (const name of ['transfer', 'transferToFixedLength', 'transferToImmutable']) {
    const method = prototype[name];
    if (typeof method !== 'function') continue;
    const guarded = {
      [name](newLength) {
        if (isObject(this) && weakSetHas(memoryBuffers, this)) {
          throw new TypeError('ArrayBuffer is not detachable and could not be cloned.');
        }
        return apply(method, this, arguments);
      },
    }[name];
    defineProperty(guarded, 'length', { value: 0, configurable: true });
    define(prototype, { [name]: guarded });
  }

  internals.isMemoryBuffer = value => weakSetHas(memoryBuffers, value);
  internals.wasm = {
    functionNumber, functionOf, externNumber, listOf,
    error: (kind, message) => new { CompileError, LinkError, RuntimeError }[kind](message),
    /** The default export of a module that is WebAssembly. */
    module: name => new Module(token, native.module(name)),
  };

  const WebAssembly = { ...functions };
  for (const Class of [Module, Instance, Table, Memory, Global]) {
    for (const holder of [Class, Class.prototype]) {
      for (const name of ownKeys(holder)) {
        if (['length', 'name', 'prototype', 'constructor'].includes(name)) continue;
        defineProperty(holder, name, { enumerable: true });
      }
    }
    const tag = { value: `WebAssembly.${Class.name}`, configurable: true };
    defineProperty(Class.prototype, Symbol.toStringTag, tag);
    define(WebAssembly, { [Class.name]: Class });
  }
  define(WebAssembly, { CompileError, LinkError, RuntimeError });
  defineProperty(WebAssembly, Symbol.toStringTag, { value: 'WebAssembly', configurable: true });
  return { WebAssembly };
}
