// Chat rooms. A room is a Durable Object that holds its visitors' WebSockets and stores what they say. Its sockets hibernate:
// while nobody speaks the room takes no memory for JavaScript, and everybody stays connected.

import { DurableObject } from "cloudflare:workers";
import page from "./page.html";

interface Env {
  ROOMS: DurableObjectNamespace<Room>;
}

interface Line {
  id: number;
  name: string;
  text: string;
}

/** How many lines a room keeps. */
const KEPT = 1000;
/** How many of them somebody who comes in is shown. */
const SHOWN = 50;
const NAME_LENGTH_MAX = 40;
const TEXT_LENGTH_MAX = 2000;

export class Room extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS lines (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, text TEXT NOT NULL)");
    // Pages ask whether they are still connected; this is answered without waking the room.
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  async fetch(request: Request): Promise<Response> {
    const name = new URL(request.url).searchParams.get("name")?.trim().slice(0, NAME_LENGTH_MAX);
    if (!name) return new Response("who are you? add ?name=\n", { status: 400 });
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    // Variables of this object are gone once it has hibernated; what is attached to a socket stays with it.
    server.serializeAttachment({ name });
    for (const line of this.#last(SHOWN)) this.#tell(server, { type: "line", ...line });
    this.#tellAll({ type: "visitors", names: this.#names() });
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    if (typeof message !== "string" || message.length > TEXT_LENGTH_MAX) {
      return socket.close(1008, "say it in a short text");
    }
    const name = this.#nameOf(socket);
    const sql = this.ctx.storage.sql;
    const { id } = sql.exec<{ id: number }>("INSERT INTO lines (name, text) VALUES (?, ?) RETURNING id", name, message).one();
    sql.exec("DELETE FROM lines WHERE id <= ?", id - KEPT);
    // Nobody sees it before it is stored, because what leaves an object waits for what the object has written.
    this.#tellAll({ type: "line", id, name, text: message });
  }

  webSocketClose(socket: WebSocket): void {
    this.#tellAll({ type: "visitors", names: this.#names(socket) }, socket);
  }

  #last(count: number): Line[] {
    const rows = this.ctx.storage.sql.exec<Line>("SELECT id, name, text FROM lines ORDER BY id DESC LIMIT ?", count);
    return rows.toArray().reverse();
  }

  #nameOf(socket: WebSocket): string {
    return socket.deserializeAttachment().name;
  }

  #names(except?: WebSocket): string[] {
    return this.ctx.getWebSockets().filter(socket => socket !== except).map(socket => this.#nameOf(socket)).sort();
  }

  #tell(socket: WebSocket, what: object): void {
    // One that is closing hears nothing more.
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(what));
  }

  #tellAll(what: object, except?: WebSocket): void {
    for (const socket of this.ctx.getWebSockets()) if (socket !== except) this.#tell(socket, what);
  }
}

export default {
  async fetch(request, env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/") return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
    const room = /^\/rooms\/([^/]{1,200})$/.exec(pathname)?.[1];
    if (!room) return new Response("not found\n", { status: 404 });
    if (request.headers.get("upgrade") !== "websocket") {
      return new Response("open this with a WebSocket\n", { status: 426, headers: { upgrade: "websocket" } });
    }
    return env.ROOMS.getByName(decodeURIComponent(room)).fetch(request);
  },
} satisfies ExportedHandler<Env>;
