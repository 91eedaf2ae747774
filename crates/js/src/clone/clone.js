// structuredClone, and what the serializer in Rust asks of JavaScript. The built-in functions are taken once, so that
// a handler that replaces them does not change what is stored.
const uncurry = (method) => Function.prototype.call.bind(method);
const getter = (prototype, name) => uncurry(Object.getOwnPropertyDescriptor(prototype, name).get);
const { getOwnPropertyDescriptor, getPrototypeOf, defineProperty } = Object;
const TypedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const IteratorPrototype = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));

const DATE = 1, REG_EXP = 2, MAP = 3, SET = 4, BOXED = 5, ARRAY_BUFFER = 6, VIEW = 7, ERROR = 8, DOM_EXCEPTION = 9;
// Kinds that only this file knows.
const BOXED_SYMBOL = 20, NEVER = 21, PLATFORM = 22;

const dateValue = uncurry(Date.prototype.getTime);
const regExpSource = getter(RegExp.prototype, 'source');
const regExpFlags = getter(RegExp.prototype, 'flags');
const mapForEach = uncurry(Map.prototype.forEach);
const mapSet = uncurry(Map.prototype.set);
const mapGet = uncurry(Map.prototype.get);
const setForEach = uncurry(Set.prototype.forEach);
const setAdd = uncurry(Set.prototype.add);
const bufferLength = getter(ArrayBuffer.prototype, 'byteLength');
const bufferMaxLength = getter(ArrayBuffer.prototype, 'maxByteLength');
const bufferResizable = getter(ArrayBuffer.prototype, 'resizable');
const bufferDetached = getter(ArrayBuffer.prototype, 'detached');
const bufferTransfer = uncurry(ArrayBuffer.prototype.transfer);
const arrayTag = getter(TypedArrayPrototype, Symbol.toStringTag);
const arrayBuffer = getter(TypedArrayPrototype, 'buffer');
const arrayOffset = getter(TypedArrayPrototype, 'byteOffset');
const arrayLength = getter(TypedArrayPrototype, 'byteLength');
const viewBuffer = getter(DataView.prototype, 'buffer');
const viewOffset = getter(DataView.prototype, 'byteOffset');
const viewLength = getter(DataView.prototype, 'byteLength');
const charCodeAt = uncurry(String.prototype.charCodeAt);
const bigIntToString = uncurry(BigInt.prototype.toString);
const functionToString = uncurry(Function.prototype.toString);
const symbolToString = uncurry(Symbol.prototype.toString);
const boxes = [Boolean, Number, String, BigInt].map((Class) => [Class.prototype, uncurry(Class.prototype.valueOf)]);
const fromCharCode = String.fromCharCode;
const { isView } = ArrayBuffer;

const constructors = { __proto__: null };
for (const [name, tag] of Object.entries({
  Int8Array: 'b', Uint8Array: 'B', Uint8ClampedArray: 'C', Int16Array: 'w', Uint16Array: 'W', Int32Array: 'd',
  Uint32Array: 'D', Float16Array: 'h', Float32Array: 'f', Float64Array: 'F', BigInt64Array: 'q', BigUint64Array: 'Q',
  DataView: '?',
})) {
  const Class = globalThis[name];
  if (Class !== undefined) constructors[tag] = { Class, tag: tag.charCodeAt(0), name, size: Class.BYTES_PER_ELEMENT ?? 1 };
}
const tags = { __proto__: null };
for (const { name, tag } of Object.values(constructors)) tags[name] = tag;

// By the tag of its prototype; 0 is Error.
const errors = new Map([
  [0, Error], [69, EvalError], [82, RangeError], [70, ReferenceError], [83, SyntaxError], [84, TypeError], [85, URIError],
]);
const errorTags = new Map([...errors].map(([tag, Class]) => [Class.name, tag]));
// In the order of V8's bits; `l` (linear) no standard knows.
const FLAGS = 'gimyusldv';

export default function (native, internals) {
  const { DOMException } = internals;
  const domName = getter(DOMException.prototype, 'name');
  const domMessage = getter(DOMException.prototype, 'message');
  const fail = (message) => { throw new DOMException(message, 'DataCloneError'); };

  // By a prototype somewhere in an object's chain.
  const kinds = new Map([
    [Date.prototype, DATE], [RegExp.prototype, REG_EXP], [Map.prototype, MAP], [Set.prototype, SET],
    ...boxes.map(([prototype]) => [prototype, BOXED]), [Symbol.prototype, BOXED_SYMBOL],
    [ArrayBuffer.prototype, ARRAY_BUFFER], [TypedArrayPrototype, VIEW], [DataView.prototype, VIEW],
    [Error.prototype, ERROR], [DOMException.prototype, DOM_EXCEPTION],
    ...[Promise, WeakMap, WeakSet, WeakRef, FinalizationRegistry, SharedArrayBuffer].map(({ prototype }) => [prototype, NEVER]),
    [IteratorPrototype, NEVER],
  ]);

  function kindOf(object) {
    for (let prototype = getPrototypeOf(object); prototype !== null; prototype = getPrototypeOf(prototype)) {
      const kind = mapGet(kinds, prototype);
      if (kind !== undefined) return kind;
      if (internals.isPlatformPrototype(prototype)) return PLATFORM;
    }
    return undefined;
  }

  /** [kind, …] of an object that is more than its properties; undefined for one that is not. */
  function inspect(object) {
    const kind = kindOf(object);
    if (kind === undefined) return undefined;
    if (kind === NEVER || kind === PLATFORM) fail(`${describe(object)} could not be cloned.`);
    if (kind === BOXED_SYMBOL) fail('[object Symbol] could not be cloned.');
    if (kind === VIEW) return isView(object) ? inspectView(object) : undefined;
    if (kind === ERROR) return native.isError(object) ? inspectError(object) : undefined;
    try {
      return inspectBuiltIn(kind, object);
    } catch (error) {
      if (error instanceof DOMException) throw error;
      // It has the prototype of a built-in class and is none.
      return undefined;
    }
  }

  function inspectBuiltIn(kind, object) {
    switch (kind) {
      case DATE:
        return [DATE, dateValue(object)];
      case REG_EXP:
        return [REG_EXP, regExpSource(object), flagBits(regExpFlags(object))];
      case MAP: {
        const flat = [];
        mapForEach(object, (value, key) => { flat[flat.length] = key; flat[flat.length] = value; });
        return [MAP, flat];
      }
      case SET: {
        const values = [];
        setForEach(object, (value) => { values[values.length] = value; });
        return [SET, values];
      }
      case BOXED:
        return [BOXED, unbox(object)];
      case ARRAY_BUFFER:
        bufferLength(object);
        if (bufferDetached(object)) fail('An ArrayBuffer is detached and could not be cloned.');
        return [ARRAY_BUFFER, new Uint8Array(object), bufferResizable(object) ? bufferMaxLength(object) : -1];
      case DOM_EXCEPTION:
        return [DOM_EXCEPTION, domName(object), domMessage(object), `${object.stack}`];
    }
  }

  function unbox(object) {
    for (let index = 0; index < boxes.length; index++) {
      try {
        return boxes[index][1](object);
      } catch {
        // It is of another class.
      }
    }
    throw new TypeError('it has no primitive value');
  }

  function flagBits(flags) {
    let bits = 0;
    for (let index = 0; index < FLAGS.length; index++) if (flags.includes(FLAGS[index])) bits |= 1 << index;
    return bits;
  }

  function inspectView(view) {
    const name = arrayTag(view);
    const isArray = name !== undefined;
    const buffer = isArray ? arrayBuffer(view) : viewBuffer(view);
    if (bufferDetached(buffer)) fail('An ArrayBuffer is detached and could not be cloned.');
    const offset = isArray ? arrayOffset(view) : viewOffset(view);
    const length = isArray ? arrayLength(view) : viewLength(view);
    return [VIEW, tags[name ?? 'DataView'], buffer, offset, length, bufferResizable(buffer) ? 2 : 0];
  }

  function inspectError(error) {
    const message = getOwnPropertyDescriptor(error, 'message');
    const cause = getOwnPropertyDescriptor(error, 'cause');
    const hasMessage = message !== undefined && 'value' in message;
    const hasCause = cause !== undefined && 'value' in cause;
    const { name, stack } = error;
    return [
      ERROR, typeof name === 'string' ? mapGet(errorTags, name) ?? 0 : 0, hasMessage, hasMessage ? `${message.value}` : '',
      hasCause, hasCause ? cause.value : undefined, typeof stack === 'string' ? stack : undefined,
    ];
  }

  /** The text of V8 for a value that cannot be cloned. */
  function describe(value) {
    if (typeof value === 'symbol') return symbolToString(value);
    if (typeof value === 'function') return functionToString(value);
    try {
      const { constructor } = value;
      const name = typeof constructor === 'function' ? getOwnPropertyDescriptor(constructor, 'name')?.value : undefined;
      return `#<${typeof name === 'string' && name !== '' ? name : 'Object'}>`;
    } catch {
      return '#<Object>';
    }
  }

  const hide = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

  internals.clone = {
    objectPrototype: Object.prototype,
    inspect,
    refuse: (value) => fail(`${describe(value)} could not be cloned.`),
    units(text) {
      const units = new Uint16Array(text.length);
      for (let index = 0; index < text.length; index++) units[index] = charCodeAt(text, index);
      return new Uint8Array(arrayBuffer(units));
    },
    fromUnits(units) {
      let text = '';
      for (let index = 0; index < units.length; index++) text += fromCharCode(units[index]);
      return text;
    },
    bigIntHex: (value) => bigIntToString(value < 0n ? -value : value, 16),
    bigIntIsNegative: (value) => value < 0n,
    bigInt: (isNegative, hex) => (isNegative ? -BigInt(`0x${hex}`) : BigInt(`0x${hex}`)),
    date: (milliseconds) => new Date(milliseconds),
    regExp(source, bits) {
      let flags = '';
      for (let index = 0; index < FLAGS.length; index++) if (bits & (1 << index)) flags += FLAGS[index];
      return new RegExp(source, flags);
    },
    map: () => new Map(),
    fillMap(map, flat) {
      for (let index = 0; index < flat.length; index += 2) mapSet(map, flat[index], flat[index + 1]);
    },
    set: () => new Set(),
    fillSet(set, values) {
      for (let index = 0; index < values.length; index++) setAdd(set, values[index]);
    },
    box: (value) => Object(value),
    resizable(bytes, maxByteLength) {
      const buffer = new ArrayBuffer(bytes.length, { maxByteLength });
      new Uint8Array(buffer).set(bytes);
      return buffer;
    },
    view(buffer, tag, offset, length) {
      const entry = constructors[fromCharCode(tag)];
      if (entry === undefined || length % entry.size !== 0) return undefined;
      return new entry.Class(buffer, offset, length / entry.size);
    },
    error(tag) {
      const Class = mapGet(errors, tag);
      return Class === undefined ? undefined : new Class();
    },
    hide,
    domException(name, message, stack) {
      const exception = new DOMException(message, name);
      hide(exception, 'stack', stack);
      return exception;
    },
  };
  internals.serialize = native.serialize;
  internals.deserialize = native.deserialize;
  internals.serializeReferring = native.serializeReferring;
  internals.deserializeReferring = native.deserializeReferring;

  /** Whether an object is neither of a class of the handler's own nor of the platform's. */
  const isOrdinary = (object) => {
    const kind = kindOf(object);
    if (kind !== undefined) return kind !== PLATFORM;
    const prototype = getPrototypeOf(object);
    return prototype === null || prototype === Object.prototype;
  };
  internals.isOrdinary = isOrdinary;

  /** The bytes of a value for RPC; undefined where something in it goes as a reference, or does not go at all. */
  internals.serializePlain = (value) => {
    let isPlain = true;
    const bytes = native.serializeReferring(value, (object) => {
      if (typeof object !== 'function' && isOrdinary(object) && internals.isObjectStub?.(object) !== true) return undefined;
      isPlain = false;
      return 0;
    });
    return isPlain ? bytes : undefined;
  };

  function structuredClone(value, options = undefined) {
    internals.needArguments(arguments.length, 1, 'structuredClone');
    const { transfer } = internals.toDictionary(options, 'structuredClone');
    const moved = transfer === undefined ? [] : [...transfer];
    for (let index = 0; index < moved.length; index++) {
      if (!internals.isArrayBuffer(moved[index])) {
        fail(`Value at index ${index} does not have a transferable type.`);
      }
      if (bufferDetached(moved[index])) fail(`An ArrayBuffer at index ${index} is detached and could not be transferred.`);
      if (internals.isMemoryBuffer?.(moved[index])) fail('Object is not transferable.');
      if (moved.indexOf(moved[index]) !== index) {
        fail(`ArrayBuffer at index ${index} is a duplicate of an earlier ArrayBuffer.`);
      }
    }
    const isPlain = value === null || (typeof value !== 'object' && typeof value !== 'function' && typeof value !== 'symbol');
    if (isPlain && moved.length === 0) return value;
    return native.clone(value, moved, () => moved.map((buffer) => bufferTransfer(buffer)));
  }
  return { structuredClone };
}
