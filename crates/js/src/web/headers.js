// Headers (Fetch Standard), with the extensions of workerd: `getAll` for Set-Cookie, messages of its own.
export default function (native, internals) {
  const { illegalInvocation, needArguments, toByteString } = internals;
  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const FORBIDDEN_IN_VALUE = /[\0\r\n]/;
  const COOKIE = 'set-cookie';

  internals.isToken = (text) => TOKEN.test(text);

  function toName(value) {
    const name = `${value}`;
    if (!TOKEN.test(name)) throw new TypeError('Invalid header name.');
    return name;
  }
  const isSpace = (code) => code === 32 || code === 9 || code === 10 || code === 13;
  function toValue(given) {
    const value = toByteString(given, 'Invalid header value: it');
    let start = 0;
    let end = value.length;
    while (start < end && isSpace(value.charCodeAt(start))) start += 1;
    while (end > start && isSpace(value.charCodeAt(end - 1))) end -= 1;
    const trimmed = start === 0 && end === value.length ? value : value.slice(start, end);
    if (FORBIDDEN_IN_VALUE.test(trimmed)) throw new TypeError('Invalid header value.');
    return trimmed;
  }

  let stateOf;
  class Headers {
    // `map`: lower-case name -> { name, values }. `sorted`: the pairs of an iteration, until a change.
    #state = { map: new Map(), isImmutable: false, sorted: undefined };
    static {
      stateOf = (headers) => {
        if (typeof headers !== 'object' || headers === null || !(#state in headers)) throw illegalInvocation();
        return headers.#state;
      };
      internals.isHeaders = (value) => typeof value === 'object' && value !== null && #state in value;
    }
    constructor(init = undefined) {
      if (init !== undefined) fill(this.#state, init);
    }
    append(name, value) {
      const state = changed(this, arguments, 2, 'append');
      append(state, toName(name), toValue(value));
    }
    delete(name) {
      const state = changed(this, arguments, 1, 'delete');
      state.map.delete(toName(name).toLowerCase());
    }
    get(name) {
      const { map } = looked(this, arguments, 'get');
      const entry = map.get(toName(name).toLowerCase());
      return entry === undefined ? null : entry.values.join(', ');
    }
    getAll(name) {
      const { map } = looked(this, arguments, 'getAll');
      if (toName(name).toLowerCase() !== COOKIE) {
        throw new TypeError('getAll() can only be used with the header name "Set-Cookie".');
      }
      return [...(map.get(COOKIE)?.values ?? [])];
    }
    getSetCookie() { return [...(stateOf(this).map.get(COOKIE)?.values ?? [])]; }
    has(name) {
      const { map } = looked(this, arguments, 'has');
      return map.has(toName(name).toLowerCase());
    }
    set(name, value) {
      const state = changed(this, arguments, 2, 'set');
      const given = toName(name);
      state.map.set(given.toLowerCase(), { name: given, values: [toValue(value)] });
    }
    forEach(callback, self = undefined) {
      const state = looked(this, arguments, 'forEach');
      if (typeof callback !== 'function') {
        throw new TypeError("Failed to execute 'forEach' on 'Headers': parameter 1 is not of type 'Function'.");
      }
      for (let index = 0; index < sorted(state).length; index++) {
        const [name, value] = sorted(state)[index];
        callback.call(self, value, name, this);
      }
    }
    entries() { return iterateOver(this, 'entries'); }
    keys() { return iterateOver(this, 'keys'); }
    values() { return iterateOver(this, 'values'); }
  }

  function looked(headers, given, what) {
    const state = stateOf(headers);
    needArguments(given.length, 1, `${what}' on 'Headers`);
    return state;
  }
  function changed(headers, given, needed, what) {
    const state = stateOf(headers);
    needArguments(given.length, needed, `${what}' on 'Headers`);
    if (state.isImmutable) throw new TypeError("Can't modify immutable headers.");
    state.sorted = undefined;
    return state;
  }
  function append({ map }, name, value) {
    const key = name.toLowerCase();
    const entry = map.get(key);
    if (entry === undefined) map.set(key, { name, values: [value] });
    else entry.values.push(value);
  }

  function fill(state, init) {
    if ((typeof init !== 'object' && typeof init !== 'function') || init === null) {
      throw new TypeError("Failed to construct 'Headers': the provided value is not of type '(record or iterable of pairs)'.");
    }
    if (internals.isHeaders(init) && init[Symbol.iterator] === Headers.prototype.entries) {
      for (const { name, values } of stateOf(init).map.values()) {
        for (const value of values) append(state, name, value);
      }
      return;
    }
    const method = init[Symbol.iterator];
    if (method !== undefined && method !== null) {
      for (const one of { [Symbol.iterator]: () => method.call(init) }) {
        if (typeof one !== 'object' || one === null) {
          throw new TypeError("Failed to construct 'Headers': each entry must be a sequence of a name and a value.");
        }
        const pair = [...one];
        if (pair.length !== 2) {
          throw new TypeError("Failed to construct 'Headers': each entry must be a sequence of a name and a value.");
        }
        append(state, toName(pair[0]), toValue(pair[1]));
      }
      return;
    }
    for (const key of Reflect.ownKeys(init)) {
      if (!Reflect.getOwnPropertyDescriptor(init, key)?.enumerable) continue;
      if (typeof key === 'symbol') throw new TypeError('Cannot convert a Symbol value to a string');
      append(state, toName(key), toValue(init[key]));
    }
  }

  // Sorted by name; each Set-Cookie by itself.
  function sorted(state) {
    if (state.sorted !== undefined) return state.sorted;
    const pairs = [];
    for (const key of [...state.map.keys()].sort()) {
      const { values } = state.map.get(key);
      if (key === COOKIE) for (const value of values) pairs.push([key, value]);
      else pairs.push([key, values.join(', ')]);
    }
    state.sorted = pairs;
    return pairs;
  }
  const iterate = internals.pairIterator('Headers');
  const iterateOver = (headers, kind) => {
    const state = stateOf(headers);
    return iterate(() => sorted(state), kind);
  };

  internals.interface(Headers);
  Object.defineProperty(Headers.prototype, Symbol.iterator, {
    value: Headers.prototype.entries, writable: true, configurable: true,
  });

  internals.Headers = Headers;
  /** Headers of a flat list of names and values that are known to be valid. */
  internals.headersOf = (flat, isImmutable) => {
    const headers = new Headers();
    const state = stateOf(headers);
    for (let index = 0; index < flat.length; index += 2) append(state, flat[index], flat[index + 1]);
    state.isImmutable = isImmutable;
    return headers;
  };
  /** Names as they were given, and values, in turn. */
  internals.flatHeaders = (headers) => {
    const flat = [];
    for (const { name, values } of stateOf(headers).map.values()) {
      for (const value of values) flat.push(name, value);
    }
    return flat;
  };
  internals.freezeHeaders = (headers) => {
    stateOf(headers).isImmutable = true;
    return headers;
  };
  internals.headerOf = (headers, key) => stateOf(headers).map.get(key)?.values.join(', ');
  internals.setHeader = (headers, name, value) => {
    const state = stateOf(headers);
    state.sorted = undefined;
    if (value === undefined) state.map.delete(name.toLowerCase());
    else state.map.set(name.toLowerCase(), { name, values: [value] });
  };
  return { Headers };
}
