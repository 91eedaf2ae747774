// WebSockets (with the checks and messages of workerd). A socket is one end: its other end is an object of this isolate
// too (a pair), or outside under a number that the host knows (`host`). An end that is returned in an answer is given to
// the caller, and the pair's other end is then connected with the outside.
export default function (native, internals) {
  internals.load('event-target');
  const { Event, EventTarget, MessageEvent, CloseEvent, ErrorEvent, DOMException, illegalInvocation, toUsvString } = internals;
  const [NEW, ACCEPTED, HIBERNATABLE, RELEASED, CONNECTING] = [0, 1, 2, 3, 4];
  const NOT_ACCEPTED = 'You must call one of accept() or state.acceptWebSocket() on this WebSocket before sending messages.';
  const REASON_BYTES_MAX = 123;

  const wrongType = (method, of, parameter, type) =>
    new TypeError(`Failed to execute '${method}' on '${of}': parameter ${parameter} is not of type '${type}'.`);

  // Without accessors: a handler is an own property, as in workerd. It is called before listeners.
  const { addEventListener } = EventTarget.prototype;
  function callProperty(event) {
    const handler = this[`on${event.type}`];
    if (typeof handler === 'function') handler.call(this, event);
  }

  let stateOf;
  let made;
  class WebSocket extends EventTarget {
    #state;
    static {
      internals.isWebSocket = value => typeof value === 'object' && value !== null && #state in value;
      stateOf = socket => {
        if (!internals.isWebSocket(socket)) throw illegalInvocation();
        return socket.#state;
      };
    }
    constructor(url, protocols = undefined) {
      if (made === undefined) {
        internals.needArguments(arguments.length, 1, 'new WebSocket');
        made = connecting(toUsvString(url), protocols);
      }
      super();
      this.#state = made;
      made.socket = this;
      made = undefined;
      for (const type of ['open', 'message', 'close', 'error']) addEventListener.call(this, type, callProperty);
    }
    accept(options = undefined) {
      const state = stateOf(this);
      if (state.phase === CONNECTING) throw new TypeError("Websockets obtained from the 'new WebSocket()' constructor cannot call accept");
      if (state.phase === RELEASED) throw new TypeError("Can't accept() WebSocket that was already used in a response.");
      if (state.phase === HIBERNATABLE) throw new TypeError("Can't accept() WebSocket after enabling hibernation.");
      if (state.phase === ACCEPTED) return;
      state.isHalfOpen = options?.allowHalfOpen === true;
      state.phase = ACCEPTED;
      if (state.host === undefined) pumpSoon(state);
      else listen(state);
    }
    send(message) {
      const state = stateOf(this);
      if (arguments.length === 0) throw wrongType('send', 'WebSocket', 1, 'ArrayBuffer or ArrayBufferView or string');
      const data = internals.bytesOf(message)?.slice() ?? toUsvString(message);
      if (state.isClosedOut) throw new TypeError("Can't call WebSocket send() after close().");
      if (state.isAborted || state.phase === RELEASED) return;
      if (state.phase !== ACCEPTED && state.phase !== HIBERNATABLE) throw new TypeError(NOT_ACCEPTED);
      post(state, { data });
    }
    close(code = undefined, reason = undefined) {
      const state = stateOf(this);
      const given = checkedClose(code, reason);
      if (state.phase === CONNECTING) return abandon(state);
      if (state.isClosedOut || state.isAborted || state.phase === RELEASED) return;
      if (state.phase !== ACCEPTED && state.phase !== HIBERNATABLE) throw new TypeError(NOT_ACCEPTED);
      closeOut(state, given.code, given.reason);
      if (state.isClosedIn && state.phase === ACCEPTED) over(state);
    }
    serializeAttachment(value) {
      const state = stateOf(this);
      if (arguments.length === 0) throw wrongType('serializeAttachment', 'WebSocket', 1, 'any');
      internals.load('clone');
      const bytes = internals.serialize(value);
      if (bytes.length > native.attachmentMax) {
        throw new Error(`A WebSocket 'attachment' cannot be larger than ${native.attachmentMax} bytes.'attachment' was ${bytes.length} bytes.`);
      }
      if (state.phase === HIBERNATABLE) native.attach(state.host, bytes);
      else state.attachment = bytes;
    }
    deserializeAttachment() {
      const state = stateOf(this);
      const bytes = state.phase === HIBERNATABLE ? native.attachment(state.host) : state.attachment;
      if (bytes === null) return null;
      internals.load('clone');
      return internals.deserialize(bytes);
    }
    get readyState() {
      const { isClosedIn, isClosedOut, isBroken, phase } = stateOf(this);
      if ((isClosedIn && isClosedOut) || isBroken) return 3;
      if (isClosedIn || isClosedOut) return 2;
      return phase === CONNECTING ? 0 : 1;
    }
    get url() { return stateOf(this).url; }
    get protocol() { return stateOf(this).protocol; }
    get extensions() {
      stateOf(this);
      return '';
    }
    get bufferedAmount() { return stateOf(this).buffered; }
    get binaryType() { return stateOf(this).binaryType; }
    set binaryType(value) {
      const state = stateOf(this);
      const type = `${value}`;
      if (type !== 'blob' && type !== 'arraybuffer') {
        throw new DOMException(`Invalid binaryType: ${type}.`, 'SyntaxError');
      }
      state.binaryType = type;
    }
  }
  internals.interface(WebSocket, {
    CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3,
    READY_STATE_CONNECTING: 0, READY_STATE_OPEN: 1, READY_STATE_CLOSING: 2, READY_STATE_CLOSED: 3,
  });

  const newState = phase => ({
    socket: undefined, phase, peer: null, host: undefined, url: null, protocol: '',
    binaryType: native.givesBlobs ? 'blob' : 'arraybuffer', attachment: null,
    // What the other end of a pair has sent, until it is delivered.
    inbox: [], isPumping: false, buffered: 0,
    isClosedOut: false, isClosedIn: false, isAborted: false, isBroken: false, isHalfOpen: false,
    scope: undefined, release: undefined,
  });

  function make(state) {
    made = state;
    new WebSocket();
    return state;
  }

  class WebSocketPair {
    constructor() {
      const [first, second] = [make(newState(NEW)), make(newState(NEW))];
      first.peer = second;
      second.peer = first;
      Object.defineProperty(this, '0', { value: first.socket, enumerable: true, configurable: true });
      Object.defineProperty(this, '1', { value: second.socket, enumerable: true, configurable: true });
    }
    *[Symbol.iterator]() {
      yield this[0];
      yield this[1];
    }
  }
  internals.define(WebSocketPair.prototype, { [Symbol.toStringTag]: 'WebSocketPair' });

  class WebSocketRequestResponsePair {
    #request;
    #response;
    constructor(request, response) {
      internals.needArguments(arguments.length, 2, 'new WebSocketRequestResponsePair');
      this.#request = toUsvString(request);
      this.#response = toUsvString(response);
    }
    static is(value) { return typeof value === 'object' && value !== null && #request in value; }
    get request() { return this.#request; }
    get response() { return this.#response; }
  }
  const isResponsePair = WebSocketRequestResponsePair.is;
  delete WebSocketRequestResponsePair.is;
  internals.interface(WebSocketRequestResponsePair);

  // ---- What leaves.

  function checkedClose(code, reason) {
    const number = code === undefined ? undefined : Number(code) | 0;
    const fails = message => { throw new DOMException(message, 'InvalidAccessError'); };
    if (number !== undefined && (number < 1000 || number >= 5000 || [1004, 1005, 1006, 1015].includes(number))) {
      fails(`Invalid WebSocket close code: ${number}.`);
    }
    const text = reason === undefined ? '' : toUsvString(reason);
    if (reason !== undefined && number === undefined) fails('If you specify a WebSocket close reason, you must also specify a code.');
    if (native.utf8Length(text) > REASON_BYTES_MAX) {
      throw new DOMException(`WebSocket close reason must not be longer than ${REASON_BYTES_MAX} bytes when UTF-8 encoded.`, 'SyntaxError');
    }
    return { code: number, reason: text };
  }

  const sizeOf = ({ data }) => (data === undefined ? 0 : typeof data === 'string' ? native.utf8Length(data) : data.length);

  function post(state, item) {
    if (state.host !== undefined && state.peer?.phase !== NEW && state.peer?.phase !== ACCEPTED) return toHost(state.host, item);
    state.buffered += sizeOf(item);
    const { peer } = state;
    peer.inbox.push(item);
    if (peer.phase === ACCEPTED) pumpSoon(peer);
  }

  function toHost(host, { data, code, reason }) {
    if (data === undefined) native.close(host, code, reason);
    else if (typeof data === 'string') native.sendText(host, data);
    else native.sendBytes(host, data);
  }

  function closeOut(state, code, reason) {
    state.isClosedOut = true;
    post(state, { data: undefined, code, reason });
  }

  // ---- What comes.

  function pumpSoon(state) {
    if (state.isPumping || state.inbox.length === 0) return;
    state.isPumping = true;
    internals.startTimer(() => {
      state.isPumping = false;
      const item = state.inbox.shift();
      if (item === undefined) return;
      state.peer.buffered -= sizeOf(item);
      deliver(state, item.data === undefined ? { ...item, code: item.code ?? 1005, wasClean: true } : item);
      pumpSoon(state);
    }, 0, false);
  }

  function deliver(state, { data, error, text = error, code, reason, wasClean }) {
    if (state.isClosedIn) return;
    if (data !== undefined) {
      internals.dispatchTrusted(state.socket, new MessageEvent('message', { data: contentOf(state, data) }));
    } else if (error !== undefined) {
      state.isAborted = true;
      state.isBroken = true;
      internals.dispatchTrusted(state.socket, new ErrorEvent('error', { message: text, error: typeof error === 'string' ? new Error(error) : error }));
    } else {
      state.isClosedIn = true;
      if (!wasClean) state.isAborted = true;
      else if (native.repliesToClose && !state.isHalfOpen && !state.isClosedOut) closeOut(state, code === 1005 ? undefined : code, reason);
      internals.dispatchTrusted(state.socket, new CloseEvent('close', { code, reason, wasClean }));
      if (state.isClosedOut || state.isAborted) over(state);
    }
  }

  function contentOf(state, data) {
    if (typeof data === 'string') return data;
    return state.binaryType === 'blob' ? new Blob([data]) : data.buffer;
  }

  // Those with another end outside that were accepted by accept(), by number.
  const listening = new Map();

  function listen(state) {
    state.scope = internals.scope();
    // A Durable Object goes on after its events; what a Worker does belongs to one.
    state.release = native.isWorker ? internals.holdEvent(state.scope.event) : () => {};
    listening.set(state.host, state);
    native.accept(state.host, false);
  }

  function over(state) {
    if (state.host === undefined || !listening.delete(state.host)) return;
    native.over(state.host);
    state.release();
  }

  /** An event has ended that may still hold sockets: nobody is left whom they could tell anything. */
  internals.leaveSocketsOf = event => {
    for (const [host, state] of listening) {
      if (state.scope.event !== event) continue;
      listening.delete(host);
      native.over(host);
    }
  };

  /** Called by the host with what came for a socket of accept(). */
  internals.receiveSocket = event => {
    const state = listening.get(event.socket);
    if (state === undefined) return;
    internals.enter(state.scope, () => {
      deliver(state, event);
      native.taken(event.socket);
    });
  };

  // ---- Answers.

  /** The other end of what an answer gives to its caller, as the host is to know it; `connect` once the host knows. */
  internals.coupleSocket = socket => {
    const state = stateOf(socket);
    if (state.phase === CONNECTING || state.url !== null) throw new TypeError("Can't return WebSocket in a Response if it was created with `new WebSocket()`");
    if (state.phase === RELEASED) throw new TypeError("Can't return WebSocket that was already used in a response.");
    if (state.phase === HIBERNATABLE) throw new TypeError("Can't return WebSocket in a Response after calling acceptWebSocket().");
    if (state.phase === ACCEPTED) throw new TypeError("Can't return WebSocket in a Response after calling accept().");
    state.phase = RELEASED;
    if (state.host !== undefined) return { number: state.host, isOpened: true, connect() {} };
    const { peer } = state;
    peer.host ??= native.newSocket();
    return {
      number: peer.host,
      isOpened: false,
      connect() {
        for (const item of state.inbox.splice(0)) toHost(peer.host, item);
        peer.buffered = 0;
        if (peer.phase === ACCEPTED) listen(peer);
        if (peer.phase === HIBERNATABLE) native.accept(peer.host, true);
      },
    };
  };

  /** Whether the fields of a request ask for a socket. */
  internals.wantsSocket = headers => headers.some((name, index) =>
    index % 2 === 0 && name.toLowerCase() === 'upgrade' && headers[index + 1].toLowerCase() === 'websocket');

  internals.newSocket = native.newSocket;

  /** The socket of an answer that opened one. */
  internals.openedSocket = number => {
    const state = make(newState(NEW));
    state.host = number;
    return state.socket;
  };

  // ---- Sockets to servers.

  const syntaxError = message => new DOMException(`WebSocket Constructor: ${message}`, 'SyntaxError');

  function checkUrl(text) {
    internals.load('url');
    const url = internals.URL.parse(text);
    if (url === null) throw syntaxError('The url is invalid.');
    if (url.protocol !== 'ws:' && url.protocol !== 'wss:') throw syntaxError('The url scheme must be ws or wss.');
    if (text.includes('#')) throw syntaxError('The url fragment must be empty.');
    return url.href.replace(/^ws/, 'http');
  }

  function checkProtocols(protocols) {
    if (protocols === undefined || protocols === null) return [];
    internals.load('headers');
    if (!Array.isArray(protocols)) {
      const name = toUsvString(protocols);
      if (!internals.isToken(name)) throw syntaxError('The protocol header token is invalid.');
      return [name];
    }
    const names = protocols.map(toUsvString);
    if (new Set(names).size < names.length) throw syntaxError('The protocols header cannot have repeating values.');
    if (!names.every(internals.isToken)) throw syntaxError('One of the protocol header tokens is invalid.');
    return names;
  }

  function connecting(text, protocols) {
    const url = checkUrl(text);
    const names = checkProtocols(protocols);
    internals.load('outgoing');
    const state = newState(CONNECTING);
    state.url = text;
    const release = native.isWorker ? internals.holdEvent(internals.scope().event) : () => {};
    const headers = ['Upgrade', 'websocket'];
    if (names.length > 0) headers.push('Sec-WebSocket-Protocol', names.join(', '));
    const socket = native.newSocket();
    const { answer, cancel } = internals.exchange({ method: 'GET', url, headers, body: null, socket });
    state.cancel = cancel;
    void answer.then(given => connected(state, socket, given)).catch(error => notConnected(state, error)).finally(release);
    return state;
  }

  function connected(state, socket, { status, headers, body, isSocket }) {
    if (!isSocket) {
      body?.cancel?.();
      throw new TypeError(`Failed to establish the WebSocket connection: expected server to reply with HTTP status code 101 (switching protocols), but received ${status} instead.`);
    }
    state.host = socket;
    state.phase = ACCEPTED;
    const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'sec-websocket-protocol');
    if (at >= 0) state.protocol = headers[at + 1];
    listen(state);
    internals.dispatchTrusted(state.socket, new Event('open'));
  }

  function notConnected(state, error) {
    state.isBroken = true;
    deliver(state, { error, text: `Uncaught ${error}` });
    deliver(state, { code: 1006, reason: 'Failed to establish websocket connection', wasClean: false });
  }

  // One that is not open yet is not opened any more.
  function abandon(state) {
    state.cancel(new Error('Network connection lost.'));
  }

  // ---- Hibernatable sockets of a Durable Object.

  // Those that were shown to the handler, by number.
  const kept = new Map();

  function keptState(number) {
    let state = kept.get(number);
    if (state !== undefined) return state;
    state = make(newState(HIBERNATABLE));
    state.host = number;
    state.isClosedOut = native.isClosed(number);
    kept.set(number, state);
    return state;
  }

  const OF = 'DurableObjectState';

  internals.socketMethods = {
    acceptWebSocket(socket, tags = undefined) {
      if (!internals.isWebSocket(socket)) throw wrongType('acceptWebSocket', OF, 1, 'WebSocket');
      if (tags !== undefined && !Array.isArray(tags)) throw wrongType('acceptWebSocket', OF, 2, 'Array');
      const names = tags === undefined ? [] : tags.map(toUsvString);
      const state = stateOf(socket);
      if (state.phase === ACCEPTED || state.phase === HIBERNATABLE) {
        throw new Error('Cannot call `acceptWebSocket()` if the WebSocket was already accepted via `accept()`');
      }
      if (state.phase !== NEW || state.peer?.phase !== NEW) {
        throw new Error('Cannot call `acceptWebSocket()` on this WebSocket because its pair has already been accepted or used in a Response.');
      }
      state.host = native.keep(names);
      state.phase = HIBERNATABLE;
      if (state.attachment !== null) native.attach(state.host, state.attachment);
      state.attachment = null;
      kept.set(state.host, state);
    },
    getWebSockets(tag = undefined) {
      return native.kept(tag === undefined ? undefined : toUsvString(tag)).map(number => keptState(number).socket);
    },
    getTags(socket) {
      if (!internals.isWebSocket(socket)) throw wrongType('getTags', OF, 1, 'WebSocket');
      const { phase, host } = stateOf(socket);
      if (phase === HIBERNATABLE) return native.tags(host);
      if (phase === ACCEPTED) throw new Error('only hibernatable websockets can have tags.');
      throw new Error("you must call 'acceptWebSocket()' before attempting to access the tags of a WebSocket.");
    },
    setWebSocketAutoResponse(pair = undefined) {
      if (pair === undefined) return native.setAutoResponse(undefined, undefined);
      if (!isResponsePair(pair)) throw wrongType('setWebSocketAutoResponse', OF, 1, 'WebSocketRequestResponsePair');
      native.setAutoResponse(pair.request, pair.response);
    },
    getWebSocketAutoResponse() {
      const pair = native.autoResponse();
      return pair === undefined || pair === null ? null : new WebSocketRequestResponsePair(pair[0], pair[1]);
    },
    getWebSocketAutoResponseTimestamp(socket) {
      if (!internals.isWebSocket(socket)) throw wrongType('getWebSocketAutoResponseTimestamp', OF, 1, 'WebSocket');
      const { phase, host } = stateOf(socket);
      const at = phase === HIBERNATABLE ? native.autoRespondedAt(host) : undefined;
      return at === undefined || at === null ? null : new Date(at);
    },
    setHibernatableWebSocketEventTimeout(ms = undefined) {
      const timeout = ms === undefined ? 0 : Number(ms) >>> 0;
      if (timeout > native.eventTimeoutMax) throw new Error(`Event timeout should not exceed ${native.eventTimeoutMax} ms.`);
      native.setEventTimeout(timeout === 0 ? undefined : timeout);
    },
    getHibernatableWebSocketEventTimeout() {
      return native.eventTimeout() ?? null;
    },
  };

  /** Calls the object's handler for what came to a hibernatable socket. */
  internals.handleSocket = async (instance, { socket: number, data, error, code, reason, wasClean }) => {
    const state = keptState(number);
    const call = (name, ...args) => {
      const handler = instance[name];
      try {
        return typeof handler === 'function' ? bounded(handler.call(instance, state.socket, ...args)) : undefined;
      } finally {
        native.taken(number);
      }
    };
    if (data !== undefined) {
      await call('webSocketMessage', typeof data === 'string' ? data : data.buffer);
    } else if (error !== undefined) {
      state.isAborted = true;
      state.isBroken = true;
      await call('webSocketError', new Error(error));
    } else {
      state.isClosedIn = true;
      if (!wasClean) state.isAborted = true;
      try {
        await call('webSocketClose', code, reason, wasClean);
      } finally {
        state.phase = RELEASED;
        kept.delete(number);
        native.over(number);
      }
    }
  };

  // An event that takes longer than the object allows is given up; what it does goes on.
  function bounded(promise) {
    const timeout = native.eventTimeout();
    if (timeout === undefined || timeout === null) return promise;
    return new Promise((resolve, reject) => {
      const timer = internals.startTimer(() => reject(new Error(`The WebSocket event took longer than ${timeout} ms.`)), timeout, false);
      Promise.resolve(promise).then(resolve, reject).finally(() => internals.clearTimer(timer));
    });
  }

  return { WebSocket, WebSocketPair, WebSocketRequestResponsePair };
}
