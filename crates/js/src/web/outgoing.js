// Bodies on their way out, and exchanges with servers.
export default function (native, internals) {
  let bodies = 0;
  // Those that leave in chunks, while they do.
  const leaving = new Set();

  /**
   * Sends what `internals.takeBody` took: answers null, a string or bytes as they are, and the number of a stream for
   * { read, cancel }, whose chunks follow one by one. `ended` is told when the last chunk has left, or with the error. `owner` is the event
   * that the body ends with.
   */
  internals.sendBody = (content, ended = () => {}, owner = internals.scope().event) => {
    if (content === null || typeof content === 'string' || content instanceof Uint8Array) {
      ended();
      return typeof content === 'string' ? content.toWellFormed() : content;
    }
    bodies += 1;
    const body = { number: bodies, event: owner, content, op: undefined, left: undefined };
    leaving.add(body);
    void pump(body, ended);
    return body.number;
  };

  async function pump(body, ended) {
    const { number, content: { read, length } } = body;
    let sent = 0;
    try {
      for (let chunk; (chunk = await read()) !== undefined;) {
        if (chunk.length === 0) continue;
        sent += chunk.length;
        if (length !== undefined && sent > length) throw new TypeError(`The body has more than the ${length} bytes that it promised.`);
        await write(body, chunk);
      }
      if (body.left !== undefined) throw body.left;
      if (length !== undefined && sent < length) throw new TypeError(`The body has ${sent} of the ${length} bytes that it promised.`);
    } catch (error) {
      leaving.delete(body);
      native.abortBody(number, ...describe(error));
      ended(error);
      return;
    }
    leaving.delete(body);
    native.endBody(number);
    ended();
  }

  function describe(error) {
    try {
      return [`${error?.name ?? 'Error'}`.toWellFormed(), `${error?.message ?? error}`.toWellFormed()];
    } catch {
      return ['Error', 'the body failed'];
    }
  }

  // Whoever reads may go away: then nobody pulls any more.
  async function write(body, chunk) {
    if (body.left !== undefined) throw body.left;
    body.op = native.writeBody(body.number, chunk);
    try {
      await internals.wait(body.op);
    } catch (error) {
      leave(body, error);
      throw error;
    }
    body.op = undefined;
  }

  // Tells the source of a body, once, that nobody reads it any more.
  function leave(body, reason) {
    if (body.left !== undefined) return;
    body.left = reason;
    void (async () => body.content.cancel(reason))().catch(() => {});
  }

  /** Nobody reads the bodies of an event any more: their sources are told so at once. */
  internals.leaveBodiesOf = event => {
    const left = [...leaving].filter(body => body.event === event);
    if (left.length === 0) return;
    const reason = new Error('The reader of the body has gone.');
    internals.enter({ event, section: null }, () => {
      for (const body of left) {
        leaving.delete(body);
        leave(body, reason);
        if (body.op !== undefined) internals.cancel(body.op, reason);
      }
    });
  };

  // What the sender of fields says that the body has; he may be wrong.
  function promisedBy(flat) {
    for (let index = 0; index < flat.length; index += 2) {
      if (flat[index].toLowerCase() === 'content-length' && /^\d+$/.test(flat[index + 1])) return Number(flat[index + 1]);
    }
    return undefined;
  }

  /** What a number or bytes from outside are as the body of an answer, which came with these fields. */
  internals.incomingSource = (body, flat = []) => (typeof body !== 'number' ? body : {
    pull: () => internals.readBody(body),
    cancel: () => internals.cancelBody(body),
    length: undefined,
    promised: promisedBy(flat),
  });

  /** The answer of an exchange, from what the host gives. */
  internals.answerOf = ({ status, statusText, headers: pairs, body, isSocket }) => {
    const headers = pairs.flat();
    return { status, statusText, headers, body: internals.incomingSource(body, headers), isSocket };
  };

  const exchangeWith = (isForAssets) => ({ method, url, headers, body, socket }) => {
    const op = native.start(method, url, headers, internals.sendBody(body), socket, isForAssets);
    const answer = internals.wait(op).then(internals.answerOf);
    return { answer, cancel: (reason) => internals.cancel(op, reason) };
  };

  /** One exchange with a server (see fetch.js). */
  internals.exchange = exchangeWith(false);

  /** One with the application's static files. */
  internals.exchangeWithAssets = exchangeWith(true);
}
