// Bodies on their way out, and exchanges with servers.
export default function (native, internals) {
  let bodies = 0;

  /**
   * Sends what `internals.takeBody` took: answers null, a string or bytes as they are, and the number of a stream for
   * { read, cancel }, whose chunks follow one by one. `ended` is told when the last chunk has left, or with the error.
   */
  internals.sendBody = (content, ended = () => {}) => {
    if (content === null || typeof content === 'string' || content instanceof Uint8Array) {
      ended();
      return typeof content === 'string' ? content.toWellFormed() : content;
    }
    bodies += 1;
    void pump(bodies, content, ended);
    return bodies;
  };

  async function pump(body, { read, cancel, length }, ended) {
    let sent = 0;
    try {
      for (let chunk; (chunk = await read()) !== undefined;) {
        if (chunk.length === 0) continue;
        sent += chunk.length;
        if (length !== undefined && sent > length) throw new TypeError(`The body has more than the ${length} bytes that it promised.`);
        await write(body, chunk, cancel);
      }
      if (length !== undefined && sent < length) throw new TypeError(`The body has ${sent} of the ${length} bytes that it promised.`);
    } catch (error) {
      native.abortBody(body, ...describe(error));
      ended(error);
      return;
    }
    native.endBody(body);
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
  async function write(body, chunk, cancel) {
    try {
      await internals.wait(native.writeBody(body, chunk));
    } catch (error) {
      void Promise.resolve(cancel(error)).catch(() => {});
      throw error;
    }
  }

  /** What a number or bytes from outside are as the body of an answer. */
  internals.incomingSource = (body) => (typeof body !== 'number' ? body : {
    pull: () => internals.readBody(body),
    cancel: () => internals.cancelBody(body),
    length: undefined,
  });

  /** One exchange with a server (see fetch.js). */
  internals.exchange = ({ method, url, headers, body }) => {
    const op = native.start(method, url, headers, internals.sendBody(body));
    const answer = internals.wait(op).then(({ status, statusText, headers: pairs, body: content }) => ({
      status, statusText, headers: pairs.flat(), body: internals.incomingSource(content),
    }));
    return { answer, cancel: (reason) => internals.cancel(op, reason) };
  };
}
