// Durable Object namespaces, ids and stubs.
export default function (native, internals) {
  const { needArguments, notYet } = internals;

  class DurableObjectId {
    #hex;
    #className;
    #name;
    constructor(key, className, hex, name) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#className = className;
      this.#hex = hex;
      this.#name = name;
    }
    get name() {
      return this.#name;
    }
    toString() {
      return this.#hex;
    }
    equals(other) {
      if (!(typeof other === 'object' && other !== null && #hex in other)) {
        throw new TypeError("Failed to execute 'equals' on 'DurableObjectId': parameter 1 is not of type 'DurableObjectId'.");
      }
      return this.#hex === other.#hex;
    }
    static partsOf(id) {
      if (!(typeof id === 'object' && id !== null && #hex in id)) {
        throw new TypeError("Failed to execute 'get' on 'DurableObjectNamespace': parameter 1 is not of type 'DurableObjectId'.");
      }
      return { hex: id.#hex, className: id.#className, name: id.#name };
    }
  }
  const { partsOf } = DurableObjectId;
  delete DurableObjectId.partsOf;
  internals.define(DurableObjectId.prototype, { [Symbol.toStringTag]: 'DurableObjectId' });

  /** The id of the object of this isolate. */
  internals.ownId = () => new DurableObjectId(internals, native.className, native.id, native.name);

  /**
   * A stub: `fetch`, and every other name a method that is called by RPC. It has no `then`, so that a promise can give
   * it; a method has one that refuses, because reading a property by RPC is missing.
   */
  internals.makeStub = ({ fetch, call, own = {} }) => {
    const target = Object.assign(Object.create(null), own, { fetch });
    const methods = new Map();
    return new Proxy(target, {
      get(target, name) {
        if (typeof name === 'symbol') return name === Symbol.toStringTag ? 'Fetcher' : undefined;
        if (Object.hasOwn(target, name)) return target[name];
        if (name === 'then') return undefined;
        if (name === 'connect' || name === 'dup') throw notYet(`${name}() of a stub`);
        if (!methods.has(name)) methods.set(name, methodOf(name, call));
        return methods.get(name);
      },
      set() {
        throw new TypeError('Cannot set a property of an RPC stub.');
      },
      has: (target, name) => typeof name === 'string' && name !== 'then',
      ownKeys: target => Reflect.ownKeys(target),
      defineProperty: () => false,
      getPrototypeOf: () => Object.prototype,
    });
  };

  function methodOf(name, call) {
    const method = (...args) => call(name, args);
    Object.defineProperty(method, 'then', {
      value: (resolve, reject) => reject(notYet(`reading the property "${name}" by RPC`)),
    });
    return method;
  }

  function makeObjectStub(target, id) {
    return internals.makeStub({
      own: { id, name: target.name },
      fetch: async (input, init = undefined) => {
        internals.load('request');
        internals.load('response');
        internals.load('outgoing');
        internals.load('fetch');
        const exchange = ({ method, url, headers, body, socket }) => {
          const op = native.fetchObject(target, method, url, headers, internals.sendBody(body), socket);
          const answer = internals.wait(op).then(internals.answerOf);
          return { answer, cancel: reason => internals.cancel(op, reason) };
        };
        return await internals.fetchRequest(new internals.Request(input, init), exchange);
      },
      call: async (method, args) => {
        internals.load('clone');
        const op = native.callObject(target, method, internals.serialize(args));
        return internals.deserialize(await internals.wait(op));
      },
    });
  }

  class DurableObjectNamespace {
    #className;
    constructor(key, className) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#className = className;
    }
    idFromName(name) {
      needArguments(arguments.length, 1, "idFromName' on 'DurableObjectNamespace");
      const text = `${name}`;
      return new DurableObjectId(internals, this.#className, native.idFromName(this.#className, text), text);
    }
    idFromString(text) {
      return new DurableObjectId(internals, this.#className, native.idFromString(this.#className, `${text}`), undefined);
    }
    newUniqueId(options = undefined) {
      if (options?.jurisdiction !== undefined) throw notYet('a jurisdiction of Durable Objects');
      return new DurableObjectId(internals, this.#className, native.newUniqueId(this.#className), undefined);
    }
    get(id, options = undefined) {
      const parts = partsOf(id);
      if (parts.className !== this.#className) {
        throw new TypeError('get called on a Durable Object ID of another namespace.');
      }
      void options;
      return makeObjectStub(parts, id);
    }
    getByName(name, options = undefined) {
      needArguments(arguments.length, 1, "getByName' on 'DurableObjectNamespace");
      return this.get(this.idFromName(name), options);
    }
    getExisting() {
      void this.#className;
      throw notYet('getExisting of a Durable Object namespace');
    }
    jurisdiction() {
      void this.#className;
      throw notYet('a jurisdiction of Durable Objects');
    }
  }
  internals.define(DurableObjectNamespace.prototype, { [Symbol.toStringTag]: 'DurableObjectNamespace' });
  internals.makeNamespace = className => new DurableObjectNamespace(internals, className);
}
