// Sessions: what carries the references of RPC between this isolate and another. A session is a socket of its own, whose
// messages are arrays in the clone format. The caller of an object opens it, with a call whose arguments have references or
// to have those of a result; it closes it when neither end holds a reference and no call is under way. Either end may call
// what it was given by the other: both number what they give, and name it by that number.
export default function (native, internals) {
  internals.load('sockets');
  internals.load('references');
  const [CALL, RETURN, THROW, RELEASE, ATTACH] = [1, 2, 3, 4, 5];
  const MAIN = 0;
  // A result with references begins with it (see objects.js).
  const WITH_REFERENCES = 1;
  const UNCLAIMED_MS = 10_000;
  // Why an object closes a session that comes for what it does not keep any more.
  const GONE = 'gone';
  const { referencesMax: REFERENCES_MAX, callsMax: CALLS_MAX, messageMax: MESSAGE_MAX, firstMax: FIRST_MAX,
    sessionsMax: SESSIONS_MAX } = native;

  // By the number of their socket.
  const sessions = new Map();
  // What results hold whose callers have not come for it yet, by token.
  const unclaimed = new Map();

  function newSession(fields) {
    if (sessions.size >= SESSIONS_MAX) {
      throw new RangeError(`There are ${SESSIONS_MAX} RPC sessions open already; dispose of stubs that are not used.`);
    }
    const session = {
      socket: undefined, scope: internals.scope(), main: undefined, isOpener: false, isOpen: true, lost: undefined,
      outbox: [], given: new Map(), gifts: 0, taken: 0, calls: new Map(), made: 0, serving: 0, ...fields,
    };
    sessions.set(session.socket, session);
    return session;
  }

  // ---- What this end gives.

  function giver(holder) {
    return {
      give(hook) {
        if (holder.given.size >= REFERENCES_MAX) {
          hook.dispose();
          throw new RangeError(`An RPC session cannot hold more than ${REFERENCES_MAX} references; dispose of some.`);
        }
        holder.gifts += 1;
        holder.given.set(holder.gifts, hook);
        return holder.gifts;
      },
      takeBack: numbers => numbers.forEach(number => giveUp(holder, number)),
    };
  }

  function giveUp({ given }, number) {
    const hook = given.get(number);
    given.delete(number);
    hook?.dispose();
  }

  // A message that was not sent has given nothing.
  function takeBackFrom(session, before) {
    for (let number = before + 1; number <= session.gifts; number += 1) giveUp(session, number);
  }

  // ---- What this end takes.

  const lostError = (session, hasRun) => {
    const whose = session.isOpener ? 'the Durable Object that this RPC stub leads to' : 'the caller that gave this RPC stub';
    const error = new Error(`Network connection lost: ${whose} has gone, and its references with it.`);
    if (!hasRun) error.retryable = true;
    return error;
  };

  // No call of the session has run.
  const unclaimedError = () => Object.assign(new Error(`Network connection lost: the caller came too late for the references of this RPC result (the Durable Object keeps them for ${UNCLAIMED_MS / 1000} s, while it runs). Call the method again.`), { retryable: true });

  const taker = session => number => {
    session.taken += 1;
    return remoteHook(session, { number, count: 0 });
  };

  // What is called is kept until the call is over, whatever becomes of its stubs.
  function remoteHook(session, shared) {
    shared.count += 1;
    const dispose = () => {
      shared.count -= 1;
      if (shared.count > 0) return;
      session.taken -= 1;
      send(session, [RELEASE, [shared.number]]);
      closeIfDone(session);
    };
    return {
      async call(path, args) {
        shared.count += 1;
        try {
          return await callRemote(session, shared.number, path, args);
        } finally {
          dispose();
        }
      },
      dup: () => remoteHook(session, shared),
      dispose,
    };
  }

  async function callRemote(session, target, path, args) {
    if (session.lost !== undefined) throw session.lost();
    return await begin(session, target, path, args, message => send(session, message));
  }

  // Begins a call and hands its message on; the promise of its result.
  function begin(session, target, path, args, hand) {
    if (session.calls.size >= CALLS_MAX) {
      throw new RangeError(`An RPC session cannot have more than ${CALLS_MAX} calls under way; await some before making more.`);
    }
    const before = session.gifts;
    const packed = args === undefined ? [undefined, undefined] : internals.pack(args, giver(session));
    session.made += 1;
    const number = session.made;
    const result = new Promise((resolve, reject) => session.calls.set(number, { resolve, reject, scope: internals.scope() }));
    try {
      hand([CALL, number, target, path, ...packed]);
    } catch (error) {
      session.calls.delete(number);
      takeBackFrom(session, before);
      throw error;
    }
    return result;
  }

  // ---- Messages.

  function encoded(message) {
    const bytes = internals.serialize(message);
    if (bytes.length > MESSAGE_MAX) {
      throw new RangeError(`A message of ${bytes.length} bytes is too long for an RPC session: the limit is ${MESSAGE_MAX}.`);
    }
    return bytes;
  }

  function send(session, message) {
    if (session.lost !== undefined) return;
    const bytes = encoded(message);
    if (session.isOpen) native.sendBytes(session.socket, bytes);
    else session.outbox.push(bytes);
  }

  function receive(session, [kind, ...parts]) {
    switch (kind) {
      case RETURN:
        return returned(session, ...parts);
      case THROW:
        return settle(session, parts[0], call => call.reject(internals.errorFrom({ ...parts[1], remote: true })));
      case RELEASE:
        parts[0].forEach(number => giveUp(session, number));
        return closeIfDone(session);
      case ATTACH:
        return claim(session, parts[0]);
    }
  }

  function returned(session, number, bytes, references) {
    let how;
    try {
      const unpacked = internals.unpack(bytes, references, taker(session));
      how = call => call.resolve(internals.withDisposer(unpacked));
    } catch (error) {
      how = call => call.reject(error);
    }
    settle(session, number, how);
  }

  function settle(session, number, how) {
    const call = session.calls.get(number);
    if (call === undefined) return;
    session.calls.delete(number);
    internals.enter(call.scope, () => how(call));
    closeIfDone(session);
  }

  // ---- Calls of the other end.

  async function serve(session, number, target, path, bytes, references) {
    let stubs = [];
    session.serving += 1;
    try {
      if (session.serving > CALLS_MAX) {
        throw Object.assign(new Error('The RPC session has too many calls under way.'), { overloaded: true });
      }
      let args;
      if (bytes !== undefined) ({ value: args, stubs } = internals.unpack(bytes, references, taker(session)));
      const value = await called(session, target, path, args);
      answer(session, number, value);
    } catch (error) {
      sendError(session, number, error);
    } finally {
      session.serving -= 1;
      // The arguments are the caller's: what is to stay of them was duplicated.
      stubs.forEach(internals.disposeStub);
    }
  }

  function answer(session, number, value) {
    const before = session.gifts;
    try {
      send(session, [RETURN, number, ...internals.pack(value, giver(session), true)]);
    } catch (error) {
      takeBackFrom(session, before);
      throw error;
    }
  }

  function sendError(session, number, error) {
    try {
      send(session, [THROW, number, internals.describeError(error)]);
    } catch {
      send(session, [THROW, number, internals.describeError(new RangeError('The call failed, and its error is too long for an RPC session.'))]);
    }
  }

  async function called(session, target, path, args) {
    if (target === MAIN) return await session.main(path, args);
    const hook = session.given.get(target);
    if (hook === undefined) throw new Error('RPC stub used after being disposed.');
    return await (hook.target === undefined ? hook.call(path, args) : internals.invoke(hook.target, path, args));
  }

  // ---- The life of a session.

  function closeIfDone(session) {
    const { isOpener, isOpen, lost, calls, taken, given, outbox } = session;
    if (!isOpener || !isOpen || lost !== undefined || calls.size + taken + given.size + outbox.length > 0) return;
    native.close(session.socket, 1000, '');
    end(session);
  }

  // `cause`: what its calls are told.
  function end(session, cause = undefined) {
    if (session.lost !== undefined) return;
    session.lost = () => cause ?? lostError(session, false);
    sessions.delete(session.socket);
    if (session.isOpen) native.over(session.socket);
    const { calls, given } = session;
    session.calls = new Map();
    session.given = new Map();
    for (const call of calls.values()) internals.enter(call.scope, () => call.reject(cause ?? lostError(session, true)));
    if (given.size > 0) internals.enter(session.scope, () => given.forEach(hook => hook.dispose()));
  }

  // Opens a session at an object. `first` is its first message.
  function open(session, target, order, first) {
    const bytes = encoded(first);
    const isAhead = bytes.length <= FIRST_MAX;
    if (!isAhead) session.outbox.push(bytes);
    const place = order.next();
    const op = native.openSession({ ...target, place }, session.socket, isAhead ? bytes : new Uint8Array(0));
    order.wait(op, place).then(({ isSocket }) => {
      if (session.lost !== undefined) {
        if (isSocket) native.over(session.socket);
        return;
      }
      if (!isSocket) return end(session, new Error('The Durable Object does not take RPC sessions.'));
      session.isOpen = true;
      native.accept(session.socket, false);
      session.outbox.splice(0).forEach(message => native.sendBytes(session.socket, message));
      closeIfDone(session);
    }, error => end(session, error));
  }

  const opener = () => newSession({ socket: native.newSocket(), isOpener: true, isOpen: false });

  /** Calls what `path` leads to in an object, by a session of its own; reads it where `args` is undefined. */
  internals.callBySession = (target, order, path, args) => {
    const session = opener();
    try {
      return begin(session, MAIN, path, args, message => open(session, target, order, message));
    } catch (error) {
      end(session);
      throw error;
    }
  };

  /** The result with references of a call that was made without a session, and the session that holds them. */
  internals.resultWithReferences = (bytes, target, order) => {
    const [token, content, references] = internals.deserialize(bytes.subarray(1));
    const session = opener();
    const unpacked = internals.unpack(content, references, taker(session));
    if (session.taken === 0) end(session);
    else open(session, target, order, [ATTACH, token]);
    return internals.withDisposer(unpacked);
  };

  /** The result of a method as its caller is to get it: with references, these wait for the caller's session. */
  internals.packResult = value => {
    const holder = { given: new Map(), gifts: 0 };
    const [content, references] = internals.pack(value, giver(holder), true);
    if (references.length === 0) return content;
    if (holder.given.size === 0) return prefixed([undefined, content, references]);
    const token = native.token();
    const timer = internals.startTimer(() => {
      unclaimed.delete(token);
      holder.given.forEach(hook => hook.dispose());
    }, UNCLAIMED_MS, false);
    unclaimed.set(token, { holder, timer });
    return prefixed([token, content, references]);
  };

  function prefixed(result) {
    const bytes = internals.serialize(result);
    const whole = new Uint8Array(bytes.length + 1);
    whole[0] = WITH_REFERENCES;
    whole.set(bytes, 1);
    return whole;
  }

  function claim(session, token) {
    const found = unclaimed.get(token);
    if (found === undefined) {
      native.close(session.socket, 1001, GONE);
      return end(session);
    }
    unclaimed.delete(token);
    internals.clearTimer(found.timer);
    session.given = found.holder.given;
    session.gifts = found.holder.gifts;
  }

  /** A caller opens a session at this object, whose members `main(path, args)` calls. */
  internals.acceptSession = async (event, first, main) => {
    const socket = native.newSocket();
    native.respondSession(event.number, socket);
    native.accept(socket, false);
    const session = newSession({ socket, main });
    if (first.length > 0) await told(session, internals.deserialize(first));
  };

  const told = (session, message) => (message[0] === CALL ? serve(session, ...message.slice(1)) : receive(session, message));

  /** Whether a socket is a session's. */
  internals.isSession = socket => sessions.has(socket);

  /**
   * Takes what came for a session within `scope`; `over` once that is done. A call waits in front of the input gate like any
   * event; what settles one belongs to whoever made that.
   */
  internals.receiveSession = (scope, { socket, data, error, reason }, over) => {
    const session = sessions.get(socket);
    native.taken(socket);
    if (data === undefined) {
      if (error === undefined) end(session, session.isOpener && reason === GONE ? unclaimedError() : undefined);
      return over();
    }
    const message = internals.deserialize(data);
    if (message[0] === CALL) return internals.enter(scope, () => void told(session, message).then(over, over));
    receive(session, message);
    over();
  };

  const { receiveSocket, leaveSocketsOf } = internals;
  internals.receiveSocket = event => {
    const session = sessions.get(event.socket);
    if (session === undefined) return receiveSocket(event);
    internals.receiveSession(session.scope, event, () => {});
  };
  internals.leaveSocketsOf = event => {
    for (const session of [...sessions.values()]) {
      if (session.scope.event === event) end(session);
    }
    leaveSocketsOf(event);
  };
}
