// Reminders that come although nobody asks: each list is a Durable Object whose one alarm is set to its next reminder.
// When it goes off the object delivers what is due and sets the alarm anew. A delivery that fails throws, so the alarm
// runs again; what was delivered before the failure is marked and is not delivered twice.

import { DurableObject } from "cloudflare:workers";

interface Env {
  LISTS: DurableObjectNamespace<ReminderList>;
  WEBHOOK: string;
}

interface Reminder {
  id: number;
  text: string;
  due: number;
  delivered: number | null;
}

export class ReminderList extends DurableObject<Env> {
  #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS reminders (
        id INTEGER PRIMARY KEY, text TEXT NOT NULL, due INTEGER NOT NULL, delivered INTEGER
      )
    `);
  }

  async add(text: string, due: number): Promise<Reminder> {
    const added = this.#sql
      .exec<Reminder>("INSERT INTO reminders (text, due) VALUES (?, ?) RETURNING *", text, due)
      .one();
    await this.#setAlarm();
    return added;
  }

  async cancel(id: number): Promise<boolean> {
    const { rowsWritten } = this.#sql.exec("DELETE FROM reminders WHERE id = ? AND delivered IS NULL", id);
    await this.#setAlarm();
    return rowsWritten > 0;
  }

  all(): Reminder[] {
    return this.#sql.exec<Reminder>("SELECT * FROM reminders ORDER BY due, id").toArray();
  }

  async alarm(): Promise<void> {
    const due = this.#sql
      .exec<Reminder>("SELECT * FROM reminders WHERE delivered IS NULL AND due <= ? ORDER BY due, id", Date.now())
      .toArray();
    for (const reminder of due) {
      await this.#deliver(reminder);
      this.#sql.exec("UPDATE reminders SET delivered = ? WHERE id = ?", Date.now(), reminder.id);
    }
    await this.#setAlarm();
  }

  async #deliver({ id, text, due }: Reminder): Promise<void> {
    if (!this.env.WEBHOOK) return;
    const body = JSON.stringify({ id, text, due });
    const answer = await fetch(this.env.WEBHOOK, { method: "POST", body });
    if (!answer.ok) throw new Error(`the webhook answered ${answer.status}`);
  }

  /** Sets the alarm to the next reminder, in one transaction with what was written since the last `await`. */
  async #setAlarm(): Promise<void> {
    const next = this.#sql
      .exec<{ due: number | null }>("SELECT min(due) AS due FROM reminders WHERE delivered IS NULL")
      .one().due;
    if (next === null) await this.ctx.storage.deleteAlarm();
    else await this.ctx.storage.setAlarm(next);
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const [, kind, name, id] = url.pathname.split("/").map(decodeURIComponent);
    if (kind !== "reminders" || !name) {
      return new Response("GET or POST /reminders/NAME?in=SECONDS, DELETE /reminders/NAME/ID\n", { status: 404 });
    }
    const list = env.LISTS.getByName(name);
    if (request.method === "POST") {
      const seconds = Number(url.searchParams.get("in") ?? NaN);
      if (!(seconds >= 0 && seconds < 1e9)) return new Response("`in` is not a number of seconds\n", { status: 400 });
      return Response.json(await list.add(await request.text(), Date.now() + seconds * 1_000), { status: 201 });
    }
    if (request.method === "DELETE") {
      const isThere = await list.cancel(Number(id));
      return isThere ? new Response(null, { status: 204 }) : new Response("no such reminder\n", { status: 404 });
    }
    return Response.json(await list.all());
  },
} satisfies ExportedHandler<Env>;
