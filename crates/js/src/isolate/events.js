// Events: how the handlers of a Worker and of a Durable Object are called, and what they get: env, ctx, the classes of
// `cloudflare:workers`.
export default function (native, internals) {
  const notYet = what => new Error(`${what} is not supported yet.`);
  internals.notYet = notYet;

  // ---- What `cloudflare:workers` exports.

  class WorkerEntrypoint {
    constructor(ctx, env) {
      this.ctx = ctx;
      this.env = env;
    }
  }
  class DurableObject {
    constructor(ctx, env) {
      this.ctx = ctx;
      this.env = env;
    }
  }
  class RpcTarget {}
  // What stubs are shown as; `stubs.js` makes them.
  class RpcStub {
    constructor(target) {
      internals.load('stubs');
      return internals.localStub(target);
    }
  }
  class RpcPromise {
    constructor() {
      throw new TypeError('Illegal constructor');
    }
  }
  class RpcProperty {
    constructor() {
      throw new TypeError('Illegal constructor');
    }
  }
  class WorkflowEntrypoint {
    constructor() {
      throw notYet('WorkflowEntrypoint');
    }
  }

  // ---- The life of an event: it is done when nothing holds it any more.

  function hold(event) {
    event.holds += 1;
  }

  // Those of the host that are under way, by number.
  const underWay = new Map();

  function release(event) {
    event.holds -= 1;
    if (event.holds === 0) finish(event);
  }

  /** Holds an event until what this gives is called. */
  internals.holdEvent = event => {
    hold(event);
    return () => release(event);
  };

  function finish(event) {
    if (!underWay.delete(event.number)) return;
    // A Durable Object goes on after its events; what a Worker leaves behind ends with its event.
    if (native.className === undefined) {
      internals.leaveBodiesOf?.(event);
      internals.leaveSocketsOf?.(event);
      internals.leaveConnectionsOf?.(event);
    }
    native.done(event.number);
    if (native.className === undefined) {
      internals.clearTimersOf(event);
      internals.cancelAllOf(event);
    }
  }

  function waitUntil(event, promise) {
    hold(event);
    event.waits += 1;
    const over = () => {
      event.waits -= 1;
      release(event);
      if (event.isLeft && event.waits === 0) finish(event);
    };
    Promise.resolve(promise).then(over, error => {
      internals.reportError(error, 'Uncaught (in waitUntil)');
      over();
    });
  }

  /** Called by the host: nobody waits for the answer any more; an event that `waitUntil` holds goes on, unless `isForced`. */
  internals.endEvent = (number, isForced) => {
    const event = underWay.get(number);
    if (event === undefined) return;
    event.isLeft = true;
    // What their sources give to `waitUntil` now is waited for.
    internals.leaveBodiesOf?.(event);
    if (isForced || event.waits === 0) finish(event);
  };

  const told = (name, message, stack, retryable, overloaded) => ({
    name: `${name}`.toWellFormed(), message: `${message}`.toWellFormed(), stack: stack.toWellFormed(), retryable, overloaded,
  });

  /** What a host is told of what was thrown, whatever that is. All texts are well-formed. */
  function describe(error) {
    try {
      if (error instanceof Error || typeof error?.message === 'string') {
        const stack = typeof error.stack === 'string' ? error.stack.trimEnd() : '';
        return told(error.name, error.message, stack, error.retryable === true, error.overloaded === true);
      }
      return told('Error', error, '', false, false);
    } catch {
      return told('Error', 'an error that cannot be shown', '', false, false);
    }
  }

  internals.describeError = describe;

  class ExecutionContext {
    #event;
    #props;
    constructor(key, event, props = {}) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#event = event;
      this.#props = props;
    }
    waitUntil(promise) {
      waitUntil(this.#event, promise);
    }
    passThroughOnException() {
      this.#event.passThrough = true;
    }
    get props() {
      return this.#props;
    }
    get exports() {
      void this.#event;
      return loopbacks();
    }
  }
  internals.define(ExecutionContext.prototype, { [Symbol.toStringTag]: 'ExecutionContext' });

  // ---- Handlers.

  function entrypointOf(name) {
    const entry = internals.main[name];
    if (entry === undefined) throw new TypeError(`The Worker does not export "${name}".`);
    return entry;
  }

  const isClassOf = (entry, Base) => typeof entry === 'function' && entry.prototype instanceof Base;

  async function callWorkerFetch(event, name, request, props) {
    const entry = entrypointOf(name);
    const ctx = new ExecutionContext(internals, event, props);
    if (isClassOf(entry, WorkerEntrypoint)) {
      const instance = new entry(ctx, internals.env);
      return await checked(fetchOf(instance).call(instance, request));
    }
    return await checked(fetchOf(entry).call(entry, request, internals.env, ctx));
  }

  function fetchOf(handler) {
    const { fetch } = handler;
    if (typeof fetch !== 'function') throw new Error('Handler does not export a fetch() function.');
    return fetch;
  }

  async function checked(promise) {
    const response = await promise;
    if (!internals.isResponse(response)) {
      throw new TypeError("Incorrect type for Promise: the Promise did not resolve to 'Response'.");
    }
    return response;
  }

  const RESERVED = ['alarm', 'connect', 'constructor', 'dup', 'fetch', 'webSocketClose', 'webSocketError', 'webSocketMessage'];

  /** The member `name` of a receiver: of its classes' prototypes alone, never its own property. */
  internals.rpcMember = (receiver, name) => {
    for (let at = Object.getPrototypeOf(receiver); at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      const property = Object.getOwnPropertyDescriptor(at, name);
      if (property === undefined || name === 'constructor') continue;
      return property.get ? property.get.call(receiver) : property.value;
    }
    throw new TypeError(`The RPC receiver does not implement the method "${name}".`);
  };

  function checkName(name) {
    if (RESERVED.includes(name)) throw new TypeError(`'${name}' is a reserved method and cannot be called over RPC.`);
  }

  function methodOf(receiver, name) {
    checkName(name);
    const method = internals.rpcMember(receiver, name);
    if (typeof method !== 'function') throw new TypeError(`"${name}" is not a function.`);
    return method;
  }

  /** Calls the `scheduled` handler, as a part of the event that runs. `given` is told what it gives to `waitUntil`. */
  internals.callScheduled = async (controller, given) => {
    const entry = entrypointOf('default');
    const ctx = new ExecutionContext(internals, internals.scope().event);
    internals.define(ctx, { waitUntil: given });
    const handler = isClassOf(entry, WorkerEntrypoint) ? new entry(ctx, internals.env) : entry;
    const { scheduled } = handler;
    if (typeof scheduled !== 'function') throw new TypeError('Handler does not export a scheduled() function.');
    await scheduled.call(handler, controller, internals.env, ctx);
  };

  function workerInstance(event, name, props) {
    const entry = entrypointOf(name);
    if (!isClassOf(entry, WorkerEntrypoint)) {
      throw new TypeError('The receiving Worker does not allow its methods to be called over RPC: its entrypoint does not extend `WorkerEntrypoint`.');
    }
    return new entry(new ExecutionContext(internals, event, props), internals.env);
  }

  // ---- The Durable Object of this isolate.

  let instance;
  let isConstructing = false;
  // The sections that the constructor asked for come one after the other.
  let lastSection = null;
  const SECTION_MS_MAX = 30_000;

  function runSection(callback) {
    const section = {};
    const outer = internals.holdGate(section);
    const timer = internals.startTimer(() => native.breakGate(describe(new Error(
      'A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was canceled and the Durable Object was reset.'))),
    SECTION_MS_MAX, false);
    return Promise.resolve().then(callback).then(
      value => {
        internals.clearTimer(timer);
        internals.holdGate(outer);
        return value;
      },
      error => {
        native.breakGate(describe(error));
        throw error;
      });
  }

  class DurableObjectState {
    #id;
    #storage;
    constructor(key, id) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#id = id;
    }
    get id() {
      return this.#id;
    }
    get storage() {
      if (this.#storage === undefined) {
        internals.load('storage');
        this.#storage = internals.makeStorage();
      }
      return this.#storage;
    }
    get props() {
      void this.#id;
      return {};
    }
    get exports() {
      void this.#id;
      return loopbacks();
    }
    waitUntil(promise) {
      void this.#id;
      waitUntil(internals.scope().event, promise);
    }
    blockConcurrencyWhile(callback) {
      void this.#id;
      if (typeof callback !== 'function') {
        throw new TypeError("Failed to execute 'blockConcurrencyWhile' on 'DurableObjectState': parameter 1 is not of type 'function'.");
      }
      if (isConstructing && lastSection !== null) lastSection = lastSection.then(() => runSection(callback));
      else lastSection = runSection(callback);
      return lastSection;
    }
    abort(reason = undefined) {
      void this.#id;
      const error = reason === undefined ? new Error('Application called abort() to reset Durable Object.') : new Error(`${reason}`);
      native.abort(describe(error));
      throw error;
    }
  }
  const socketMethods = ['acceptWebSocket', 'getWebSockets', 'setWebSocketAutoResponse', 'getWebSocketAutoResponse',
    'getWebSocketAutoResponseTimestamp', 'setHibernatableWebSocketEventTimeout', 'getHibernatableWebSocketEventTimeout', 'getTags'];
  for (const name of socketMethods) {
    internals.define(DurableObjectState.prototype, { [name](...args) {
      internals.load('sockets');
      return internals.socketMethods[name](...args);
    } });
  }
  internals.define(DurableObjectState.prototype, { [Symbol.toStringTag]: 'DurableObjectState' });

  function construct() {
    if (native.isCron) internals.load('scheduled');
    const Class = native.isCron ? internals.CronTriggers : internals.main[native.className];
    internals.load('objects');
    const state = new DurableObjectState(internals, internals.ownId());
    isConstructing = true;
    try {
      instance = new Class(state, internals.env);
    } catch (error) {
      native.breakConstructor(describe(error));
      throw error;
    } finally {
      isConstructing = false;
    }
  }

  function checkReceiver() {
    if (!(instance instanceof DurableObject)) {
      throw new TypeError("The receiving Durable Object does not support RPC, because its class was not declared with `extends DurableObject`. In order to enable RPC, make sure your class extends the special class `DurableObject`, which can be imported from the module \"cloudflare:workers\".");
    }
  }

  /** What a session calls: the object's own members. */
  async function callMember(path, args) {
    checkReceiver();
    path.slice(0, 1).forEach(checkName);
    return await internals.invoke(instance, path, args);
  }

  // ---- Events from the host.

  function requestOf({ method, url, headers, body, cf }) {
    internals.load('request');
    internals.load('response');
    internals.load('outgoing');
    const content = internals.incomingSource(body, headers);
    return internals.incomingRequest({
      method, url, headers, signal: undefined, cf: cf === undefined ? undefined : JSON.parse(cf),
      body: content === null ? null : content instanceof Uint8Array ? internals.bodyOfBytes(content) : internals.bodyOfSource(content),
    });
  }

  const asksForSocket = ({ headers }) => {
    internals.load('sockets');
    return internals.wantsSocket(headers);
  };

  function respondSocket(event, call, { statusText, headers, webSocket }) {
    if (!asksForSocket(call)) {
      throw new TypeError('Worker tried to return WebSocket in a response to a request which did not contain the header "Upgrade: websocket".');
    }
    const flat = internals.flatHeaders(headers);
    const { number, isOpened, connect } = internals.coupleSocket(webSocket);
    native.respondSocket(event.number, statusText, flat, number, isOpened);
    connect();
  }

  function respond(event, call, response) {
    const state = internals.responseState(response);
    if (state.webSocket !== null) return respondSocket(event, call, state);
    const { status, statusText, headers, body } = state;
    if (status < 200) throw new TypeError(`A handler cannot answer with status ${status}.`);
    const flat = internals.flatHeaders(headers);
    hold(event);
    const content = internals.sendBody(internals.takeBody(body), () => release(event));
    native.respond(event.number, status, statusText, flat, content);
  }

  async function answerFetch(event, call) {
    const request = requestOf(call);
    const response = native.className === undefined
      ? await callWorkerFetch(event, 'default', request)
      : await checked(fetchOf(instance).call(instance, request));
    respond(event, call, response);
  }

  async function answerMethod(event, { method, args, takesReferences }) {
    internals.load('clone');
    const receiver = native.className === undefined ? workerInstance(event, 'default') : instance;
    if (native.className !== undefined) checkReceiver();
    const value = await methodOf(receiver, method).apply(receiver, internals.deserialize(args));
    native.returned(event.number, takesReferences ? packed(value) : internals.serialize(value));
  }

  function packed(value) {
    const bytes = internals.serializePlain(value);
    if (bytes !== undefined) return bytes;
    internals.load('sessions');
    return internals.packResult(value);
  }

  async function answerSession(event, { session }) {
    internals.load('sessions');
    await internals.acceptSession(event, session, callMember);
  }

  async function answerAlarm(event, alarm) {
    internals.load('storage');
    await internals.runAlarm(event.number, instance, alarm);
  }

  async function answerSocket(call) {
    internals.load('sockets');
    await internals.handleSocket(instance, call);
  }

  /** Whether the object may set an alarm: its constructor may in any case. */
  internals.mayHaveAlarm = () => instance === undefined || typeof instance.alarm === 'function';

  async function answer(event, call) {
    try {
      if (call.alarm !== undefined) await answerAlarm(event, call.alarm);
      else if (call.socket !== undefined) await answerSocket(call);
      else if (call.session !== undefined) await answerSession(event, call);
      else if (call.args === undefined) await answerFetch(event, call);
      else await answerMethod(event, call);
    } catch (error) {
      native.fail(event.number, describe(error), event.passThrough === true);
    }
    release(event);
  }

  /** Called by the host with a new event. */
  internals.begin = (number, call) => {
    const scope = { event: { number, holds: 1, waits: 0, isLeft: false, passThrough: false }, section: null };
    underWay.set(number, scope.event);
    if (call.socket !== undefined && internals.isSession?.(call.socket)) {
      return internals.receiveSession(scope, call, () => release(scope.event));
    }
    internals.enter(scope, () => {
      if (native.className !== undefined && instance === undefined) construct();
      // The constructor may have closed the gate: then the event waits in front of it.
      internals.enter(scope, () => void answer(scope.event, call));
    });
  };

  // ---- The Worker of this application, called from within: it runs here, as a part of the event that calls.

  const selfMembers = (entrypoint, props) => ({
    fetch: async (input, init) => {
      internals.load('request');
      internals.load('response');
      return await callWorkerFetch(internals.scope().event, entrypoint, new internals.Request(input, init), props);
    },
    call: async (path, args) => {
      internals.load('references');
      path.slice(0, 1).forEach(checkName);
      return await internals.localHook(workerInstance(internals.scope().event, entrypoint, props)).call(path, args);
    },
  });
  internals.makeSelfService = entrypoint => internals.makeStub(selfMembers(entrypoint, undefined));

  // ---- `ctx.exports`: what the application exports, as bindings would have it.

  function propsOf(options) {
    if (typeof options !== 'object' || options === null) {
      throw new TypeError("Failed to execute '(called as function)' on 'LoopbackServiceStub': parameter 1 is not of type 'Options'.");
    }
    const { props } = options;
    if (props === undefined) return {};
    if (typeof props !== 'object' || props === null) {
      throw new TypeError("Incorrect type for the 'props' field on 'Options': the provided value is not of type 'Object'.");
    }
    internals.load('clone');
    return internals.deserialize(internals.serialize(props));
  }

  function loopbackService(name) {
    internals.load('objects');
    const call = options => internals.makeStub(selfMembers(name, propsOf(options)));
    // Its members are those of the entrypoint alone.
    delete call.name;
    delete call.length;
    return internals.makeStub({ ...selfMembers(name, undefined), target: call, tag: 'LoopbackServiceStub' });
  }

  function loopbackOf(name) {
    if (!native.bindings.some(([, kind, value]) => kind === 'objects' && value === name)) return loopbackService(name);
    internals.load('objects');
    return internals.makeNamespace(name);
  }

  let exported;
  function loopbacks() {
    if (exported !== undefined) return exported;
    exported = {};
    for (const name of Object.keys(internals.main)) {
      const entry = internals.main[name];
      if ((typeof entry !== 'object' && typeof entry !== 'function') || entry === null) continue;
      let made;
      Object.defineProperty(exported, name, { get: () => (made ??= loopbackOf(name)), enumerable: true, configurable: true });
    }
    return exported;
  }

  // ---- The application's static files.

  internals.makeAssets = () => internals.makeStub({
    fetch: async (input, init = undefined) => {
      internals.load('request');
      internals.load('response');
      internals.load('outgoing');
      internals.load('fetch');
      return await internals.fetchRequest(new internals.Request(input, init), internals.exchangeWithAssets);
    },
    call: async ([method]) => { throw new TypeError(`The static files have no method "${method}".`); },
  });

  // ---- env, made before any module runs.

  const env = {};
  for (const [name, kind, value] of native.bindings) {
    if (kind === 'text') env[name] = value;
    else if (kind === 'json') env[name] = JSON.parse(value);
    else if (kind === 'database') {
      internals.load('databases');
      env[name] = internals.makeDatabase(value);
    } else if (kind === 'r2') {
      internals.load('r2');
      env[name] = internals.makeR2Bucket(value);
    } else {
      internals.load('objects');
      env[name] = kind === 'objects' ? internals.makeNamespace(value)
        : kind === 'assets' ? internals.makeAssets()
        : internals.makeSelfService(value);
    }
  }
  internals.env = env;

  /** Names and texts of the variables and secrets: JSON as it is written. */
  internals.variables = () => native.bindings.filter(([, kind]) => kind === 'text' || kind === 'json').map(([name, , value]) => [name, value]);

  internals.workers = {
    DurableObject, RpcPromise, RpcProperty, RpcStub, RpcTarget, WorkerEntrypoint, WorkflowEntrypoint, env,
    waitUntil: promise => waitUntil(internals.scope().event, promise),
  };

  // ---- Globals of Cloudflare's that are missing say so when they are used.

  const missing = {};
  for (const name of ['HTMLRewriter', 'EventSource', 'BroadcastChannel', 'MessageChannel']) {
    missing[name] = { [name]: class { constructor() { throw notYet(name); } } }[name];
  }
  return missing;
}
