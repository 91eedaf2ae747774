// ctx.storage.sql: statements and their cursors.
export default function (native, internals) {
  const { isView } = ArrayBuffer;
  const IteratorPrototype = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));

  function binding(value) {
    switch (typeof value) {
      case 'number': return value;
      case 'string': return value.toWellFormed();
      case 'undefined': return null;
      case 'bigint': throw new TypeError('Cannot convert a BigInt value to a number');
      case 'object':
        if (value === null) return null;
        if (isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
        if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return new Uint8Array(value);
    }
    // Anything else is bound as its text; a symbol throws.
    return `${value}`.toWellFormed();
  }

  const iteratorOf = (name, next) => Object.create(IteratorPrototype, {
    next: { value: next, writable: true, configurable: true },
    [Symbol.toStringTag]: { value: name, configurable: true },
  });

  class Cursor {
    #names;
    #rows;
    #at = 0;
    #more;
    #rowsRead;
    #rowsWritten;
    constructor(key, { columns, rows, more, rowsRead, rowsWritten }) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#names = columns;
      this.#rows = rows;
      this.#more = more;
      this.#rowsRead = rowsRead;
      this.#rowsWritten = rowsWritten;
    }
    #take() {
      if (this.#at === this.#rows.length) {
        this.#at = 0;
        this.#rows = this.#more === undefined ? [] : this.#more();
        if (this.#rows.length === 0) {
          this.#more = undefined;
          return undefined;
        }
      }
      return this.#rows[this.#at++];
    }
    #object(row) {
      const object = {};
      const names = this.#names;
      for (let index = 0; index < names.length; index++) object[names[index]] = row[index];
      return object;
    }
    next() {
      const row = this.#take();
      return row === undefined ? { done: true, value: undefined } : { done: false, value: this.#object(row) };
    }
    toArray() {
      const all = [];
      for (let row = this.#take(); row !== undefined; row = this.#take()) all.push(this.#object(row));
      return all;
    }
    one() {
      const row = this.#take();
      if (row === undefined) throw new Error('Expected exactly one result from SQL query, but got no results.');
      if (this.#take() !== undefined) {
        throw new Error('Expected exactly one result from SQL query, but got multiple results.');
      }
      return this.#object(row);
    }
    raw() {
      void this.#names;
      const iterator = iteratorOf('RawIterator', () => {
        const row = this.#take();
        return row === undefined ? { done: true, value: undefined } : { done: false, value: row };
      });
      return internals.define(iterator, { toArray: () => [...iterator] });
    }
    get columnNames() {
      return [...this.#names];
    }
    get rowsRead() {
      return this.#rowsRead;
    }
    get rowsWritten() {
      return this.#rowsWritten;
    }
    [Symbol.iterator]() {
      void this.#names;
      return iteratorOf('Cursor Iterator', () => this.next());
    }
  }
  internals.define(Cursor.prototype, { [Symbol.toStringTag]: 'Cursor' });

  class SqlStorage {
    #own;
    constructor(key) {
      if (key !== internals) throw new TypeError('Illegal constructor');
    }
    exec(query, ...bindings) {
      void this.#own;
      if (arguments.length === 0) {
        throw new TypeError("Failed to execute 'exec' on 'SqlStorage': parameter 1 is not of type 'String'.");
      }
      return new Cursor(internals, native.exec(`${query}`.toWellFormed(), bindings.map(binding)));
    }
    get databaseSize() {
      void this.#own;
      return native.databaseSize();
    }
    get Cursor() {
      void this.#own;
      return Cursor;
    }
  }
  internals.define(SqlStorage.prototype, { [Symbol.toStringTag]: 'SqlStorage' });

  internals.makeSqlStorage = () => new SqlStorage(internals);
}
