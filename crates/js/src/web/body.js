// Bodies of requests and responses (Fetch Standard, section 5). A body that is whole stays bytes or a string until
// somebody asks for its stream, so that most events never load the streams. A stream is never collected here unless
// the handler asks for its content.
export default function (native, internals) {
  internals.load('headers');
  const { bytesOf, toUsvString } = internals;
  const utf8Encode = (text) => native.encode(text.toWellFormed());
  const utf8Decode = (bytes) => native.decode('utf-8', false, false, bytes);

  /** The streams part, loaded when a stream is needed. */
  const streams = () => {
    internals.load('streams');
    return internals.streams;
  };
  // Only the streams part makes streams, so before it has run nothing is one.
  const isStream = (value) => typeof value === 'object' && value !== null && internals.streams !== undefined
    && internals.streams.isReadableStream(value);

  // A body is { whole, source, stream, isUsed, isShared }: `whole` a string or a Uint8Array; `source` bytes that come
  // from outside, { pull(): Promise<Uint8Array | undefined>, cancel(reason), length }; `stream` what the handler gave
  // or has seen. `isShared`: another body has the same `whole`.
  const bodyOf = (fields) => ({
    whole: undefined, source: undefined, stream: undefined, isUsed: false, isShared: false, ...fields,
  });

  /** The body that `init` stands for, and the content type that it brings along. */
  internals.extractBody = (init) => {
    if (init === null || init === undefined) return { body: null, type: undefined };
    if (typeof init === 'string') return { body: bodyOf({ whole: init }), type: 'text/plain;charset=UTF-8' };
    if (typeof init === 'object') {
      if (isStream(init)) {
        if (internals.streams.isDisturbed(init) || internals.streams.isLocked(init)) {
          throw new TypeError('This ReadableStream is disturbed (has already been read from), and cannot be used as a body.');
        }
        return { body: bodyOf({ stream: init }), type: undefined };
      }
      const bytes = bytesOf(init);
      if (bytes !== undefined) return { body: bodyOf({ whole: bytes.slice() }), type: undefined };
      if (internals.isBlob?.(init)) {
        const { bytes: content, type } = internals.blobState(init);
        return { body: bodyOf({ whole: content, isShared: true }), type: type === '' ? undefined : type };
      }
      if (internals.isFormData?.(init)) {
        const [type, content] = internals.encodeForm(init);
        return { body: bodyOf({ whole: content }), type };
      }
      if (internals.isUrlSearchParams?.(init)) {
        return {
          body: bodyOf({ whole: internals.URLSearchParams.prototype.toString.call(init) }),
          type: 'application/x-www-form-urlencoded;charset=UTF-8',
        };
      }
    }
    return { body: bodyOf({ whole: toUsvString(init) }), type: 'text/plain;charset=UTF-8' };
  };

  internals.bodyOfBytes = (bytes) => bodyOf({ whole: bytes });
  internals.bodyOfSource = (source) => bodyOf({ source });

  internals.isBodyUsed = (body) =>
    body !== null && (body.isUsed || (body.stream !== undefined && streams().isDisturbed(body.stream)));
  internals.isBodyLocked = (body) => body !== null && body.stream !== undefined && streams().isLocked(body.stream);

  /** The stream of a body, made at the first question. */
  internals.bodyStream = (body) => {
    if (body === null) return null;
    if (body.stream === undefined) {
      const { whole, source } = body;
      body.whole = undefined;
      body.source = undefined;
      if (body.isUsed) {
        body.stream = streams().bytesStream(new Uint8Array(0));
        void streams().cancel(body.stream);
      } else if (whole !== undefined) {
        const bytes = typeof whole === 'string' ? utf8Encode(whole) : whole;
        body.stream = streams().bytesStream(body.isShared ? bytes.slice() : bytes);
      } else {
        body.stream = streams().byteStream(source, { length: source.length });
      }
    }
    return body.stream;
  };

  /** A second body with the same content. */
  internals.cloneBody = (body) => {
    if (body === null) return null;
    if (body.whole !== undefined) {
      body.isShared = true;
      return bodyOf({ whole: body.whole, isShared: true });
    }
    const [one, other] = streams().tee(internals.bodyStream(body));
    body.stream = one;
    return bodyOf({ stream: other });
  };

  /** Moves the content to a body of its own: `body` is used from here on. */
  internals.moveBody = (body) => {
    if (body === null) return null;
    const { whole, source, stream, isShared } = body;
    body.isUsed = true;
    if (stream === undefined) {
      body.whole = undefined;
      body.source = undefined;
      return bodyOf({ whole, source, isShared });
    }
    // A stream behind another one: the first is locked, as its owner can see.
    const reader = streams().reader(stream);
    const { read, cancel } = reader;
    return bodyOf({ source: { pull: () => read(), cancel: (reason) => cancel(reason), length: streams().expectedLength(stream), promised: streams().promisedLength(stream) } });
  };

  /** The number of bytes, where it is known; strings and bytes know theirs. */
  internals.bodyLength = (body) => {
    if (body === null) return undefined;
    if (typeof body.whole === 'string') {
      body.whole = utf8Encode(body.whole);
      body.isShared = false;
    }
    if (body.whole !== undefined) return body.whole.length;
    if (body.source !== undefined) return body.source.length;
    return body.stream === undefined ? undefined : streams().expectedLength(body.stream);
  };

  /**
   * Takes the content out of a body that leaves the isolate: null, a string, a Uint8Array, or
   * { read(): Promise<Uint8Array | undefined>, cancel(reason), length, promised }: the number of bytes where it is known,
   * and where its sender has said it.
   */
  internals.takeBody = (body) => {
    if (body === null) return null;
    const { whole, source, stream } = use(body);
    if (whole !== undefined) return whole;
    if (source !== undefined) {
      const { length, promised } = source;
      return { read: () => source.pull(), cancel: (reason) => source.cancel?.(reason), length, promised };
    }
    const { read, cancel } = streams().reader(stream);
    return { read, cancel, length: streams().expectedLength(stream), promised: streams().promisedLength(stream) };
  };

  // The content of a body, which is used from here on. A stream stays with the body, whose owner sees it locked.
  function use(body) {
    if (internals.isBodyUsed(body)) {
      throw new TypeError(
        'Body has already been used. It can only be used once. Use tee() first if you need to read it twice.');
    }
    if (internals.isBodyLocked(body)) throw new TypeError('This ReadableStream is currently locked to a reader.');
    body.isUsed = true;
    const { whole, source, stream } = body;
    if (whole !== undefined) {
      body.whole = undefined;
    } else if (source !== undefined) {
      body.source = undefined;
    }
    return { whole, source, stream };
  }

  async function bytesOfBody(body) {
    if (body === null) return new Uint8Array(0);
    const taken = takeWhole(body);
    if (typeof taken === 'string') return utf8Encode(taken);
    if (taken instanceof Uint8Array) return body.isShared ? taken.slice() : taken;
    return taken;
  }
  async function textOfBody(body) {
    if (body === null) return '';
    const taken = takeWhole(body);
    if (typeof taken !== 'string') return utf8Decode(await taken);
    const text = taken.toWellFormed();
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  // A string, bytes, or a promise of bytes.
  function takeWhole(body) {
    const { whole, source, stream } = use(body);
    if (whole !== undefined) return whole;
    return source === undefined ? streams().readAll(stream) : collect(source);
  }
  async function collect({ pull }) {
    const chunks = [];
    let total = 0;
    for (let chunk; (chunk = await pull()) !== undefined;) {
      chunks.push(chunk);
      total += chunk.length;
    }
    if (chunks.length === 1) return chunks[0];
    const whole = new Uint8Array(total);
    let at = 0;
    for (const chunk of chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }

  /** Gives an interface the members of Body; `partsOf(object)` answers { body, headers }. */
  internals.mixBody = (Class, partsOf) => {
    const typeOf = (self) => internals.headerOf(partsOf(self).headers, 'content-type');
    const members = {
      get body() { return internals.bodyStream(partsOf(this).body); },
      get bodyUsed() { return internals.isBodyUsed(partsOf(this).body); },
      async arrayBuffer() {
        const bytes = await bytesOfBody(partsOf(this).body);
        const { buffer } = bytes;
        return bytes.length === buffer.byteLength ? buffer : bytes.slice().buffer;
      },
      async bytes() { return bytesOfBody(partsOf(this).body); },
      async text() { return textOfBody(partsOf(this).body); },
      async json() { return JSON.parse(await textOfBody(partsOf(this).body)); },
      async blob() {
        const type = typeOf(this);
        const bytes = await bytesOfBody(partsOf(this).body);
        internals.load('blob');
        return internals.blobOf(bytes, (type ?? '').toLowerCase());
      },
      async formData() {
        const type = typeOf(this);
        internals.load('blob');
        return internals.parseForm(await bytesOfBody(partsOf(this).body), type);
      },
    };
    Object.defineProperties(Class.prototype, Object.getOwnPropertyDescriptors(members));
  };
}
