// Documents that many people edit at once. A document is a Durable Object: it puts the edits of all in one order, and moves
// each over those that its writer had not seen yet.

import { DurableObject } from "cloudflare:workers";
import { apply, over } from "../public/edit.js";

interface Env {
  DOCUMENTS: DurableObjectNamespace<Document>;
}

/** Of a text: at a place, so many characters go and others come. */
interface Edit {
  at: number;
  remove: number;
  insert: string;
}

/** Characters of a document. */
const LENGTH_MAX = 100_000;
/** Edits that are kept to move late ones over. */
const KEPT = 1_000;

export class Document extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(`
      CREATE TABLE IF NOT EXISTS document (text TEXT NOT NULL, revision INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS edits (revision INTEGER PRIMARY KEY, edit TEXT NOT NULL);
      INSERT INTO document SELECT '', 0 WHERE NOT EXISTS (SELECT 1 FROM document)`);
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  async fetch(): Promise<Response> {
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    server.send(JSON.stringify({ type: "document", ...this.#current() }));
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    const sent = read(message);
    const { text, revision } = this.#current();
    if (sent === undefined || sent.base > revision) return socket.close(1008, "that is no edit");
    const edits = this.ctx.storage.sql
      .exec<{ edit: string }>("SELECT edit FROM edits WHERE revision > ? ORDER BY revision", sent.base)
      .toArray();
    if (edits.length < revision - sent.base) {
      // Its writer has slept for too long; it begins again with the document as it is.
      return socket.send(JSON.stringify({ type: "document", text, revision }));
    }
    const edit: Edit = edits.reduce((edit, { edit: earlier }) => over(edit, JSON.parse(earlier)), sent.edit);
    const edited = apply(text, edit);
    if (edited.length > LENGTH_MAX) return socket.close(1009, `a document has at most ${LENGTH_MAX} characters`);
    const sql = this.ctx.storage.sql;
    const next = revision + 1;
    sql.exec("UPDATE document SET text = ?, revision = ?", edited, next);
    sql.exec("INSERT INTO edits VALUES (?, ?)", next, JSON.stringify(edit));
    sql.exec("DELETE FROM edits WHERE revision <= ?", next - KEPT);
    // What leaves an object waits for what the object has written: nobody sees an edit that could be lost.
    for (const other of this.ctx.getWebSockets()) {
      other.send(JSON.stringify({ type: "edit", revision: next, edit, isYours: other === socket }));
    }
  }

  #current(): { text: string; revision: number } {
    return this.ctx.storage.sql.exec<{ text: string; revision: number }>("SELECT text, revision FROM document").one();
  }
}

/** What a page sends: an edit of the document as it was at the revision `base`. */
function read(message: string | ArrayBuffer): { base: number; edit: Edit } | undefined {
  try {
    const { base, at, remove, insert } = JSON.parse(message as string);
    const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
    if (![base, at, remove].every(isCount) || typeof insert !== "string") return undefined;
    return { base, edit: { at, remove, insert } };
  } catch {
    return undefined;
  }
}

export default {
  async fetch(request, env): Promise<Response> {
    const name = /^\/api\/([\w-]{1,64})$/.exec(new URL(request.url).pathname)?.[1];
    if (name === undefined) return new Response("a document is at /api/<name>\n", { status: 404 });
    if (request.headers.get("Upgrade") !== "websocket") return new Response("connect a WebSocket\n", { status: 426 });
    return env.DOCUMENTS.getByName(name).fetch(request);
  },
} satisfies ExportedHandler<Env>;
