// Counters that survive everything: each is a Durable Object with a SQLite database of its own. The Worker finds the
// object by its name and calls its methods; whoever gets an answer knows that what it says is stored.

import { DurableObject } from "cloudflare:workers";

interface Env {
  COUNTERS: DurableObjectNamespace<Counter>;
}

interface Change {
  id: number;
  by: number;
  at: string;
}

export class Counter extends DurableObject<Env> {
  #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS changes (id INTEGER PRIMARY KEY, by INTEGER NOT NULL, at TEXT NOT NULL)
    `);
  }

  value(): number {
    return this.#sql.exec<{ value: number }>("SELECT coalesce(sum(by), 0) AS value FROM changes").one().value;
  }

  increment(by: number): number {
    this.#sql.exec("INSERT INTO changes (by, at) VALUES (?, ?)", by, new Date().toISOString());
    return this.value();
  }

  history(limit: number): Change[] {
    return this.#sql.exec<Change>("SELECT id, by, at FROM changes ORDER BY id DESC LIMIT ?", limit).toArray();
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const [, kind, name, what] = url.pathname.split("/").map(decodeURIComponent);
    if (kind !== "counters" || !name) {
      return new Response("GET or POST /counters/NAME, GET /counters/NAME/history\n", { status: 404 });
    }
    const counter = env.COUNTERS.getByName(name);
    if (what === "history") {
      return Response.json(await counter.history(20));
    }
    if (request.method === "POST") {
      const by = Number(url.searchParams.get("by") ?? 1);
      if (!Number.isSafeInteger(by)) {
        return new Response("`by` is not an integer\n", { status: 400 });
      }
      return Response.json({ name, value: await counter.increment(by) });
    }
    return Response.json({ name, value: await counter.value() });
  },
} satisfies ExportedHandler<Env>;
