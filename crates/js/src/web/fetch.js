// fetch (Fetch Standard, without a cache): redirects and aborts are here. One exchange with a server is `internals.exchange`:
//   exchange({ method, url, headers: flat, body: null | string | Uint8Array | { read, cancel, length } })
//     -> { answer: Promise<{ status, statusText, headers: flat, body, isSocket }>, cancel(reason) }
// where the answer's body is null, a Uint8Array or { pull, cancel, length }.
export default function (native, internals) {
  internals.load('url');
  internals.load('request');
  internals.load('response');
  internals.load('outgoing');
  const REDIRECTS_MAX = 20;
  const REDIRECT = new Set([301, 302, 303, 307, 308]);
  const OF_BODY = ['content-encoding', 'content-language', 'content-location', 'content-type', 'content-length'];
  const SECRET = ['authorization', 'cookie', 'proxy-authorization'];

  const originOf = (url) => new internals.URL(url).origin;

  async function fetch(input, init = undefined) {
    internals.needArguments(arguments.length, 1, 'fetch');
    const request = new internals.Request(input, init);
    return internals.fetchRequest(request, internals.exchange);
  }

  /** Sends a request by `exchange`, following its redirects. */
  internals.fetchRequest = async (request, exchange) => {
    const state = internals.requestState(request);
    const { signal } = state;
    if (signal?.aborted) throw internals.abortReason(signal);
    const hop = begin(state);
    for (let redirects = 0; ; redirects++) {
      const answer = await send(hop, exchange, signal);
      if (!REDIRECT.has(answer.status) || state.redirect === 'manual') return respond(hop, answer, redirects);
      const location = locationOf(hop, answer);
      if (location === undefined) return respond(hop, answer, redirects);
      discard(answer);
      if (state.redirect === 'error') throw new TypeError(`fetch() of ${hop.url} was redirected, and redirect is "error".`);
      if (redirects === REDIRECTS_MAX) throw new TypeError(`Too many redirects: more than ${REDIRECTS_MAX} from ${state.url}.`);
      follow(hop, answer.status, location);
    }
  };

  function begin({ method, url, headers, body }) {
    checkScheme(url);
    const given = internals.flatHeaders(headers);
    if (body !== null && asksForSocket(given)) {
      throw new TypeError('A request with "Upgrade: websocket" cannot have a body: send messages once the WebSocket is open.');
    }
    const content = internals.takeBody(body);
    const flat = content === null || isWhole(content) ? given : withLength(given, content);
    return { method, url, headers: flat, body: content, isReplayable: content === null || isWhole(content), socket: undefined };
  }
  const isWhole = (content) => typeof content === 'string' || content instanceof Uint8Array;

  // The fields of a request whose body is a stream: its length is the stream's, if that has one, whatever fields it was given.
  // Whoever promised a length is held to it: the rest of a longer body would be cut off on the way.
  function withLength(flat, content) {
    content.length ??= content.promised;
    const fields = without(flat, ['content-length']);
    return content.length === undefined ? fields : [...fields, 'Content-Length', `${content.length}`];
  }

  function checkScheme(url) {
    const { protocol, username, password } = new internals.URL(url);
    if (protocol !== 'http:' && protocol !== 'https:') throw new TypeError(`Fetch API cannot load: ${url}`);
    if (username !== '' || password !== '') {
      throw new TypeError('fetch() of a URL with credentials: send an Authorization header instead.');
    }
  }

  async function send(hop, exchange, signal) {
    const { method, url, headers, body } = hop;
    hop.socket = newSocketOf(headers);
    const { answer, cancel } = exchange({ method, url, headers, body, socket: hop.socket });
    if (signal === undefined) return answer;
    let forget;
    const aborted = new Promise((resolve, reject) => {
      forget = internals.onAbort(signal, () => {
        const reason = internals.abortReason(signal);
        cancel(reason);
        reject(reason);
      });
    });
    try {
      const given = await Promise.race([answer, aborted]);
      return { ...given, body: abortable(given.body, signal) };
    } finally {
      forget();
    }
  }

  // The number of the socket that the request is to open, where its fields ask for one.
  const newSocketOf = (headers) => (asksForSocket(headers) ? internals.newSocket() : undefined);

  function asksForSocket(headers) {
    if (!headers.some((text) => text.toLowerCase() === 'websocket')) return false;
    internals.load('sockets');
    return internals.wantsSocket(headers);
  }

  // A body that is still coming ends with the signal's reason.
  function abortable(body, signal) {
    if (body === null || isWhole(body)) return body;
    let fail;
    const aborted = new Promise((resolve, reject) => { fail = reject; });
    aborted.catch(() => {});
    const forget = internals.onAbort(signal, () => {
      const reason = internals.abortReason(signal);
      fail(reason);
      body.cancel?.(reason);
    });
    if (signal.aborted) fail(internals.abortReason(signal));
    return {
      length: body.length,
      async pull() {
        const chunk = await Promise.race([body.pull(), aborted]);
        if (chunk === undefined) forget();
        return chunk;
      },
      cancel(reason) {
        forget();
        return body.cancel?.(reason);
      },
    };
  }

  function respond(hop, { status, statusText, headers, body, isSocket }, redirects) {
    return internals.fetchedResponse({
      status,
      statusText,
      headers,
      body: body === null ? null : isWhole(body) ? internals.bodyOfBytes(body) : internals.bodyOfSource(body),
      url: withoutFragment(hop.url),
      isRedirected: redirects > 0,
      webSocket: isSocket ? internals.openedSocket(hop.socket) : null,
    });
  }
  const withoutFragment = (url) => url.split('#', 1)[0];
  const discard = ({ body }) => {
    if (body !== null && !isWhole(body)) body.cancel?.();
  };

  // The absolute URL that an answer redirects to; undefined where it names none.
  function locationOf(hop, { headers }) {
    for (let index = 0; index < headers.length; index += 2) {
      if (headers[index].toLowerCase() !== 'location') continue;
      const target = internals.URL.parse(headers[index + 1], hop.url);
      if (target === null) throw new TypeError(`Invalid Location header: unable to parse ${headers[index + 1]}.`);
      // A target without a fragment keeps that of the URL before.
      if (target.hash === '') target.hash = new internals.URL(hop.url).hash;
      return target.href;
    }
    return undefined;
  }

  function follow(hop, status, location) {
    checkScheme(location);
    const rewrites = status === 303
      ? hop.method !== 'GET' && hop.method !== 'HEAD'
      : (status === 301 || status === 302) && hop.method === 'POST';
    if (rewrites) {
      hop.method = 'GET';
      hop.body = null;
      hop.isReplayable = true;
      hop.headers = without(hop.headers, OF_BODY);
    } else if (!hop.isReplayable) {
      throw new TypeError('A request with a streaming body was redirected, and the body cannot be sent a second time.');
    }
    if (originOf(hop.url) !== originOf(location)) hop.headers = without(hop.headers, SECRET);
    hop.url = location;
  }
  function without(flat, names) {
    const kept = [];
    for (let index = 0; index < flat.length; index += 2) {
      if (!names.includes(flat[index].toLowerCase())) kept.push(flat[index], flat[index + 1]);
    }
    return kept;
  }

  return { fetch };
}
