// An object that others open sockets to.
import { DurableObject } from 'cloudflare:workers';
import { thrown } from './show.js';

export class Room extends DurableObject {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const { 0: client, 1: server } = new WebSocketPair();
    const answer = () => new Response(null, { status: 101, webSocket: client, headers: { 'x-room': 'yes' } });
    switch (pathname) {
      case '/classic':
        server.accept();
        server.addEventListener('message', ({ data }) => {
          if (data === 'close') server.close(4001, 'as asked');
          else if (data === 'close without a code') server.close();
          else server.send(data);
        });
        server.addEventListener('close', ({ code, reason, wasClean }) => {
          this.ctx.storage.kv.put('closed', [code, reason, wasClean]);
          server.close(code === 1005 ? undefined : code, reason || undefined);
        });
        return answer();
      case '/greets':
        server.accept();
        server.send('first');
        server.send('second');
        server.close(1000, 'done');
        return answer();
      case '/hibernatable':
        this.ctx.acceptWebSocket(server, searchParams.getAll('tag'));
        if (searchParams.has('attach')) server.serializeAttachment({ attached: searchParams.get('attach') });
        if (searchParams.has('greet')) server.send(searchParams.get('greet'));
        return answer();
      case '/automatic':
        this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'));
        this.ctx.acceptWebSocket(server);
        return answer();
      case '/protocol':
        server.accept();
        return new Response(null, { status: 101, webSocket: client, headers: { 'sec-websocket-protocol': 'chat' } });
      case '/headers':
        return Response.json([request.headers.get('upgrade'), request.method]);
      default: return new Response('no socket here', { status: 426 });
    }
  }
  async webSocketMessage(ws, message) {
    if (typeof message !== 'string') this.ctx.storage.kv.put('binary', `${message.constructor.name} ${message.byteLength}`);
    switch (message) {
      case 'tags': return ws.send(JSON.stringify(this.ctx.getTags(ws)));
      case 'attachment': return ws.send(JSON.stringify(ws.deserializeAttachment()));
      case 'attach more': return ws.serializeAttachment({ attached: 'more' });
      case 'state': return ws.send(`${ws.readyState} ${typeof ws.url} ${ws.protocol} ${ws.extensions}`);
      case 'count': return ws.send(`${this.ctx.getWebSockets().length} ${this.ctx.getWebSockets('a').length} ${this.ctx.getWebSockets('z').length}`);
      case 'same': return ws.send(`${this.ctx.getWebSockets().includes(ws)}`);
      case 'close': return ws.close(4002, 'hibernated');
      case 'close twice': ws.close(4003, 'once'); return ws.close(4004, 'twice');
      case 'send after close': ws.close(4005, 'x'); this.ctx.storage.kv.put('thrown', `${await thrown(() => ws.send('x'))}`); return;
      case 'automatic': return ws.send(`${this.ctx.getWebSocketAutoResponseTimestamp(ws) instanceof Date}`);
      case 'throw': throw new Error('from a handler');
      default: ws.send(message);
    }
  }
  webSocketClose(ws, ...args) {
    this.ctx.storage.kv.put('closed', args);
    this.ctx.storage.kv.put('state', ws.readyState);
    this.ctx.storage.kv.put('left', this.ctx.getWebSockets().length);
  }
  async closed() {
    for (let turn = 0; turn < 200; turn++) {
      const closed = this.ctx.storage.kv.get('closed');
      if (closed) return closed;
      await scheduler.wait(5);
    }
    return 'never';
  }
  get(key) { return this.ctx.storage.kv.get(key); }
  count() { return this.ctx.getWebSockets().length; }
}
