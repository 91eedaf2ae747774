// Request (Fetch Standard, with `cf` of workerd). Members that mean nothing outside a browser (mode, credentials, …)
// are not there, as in workerd.
export default function (native, internals) {
  internals.load('response');
  const { Headers, illegalInvocation, needArguments, toDictionary, toUsvString } = internals;
  // PATCH is not among the standard's; workerd has it.
  const UPPER = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']);
  const FORBIDDEN = new Set(['CONNECT', 'TRACE', 'TRACK']);
  const REDIRECTS = new Set(['follow', 'manual', 'error']);
  const CACHES = new Set(['no-store', 'no-cache', 'reload', 'default']);

  let stateOf;
  let made;
  class Request {
    // { method, url, headers, body, redirect, signal, cf, cache, integrity }: `signal` is made when asked for.
    #state;
    static {
      stateOf = (request) => {
        if (typeof request !== 'object' || request === null || !(#state in request)) throw illegalInvocation();
        return request.#state;
      };
      internals.isRequest = (value) => typeof value === 'object' && value !== null && #state in value;
    }
    constructor(input, init = undefined) {
      if (made !== undefined) {
        this.#state = made;
        made = undefined;
        return;
      }
      needArguments(arguments.length, 1, 'new Request');
      this.#state = construct(input, init);
    }
    get method() { return stateOf(this).method; }
    get url() { return stateOf(this).url; }
    get headers() { return stateOf(this).headers; }
    get redirect() { return stateOf(this).redirect; }
    get signal() { return signalOf(stateOf(this)); }
    get cf() { return stateOf(this).cf; }
    get integrity() { return stateOf(this).integrity; }
    get keepalive() {
      stateOf(this);
      return false;
    }
    get cache() { return stateOf(this).cache; }
    clone() {
      const state = stateOf(this);
      if (internals.isBodyUsed(state.body) || internals.isBodyLocked(state.body)) {
        throw new TypeError('Cannot clone a Request whose body was used.');
      }
      return make({ ...state, headers: new Headers(state.headers), body: internals.cloneBody(state.body) });
    }
  }

  function signalOf(state) {
    if (state.signal === undefined) {
      internals.load('abort');
      state.signal = new internals.AbortController().signal;
    }
    return state.signal;
  }

  function construct(input, init) {
    const base = internals.isRequest(input) ? stateOf(input) : fresh(toUsvString(input));
    const options = internals.isRequest(init) ? stateOf(init) : toDictionary(init, 'new Request');
    const method = options.method === undefined ? base.method : toMethod(options.method);
    const headers = new Headers(options.headers === undefined ? base.headers : options.headers);
    const state = {
      method,
      url: base.url,
      headers,
      body: null,
      redirect: options.redirect === undefined ? base.redirect : toRedirect(options.redirect),
      signal: toSignal(options.signal === undefined ? base.signal : options.signal),
      cf: options.cf === undefined ? base.cf : options.cf,
      cache: options.cache === undefined ? base.cache : toCache(options.cache),
      integrity: options.integrity === undefined ? base.integrity : `${options.integrity}`,
    };
    const given = options.body;
    const hasOwn = given !== undefined && given !== null;
    if ((hasOwn || (given === undefined && base.body !== null)) && (method === 'GET' || method === 'HEAD')) {
      throw new TypeError('Request with a GET or HEAD method cannot have a body.');
    }
    if (hasOwn) {
      const { body, type } = internals.isRequest(init)
        ? { body: internals.moveBody(given), type: undefined }
        : internals.extractBody(given);
      state.body = body;
      if (type !== undefined && internals.headerOf(headers, 'content-type') === undefined) {
        internals.setHeader(headers, 'Content-Type', type);
      }
    } else if (given === undefined && base.body !== null) {
      if (internals.isBodyUsed(base.body) || internals.isBodyLocked(base.body)) {
        throw new TypeError('Cannot reconstruct a Request with a used body.');
      }
      state.body = internals.moveBody(base.body);
    }
    return state;
  }

  function fresh(input) {
    const url = native.parse(input, undefined)?.[0];
    if (url === undefined) throw new TypeError(`Invalid URL: ${input}`);
    return {
      method: 'GET', url, headers: [], body: null, redirect: 'follow', signal: undefined, cf: undefined, cache: undefined,
      integrity: '',
    };
  }

  function toMethod(value) {
    const method = `${value}`;
    const upper = method.toUpperCase();
    if (!internals.isToken(method) || FORBIDDEN.has(upper)) throw new TypeError(`Invalid HTTP method string: ${method}`);
    return UPPER.has(upper) ? upper : method;
  }
  function toRedirect(value) {
    const redirect = `${value}`;
    if (!REDIRECTS.has(redirect)) {
      throw new TypeError('Invalid redirect value, must be one of "follow", "manual" or "error".');
    }
    return redirect;
  }
  function toCache(value) {
    const cache = `${value}`;
    if (!CACHES.has(cache)) throw new TypeError(`Unsupported cache mode: ${cache}`);
    return cache;
  }
  function toSignal(value) {
    if (value === undefined || value === null) return undefined;
    if (!internals.isAbortSignal?.(value)) {
      throw new TypeError("Failed to construct 'Request': member signal is not of type 'AbortSignal'.");
    }
    return value;
  }

  internals.mixBody(Request, stateOf);
  internals.interface(Request);

  function make(state) {
    made = state;
    return new Request('');
  }
  internals.Request = Request;
  internals.requestState = stateOf;
  /** The request of an event: its headers are the client's, which nobody changes. */
  internals.incomingRequest = ({ method, url, headers, body, signal, cf }) => make({
    method, url, headers: internals.headersOf(headers, true), body, redirect: 'manual', signal, cf, cache: undefined,
    integrity: '',
  });
  return { Request };
}
