// An object whose methods take and give references.
import { DurableObject, RpcTarget } from 'cloudflare:workers';

const text = new TextEncoder();

export class Counter extends RpcTarget {
  #value;
  constructor(value = 0, owner = undefined) {
    super();
    this.#value = value;
    this.own = 'an own property';
    this.owner = owner;
  }
  increment(by = 1) { this.#value += by; return this.#value; }
  get value() { return this.#value; }
  get deep() { return { list: [this.#value], inner: new Counter(this.#value * 10) }; }
  child(value) { return new Counter(value); }
  fail(text) { throw new RangeError(text); }
  async slow(value) { await scheduler.wait(2); return value; }
  [Symbol.dispose]() { this.owner?.disposed(); }
}

class Plain {
  constructor() { this.a = 1; }
  method() { return 2; }
}

export class Remote extends DurableObject {
  count = 0;
  kept = undefined;
  log = [];

  // Results.
  counter(value) { return new Counter(value, { disposed: () => { this.count += 1; } }); }
  counters() { return [new Counter(1), { two: new Counter(2) }, new Map([['three', new Counter(3)]])]; }
  adder(a) { return b => a + b; }
  withFunctions() { return { name: 'x', add: (a, b) => a + b, nested: { twice: value => value * 2 } }; }
  same() { const f = () => 1; return [f, f]; }
  plainInstance() { return new Plain(); }
  disposals() { return this.count; }
  get property() { return 'of a getter'; }
  get targetProperty() { return new Counter(40); }
  echo(value) { return value; }
  many(count) { return Array.from({ length: count }, (_, index) => () => index); }
  promised() { return { later: Promise.resolve(1) }; }

  // Arguments.
  async call(callback, ...values) { return callback(...values); }
  async callTwice(callback) { return [await callback(1), await callback(2)]; }
  async callMethod(target, name, ...values) { return target[name](...values); }
  async read(target, name) { return target[name]; }
  async callLater(callback) { this.kept = callback; return 'kept'; }
  async callDup(callback) { this.kept = callback.dup(); return 'kept'; }
  async callKept(...values) { return this.kept(...values); }
  releaseKept() { this.kept[Symbol.dispose](); this.kept = undefined; }
  shapeOf(value) { return [typeof value, value instanceof RpcTarget, value?.constructor?.name, Object.prototype.toString.call(value)]; }
  async catching(callback) { try { await callback(); } catch (error) { return [error.name, error.message, error instanceof RangeError, error.remote]; } return 'nothing'; }

  // Order.
  note(value) { this.log.push(value); }
  noted() { return this.log.join(); }

  // Streams.
  stream(...chunks) { return ReadableStream.from(chunks.map(chunk => text.encode(chunk))); }
  byteStream(...chunks) {
    return new ReadableStream({ type: 'bytes', pull(controller) {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(text.encode(chunk));
    } });
  }
  brokenStream() {
    let chunks = 0;
    return new ReadableStream({ type: 'bytes', pull(controller) {
      if (chunks++ === 0) controller.enqueue(text.encode('one'));
      else controller.error(new RangeError('the source broke'));
    } });
  }
  valueStream() { return ReadableStream.from([1, 2]); }
  async readStream(stream) { return new Response(stream).text(); }
  sink() {
    const seen = [];
    const decoder = new TextDecoder();
    this.seen = seen;
    return new WritableStream({
      write(chunk) { seen.push(decoder.decode(chunk)); },
      close() { seen.push('closed'); },
      abort(reason) { seen.push(`aborted ${reason?.message}`); },
    });
  }
  seenBySink() { return this.seen; }
  async writeTo(stream, ...chunks) {
    const writer = stream.getWriter();
    for (const chunk of chunks) await writer.write(text.encode(chunk));
    await writer.close();
    return chunks.length;
  }

  // Requests and responses.
  async request(request) { return [request.method, request.url, request.headers.get('x-a'), await request.text()]; }
  async response(response) { return [response.status, response.headers.get('x-a'), await response.text()]; }
  headers(headers) { return [...headers]; }
  makeResponse() { return new Response('made', { status: 201, headers: { 'x-b': 'b' } }); }
  makeRequest() { return new Request('http://made/', { method: 'PUT', body: 'made', headers: { 'x-b': 'b' } }); }
  makeHeaders() { return new Headers({ 'x-b': 'b', a: '1' }); }
  blobs() { return new Blob(['x']); }
  form() { return new FormData(); }
  pair() { return new WebSocketPair()[0]; }
}
