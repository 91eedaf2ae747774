// Invoices of several tenants. Each tenant has a D1 database of its own; a directory knows which API key is whose.

interface Env {
  DIRECTORY: D1Database;
  ACME: D1Database;
  GLOBEX: D1Database;
}

type Tenant = "ACME" | "GLOBEX";

interface Invoice {
  id: number;
  customer: string;
  cents: number;
}

/** Prepares a database once for each isolate that uses it: statements of a batch are one transaction. */
function once(prepare: (env: Env) => Promise<unknown>): (env: Env) => Promise<void> {
  let done: Promise<unknown> | undefined;
  return async (env) => {
    done ??= prepare(env).catch((error) => {
      done = undefined;
      throw error;
    });
    await done;
  };
}

const directoryReady = once(({ DIRECTORY: db }) => db.batch([
  db.prepare("CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, tenant TEXT NOT NULL) WITHOUT ROWID"),
  db.prepare("INSERT OR IGNORE INTO keys VALUES ('acme-key', 'ACME'), ('globex-key', 'GLOBEX')"),
]));

const tenantReady: Record<Tenant, (env: Env) => Promise<void>> = {
  ACME: once(({ ACME }) => ACME.exec(SCHEMA)),
  GLOBEX: once(({ GLOBEX }) => GLOBEX.exec(SCHEMA)),
};

const SCHEMA =
  "CREATE TABLE IF NOT EXISTS invoices (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL CHECK (cents > 0))";

async function add(db: D1Database, request: Request): Promise<Response> {
  const invoices = await request.json<Omit<Invoice, "id">[]>();
  const insert = db.prepare("INSERT INTO invoices (customer, cents) VALUES (?, ?) RETURNING id, customer, cents");
  try {
    // All of them or none.
    const results = await db.batch<Invoice>(invoices.map(({ customer, cents }) => insert.bind(customer, cents)));
    return Response.json(results.map(({ results }) => results[0]), { status: 201 });
  } catch (error) {
    return Response.json({ error: (error as Error).message }, { status: 400 });
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    await directoryReady(env);
    const key = request.headers.get("x-api-key") ?? "";
    const tenant = await env.DIRECTORY.prepare("SELECT tenant FROM keys WHERE key = ?").bind(key).first<Tenant>("tenant");
    if (tenant === null) {
      return new Response("who are you? send the header x-api-key\n", { status: 401 });
    }
    await tenantReady[tenant](env);
    const db = env[tenant];
    const { pathname } = new URL(request.url);
    if (pathname === "/invoices" && request.method === "POST") return await add(db, request);
    if (pathname === "/invoices") {
      const { results } = await db.prepare("SELECT * FROM invoices ORDER BY id").all<Invoice>();
      return Response.json(results);
    }
    if (pathname === "/total") {
      return Response.json(await db.prepare("SELECT count(*) AS invoices, coalesce(sum(cents), 0) AS cents FROM invoices").first());
    }
    return new Response("try /invoices or /total\n", { status: 404 });
  },
} satisfies ExportedHandler<Env>;
