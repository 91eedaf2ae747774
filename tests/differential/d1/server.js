// What stands behind workerd's own D1 binding here: its client's requests, answered from the SQL storage of an object, as
// Cloudflare's service and Miniflare answer them. Holdfast does not run this.
import { DurableObject } from 'cloudflare:workers';

export class Database extends DurableObject {
  async fetch(request) {
    const format = new URL(request.url).searchParams.get('resultsFormat');
    const asked = await request.json();
    const { storage } = this.ctx;
    try {
      const answers = storage.transactionSync(() => [asked].flat().map(query => this.#run(format, query)));
      return Response.json(Array.isArray(asked) ? answers : answers[0]);
    } catch (error) {
      return Response.json({ success: false, error: error.message });
    }
  }

  #counts() {
    return this.ctx.storage.sql.exec('SELECT total_changes() AS total, last_insert_rowid() AS last').one();
  }

  #run(format, { sql, params = [] }) {
    const { storage } = this.ctx;
    const before = this.#counts();
    // Integers arrive as such at SQLite, blobs as arrays of their bytes.
    const cursor = storage.sql.exec(sql, ...params.map(param => Array.isArray(param) ? new Uint8Array(param) : param));
    const rows = [...cursor.raw()].map(row =>
      row.map(value => value instanceof ArrayBuffer ? [...new Uint8Array(value)] : value));
    const columns = cursor.columnNames;
    const after = this.#counts();
    const changes = after.total - before.total;
    const object = row => Object.fromEntries(row.map((value, index) => [columns[index], value]));
    return {
      success: true,
      results: format === 'ROWS_AND_COLUMNS' ? { columns, rows } : rows.map(object),
      meta: {
        served_by: 'test', duration: 0.5, changes, last_row_id: after.last,
        changed_db: changes !== 0 || after.last !== before.last, size_after: storage.sql.databaseSize,
        rows_read: cursor.rowsRead, rows_written: cursor.rowsWritten,
      },
    };
  }
}

export default {
  fetch: (request, { DATABASE }) => DATABASE.getByName('the database').fetch(request),
};
