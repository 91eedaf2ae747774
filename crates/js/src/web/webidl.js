// What Web IDL asks of every interface: brands, conversions of arguments, what shows on a prototype.
export default function (native, internals) {
  // The engine's own class: `atob` and natives throw it as well.
  internals.DOMException = globalThis.DOMException;
  internals.engine = { atob: globalThis.atob, btoa: globalThis.btoa };


  internals.illegalInvocation = () => new TypeError('Illegal invocation');

  /** Makes `Class` an interface: enumerable members, constants, a tag. */
  internals.interface = (Class, constants = {}) => {
    const { prototype, name } = Class;
    for (const key of Reflect.ownKeys(prototype)) {
      if (key === 'constructor' || typeof key === 'symbol') continue;
      Object.defineProperty(prototype, key, { enumerable: true });
    }
    Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
    for (const key of Object.keys(constants)) {
      const descriptor = { value: constants[key], enumerable: true };
      Object.defineProperty(Class, key, descriptor);
      Object.defineProperty(prototype, key, descriptor);
    }
    return Class;
  };

  internals.needArguments = (given, needed, what) => {
    if (given < needed) {
      throw new TypeError(
        `Failed to execute '${what}': ${needed} argument${needed === 1 ? '' : 's'} required, but only ${given} present.`,
      );
    }
  };

  /** USVString: a lone surrogate becomes U+FFFD, so that Rust can take the string. */
  internals.toUsvString = (value) => `${value}`.toWellFormed();

  /** ByteString of a header: every unit fits a byte. */
  internals.toByteString = (value, what) => {
    const text = `${value}`;
    for (let index = 0; index < text.length; index++) {
      if (text.charCodeAt(index) > 255) {
        throw new TypeError(`${what} contains the character at index ${index}, whose value is greater than 255.`);
      }
    }
    return text;
  };

  /** The options dictionary of a call: undefined and null count as empty. */
  internals.toDictionary = (value, what) => {
    if (value === undefined || value === null) return {};
    if (typeof value !== 'object' && typeof value !== 'function') {
      throw new TypeError(`Failed to execute '${what}': the provided value is not of type 'object'.`);
    }
    return value;
  };

  const typedArrayTag = Object.getOwnPropertyDescriptor(
    Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
  const bufferLength = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get;

  internals.isArrayBuffer = (value) => {
    if (typeof value !== 'object' || value === null || !(value instanceof ArrayBuffer)) return false;
    try {
      bufferLength.call(value);
      return true;
    } catch {
      return false;
    }
  };
  internals.isTypedArray = (value) => ArrayBuffer.isView(value) && typedArrayTag.call(value) !== undefined;

  /** The bytes of a BufferSource as a Uint8Array over the same memory; undefined if `value` is none. */
  internals.bytesOf = (value) => {
    if (value instanceof Uint8Array) return value;
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (internals.isArrayBuffer(value)) return new Uint8Array(value);
    if (typeof SharedArrayBuffer === 'function' && value instanceof SharedArrayBuffer) return new Uint8Array(value);
    return undefined;
  };

  /** Iterators of a map-like interface, with the prototype that Web IDL gives them. */
  internals.pairIterator = (interfaceName) => {
    const prototype = Object.create(Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())));
    const states = new WeakMap();
    Object.defineProperties(prototype, {
      next: {
        value: function next() {
          const state = states.get(this);
          if (state === undefined) throw internals.illegalInvocation();
          const pairs = state.pairs();
          if (state.index >= pairs.length) return { value: undefined, done: true };
          const [name, value] = pairs[state.index++];
          if (state.kind === 'keys') return { value: name, done: false };
          if (state.kind === 'values') return { value, done: false };
          return { value: [name, value], done: false };
        },
        writable: true, enumerable: true, configurable: true,
      },
      [Symbol.toStringTag]: { value: `${interfaceName} Iterator`, configurable: true },
    });
    return (pairs, kind) => {
      const iterator = Object.create(prototype);
      states.set(iterator, { pairs, kind, index: 0 });
      return iterator;
    };
  };
}
