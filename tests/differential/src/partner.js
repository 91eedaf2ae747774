// An object that others call.
import { DurableObject } from 'cloudflare:workers';

export class Partner extends DurableObject {
  field = 'a field';

  echo(...values) { return values; }
  add(a, b) { return a + b; }
  async later(value) { await scheduler.wait(1); return value; }
  fail(kind) {
    if (kind === 'range') throw new RangeError('out of range');
    if (kind === 'type') throw new TypeError('wrong type');
    if (kind === 'own') { class Own extends Error { name = 'Own'; } throw new Own('of its own'); }
    if (kind === 'string') throw 'a string';
    throw new Error('plain');
  }
  nothing() {}
  myName() { return this.ctx.id.name; }
  myId() { return this.ctx.id.toString(); }
  count() {
    const value = (this.ctx.storage.kv.get('count') ?? 0) + 1;
    this.ctx.storage.kv.put('count', value);
    return value;
  }
  async slowCount() {
    const before = (await this.ctx.storage.get('slow')) ?? 0;
    await this.ctx.storage.put('slow', before + 1);
    return before + 1;
  }
  get getter() { return 'from a getter'; }

  async fetch(request) {
    const { pathname, search } = new URL(request.url);
    switch (pathname) {
      case '/echo': return new Response(request.body, { status: 202, headers: { 'x-method': request.method, 'x-search': search } });
      case '/headers': return Response.json([...request.headers].filter(([name]) => name.startsWith('x-')));
      case '/throw': throw new RangeError('from fetch');
      case '/redirect': return new Response(null, { status: 302, headers: { location: '/echo' } });
      case '/url': return new Response(request.url);
      case '/stream': return new Response(new ReadableStream({
        async start(controller) {
          for (const text of ['one ', 'two ', 'three']) {
            await scheduler.wait(1);
            controller.enqueue(new TextEncoder().encode(text));
          }
          controller.close();
        },
      }));
      default: return new Response('nothing here', { status: 404 });
    }
  }
}
