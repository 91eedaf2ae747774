// D1 databases: statements, results and sessions. A database is one cell, so every read is of its primary.
export default function (native, internals) {
  const { needArguments, notYet } = internals;
  const UNCONSTRAINED = 'first-unconstrained';
  const CONSTRAINTS = ['first-primary', UNCONSTRAINED];

  /** D1's errors: a kind and a text, and the text alone as the cause. */
  const failure = (kind, text) => new Error(`${kind}: ${text}`, { cause: new Error(text) });

  function unreachable(error) {
    const { retryable, overloaded } = error;
    return Object.assign(failure('D1_ERROR', error.message), { ...(retryable && { retryable }), ...(overloaded && { overloaded }) });
  }

  /** What a parameter is sent as: JSON, with a blob as the array of its bytes. */
  function bound(value) {
    switch (typeof value) {
      case 'number': case 'string': return value;
      case 'boolean': return value ? 1 : 0;
      case 'object':
        if (value === null) return null;
        if (Array.isArray(value) && value.every(byte => typeof byte === 'number' && byte >= 0 && byte < 256)) return value;
        if (value instanceof ArrayBuffer) return [...new Uint8Array(value)];
        if (ArrayBuffer.isView(value)) return [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)];
    }
    let shown;
    try {
      shown = `${value}`;
    } catch {
      shown = typeof value === 'symbol' ? value.toString() : 'an object';
    }
    throw failure('D1_TYPE_ERROR', `Type '${typeof value}' not supported for value '${shown}'`);
  }

  /** Runs statements as one transaction. Answers `{ results }`, or `{ error, statement }` where one failed. */
  async function ask(database, session, statements) {
    let answer;
    try {
      answer = await internals.wait(native.query(database, JSON.stringify({ statements })));
    } catch (error) {
      throw unreachable(error);
    }
    internals.load('encoding');
    const reply = JSON.parse(internals.utf8Decode(answer));
    if (reply.position !== undefined) session?.advance(reply.position);
    return reply;
  }

  async function results(database, session, statements) {
    const { results, error } = await ask(database, session, statements);
    if (error !== undefined) throw failure('D1_ERROR', error);
    return results;
  }

  const objects = ({ columns, rows }) => rows.map(row => {
    const object = {};
    for (let index = 0; index < columns.length; index++) object[columns[index]] = row[index];
    return object;
  });

  const resultOf = answer => ({
    success: true,
    meta: { served_by: 'holdfast', served_by_primary: true, ...answer.meta },
    results: objects(answer),
  });

  let callOf;
  class D1PreparedStatement {
    #database;
    #session;
    #sql;
    #params;
    constructor(key, database, session, sql, params) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#database = database;
      this.#session = session;
      this.#sql = sql;
      this.#params = params;
    }
    static {
      callOf = statement => {
        if (!(typeof statement === 'object' && statement !== null && #sql in statement)) {
          throw new TypeError("Failed to execute 'batch' on 'D1Database': parameter 1 is not an array of D1PreparedStatement.");
        }
        return { sql: statement.#sql, params: statement.#params };
      };
    }
    async #ask() {
      const [answer] = await results(this.#database, this.#session, [callOf(this)]);
      return answer;
    }
    bind(...values) {
      return new D1PreparedStatement(internals, this.#database, this.#session, this.#sql, values.map(bound));
    }
    async first(column = undefined) {
      const [row] = objects(await this.#ask());
      if (row === undefined) return null;
      if (column === undefined) return row;
      if (row[column] === undefined) {
        throw Object.assign(failure('D1_COLUMN_NOTFOUND', `Column not found (${column})`), { cause: new Error('Column not found') });
      }
      return row[column];
    }
    async run() {
      return resultOf(await this.#ask());
    }
    async all() {
      return resultOf(await this.#ask());
    }
    async raw(options = undefined) {
      const { columns, rows } = await this.#ask();
      return options?.columnNames ? [columns, ...rows] : rows;
    }
  }

  const prepare = (database, session, query) => new D1PreparedStatement(internals, database, session, `${query}`, []);

  async function batch(database, session, statements) {
    const calls = [...statements].map(callOf);
    if (calls.length === 0) return [];
    return (await results(database, session, calls)).map(resultOf);
  }

  class D1DatabaseSession {
    #database;
    #state;
    constructor(key, database, bookmark) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#database = database;
      const state = {
        bookmark,
        /** Takes the position of an answer; they may come in any order. */
        advance({ epoch, txid }) {
          const reached = [epoch, txid].map(number => number.toString(16).padStart(16, '0')).join('-');
          if (state.bookmark === null || state.bookmark < reached) state.bookmark = reached;
        },
      };
      this.#state = state;
    }
    prepare(query) {
      needArguments(arguments.length, 1, "prepare' on 'D1DatabaseSession");
      return prepare(this.#database, this.#state, query);
    }
    async batch(statements) {
      return await batch(this.#database, this.#state, statements);
    }
    getBookmark() {
      return this.#state.bookmark;
    }
  }

  class D1Database {
    #name;
    constructor(key, name) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#name = name;
    }
    prepare(query) {
      needArguments(arguments.length, 1, "prepare' on 'D1Database");
      return prepare(this.#name, undefined, query);
    }
    async batch(statements) {
      return await batch(this.#name, undefined, statements);
    }
    async exec(query) {
      const lines = `${query}`.split('\n').filter(line => line.trim() !== '');
      if (lines.length === 0) throw failure('D1_EXEC_ERROR', 'the query holds no statement');
      const { results, error, statement } = await ask(this.#name, undefined, lines.map(sql => ({ sql })));
      if (error !== undefined) {
        throw failure('D1_EXEC_ERROR', `Error in line ${statement + 1}: ${lines[statement]}: ${error}`);
      }
      return { count: results.length, duration: results.reduce((sum, { meta }) => sum + meta.duration, 0) };
    }
    withSession(constraintOrBookmark = UNCONSTRAINED) {
      const text = `${constraintOrBookmark ?? ''}`.trim() || UNCONSTRAINED;
      return new D1DatabaseSession(internals, this.#name, CONSTRAINTS.includes(text) ? null : text);
    }
    async dump() {
      void this.#name;
      throw notYet('D1Database.dump');
    }
  }

  internals.makeDatabase = name => new D1Database(internals, name);
}
