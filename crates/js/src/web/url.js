// URL and URLSearchParams (URL Standard). Serialized URLs are ASCII, so offsets of Rust are offsets here.
export default function (native, internals) {
  const { illegalInvocation, needArguments, toUsvString } = internals;
  const SCHEME_END = 0, USERNAME_END = 1, HOST_START = 2, HOST_END = 3, PORT = 4, PATH_START = 5, QUERY_START = 6,
    FRAGMENT_START = 7;

  const parse = (input, base) =>
    native.parse(toUsvString(input), base === undefined ? undefined : toUsvString(base)) ?? undefined;

  let recordOf;
  let made;
  class URL {
    // { href, at, params }: `params` is the URLSearchParams, once somebody has asked for it.
    #record;
    static {
      recordOf = (url) => {
        if (typeof url !== 'object' || url === null || !(#record in url)) throw illegalInvocation();
        return url.#record;
      };
      internals.isUrl = (value) => typeof value === 'object' && value !== null && #record in value;
    }
    constructor(url, base = undefined) {
      needArguments(arguments.length, 1, 'new URL');
      const parsed = made ?? parse(url, base);
      made = undefined;
      if (parsed === undefined) {
        const error = new TypeError('Invalid URL string.');
        Object.defineProperty(error, 'code', { value: 'ERR_INVALID_URL', configurable: true, writable: true });
        throw error;
      }
      this.#record = { href: parsed[0], at: parsed[1], params: undefined };
    }
    static canParse(url, base = undefined) {
      needArguments(arguments.length, 1, "canParse' on 'URL");
      return parse(url, base) !== undefined;
    }
    static parse(url, base = undefined) {
      needArguments(arguments.length, 1, "parse' on 'URL");
      const parsed = parse(url, base);
      if (parsed === undefined) return null;
      made = parsed;
      return new URL('');
    }
    static createObjectURL() { throw new Error('URL.createObjectURL() is not implemented.'); }
    static revokeObjectURL() { throw new Error('URL.revokeObjectURL() is not implemented.'); }

    get href() { return recordOf(this).href; }
    set href(value) {
      const record = recordOf(this);
      const parsed = parse(value);
      if (parsed === undefined) throw new TypeError('Invalid URL string.');
      renew(record, parsed);
    }
    get origin() {
      const { href, at } = recordOf(this);
      const scheme = href.slice(0, at[SCHEME_END]);
      if (scheme === 'https' || scheme === 'http') return `${scheme}://${hostOf(href, at)}`;
      return native.origin(href);
    }
    get protocol() {
      const { href, at } = recordOf(this);
      return href.slice(0, at[SCHEME_END] + 1);
    }
    set protocol(value) { change(this, 'protocol', value); }
    get username() {
      const { href, at } = recordOf(this);
      return hasAuthority(href, at) ? href.slice(at[SCHEME_END] + 3, at[USERNAME_END]) : '';
    }
    set username(value) { change(this, 'username', value); }
    get password() {
      const { href, at } = recordOf(this);
      if (!hasAuthority(href, at) || href[at[USERNAME_END]] !== ':' || at[HOST_START] <= at[USERNAME_END]) return '';
      return href.slice(at[USERNAME_END] + 1, at[HOST_START] - 1);
    }
    set password(value) { change(this, 'password', value); }
    get host() {
      const { href, at } = recordOf(this);
      return hostOf(href, at);
    }
    set host(value) { change(this, 'host', value); }
    get hostname() {
      const { href, at } = recordOf(this);
      return href.slice(at[HOST_START], at[HOST_END]);
    }
    set hostname(value) { change(this, 'hostname', value); }
    get port() {
      const { at } = recordOf(this);
      return at[PORT] < 0 ? '' : `${at[PORT]}`;
    }
    set port(value) { change(this, 'port', value); }
    get pathname() {
      const { href, at } = recordOf(this);
      return href.slice(at[PATH_START], pathEnd(href, at));
    }
    set pathname(value) { change(this, 'pathname', value); }
    get search() {
      const { href, at } = recordOf(this);
      const search = searchOf(href, at);
      return search === '?' ? '' : search;
    }
    set search(value) {
      change(this, 'search', value);
      refresh(recordOf(this));
    }
    get searchParams() {
      const record = recordOf(this);
      if (record.params === undefined) {
        record.params = new URLSearchParams();
        attach(record.params, record);
      }
      return record.params;
    }
    get hash() {
      const { href, at } = recordOf(this);
      const start = at[FRAGMENT_START];
      return start < 0 || start === href.length - 1 ? '' : href.slice(start);
    }
    set hash(value) { change(this, 'hash', value); }
    toString() { return recordOf(this).href; }
    toJSON() { return recordOf(this).href; }
  }

  const hasAuthority = (href, at) => href.startsWith('://', at[SCHEME_END]);
  const hostOf = (href, at) =>
    at[PORT] < 0 ? href.slice(at[HOST_START], at[HOST_END]) : `${href.slice(at[HOST_START], at[HOST_END])}:${at[PORT]}`;
  const pathEnd = (href, at) =>
    at[QUERY_START] >= 0 ? at[QUERY_START] : at[FRAGMENT_START] >= 0 ? at[FRAGMENT_START] : href.length;
  const searchOf = (href, at) =>
    at[QUERY_START] < 0 ? '' : href.slice(at[QUERY_START], at[FRAGMENT_START] < 0 ? href.length : at[FRAGMENT_START]);

  function change(url, name, value) {
    const record = recordOf(url);
    const changed = native.set(record.href, name, toUsvString(value));
    if (changed) [record.href, record.at] = changed;
  }
  function renew(record, parsed) {
    [record.href, record.at] = parsed;
    refresh(record);
  }
  function refresh(record) {
    if (record.params !== undefined) attach(record.params, record);
  }
  internals.interface(URL);

  let listOf;
  let attach;
  class URLSearchParams {
    // Pairs in order. `#record` is that of the URL whose query this is.
    #list = [];
    #record;
    static {
      listOf = (params) => {
        if (typeof params !== 'object' || params === null || !(#list in params)) throw illegalInvocation();
        return params.#list;
      };
      attach = (params, record) => {
        params.#record = record;
        params.#list = parsePairs(searchOf(record.href, record.at).slice(1));
      };
    }
    constructor(init = undefined) {
      if (init === undefined) return;
      this.#list = pairsOf(init);
    }
    get size() { return listOf(this).length; }
    append(name, value) {
      const list = listOf(this);
      needArguments(arguments.length, 2, "append' on 'URLSearchParams");
      list.push([toUsvString(name), toUsvString(value)]);
      this.#write();
    }
    delete(name, value = undefined) {
      const list = listOf(this);
      needArguments(arguments.length, 1, "delete' on 'URLSearchParams");
      const wanted = toUsvString(name);
      const wantedValue = value === undefined ? undefined : toUsvString(value);
      this.#list = list.filter(([one, held]) => one !== wanted || (wantedValue !== undefined && held !== wantedValue));
      this.#write();
    }
    get(name) {
      const list = listOf(this);
      needArguments(arguments.length, 1, "get' on 'URLSearchParams");
      const wanted = toUsvString(name);
      return list.find(([one]) => one === wanted)?.[1] ?? null;
    }
    getAll(name) {
      const list = listOf(this);
      needArguments(arguments.length, 1, "getAll' on 'URLSearchParams");
      const wanted = toUsvString(name);
      return list.filter(([one]) => one === wanted).map(([, value]) => value);
    }
    has(name, value = undefined) {
      const list = listOf(this);
      needArguments(arguments.length, 1, "has' on 'URLSearchParams");
      const wanted = toUsvString(name);
      const wantedValue = value === undefined ? undefined : toUsvString(value);
      return list.some(([one, held]) => one === wanted && (wantedValue === undefined || held === wantedValue));
    }
    set(name, value) {
      const list = listOf(this);
      needArguments(arguments.length, 2, "set' on 'URLSearchParams");
      const wanted = toUsvString(name);
      const pair = [wanted, toUsvString(value)];
      const first = list.findIndex(([one]) => one === wanted);
      if (first < 0) {
        list.push(pair);
      } else {
        this.#list = list.filter(([one], index) => index <= first || one !== wanted);
        this.#list[first] = pair;
      }
      this.#write();
    }
    sort() {
      // By UTF-16 units, stable: what comparison of strings and sort do.
      listOf(this).sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
      this.#write();
    }
    forEach(callback, self = undefined) {
      listOf(this);
      needArguments(arguments.length, 1, "forEach' on 'URLSearchParams");
      if (typeof callback !== 'function') {
        throw new TypeError("Failed to execute 'forEach' on 'URLSearchParams': parameter 1 is not of type 'Function'.");
      }
      for (let index = 0; index < this.#list.length; index++) {
        const [name, value] = this.#list[index];
        callback.call(self, value, name, this);
      }
    }
    entries() {
      listOf(this);
      return iterate(() => this.#list, 'entries');
    }
    keys() {
      listOf(this);
      return iterate(() => this.#list, 'keys');
    }
    values() {
      listOf(this);
      return iterate(() => this.#list, 'values');
    }
    toString() { return native.serializeQuery(listOf(this).flat()); }
    #write() {
      const record = this.#record;
      if (record === undefined) return;
      const changed = native.set(record.href, 'search', this.toString());
      if (changed) [record.href, record.at] = changed;
    }
  }
  const iterate = internals.pairIterator('URLSearchParams');

  function parsePairs(query) {
    if (query === '') return [];
    const flat = native.parseQuery(query);
    const pairs = [];
    for (let index = 0; index < flat.length; index += 2) pairs.push([flat[index], flat[index + 1]]);
    return pairs;
  }
  function pairsOf(init) {
    if ((typeof init !== 'object' || init === null) && typeof init !== 'function') {
      const text = toUsvString(init);
      return parsePairs(text.startsWith('?') ? text.slice(1) : text);
    }
    const method = init[Symbol.iterator];
    if (method !== undefined && method !== null) {
      const pairs = [];
      for (const one of { [Symbol.iterator]: method.bind(init) }) {
        const pair = [...one];
        if (pair.length !== 2) throw new TypeError('URLSearchParams: each pair must be an iterable of a name and a value.');
        pairs.push([toUsvString(pair[0]), toUsvString(pair[1])]);
      }
      return pairs;
    }
    // Two keys may become one name by their lone surrogates: the last value stays, at the first place.
    const pairs = new Map();
    for (const key of Reflect.ownKeys(init)) {
      if (!Object.getOwnPropertyDescriptor(init, key)?.enumerable) continue;
      if (typeof key === 'symbol') throw new TypeError('Cannot convert a Symbol value to a string');
      pairs.set(toUsvString(key), toUsvString(init[key]));
    }
    return [...pairs];
  }
  internals.interface(URLSearchParams);
  Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, {
    value: URLSearchParams.prototype.entries, writable: true, configurable: true,
  });

  internals.isUrlSearchParams = (value) => {
    try {
      listOf(value);
      return true;
    } catch {
      return false;
    }
  };
  internals.parseUrl = (input) => parse(input)?.[0];
  internals.urlPairs = parsePairs;
  Object.assign(internals, { URL, URLSearchParams });
  return { URL, URLSearchParams };
}
