// The Cache API, with the checks and messages of workerd. Answers are kept outside of the isolate, by its program: what is kept, for
// how long, and what of it a request gets is decided there.
export default function (native, internals) {
  internals.load('request');
  internals.load('response');
  internals.load('outgoing');
  const { illegalInvocation, needArguments, toDictionary } = internals;
  const KEY = internals;

  const requestOf = request => internals.requestState(internals.isRequest(request) ? request : new internals.Request(request));

  function nameOf(cache, { url }) {
    const end = url.indexOf('#');
    return { cache, url: end < 0 ? url : url.slice(0, end) };
  }

  /** The milliseconds of a date; a date that cannot be read is none. */
  function dateOf(headers, name) {
    const ms = Date.parse(internals.headerOf(headers, name));
    return Number.isNaN(ms) ? undefined : ms;
  }

  // A date that is there and cannot be read has passed.
  function expiresIn(headers) {
    if (internals.headerOf(headers, 'expires') === undefined) return undefined;
    const expires = dateOf(headers, 'expires');
    return expires === undefined ? 0 : expires - (dateOf(headers, 'date') ?? Date.now());
  }

  function pairsOf(flat) {
    const pairs = [];
    for (let index = 0; index < flat.length; index += 2) pairs.push([flat[index], flat[index + 1]]);
    return pairs;
  }

  async function ask(request, content = null) {
    let broken;
    const op = native.ask(JSON.stringify(request), internals.sendBody(content, error => { broken = error; }));
    try {
      const { head, body } = await internals.wait(op);
      return { answer: JSON.parse(head), body };
    } catch (error) {
      // What broke the body says more than that it broke.
      throw broken ?? error;
    }
  }

  async function put(cache, request, response) {
    const { status, statusText, headers, body, webSocket } = internals.responseState(response);
    const { method, ...named } = requestOf(request);
    if (method !== 'GET') throw new TypeError('Cannot cache response to non-GET request.');
    if (status === 206) throw new TypeError('Cannot cache response to a range request (206 Partial Content).');
    if (internals.headerOf(headers, 'vary')?.split(',').some(name => name.trim() === '*')) {
      throw new TypeError("Cannot cache response with 'Vary: *' header.");
    }
    if (webSocket !== null) throw new TypeError('Cannot cache WebSocket upgrade response.');
    const content = internals.takeBody(body);
    await ask({
      method: 'put', ...nameOf(cache, named), status, statusText: statusText.toWellFormed(), headers: pairsOf(internals.flatHeaders(headers)),
      expiresIn: expiresIn(headers), lastModified: dateOf(headers, 'last-modified'),
    }, content);
  }

  async function match(cache, request, options) {
    const { ignoreMethod } = toDictionary(options, "match' on 'Cache");
    const { method, headers, ...named } = requestOf(request);
    if (method !== 'GET' && !ignoreMethod) return undefined;
    const field = name => internals.headerOf(headers, name);
    const { answer, body } = await ask({
      method: 'match', ...nameOf(cache, named),
      noneMatch: field('if-none-match'), modifiedSince: dateOf(headers, 'if-modified-since'),
      range: field('range'), ifRange: field('if-range'),
    });
    if (answer === null) return undefined;
    return internals.fetchedResponse({
      status: answer.status, statusText: answer.statusText, headers: answer.headers.flat(),
      body: answer.hasBody ? bodyOf(body, answer.headers) : null, url: '', isRedirected: false,
    });
  }

  function bodyOf(body, headers) {
    if (typeof body !== 'number') return internals.bodyOfBytes(body ?? new Uint8Array(0));
    const [, length] = headers.find(([name]) => name === 'Content-Length');
    return internals.bodyOfSource({ ...internals.incomingSource(body), length: Number(length) });
  }

  async function forget(cache, request, options) {
    const { ignoreMethod } = toDictionary(options, "delete' on 'Cache");
    const { method, ...named } = requestOf(request);
    if (method !== 'GET' && !ignoreMethod) return false;
    return (await ask({ method: 'delete', ...nameOf(cache, named) })).answer.deleted;
  }

  class Cache {
    // Its name; undefined: the default one.
    #name;
    constructor(key, name) {
      if (key !== KEY) throw new TypeError('Illegal constructor');
      this.#name = name;
    }
    async put(request, response) {
      const name = this.#name;
      needArguments(arguments.length, 2, "put' on 'Cache");
      if (!internals.isResponse(response)) throw new TypeError("Failed to execute 'put' on 'Cache': parameter 2 is not of type 'Response'.");
      await put(name, request, response);
    }
    async match(request, options = undefined) {
      const name = this.#name;
      needArguments(arguments.length, 1, "match' on 'Cache");
      return await match(name, request, options);
    }
    async delete(request, options = undefined) {
      const name = this.#name;
      needArguments(arguments.length, 1, "delete' on 'Cache");
      return await forget(name, request, options);
    }
  }
  internals.interface(Cache);

  class CacheStorage {
    #default;
    constructor(key) {
      if (key !== KEY) throw new TypeError('Illegal constructor');
      this.#default = new Cache(KEY, undefined);
    }
    get default() {
      if (!(typeof this === 'object' && this !== null && #default in this)) throw illegalInvocation();
      return this.#default;
    }
    async open(name) {
      void this.#default;
      needArguments(arguments.length, 1, "open' on 'CacheStorage");
      return new Cache(KEY, `${name}`.toWellFormed());
    }
  }
  internals.interface(CacheStorage);

  return { Cache, CacheStorage, caches: new CacheStorage(KEY) };
}
