// Feeds of server-sent events. A feed is a Durable Object: it stores what is posted, and streams it to everybody who
// listens. A reader that comes back with `Last-Event-ID`, as browsers do by themselves, misses nothing.

import { DurableObject } from "cloudflare:workers";
import page from "./page.html";

interface Env {
  FEEDS: DurableObjectNamespace<Feed>;
}

interface Post {
  id: number;
  text: string;
}

/** How many posts a feed keeps. */
const KEPT = 1000;

export class Feed extends DurableObject<Env> {
  #listeners = new Set<ReadableStreamDefaultController<Uint8Array>>();
  #encoder = new TextEncoder();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS posts (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)");
  }

  async fetch(request: Request): Promise<Response> {
    return request.method === "POST" ? this.#post(await request.text()) : this.#listen(request);
  }

  #post(text: string): Response {
    const sql = this.ctx.storage.sql;
    const { id } = sql.exec<{ id: number }>("INSERT INTO posts (text) VALUES (?) RETURNING id", text).one();
    sql.exec("DELETE FROM posts WHERE id <= ?", id - KEPT);
    const event = this.#event({ id, text });
    // Nobody sees it before it is stored, because what leaves an object waits for what the object has written.
    for (const listener of this.#listeners) {
      listener.enqueue(event);
    }
    return Response.json({ id });
  }

  #listen(request: Request): Response {
    const last = Number(request.headers.get("last-event-id") ?? 0) || 0;
    const missed = this.ctx.storage.sql.exec<Post>("SELECT id, text FROM posts WHERE id > ? ORDER BY id", last).toArray();
    let listener: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: controller => {
        listener = controller;
        // A comment: the answer's head leaves at once, even when there is nothing to tell.
        controller.enqueue(this.#encoder.encode(": welcome\n\n"));
        missed.forEach(post => controller.enqueue(this.#event(post)));
        this.#listeners.add(controller);
      },
      cancel: () => {
        this.#listeners.delete(listener);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
  }

  #event({ id, text }: Post): Uint8Array {
    const lines = text.split(/\r\n|\r|\n/).map(line => `data: ${line}\n`);
    return this.#encoder.encode(`id: ${id}\n${lines.join("")}\n`);
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, kind, name] = new URL(request.url).pathname.split("/").map(decodeURIComponent);
    if (kind === "feeds" && name) {
      return env.FEEDS.getByName(name).fetch(request);
    }
    if (kind === "") {
      return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
    }
    return new Response("GET or POST /feeds/NAME\n", { status: 404 });
  },
} satisfies ExportedHandler<Env>;
