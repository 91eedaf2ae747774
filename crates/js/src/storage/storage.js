// ctx.storage: keys and values, and transactions. All of it happens at once; promises are settled when they are given, but for
// those of `storage/history.js`.
export default function (native, internals) {
  internals.load('storage_alarm');
  const { alarmOperations, timeOf } = internals;
  const TRANSACTION_MS_MAX = 30_000;

  const keyOf = value => `${value}`.toWellFormed();
  const isOptions = value => value === undefined || value === null || typeof value === 'object' || typeof value === 'function';

  function wrongType(method, of, parameter, type) {
    return new TypeError(`Failed to execute '${method}' on '${of}': parameter ${parameter} is not of type '${type}'.`);
  }

  function checkOptions(value, method, of, parameter, type) {
    if (!isOptions(value)) throw wrongType(method, of, parameter, type);
  }

  function checkCount(count, what) {
    if (count > native.keysMax) throw new RangeError(`Maximum number of ${what} is ${native.keysMax}.`);
  }

  /** Does all of the work, or nothing of it. */
  function atomically(work) {
    native.savepoint();
    let result;
    try {
      result = work();
    } catch (error) {
      native.endSavepoint(false);
      throw error;
    }
    native.endSavepoint(true);
    return result;
  }

  function limitOf(value) {
    const limit = Math.trunc(Number(value)) || 0;
    if (limit < -2147483648 || limit > 2147483647) {
      throw new TypeError('Value out of range. Must be between -2147483648 and 2147483647 (inclusive).');
    }
    if (limit <= 0) throw new TypeError('List limit must be positive.');
    return limit;
  }

  /** The options of a list as the native wants them. */
  function listOptions(options, of) {
    checkOptions(options, 'list', of, 1, 'ListOptions');
    const given = options ?? {};
    const { start, startAfter, end, prefix, reverse, limit } = given;
    if (start !== undefined && startAfter !== undefined) {
      throw new TypeError('list() cannot be called with both start and startAfter values.');
    }
    const text = value => (value === undefined ? undefined : keyOf(value));
    return {
      start: text(start), startAfter: text(startAfter), end: text(end), prefix: text(prefix),
      reverse: Boolean(reverse), limit: limit === undefined ? undefined : limitOf(limit),
    };
  }

  function mapOf(flat) {
    const map = new Map();
    for (let index = 0; index < flat.length; index += 2) map.set(flat[index], flat[index + 1]);
    return map;
  }

  function putEntries(entries) {
    const keys = Object.keys(entries);
    checkCount(keys.length, 'pairs');
    atomically(() => {
      for (const key of keys) {
        const value = entries[key];
        if (value !== undefined) native.put(keyOf(key), value);
      }
    });
  }

  /** The operations that a storage and a transaction have in common; `enter` refuses what is not one, or not open. */
  const operations = (of, enter) => ({
    async get(keys, options) {
      enter(this, 'get');
      if (arguments.length === 0) throw wrongType('get', of, 1, 'string or Array');
      checkOptions(options, 'get', of, 2, 'GetOptions');
      if (!Array.isArray(keys)) return native.get(keyOf(keys));
      checkCount(keys.length, 'keys');
      return mapOf(native.getMany(keys.map(keyOf)));
    },
    async list(options) {
      enter(this, 'list');
      return mapOf(native.list(listOptions(options, of)));
    },
    async put(key, value, options) {
      enter(this, 'put');
      if (arguments.length === 0) throw wrongType('put', of, 1, 'string or object');
      if (typeof key === 'object' && key !== null && !Array.isArray(key)) {
        checkOptions(value, 'put', of, 2, 'PutOptions');
        putEntries(key);
        return;
      }
      checkOptions(options, 'put', of, 3, 'PutOptions');
      if (value === undefined) throw new TypeError('put() called with undefined value.');
      native.put(keyOf(key), value);
    },
    async delete(keys, options) {
      enter(this, 'delete');
      if (arguments.length === 0) throw wrongType('delete', of, 1, 'string or Array');
      checkOptions(options, 'delete', of, 2, 'PutOptions');
      if (!Array.isArray(keys)) return native.delete(keyOf(keys));
      checkCount(keys.length, 'keys');
      return atomically(() => keys.reduce((count, key) => count + (native.delete(keyOf(key)) ? 1 : 0), 0));
    },
    ...alarmOperations({ checkOptions, wrongType }, of, enter),
  });

  // ---- transaction()

  // The transactions that are open, outermost first.
  const open = [];
  // Those whose closures run, outermost first: one that was rolled back is not open any more.
  const running = [];
  // The transaction that was called last of those of which none has begun: they run one after the other.
  let lastUnbegun = null;

  class DurableObjectTransaction {
    #state;
    constructor(key, state) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#state = state;
    }
    static enter(transaction, method) {
      const { ended } = transaction.#state;
      if (ended === 'rolled back') throw new Error(`Cannot ${method}() on rolled back transaction`);
      if (ended !== null) {
        throw new Error(`Cannot call ${method}() on transaction that has already committed: did you move \`txn\` outside of the closure?`);
      }
    }
    async deleteAll() {
      void this.#state;
      throw new Error('Cannot call deleteAll() within a transaction');
    }
    rollback() {
      const state = this.#state;
      if (state.ended === 'rolled back') return;
      enterTransaction(this, 'rollback');
      if (open.at(-1) !== state) throw new Error('Cannot rollback() a transaction while another is open within it');
      end(state, false);
    }
  }
  const { enter: enterTransaction } = DurableObjectTransaction;
  delete DurableObjectTransaction.enter;
  internals.define(DurableObjectTransaction.prototype, {
    ...operations('DurableObjectTransaction', enterTransaction),
    [Symbol.toStringTag]: 'DurableObjectTransaction',
  });

  function end(state, keep) {
    open.pop();
    state.ended = keep ? 'committed' : 'rolled back';
    native.endTransaction(keep);
  }

  async function runClosure(state, closure) {
    native.beginTransaction();
    open.push(state);
    running.push(state);
    let value;
    try {
      value = await closure(new DurableObjectTransaction(internals, state));
    } catch (error) {
      await ownTurn(state);
      if (state.ended === null) end(state, false);
      throw error;
    }
    await ownTurn(state);
    if (state.ended === null) end(state, true);
    return value;
  }

  /** Waits for transactions that were begun within this one and not waited for. */
  async function ownTurn(state) {
    while (running.at(-1) !== state) await running.at(-1).done;
    running.pop();
  }

  async function transact(state, before, closure) {
    if (before !== null) await before.done;
    // No other event enters while it is open.
    const outer = internals.holdGate({});
    const timer = internals.startTimer(native.breakWaiting, TRANSACTION_MS_MAX, false);
    try {
      await undefined;
      if (before === null) lastUnbegun = null;
      return await runClosure(state, closure);
    } finally {
      internals.clearTimer(timer);
      internals.holdGate(outer);
    }
  }

  // ---- The synchronous part of keys and values.

  class SyncKvStorage {
    #own;
    constructor(key) {
      if (key !== internals) throw new TypeError('Illegal constructor');
    }
    get(key) {
      void this.#own;
      if (arguments.length === 0) throw wrongType('get', 'SyncKvStorage', 1, 'string');
      return native.get(keyOf(key));
    }
    list(options) {
      void this.#own;
      return new ListIterator(internals, listOptions(options, 'SyncKvStorage'));
    }
    put(key, value) {
      void this.#own;
      if (arguments.length === 0) throw wrongType('put', 'SyncKvStorage', 1, 'string');
      if (arguments.length === 1) throw wrongType('put', 'SyncKvStorage', 2, 'Value');
      native.put(keyOf(key), value);
    }
    delete(key) {
      void this.#own;
      if (arguments.length === 0) throw wrongType('delete', 'SyncKvStorage', 1, 'string');
      return native.delete(keyOf(key));
    }
  }
  internals.define(SyncKvStorage.prototype, { [Symbol.toStringTag]: 'SyncKvStorage' });

  const PAGE_KEYS = 64;

  /** Reads a page at a time, from behind the last key: it sees what is put there meanwhile, and holds nothing open. */
  class ListIterator {
    #options;
    #left;
    #page = [];
    #at = 0;
    constructor(key, options) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#options = options;
      this.#left = options.limit ?? Infinity;
    }
    #read() {
      const last = this.#page.at(-2);
      if (last !== undefined) {
        if (this.#options.reverse) this.#options.end = last;
        else Object.assign(this.#options, { start: undefined, startAfter: last });
      }
      this.#options.limit = Math.min(this.#left, PAGE_KEYS);
      this.#page = this.#left === 0 ? [] : native.list(this.#options);
      this.#left = this.#page.length === 0 ? 0 : this.#left - this.#page.length / 2;
      this.#at = 0;
    }
    next() {
      if (this.#at === this.#page.length) this.#read();
      if (this.#page.length === 0) return { done: true, value: undefined };
      const value = [this.#page[this.#at], this.#page[this.#at + 1]];
      this.#at += 2;
      return { done: false, value };
    }
    [Symbol.iterator]() {
      return this;
    }
  }
  internals.define(ListIterator.prototype, { [Symbol.toStringTag]: 'ListIterator' });

  // ---- ctx.storage

  function history() {
    internals.load('storage_history');
    return internals.storageHistory;
  }

  class DurableObjectStorage {
    #own;
    constructor(key) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      internals.load('storage_sql');
      this.kv = new SyncKvStorage(internals);
      this.sql = internals.makeSqlStorage();
    }
    static enter(storage) {
      void storage.#own;
    }
    async deleteAll(options) {
      void this.#own;
      checkOptions(options, 'deleteAll', 'DurableObjectStorage', 1, 'PutOptions');
      native.deleteAll();
    }
    async transaction(closure) {
      void this.#own;
      if (typeof closure !== 'function') throw wrongType('transaction', 'DurableObjectStorage', 1, 'function');
      const before = lastUnbegun;
      const state = { ended: null, done: null };
      lastUnbegun = state;
      const result = transact(state, before, closure);
      state.done = result.then(() => {}, () => {});
      return await result;
    }
    transactionSync(closure) {
      void this.#own;
      if (typeof closure !== 'function') throw wrongType('transactionSync', 'DurableObjectStorage', 1, 'function');
      return atomically(closure);
    }
    async sync() {
      void this.#own;
      await history().sync();
    }
    async getCurrentBookmark() {
      void this.#own;
      return await history().getCurrentBookmark();
    }
    async getBookmarkForTime(timestamp) {
      void this.#own;
      const wrong = () => wrongType('getBookmarkForTime', 'DurableObjectStorage', 1, 'date');
      return await history().getBookmarkForTime(timeOf(timestamp, wrong));
    }
    async onNextSessionRestoreBookmark(bookmark) {
      void this.#own;
      if (arguments.length === 0) throw wrongType('onNextSessionRestoreBookmark', 'DurableObjectStorage', 1, 'string');
      return await history().onNextSessionRestoreBookmark(`${bookmark}`);
    }
  }
  internals.define(DurableObjectStorage.prototype, {
    ...operations('DurableObjectStorage', DurableObjectStorage.enter),
    [Symbol.toStringTag]: 'DurableObjectStorage',
  });
  delete DurableObjectStorage.enter;

  internals.makeStorage = () => new DurableObjectStorage(internals);
}
