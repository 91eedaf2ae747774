// Stubs, their properties, and the promises of their calls, as programs see them. Behind each is a hook:
// { call(path, args): Promise, dup(): hook, dispose() }, where `args` undefined reads the property that `path` leads to.
export default function (native, internals) {
  const DISPOSED = 'RPC stub used after being disposed.';

  const { RpcStub, RpcPromise, RpcProperty } = internals.workers;

  /** A stub of something of this isolate. */
  internals.localStub = target => {
    if ((typeof target !== 'object' && typeof target !== 'function') || target === null) {
      throw new TypeError("Failed to construct 'JsRpcStub': constructor parameter 1 is not of type 'Object'.");
    }
    internals.load('references');
    return makeStub(internals.localHook(target));
  };

  internals.define(RpcStub.prototype, {
    dup() { return makeStub(hookOf(stateOf(this)).dup()); },
    [Symbol.dispose]() { internals.disposeStub(stateOf(this)); },
    [Symbol.toStringTag]: 'JsRpcStub',
  });
  internals.define(RpcPromise.prototype, { [Symbol.toStringTag]: 'JsRpcPromise' });
  internals.define(RpcProperty.prototype, { [Symbol.toStringTag]: 'JsRpcProperty' });

  // By the proxy, and by what the proxy is made over.
  const stubs = new WeakMap();
  const states = new WeakMap();

  function stateOf(stub) {
    const state = stubs.get(stub);
    if (state === undefined) throw internals.illegalInvocation();
    return state;
  }

  function hookOf(state) {
    if (state.isDisposed) throw new Error(DISPOSED);
    return state.hook;
  }

  /** The state of a stub, { hook, isDisposed }; undefined of anything else. */
  internals.stubState = value => stubs.get(value);

  internals.disposeStub = state => {
    if (state.isDisposed) return;
    state.isDisposed = true;
    state.hook.dispose();
  };

  function proxy(state, handler) {
    const target = () => {};
    states.set(target, state);
    return new Proxy(target, handler);
  }

  const fixed = prototype => ({
    set() {
      throw new TypeError('Cannot set a property of an RPC stub.');
    },
    defineProperty: () => false,
    deleteProperty: () => false,
    ownKeys: () => ['length', 'name'],
    getPrototypeOf: () => prototype,
  });

  const call = async (state, path, args) => hookOf(state).call(path, args);

  const stubHandler = {
    ...fixed(RpcStub.prototype),
    apply: (target, self, args) => makePromise(call(states.get(target), [], args)),
    get(target, name, receiver) {
      if (name in RpcStub.prototype) return Reflect.get(RpcStub.prototype, name, receiver);
      if (typeof name === 'symbol' || name === 'then') return undefined;
      const state = states.get(target);
      return makeProperty((path, args) => call(state, path, args), [name]);
    },
  };

  // What nobody can reach any more is disposed of.
  const unreachable = new FinalizationRegistry(internals.disposeStub);

  function makeStub(hook) {
    const state = { hook, isDisposed: false };
    const stub = proxy(state, stubHandler);
    stubs.set(stub, state);
    unreachable.register(stub, state);
    return stub;
  }
  internals.makeReferenceStub = makeStub;

  // A property is read when somebody waits for it.
  const THENABLE = ['then', 'catch', 'finally'];
  const propertyHandler = {
    ...fixed(RpcProperty.prototype),
    apply(target, self, args) {
      const { begin, path } = states.get(target);
      return makePromise(begin(path, args));
    },
    get(target, name) {
      const { begin, path } = states.get(target);
      if (THENABLE.includes(name)) return (...args) => begin(path, undefined)[name](...args);
      if (name in RpcProperty.prototype) return RpcProperty.prototype[name];
      return typeof name === 'symbol' ? undefined : makeProperty(begin, [...path, name]);
    },
  };

  /** What `path` leads to from where `begin(path, args)` begins. */
  function makeProperty(begin, path) {
    return proxy({ begin, path }, propertyHandler);
  }
  internals.makeRpcProperty = makeProperty;

  const promiseHandler = {
    ...fixed(RpcPromise.prototype),
    apply: (target, self, args) => makePromise(after(states.get(target), [], args)),
    get(target, name) {
      const promise = states.get(target);
      if (THENABLE.includes(name)) return (...args) => promise[name](...args);
      if (name === Symbol.dispose) return () => void promise.then(value => value?.[Symbol.dispose]?.(), () => {});
      if (name in RpcPromise.prototype) return RpcPromise.prototype[name];
      return typeof name === 'symbol' ? undefined : makeProperty((path, args) => after(promise, path, args), [name]);
    },
  };

  // What is called on a result that is not there yet is called once it is.
  async function after(promise, path, args) {
    const value = await promise;
    internals.load('references');
    return internals.invoke(value, path, args);
  }

  /** A result as its caller gets it: with a disposer of all stubs in it, which has their states. */
  internals.withDisposer = ({ value, stubs }) => {
    if (typeof value === 'object' && value !== null && Object.isExtensible(value)) {
      const dispose = () => stubs.forEach(internals.disposeStub);
      Object.defineProperty(value, Symbol.dispose, { value: dispose, writable: true, configurable: true });
    }
    return value;
  };

  /** The promise of a call, whose result may be used before it is there. */
  function makePromise(promise) {
    return proxy(promise, promiseHandler);
  }
  internals.makeRpcPromise = makePromise;
}
