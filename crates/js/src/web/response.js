// Response (Fetch Standard, with the checks and messages of workerd).
export default function (native, internals) {
  internals.load('headers');
  internals.load('body');
  const { Headers, illegalInvocation, needArguments, toDictionary, toUsvString } = internals;
  const NULL_BODY = new Set([101, 204, 205, 304]);
  const REDIRECT = new Set([301, 302, 303, 307, 308]);
  const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;

  let stateOf;
  let made;
  class Response {
    // { status, statusText, headers, body, cf, type, url, isRedirected, webSocket }
    #state;
    static {
      stateOf = (response) => {
        if (!internals.isResponse(response)) throw illegalInvocation();
        return response.#state;
      };
      internals.isResponse = (value) => typeof value === 'object' && value !== null && #state in value;
    }
    constructor(body = undefined, init = undefined) {
      if (made !== undefined) {
        this.#state = made;
        made = undefined;
        return;
      }
      this.#state = construct(body, init);
    }
    static error() {
      return make({
        status: 0, statusText: '', headers: internals.headersOf([], true), body: null, cf: undefined, type: 'error',
        url: '', isRedirected: false, webSocket: null,
      });
    }
    static redirect(url, status = 302) {
      needArguments(arguments.length, 1, "redirect' on 'Response");
      internals.load('url');
      const parsed = internals.parseUrl(toUsvString(url));
      if (parsed === undefined) throw new TypeError(`Unable to parse URL: ${url}`);
      const code = toUnsignedShort(status);
      if (!REDIRECT.has(code)) throw new RangeError(`${code} is not a redirect status code.`);
      return make({ ...fresh(), status: code, headers: internals.headersOf(['Location', parsed], true) });
    }
    static json(data, init = undefined) {
      needArguments(arguments.length, 1, "json' on 'Response");
      const text = JSON.stringify(data);
      if (text === undefined) throw new TypeError('The data is not JSON serializable');
      return make(construct(text, init, 'application/json'));
    }
    get status() { return stateOf(this).status; }
    get statusText() { return stateOf(this).statusText; }
    get headers() { return stateOf(this).headers; }
    get ok() {
      const { status } = stateOf(this);
      return status >= 200 && status < 300;
    }
    get redirected() { return stateOf(this).isRedirected; }
    get url() { return stateOf(this).url; }
    get type() { return stateOf(this).type; }
    get cf() { return stateOf(this).cf; }
    get webSocket() { return stateOf(this).webSocket; }
    clone() {
      const state = stateOf(this);
      if (state.webSocket !== null) throw new TypeError('Cannot clone a response to a WebSocket handshake.');
      if (internals.isBodyUsed(state.body) || internals.isBodyLocked(state.body)) {
        throw new TypeError('Response.clone: Body has already been used.');
      }
      const headers = new Headers(state.headers);
      return make({ ...state, headers, body: internals.cloneBody(state.body) });
    }
  }

  const fresh = () => ({
    status: 200, statusText: '', headers: undefined, body: null, cf: undefined, type: 'default', url: '',
    isRedirected: false, webSocket: null,
  });
  const toUnsignedShort = (value) => Number(value) & 0xffff;

  // `asType`: the content type where `init` has none, instead of that of the body.
  function construct(given, init, asType = undefined) {
    const options = internals.isResponse(init) ? stateOf(init) : toDictionary(init, 'new Response');
    const { webSocket, encodeBody, cf } = options;
    const hasSocket = webSocket !== undefined && webSocket !== null;
    if (hasSocket && !isSocket(webSocket)) {
      throw new TypeError("Failed to construct 'Response': member webSocket is not of type 'WebSocket'.");
    }
    if (encodeBody !== undefined && encodeBody !== 'automatic') {
      if (encodeBody !== 'manual') throw new TypeError(`encodeBody: unexpected value: ${encodeBody}`);
      throw new TypeError('Response option `encodeBody: "manual"` is not implemented.');
    }
    const status = options.status === undefined ? 200 : toUnsignedShort(options.status);
    if (hasSocket && status !== 101) throw new RangeError('Responses with a WebSocket must have status code 101.');
    if ((status < 200 && !hasSocket) || status > 599) {
      throw new RangeError('Responses may only be constructed with status codes in the range 200 to 599, inclusive.');
    }
    const statusText = options.statusText === undefined ? '' : `${options.statusText}`;
    if (!REASON.test(statusText)) throw new TypeError('Invalid statusText');
    const headers = new Headers(options.headers);
    const { body, type } = internals.extractBody(given);
    if (body !== null && NULL_BODY.has(status)) {
      throw new TypeError('Response with null body status (101, 204, 205, or 304) cannot have a body.');
    }
    const contentType = asType ?? type;
    if (contentType !== undefined && internals.headerOf(headers, 'content-type') === undefined) {
      internals.setHeader(headers, 'Content-Type', contentType);
    }
    return { ...fresh(), status, statusText, headers, body, cf: cf === null ? undefined : cf, webSocket: hasSocket ? webSocket : null };
  }

  function isSocket(value) {
    internals.load('sockets');
    return internals.isWebSocket(value);
  }

  internals.mixBody(Response, stateOf);
  internals.interface(Response);

  function make(state) {
    made = state;
    return new Response();
  }
  internals.Response = Response;
  internals.responseState = stateOf;
  /** The answer of a fetch: { status, statusText, headers, body, url, isRedirected, webSocket }. */
  internals.fetchedResponse = ({ status, statusText, headers, body, url, isRedirected, webSocket = null }) => make({
    ...fresh(), status, statusText, headers: internals.headersOf(headers, true), body, url, isRedirected, webSocket,
  });
  return { Response };
}
