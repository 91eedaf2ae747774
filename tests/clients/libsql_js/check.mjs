// The ordinary work of @libsql/client against one database: migrate, execute, batch, transaction, values, errors.
// node check.mjs URL [TOKEN]; the database must be empty or left by an earlier run of this script.
import assert from "node:assert/strict";
import { createClient, LibsqlError } from "@libsql/client";

const [url, authToken] = process.argv.slice(2);
if (!url) {
  console.error("usage: node check.mjs URL [TOKEN]");
  process.exit(2);
}
const db = createClient({ url, authToken });
const exact = createClient({ url, authToken, intMode: "bigint" });

const checks = {
  async "migrate makes the tables"() {
    await db.migrate([
      "DROP TABLE IF EXISTS book",
      "DROP TABLE IF EXISTS author",
      "CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
      "CREATE TABLE book (id INTEGER PRIMARY KEY, author_id INTEGER REFERENCES author (id) DEFERRABLE INITIALLY DEFERRED, title TEXT, body BLOB, price REAL)",
      "INSERT INTO author (name) VALUES ('first')",
    ]);
    const { rows } = await db.execute("SELECT name FROM author");
    assert.deepEqual(rows.map((row) => row.name), ["first"]);
  },

  async "execute takes positional and named arguments and tells what it did"() {
    const inserted = await db.execute({ sql: "INSERT INTO author (name) VALUES (?)", args: ["second"] });
    assert.equal(inserted.rowsAffected, 1);
    assert.equal(inserted.lastInsertRowid, 2n);
    for (const args of [{ name: "third" }, { ":name": "fourth" }]) {
      await db.execute({ sql: "INSERT INTO author (name) VALUES (:name)", args });
    }
    const found = await db.execute({ sql: "SELECT id, name FROM author WHERE id > ? ORDER BY id", args: [1] });
    assert.deepEqual(found.columns, ["id", "name"]);
    assert.deepEqual(found.rows.map((row) => [row[0], row.name]), [[2, "second"], [3, "third"], [4, "fourth"]]);
    const updated = await db.execute("UPDATE author SET name = name || '!' WHERE id > 2");
    assert.equal(updated.rowsAffected, 2);
  },

  async "a batch is one transaction"() {
    const results = await db.batch(
      [
        { sql: "INSERT INTO book (title) VALUES (?)", args: ["one"] },
        "INSERT INTO book (title) VALUES ('two') RETURNING id",
        "SELECT count(*) AS n FROM book",
      ],
      "write",
    );
    assert.equal(results.length, 3);
    assert.equal(results[1].rows[0].id, 2);
    assert.equal(results[2].rows[0].n, 2);
    await assert.rejects(
      db.batch(["INSERT INTO book (title) VALUES ('three')", "INSERT INTO nowhere VALUES (1)"], "write"),
      (error) => error instanceof LibsqlError && /nowhere/.test(error.message),
    );
    const { rows } = await db.execute("SELECT count(*) AS n FROM book");
    assert.equal(rows[0].n, 2, "the failed batch left nothing");
    const read = await db.batch(["SELECT 1 AS a", "SELECT 2 AS a"], "read");
    assert.deepEqual(read.map((result) => result.rows[0].a), [1, 2]);
  },

  async "an interactive transaction commits, rolls back and closes"() {
    const kept = await db.transaction("write");
    const { rows } = await kept.execute("SELECT count(*) AS n FROM book");
    await kept.execute({ sql: "INSERT INTO book (title) VALUES (?)", args: [`after ${rows[0].n}`] });
    await kept.batch(["UPDATE book SET price = 1.5", "UPDATE book SET price = price * 2"]);
    await kept.commit();
    const dropped = await db.transaction("write");
    await dropped.execute("DELETE FROM book");
    await dropped.rollback();
    const closed = await db.transaction("write");
    await closed.execute("DELETE FROM book");
    closed.close();
    assert.ok(closed.closed);
    const after = await db.execute("SELECT title, price FROM book ORDER BY id");
    assert.deepEqual(after.rows.map((row) => [row.title, row.price]), [["one", 3], ["two", 3], ["after 2", 3]]);
    const read = await db.transaction("read");
    assert.equal((await read.execute("SELECT count(*) AS n FROM book")).rows[0].n, 3);
    read.close();
  },

  async "an error inside a transaction leaves it usable"() {
    const transaction = await db.transaction("write");
    await transaction.execute("INSERT INTO author (name) VALUES ('fifth')");
    await assert.rejects(transaction.execute("INSERT INTO author (name) VALUES ('fifth')"), LibsqlError);
    await transaction.execute("INSERT INTO author (name) VALUES ('sixth')");
    await transaction.commit();
    const { rows } = await db.execute("SELECT name FROM author WHERE name IN ('fifth', 'sixth') ORDER BY name");
    assert.deepEqual(rows.map((row) => row.name), ["fifth", "sixth"]);
  },

  async "blobs come back byte for byte"() {
    const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const large = new Uint8Array(1 << 20).map((_, at) => (at * 31) & 255);
    for (const body of [new Uint8Array(), every, large]) {
      await db.execute({ sql: "UPDATE book SET body = ? WHERE id = 1", args: [body] });
      const { rows } = await db.execute("SELECT body, length(body) AS n, typeof(body) AS type FROM book WHERE id = 1");
      assert.equal(rows[0].type, "blob");
      assert.equal(rows[0].n, body.length);
      assert.ok(rows[0].body instanceof ArrayBuffer);
      assert.deepEqual(new Uint8Array(rows[0].body), body);
    }
  },

  async "64-bit integers are exact"() {
    const sql = "SELECT ? AS value, CAST(?1 AS TEXT) AS text, typeof(?1) AS type";
    const numbers = [0n, -1n, 2147483648n, 9007199254740991n, 9007199254740993n, 9223372036854775807n, -9223372036854775808n];
    for (const number of numbers) {
      const { rows } = await exact.execute({ sql, args: [number] });
      assert.deepEqual([rows[0].value, rows[0].text, rows[0].type], [number, String(number), "integer"]);
    }
    await assert.rejects(db.execute({ sql, args: [9007199254740993n] }), RangeError);
  },

  async "other values keep their kind"() {
    const sql = "SELECT ? AS value, typeof(?1) AS type";
    for (const [sent, value, type] of [
      [null, null, "null"],
      ["ü 🦀 'quoted' \n", "ü 🦀 'quoted' \n", "text"],
      ["", "", "text"],
      [0.1, 0.1, "real"],
      [-1.5e300, -1.5e300, "real"],
      [true, 1, "integer"],
    ]) {
      const { rows } = await db.execute({ sql, args: [sent] });
      assert.deepEqual([rows[0].value, rows[0].type], [value, type]);
    }
  },

  async "errors have SQLite's codes"() {
    for (const [sql, code] of [
      ["SELEC 1", /^(SQLITE_ERROR|SQL_PARSE_ERROR|SQL_INPUT_ERROR)/],
      ["INSERT INTO author (name) VALUES ('first')", /^SQLITE_CONSTRAINT/],
      ["INSERT INTO author (name) VALUES (NULL)", /^SQLITE_CONSTRAINT/],
    ]) {
      await assert.rejects(db.execute(sql), (error) => {
        assert.ok(error instanceof LibsqlError, String(error));
        assert.match(error.code, code, sql);
        return true;
      });
    }
    assert.equal((await db.execute("SELECT 1 AS a")).rows[0].a, 1);
  },

  async "a constraint that fails at COMMIT fails the commit"() {
    await assert.rejects(db.batch(["INSERT INTO book (author_id) VALUES (77)"], "write"), LibsqlError);
    const transaction = await db.transaction("write");
    await transaction.execute("INSERT INTO book (author_id) VALUES (77)");
    await assert.rejects(transaction.commit(), LibsqlError);
    transaction.close();
    const { rows } = await db.execute("SELECT count(*) AS n FROM book WHERE author_id = 77");
    assert.equal(rows[0].n, 0);
  },

  async "a script of several statements runs"() {
    await db.executeMultiple("CREATE TABLE IF NOT EXISTS script (n); DELETE FROM script; INSERT INTO script VALUES (1); INSERT INTO script VALUES (2);");
    const { rows } = await db.execute("SELECT sum(n) AS total FROM script");
    assert.equal(rows[0].total, 3);
  },

  async "many requests at once"() {
    const inserts = Array.from({ length: 50 }, (_, n) => db.execute({ sql: "INSERT INTO script VALUES (?)", args: [n + 10] }));
    await Promise.all(inserts);
    const { rows } = await db.execute("SELECT count(*) AS n FROM script");
    assert.equal(rows[0].n, 52);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok - ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not ok - ${name}\n${error.stack ?? error}`);
  }
}
db.close();
exact.close();
console.log(failed === 0 ? "all checks passed" : `${failed} checks failed`);
process.exit(failed === 0 ? 0 : 1);
