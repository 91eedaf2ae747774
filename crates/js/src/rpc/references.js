// Values with references in them: functions, RpcTargets, stubs, streams, requests and responses. A value is packed into
// [bytes, references]: the bytes name a reference by its place, and each reference says what it is. What is called through
// it stays where it was made, under a number that `give(hook)` answers and `take(number)` finds a hook for.
export default function (native, internals) {
  internals.load('clone');
  internals.load('stubs');
  const { DOMException } = internals;
  const { RpcTarget } = internals.workers;
  const [STUB, READABLE, WRITABLE, HEADERS, REQUEST, RESPONSE, BLOB] = [1, 2, 3, 4, 5, 6, 7];

  // ---- What a path leads to.

  const missing = name => new TypeError(`The RPC receiver does not implement the method "${name}".`);

  function member(receiver, name) {
    if ((typeof receiver !== 'object' && typeof receiver !== 'function') || receiver === null) throw missing(name);
    if (internals.stubState(receiver) !== undefined) return receiver[name];
    const prototype = Object.getPrototypeOf(receiver);
    if (prototype === Object.prototype || prototype === null) {
      if (!Object.hasOwn(receiver, name)) throw missing(name);
      return receiver[name];
    }
    return internals.rpcMember(receiver, name);
  }

  /** Calls what `path` leads to, or reads it where `args` is undefined. */
  internals.invoke = async (root, path, args) => {
    let self;
    let value = root;
    for (const name of path) {
      self = value;
      value = isProperty(value) ? value[name] : member(value, name);
    }
    if (args === undefined) return value;
    if (typeof value !== 'function') throw new TypeError(`"${path.at(-1) ?? '(this)'}" is not a function.`);
    return Reflect.apply(value, self, args);
  };

  const isProperty = value => typeof value === 'function' && value instanceof internals.workers.RpcProperty;

  // ---- Hooks of what is here.

  function hookOver(shared) {
    shared.count += 1;
    const dispose = () => {
      shared.count -= 1;
      if (shared.count === 0) disposed(shared.target);
    };
    return {
      target: shared.target,
      call: async (path, args) => {
        shared.count += 1;
        let given;
        try {
          given = args === undefined ? undefined : copy(args);
          return internals.withDisposer(copy(await internals.invoke(shared.target, path, given?.value), true));
        } finally {
          given?.stubs.forEach(internals.disposeStub);
          dispose();
        }
      },
      dup: () => hookOver(shared),
      dispose,
    };
  }

  function disposed(target) {
    try {
      target[Symbol.dispose]?.();
    } catch (error) {
      internals.reportError(error, 'Uncaught (in the disposer of an RPC target)');
    }
  }

  /** A hook of a target or function of this isolate. */
  internals.localHook = target => hookOver({ target, count: 0 });

  // ---- Packing.

  const unsupported = name => new DOMException(
    `Could not serialize object of type "${name}". This type does not support serialization.`, 'DataCloneError');

  const nameOf = object => {
    const { constructor } = object;
    return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'Object';
  };

  function platformReference(object, give) {
    if (internals.streams?.isReadableStream(object)) {
      if (internals.streams.isLocked(object)) throw new TypeError('The ReadableStream has been locked to a reader.');
      return [READABLE, give(internals.localHook(new ReadableEnd(internals.streams.reader(object))))];
    }
    if (internals.pipes?.isWritableStream(object)) return [WRITABLE, give(internals.localHook(new WritableEnd(object)))];
    if (internals.isHeaders?.(object)) return [HEADERS, internals.flatHeaders(object)];
    if (internals.isRequest?.(object)) {
      const { method, url, headers, redirect, body } = internals.requestState(object);
      return [REQUEST, method, url, internals.flatHeaders(headers), redirect, bodyReference(body, give)];
    }
    if (internals.isResponse?.(object)) {
      const { status, statusText, headers, body, webSocket } = internals.responseState(object);
      if (webSocket !== null) throw unsupported('WebSocket');
      return [RESPONSE, status, statusText, internals.flatHeaders(headers), bodyReference(body, give)];
    }
    if (internals.isBlob?.(object)) {
      const { bytes, type } = internals.blobState(object);
      return [BLOB, bytes.slice(), type];
    }
    return undefined;
  }

  // A body that is whole goes along; any other is a stream.
  function bodyReference(body, give) {
    const content = internals.takeBody(body);
    if (content === null || typeof content === 'string' || content instanceof Uint8Array) return content;
    return give(internals.localHook(new ReadableEnd(content)));
  }

  // What a value refers to; undefined for what is cloned.
  function referenceTo(object, give, isMoved) {
    const state = internals.stubState(object);
    if (state !== undefined) {
      if (state.isDisposed) throw new Error('RPC stub used after being disposed.');
      if (!isMoved) return [STUB, give(state.hook.dup())];
      // Before: where there is no room for it, it is disposed of.
      state.isDisposed = true;
      return [STUB, give(state.hook)];
    }
    if (typeof object === 'function') {
      if (isProperty(object) || object instanceof internals.workers.RpcPromise) throw unsupported(nameOf(object));
      return [STUB, give(internals.localHook(object))];
    }
    if (object instanceof RpcTarget) return [STUB, give(internals.localHook(object))];
    const reference = platformReference(object, give);
    if (reference !== undefined) return reference;
    if (internals.isObjectStub?.(object)) throw unsupported('DurableObject');
    if (!internals.isOrdinary(object)) throw unsupported(nameOf(object));
    return undefined;
  }

  /**
   * [bytes, references] of a value. `isMoved`: stubs in it are given away; otherwise the caller keeps its own. Where it
   * throws, `takeBack(numbers)` is given what was given.
   */
  internals.pack = (value, { give, takeBack }, isMoved = false) => {
    const references = [];
    const given = [];
    const note = hook => {
      const number = give(hook);
      given.push(number);
      return number;
    };
    try {
      const bytes = internals.serializeReferring(value, object => {
        const reference = referenceTo(object, note, isMoved);
        return reference === undefined ? undefined : references.push(reference) - 1;
      });
      return [bytes, references];
    } catch (error) {
      takeBack(given);
      throw error;
    }
  };

  // ---- Unpacking.

  function made([kind, ...parts], take, stubs) {
    switch (kind) {
      case STUB: {
        const stub = internals.makeReferenceStub(take(parts[0]));
        stubs.push(internals.stubState(stub));
        return stub;
      }
      case READABLE:
        internals.load('streams');
        return readable(take(parts[0]));
      case WRITABLE:
        return writable(take(parts[0]));
      case HEADERS:
        internals.load('headers');
        return internals.headersOf(parts[0], false);
      case REQUEST: {
        const [method, url, flat, redirect, body] = parts;
        internals.load('request');
        return new internals.Request(url, { method, redirect, headers: internals.headersOf(flat, false), ...bodyOf(body, take) });
      }
      case RESPONSE: {
        const [status, statusText, flat, body] = parts;
        internals.load('response');
        return new internals.Response(bodyOf(body, take).body ?? null, { status, statusText, headers: internals.headersOf(flat, false) });
      }
      case BLOB:
        internals.load('blob');
        return internals.blobOf(parts[0], parts[1]);
      default:
        throw new DOMException('Unable to deserialize a reference of an unknown kind.', 'DataCloneError');
    }
  }

  function bodyOf(body, take) {
    if (body === null) return {};
    if (typeof body !== 'number') return { body };
    internals.load('streams');
    return { body: readable(take(body)) };
  }

  /** The value that was packed, and the states of the stubs in it: { value, stubs }. */
  internals.unpack = (bytes, references, take) => {
    const stubs = [];
    const value = internals.deserializeReferring(bytes, index => {
      const reference = references[index];
      if (reference === undefined) throw new DOMException('Unable to deserialize a reference that is not there.', 'DataCloneError');
      return made(reference, take, stubs);
    });
    return { value, stubs };
  };

  function copy(value, isMoved = false) {
    const hooks = [];
    const ends = {
      give: hook => hooks.push(hook) - 1,
      takeBack: numbers => numbers.forEach(number => hooks[number].dispose()),
    };
    const [bytes, references] = internals.pack(value, ends, isMoved);
    return internals.unpack(bytes, references, number => hooks[number]);
  }
  internals.copyWithReferences = copy;

  // ---- Streams: the end that stays, and the one that goes.

  const GONE = 'The other end of this stream has gone.';

  class ReadableEnd {
    #content;
    #isOver = false;
    constructor(content) {
      this.#content = content;
    }
    /** The next bytes, never none; undefined at the end. */
    async read() {
      try {
        for (;;) {
          const bytes = await this.#content.read();
          this.#isOver = bytes === undefined;
          if (bytes === undefined || bytes.length > 0) return bytes;
        }
      } catch (error) {
        this.#isOver = true;
        throw error;
      }
    }
    async cancel(reason) {
      this.#isOver = true;
      await this.#content.cancel(reason);
    }
    [Symbol.dispose]() {
      if (!this.#isOver) this.cancel(new Error(GONE)).catch(() => {});
    }
  }

  class WritableEnd {
    #writer;
    #isOver = false;
    constructor(stream) {
      this.#writer = stream.getWriter();
      this.#writer.closed.catch(() => {});
    }
    async write(chunk) { await this.#writer.write(chunk); }
    async close() {
      this.#isOver = true;
      await this.#writer.close();
    }
    async abort(reason) {
      this.#isOver = true;
      await this.#writer.abort(reason);
    }
    [Symbol.dispose]() {
      if (!this.#isOver) this.abort(new Error(GONE)).catch(() => {});
    }
  }

  function readable(hook) {
    return internals.streams.byteStream({
      async pull() {
        try {
          const bytes = await hook.call(['read'], []);
          if (bytes !== undefined) return bytes;
        } catch (error) {
          hook.dispose();
          throw error;
        }
        hook.dispose();
        return undefined;
      },
      async cancel(reason) {
        try {
          await hook.call(['cancel'], [reason]);
        } finally {
          hook.dispose();
        }
      },
    });
  }

  function writable(hook) {
    const last = async (name, args) => {
      try {
        await hook.call([name], args);
      } finally {
        hook.dispose();
      }
    };
    internals.load('writable-streams');
    return new internals.pipes.WritableStream({
      async write(chunk) { await hook.call(['write'], [chunk]); },
      close: () => last('close', []),
      abort: reason => last('abort', [reason]),
    });
  }
}
