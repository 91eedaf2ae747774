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
   * A stub: `fetch`, and every other name a member that is called or read by RPC, with `call(path, args)`. It has no `then`,
   * so that a promise can give it.
   */
  internals.makeStub = ({ fetch, call, own = {}, target: called = Object.create(null), tag = 'Fetcher' }) => {
    const target = Object.assign(called, own, { fetch });
    const stub = new Proxy(target, {
      get(target, name) {
        if (typeof name === 'symbol') return name === Symbol.toStringTag ? tag : undefined;
        if (Object.hasOwn(target, name)) return target[name];
        if (name === 'then') return undefined;
        if (name === 'connect' || name === 'dup') throw notYet(`${name}() of a stub`);
        internals.load('stubs');
        return internals.makeRpcProperty(call, [name]);
      },
      set() {
        throw new TypeError('Cannot set a property of an RPC stub.');
      },
      has: (target, name) => typeof name === 'string' && name !== 'then',
      ownKeys: target => Reflect.ownKeys(target),
      defineProperty: () => false,
      getPrototypeOf: () => Object.prototype,
    });
    objectStubs.add(stub);
    return stub;
  };

  const objectStubs = new WeakSet();
  internals.isObjectStub = value => objectStubs.has(value);

  // The places of the calls that are made by one stub, with the first place that is still under way. So they begin at the
  // object in the order in which they were made.
  function newOrder() {
    let number;
    let made = 0;
    const underWay = new Set();
    return {
      next() {
        number ??= native.newStub();
        const place = made;
        made += 1;
        underWay.add(place);
        return { stub: number, place, floor: underWay.values().next().value };
      },
      /** The promise of the call's operation. However that ends, the call is not under way any more. */
      wait(op, { place }) {
        const over = () => void underWay.delete(place);
        return internals.wait(op, over).finally(over);
      },
    };
  }

  function makeObjectStub(target, id) {
    const order = newOrder();
    return internals.makeStub({
      own: { id, name: target.name },
      fetch: async (input, init = undefined) => {
        internals.load('request');
        internals.load('response');
        internals.load('outgoing');
        internals.load('fetch');
        const exchange = ({ method, url, headers, body, socket }) => {
          const place = order.next();
          const op = native.fetchObject({ ...target, place }, method, url, headers, internals.sendBody(body), socket);
          const answer = order.wait(op, place).then(internals.answerOf);
          return { answer, cancel: reason => internals.cancel(op, reason) };
        };
        return await internals.fetchRequest(new internals.Request(input, init), exchange);
      },
      call: async (path, args) => {
        internals.load('clone');
        const bytes = path.length === 1 && args !== undefined ? internals.serializePlain(args) : undefined;
        if (bytes === undefined) {
          internals.load('sessions');
          return await internals.callBySession(target, order, path, args);
        }
        const place = order.next();
        const op = native.callObject({ ...target, place }, path[0], bytes);
        const result = await order.wait(op, place);
        if (!internals.isWithReferences(result)) return internals.withDisposer({ value: internals.deserialize(result), stubs: NONE });
        internals.load('sessions');
        return internals.resultWithReferences(result, target, order);
      },
    });
  }

  const NONE = [];
  // The clone format never begins with it.
  internals.isWithReferences = bytes => bytes[0] === 1;

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
