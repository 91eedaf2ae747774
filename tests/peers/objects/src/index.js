// Counters, and work that only needs the CPU: `scripts/bench-objects` runs these bytes on workerd and on Holdfast.

import { DurableObject } from "cloudflare:workers";

export class Counter extends DurableObject {
  // Requests since it came into memory.
  #seen = 0;

  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, value INTEGER NOT NULL)");
  }

  fetch(request) {
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client });
    }
    this.#seen += 1;
    const { sql } = this.ctx.storage;
    const { value } = request.method === "POST"
      ? sql.exec("INSERT INTO counter VALUES (1, 1) ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value").one()
      : sql.exec("SELECT coalesce(max(value), 0) AS value FROM counter").one();
    return Response.json({ value, seen: this.#seen });
  }

  webSocketMessage(socket, message) {
    socket.send(message);
  }
}

// Each answers the same every time.
const work = {
  nothing: () => 0,
  json() {
    const rows = Array.from({ length: 500 }, (_, id) => ({ id, name: `row ${id}`, tags: ["a", "b"], at: { x: id / 3, y: null } }));
    let sum = 0;
    for (let round = 0; round < 4; round += 1) {
      for (const row of JSON.parse(JSON.stringify(rows))) sum += row.id + row.tags.length;
    }
    return sum;
  },
  string() {
    let text = "";
    for (let i = 0; i < 5_000; i += 1) text += `word${i % 97} `;
    const words = text.split(" ").map(word => word.toUpperCase().replace(/[0-3]/g, "-")).filter(word => word.endsWith("-"));
    return words.join(",").length + text.indexOf("word96 word0");
  },
  map() {
    const counts = new Map();
    for (let i = 0; i < 20_000; i += 1) {
      const key = `key ${(i * 7919) % 4_001}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    let sum = 0;
    for (const [key, count] of counts) sum += key.length * count;
    return sum;
  },
  loop() {
    let state = 1, sum = 0;
    for (let i = 0; i < 300_000; i += 1) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
      sum += (state >>> 16) / 65_536;
    }
    return Math.round(sum);
  },
  async hash() {
    let bytes = new Uint8Array(1 << 20).fill(7);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    return digest.join(" ");
  },
};

export default {
  async fetch(request, env) {
    const [, kind, name] = new URL(request.url).pathname.split("/");
    if (kind === "counter") return env.COUNTERS.get(env.COUNTERS.idFromName(name)).fetch(request);
    if (kind === "work" && Object.hasOwn(work, name)) return new Response(`${await work[name]()}`);
    return new Response("/counter/NAME or /work/KIND", { status: 404 });
  },
};
