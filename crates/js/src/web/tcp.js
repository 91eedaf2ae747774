// Outgoing TCP: `connect` of `cloudflare:sockets`, with the checks and messages of workerd. What is written goes out as the
// body of a request does (outgoing.js), a piece at a time; what the server sends is read when someone reads.
export default function (native, internals) {
  internals.load('url');
  internals.load('streams');
  internals.load('writable-streams');
  internals.load('outgoing');
  const { WritableStream, writableState, writableClose } = internals.pipes;
  const { byteStream, cancel: cancelReadable, isLocked } = internals.streams;

  const ADDRESS_LEN_MAX = 255;
  // A chunk leaves in pieces of this many bytes, so that one outside of the isolate is never large.
  const PIECE_LEN_MAX = 65_536;
  // For how long a socket that closes, or begins TLS, waits for a server that takes nothing of what was written.
  const STALL_MS_MAX = 30_000;
  const NO_CONNECTION = 'proxy request failed, cannot connect to the specified address';
  const NO_SERVER = `${NO_CONNECTION}. It looks like you might be trying to connect to a HTTP-based service — consider using fetch instead`;
  const NO_GLOBAL = 'Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), setting a timeout, and generating random values are not allowed within global scope. To fix this error, perform this operation within a handler.\nhttps://developers.cloudflare.com/workers/runtime-apis/handlers/';
  const NOT_BYTES = 'This TransformStream is being used as a byte stream, but received an object of non-ArrayBuffer/ArrayBufferView type on its writable side.';
  const isClosing = what => new TypeError(`This ${what} belongs to an object that is closing.`);
  const lost = () => new Error('Network connection lost.');

  const utf8 = new TextEncoder();

  // Those that are open or opening.
  const open = new Set();

  const handled = deferred => {
    deferred.promise.catch(() => {});
    return deferred;
  };

  let made;
  let stateOf;
  class Socket {
    #state;
    static {
      stateOf = socket => {
        if (typeof socket !== 'object' || socket === null || !(#state in socket)) throw internals.illegalInvocation();
        return socket.#state;
      };
    }
    constructor() {
      if (made === undefined) throw new TypeError('Illegal constructor');
      this.#state = made;
      made = undefined;
    }
    get readable() { return stateOf(this).readable; }
    get writable() { return stateOf(this).writable; }
    get closed() { return stateOf(this).closed.promise; }
    get opened() { return stateOf(this).opened.promise; }
    get upgraded() { return stateOf(this).isUpgraded; }
    get secureTransport() { return stateOf(this).security; }
    close() { return close(stateOf(this)); }
    startTls(options = undefined) { return startTls(stateOf(this), options); }
  }
  internals.interface(Socket);

  // ---- What is written: one piece at a time, the next once that was taken.

  function outlet(gone, moved) {
    let rest;
    let taken;
    let wanted;
    let end;
    const feed = () => {
      if (wanted === undefined) return;
      const { resolve, reject } = wanted;
      if (rest !== undefined) {
        const piece = rest.subarray(0, PIECE_LEN_MAX);
        rest = rest.length > PIECE_LEN_MAX ? rest.subarray(PIECE_LEN_MAX) : undefined;
        wanted = undefined;
        resolve(piece);
      } else if (end !== undefined) {
        wanted = undefined;
        if (end.error === undefined) resolve();
        else reject(end.error);
      }
    };
    const content = {
      read() {
        // The piece before was taken.
        moved();
        if (rest === undefined) taken?.resolve();
        wanted = Promise.withResolvers();
        const { promise } = wanted;
        feed();
        return promise;
      },
      cancel(reason) {
        end ??= { error: reason };
        rest = undefined;
        taken?.reject(lost());
        feed();
        gone();
      },
      length: undefined,
    };
    return {
      content,
      write(bytes) {
        if (end !== undefined) throw lost();
        if (bytes.length === 0) return undefined;
        rest = bytes;
        taken = handled(Promise.withResolvers());
        feed();
        return taken.promise;
      },
      end(error = undefined) {
        end ??= { error };
        feed();
      },
    };
  }

  // ---- A socket.

  const newState = (remoteAddress, domain, security, options, isHttpPort) => ({
    // What its body ends with: not the event, which a Durable Object's socket outlives.
    owner: { number: 0 }, event: internals.scope().event,
    remoteAddress, domain, security, isHttpPort, options,
    readable: undefined, writable: undefined, controller: undefined,
    opened: handled(Promise.withResolvers()), closed: handled(Promise.withResolvers()),
    isUpgraded: false, isClosing: false, isClosed: false, isTaken: false, isReadOver: false, isWriteOver: false, isOver: false,
    // What the host calls it, once it is open.
    incoming: undefined, key: '', reading: undefined,
    outlet: undefined, queued: 0, written: 0, flushed: undefined, stall: undefined,
  });

  function setUp(state) {
    state.outlet = outlet(() => wentAway(state), () => moved(state));
    state.readable = byteStream({ pull: () => pull(state), cancel: () => cancel(state) });
    state.writable = new WritableStream({
      // Nothing is written before the connection stands.
      start(controller) {
        state.controller = controller;
        return state.opened.promise;
      },
      write: chunk => write(state, chunk),
      close() { if (!state.isUpgraded) state.outlet.end(); },
      abort(reason) {
        allLeft(state);
        if (!state.isUpgraded) state.outlet.end(reason ?? lost());
      },
    }, {
      highWaterMark: state.options.highWaterMark ?? 1,
      size() {
        state.queued += 1;
        return 1;
      },
    });
    made = state;
    return new Socket();
  }

  function send(state, start) {
    open.add(state);
    let op;
    try {
      op = start(internals.sendBody(state.outlet.content, error => writeOver(state, error), state.owner));
    } catch (error) {
      failed(state, error);
      return;
    }
    internals.wait(op).then(answer => isOpen(state, answer), error => failed(state, whyNot(state, error)));
  }

  // A refusal says itself what to do about it.
  function whyNot({ isHttpPort }, error) {
    return error instanceof TypeError ? error : new Error(isHttpPort ? NO_SERVER : NO_CONNECTION, { cause: error });
  }

  function isOpen(state, { head, body }) {
    state.incoming = body;
    state.key = head;
    if (state.isReadOver) internals.cancelBody(body);
    state.opened.resolve({ remoteAddress: state.remoteAddress, localAddress: undefined });
  }

  function failed(state, error) {
    state.opened.reject(error);
    state.closed.reject(error);
    state.controller.error(error);
    state.outlet.end(error);
    over(state);
  }

  // No byte goes either way any more.
  function over(state) {
    if (state.isOver) return;
    state.isOver = true;
    open.delete(state);
    if (!state.isTaken) native.over();
  }

  function readOver(state) {
    state.isReadOver = true;
    bothOver(state);
  }

  function writeOver(state, error) {
    state.isWriteOver = true;
    // What breaks what is written closes the connection.
    if (error !== undefined) state.closed.reject(error);
    if (error !== undefined && state.incoming === undefined) return over(state);
    return bothOver(state);
  }

  function bothOver(state) {
    if (!state.isReadOver || !state.isWriteOver) return;
    state.closed.resolve();
    over(state);
  }

  // The server takes nothing any more.
  function wentAway(state) {
    const error = lost();
    state.controller.error(error);
    state.closed.reject(error);
    allLeft(state);
  }

  async function pull(state) {
    if (state.isClosing) throw isClosing('ReadableStream');
    await state.opened.promise;
    if (state.isUpgraded) return undefined;
    let bytes;
    try {
      state.reading = native.read(state.incoming);
      bytes = await internals.wait(state.reading);
    } catch {
      if (state.isUpgraded) return undefined;
      if (state.isClosing) throw new TypeError('This socket has been closed.');
      const error = lost();
      state.closed.reject(error);
      readOver(state);
      throw error;
    }
    if (bytes !== undefined) return bytes;
    if (!state.options.allowHalfOpen) closeWritable(state);
    readOver(state);
    return undefined;
  }

  function cancel(state) {
    if (state.isReadOver) return;
    stopReading(state);
    readOver(state);
  }

  function stopReading({ incoming, reading }) {
    if (incoming === undefined) return;
    if (reading !== undefined) internals.cancel(reading, lost());
    internals.cancelBody(incoming);
  }

  async function write(state, chunk) {
    try {
      if (state.isClosed) throw isClosing('WritableStream');
      const bytes = typeof chunk === 'string' ? utf8.encode(chunk) : internals.bytesOf(chunk);
      if (bytes === undefined) throw new TypeError(NOT_BYTES);
      state.written += bytes.length;
      await state.outlet.write(bytes);
    } catch (error) {
      // What is behind it does not leave either.
      allLeft(state);
      throw error;
    }
    state.queued -= 1;
    if (state.queued <= 0) allLeft(state);
  }

  function allLeft(state) {
    state.queued = 0;
    stopWaiting(state);
    state.flushed?.resolve();
    state.flushed = undefined;
  }

  // Until all that was written has left, or cannot leave. A server that takes nothing for a while is given up.
  async function flush(state) {
    if (state.queued === 0 || writableState(state.writable).state !== 'writable') return;
    state.flushed ??= Promise.withResolvers();
    const { promise } = state.flushed;
    moved(state);
    await promise;
  }

  // A piece has left: who waits for all of them waits anew.
  function moved(state) {
    if (state.flushed === undefined) return;
    stopWaiting(state);
    try {
      state.stall = internals.startTimer(() => giveUp(state), STALL_MS_MAX, false);
    } catch {
      // There are too many timers: it must not wait without one.
      giveUp(state);
    }
  }

  function stopWaiting(state) {
    if (state.stall !== undefined) internals.clearTimer(state.stall);
    state.stall = undefined;
  }

  // Breaks a connection whose server takes nothing: what was written is lost, and whoever waits is told.
  function giveUp(state) {
    wentAway(state);
    internals.leaveBodiesOf(state.owner);
    if (!state.isReadOver) {
      stopReading(state);
      readOver(state);
    }
    over(state);
  }

  function closeWritable(state) {
    const stream = writableState(state.writable);
    if (stream.state === 'writable' && !stream.isClosing) handled({ promise: writableClose(stream) });
  }

  async function close(state) {
    if (state.isClosing) return state.closed.promise.catch(() => {});
    state.isClosing = true;
    try {
      await state.opened.promise;
    } catch {
      return undefined;
    }
    await flush(state);
    state.isClosed = true;
    if (!state.isReadOver) {
      stopReading(state);
      readOver(state);
    }
    state.outlet.end();
    state.closed.resolve();
    return undefined;
  }

  function startTls(state, options) {
    if (state.security === 'on') throw new TypeError('Cannot startTls on a TLS socket.');
    if (state.isOver || state.isClosing) throw new TypeError('The connection was closed before startTls could be started.');
    if (state.domain === undefined) throw new TypeError('startTls can only be called once.');
    if (state.security !== 'starttls') {
      throw new TypeError("The `secureTransport` socket option must be set to 'starttls' for startTls to be used.");
    }
    const { remoteAddress, domain, isHttpPort } = state;
    const expected = internals.toDictionary(options, 'startTls').expectedServerHostname;
    const serverName = expected === undefined ? domain : internals.toUsvString(expected);
    state.domain = undefined;
    const next = newState(remoteAddress, undefined, 'on', state.options, isHttpPort);
    // Until the new one stands, what is written to the old one has an end to come: both end together.
    next.owner = state.owner;
    const socket = setUp(next);
    takeOver(state, next, serverName).catch(error => failed(next, error));
    return socket;
  }

  async function takeOver(state, next, serverName) {
    next.isTaken = true;
    await state.opened.promise;
    if (state.writable.locked) throw new TypeError('This WritableStream is currently locked to a writer.');
    await flush(state);
    if (isLocked(state.readable)) throw new TypeError('This ReadableStream is currently locked to a reader.');
    if (state.isOver) throw lost();
    // The one place among those of the isolate is the new socket's from here on.
    state.isTaken = true;
    next.isTaken = false;
    state.isUpgraded = true;
    closeWritable(state);
    handled({ promise: cancelReadable(state.readable) });
    over(state);
    state.closed.resolve();
    send(next, body => native.upgrade(state.key, state.written, serverName, body));
    // Its end before that would be the end of what is written.
    const end = () => state.outlet.end();
    next.opened.promise.then(end, end);
  }

  /** An event of a Worker is over: what it opened is closed. */
  internals.leaveConnectionsOf = event => {
    for (const state of [...open]) {
      if (state.event !== event) continue;
      internals.leaveBodiesOf(state.owner);
      stopReading(state);
      over(state);
    }
  };

  // ---- connect()

  function isValidHost(host) {
    return host.length > 0 && host.length <= ADDRESS_LEN_MAX && /^[-.\w[\]:]+$/.test(host);
  }

  function addressOf(value) {
    if (typeof value === 'object' && value !== null) {
      const hostname = internals.toUsvString(value.hostname);
      const port = portOf(value.port);
      return { hostname, port, text: `${hostname}:${port}` };
    }
    const text = internals.toUsvString(value);
    const url = internals.URL.parse(`fake://${text}`);
    if (url === null) throw new TypeError('Specified address could not be parsed.');
    if (url.hostname === '') throw new TypeError('Specified address is missing hostname.');
    if (url.port === '') throw new TypeError('Specified address is missing port.');
    return { hostname: url.hostname, port: Number(url.port), text };
  }

  function portOf(value) {
    const port = Math.trunc(Number(value));
    if (!Number.isFinite(port)) throw new TypeError('The value cannot be converted because it is not an integer.');
    if (port < 0) throw new TypeError('The value cannot be converted because it is negative and this API expects a positive number.');
    if (port > 65_535) throw new TypeError('Value out of range. Must be less than or equal to 65535.');
    return port;
  }

  function optionsOf(value) {
    if (value !== undefined && value !== null && typeof value !== 'object') {
      throw new TypeError("Failed to execute 'connect' on 'SocketsModule': parameter 2 is not of type 'SocketOptions'.");
    }
    const { allowHalfOpen, highWaterMark, secureTransport = 'off' } = value ?? {};
    return {
      security: `${secureTransport}`,
      allowHalfOpen: Boolean(allowHalfOpen),
      highWaterMark: highWaterMark === undefined ? undefined : Number(highWaterMark),
    };
  }

  internals.connect = function connect(address, options = undefined) {
    internals.needArguments(arguments.length, 1, 'connect');
    const { hostname, port, text } = addressOf(address);
    const { security, ...rest } = optionsOf(options);
    if (internals.scope().event.number === 0) throw new Error(NO_GLOBAL);
    if (!isValidHost(text)) {
      throw new TypeError('Specified address is empty string, contains unsupported characters or is too long.');
    }
    if (!['off', 'on', 'starttls'].includes(security)) {
      throw new TypeError(`Unsupported value in secureTransport socket option: ${security}`);
    }
    const state = newState(text, hostname, security, rest, port === 443 || port === 80);
    const socket = setUp(state);
    // After all that may throw: the place is given back when the connection is over.
    native.begin();
    send(state, body => native.connect(hostname, port, security, body));
    return socket;
  };
}
