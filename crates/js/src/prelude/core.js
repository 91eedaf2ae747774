// What the other parts are defined with: properties as Web IDL defines them, and globals that load their part at
// first touch.
const { defineProperty, getOwnPropertyDescriptor } = Object;
const { ownKeys } = Reflect;

/** Copies the properties (accessors included) of `properties` to `target`: not enumerable, configurable, writable. */
function define(target, properties) {
  for (const key of ownKeys(properties)) {
    defineProperty(target, key, { ...getOwnPropertyDescriptor(properties, key), enumerable: false });
  }
  return target;
}

export default function (native, internals) {
  // The globals of lazy parts that nobody has touched, assigned or deleted.
  const expected = new Map();
  // What lazy parts made before their globals were expected: an eager part asked for them.
  const made = new Map();

  // The prototypes of the classes that parts made.
  const prototypes = new WeakSet();

  /** Whether a prototype is the platform's own: its objects have state that is in no property. */
  internals.isPlatformPrototype = prototype => prototypes.has(prototype);

  function isExpected(name) {
    const getter = expected.get(name);
    return getter !== undefined && getOwnPropertyDescriptor(globalThis, name)?.get === getter;
  }

  function setGlobal(name, value) {
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  }

  internals.define = define;

  /** Makes `names` globals that load `part` when read, and that an assignment replaces; unless it has run already. */
  internals.expectGlobals = (part, names) => {
    for (const name of names) {
      if (made.has(name)) {
        setGlobal(name, made.get(name));
        continue;
      }
      const get = () => {
        internals.load(part);
        return globalThis[name];
      };
      const set = value => setGlobal(name, value);
      expected.set(name, get);
      defineProperty(globalThis, name, { get, set, enumerable: false, configurable: true });
    }
  };

  /** Defines what a part made. `lazy`: the names that the part was expected under; what has replaced them stays. */
  internals.defineGlobals = (values, lazy) => {
    for (const name of ownKeys(values)) {
      const prototype = typeof values[name] === 'function' ? values[name].prototype : undefined;
      if (prototype !== undefined) prototypes.add(prototype);
    }
    for (const name of lazy) {
      if (!(name in values)) throw new Error(`a lazy part did not make its global ${name}`);
      if (!expected.has(name)) made.set(name, values[name]);
      if (isExpected(name)) setGlobal(name, values[name]);
      expected.delete(name);
    }
    if (lazy.length === 0) define(globalThis, values);
  };

  // What a Worker calls its global object, and what that calls itself.
  define(globalThis, { self: globalThis, [Symbol.toStringTag]: 'ServiceWorkerGlobalScope' });
}
