// Each program has a table of its own in the one database.
import { thrown } from './show.js';

const rejected = promise => promise.then(() => 'no error', error => [`${error}`, error.cause?.message]);
async function table({ env, request }) {
  const name = `t${new URL(request.url).pathname.replace(/\W/g, '_')}`;
  await env.DB.exec(`DROP TABLE IF EXISTS ${name}`);
  await env.DB.exec(`CREATE TABLE ${name}(id INTEGER PRIMARY KEY, name TEXT, n REAL, data BLOB)`);
  await env.DB.prepare(`INSERT INTO ${name} VALUES (1, ?, ?, ?), (2, 'two', NULL, NULL)`).bind('one', 1.5, new Uint8Array([1, 255])).run();
  return name;
}

export const all = async it => (await it.env.DB.prepare(`SELECT * FROM ${await table(it)} ORDER BY id`).all()).results;
export const all_keys = async it => Object.keys(await it.env.DB.prepare('SELECT 1').all()).sort();
export const all_success = async it => (await it.env.DB.prepare('SELECT 1').all()).success;
export const same_column_twice = async it => (await it.env.DB.prepare('SELECT 1 AS a, 2 AS a').all()).results;
export const meta = async it => { const { meta } = await it.env.DB.prepare(`UPDATE ${await table(it)} SET name = 'x'`).run(); return [meta.changes, meta.changed_db, meta.rows_written, typeof meta.duration, meta.size_after > 0]; };
export const meta_of_read = async it => { const { meta } = await it.env.DB.prepare('SELECT 1').run(); return [meta.changes, meta.changed_db, meta.rows_written]; };
export const last_row_id = async it => (await it.env.DB.prepare(`INSERT INTO ${await table(it)}(id) VALUES (77)`).run()).meta.last_row_id;
export const first = async it => it.env.DB.prepare(`SELECT id, name FROM ${await table(it)} ORDER BY id`).first();
export const first_column = async it => it.env.DB.prepare('SELECT 5 AS five, NULL AS nothing').first('five');
export const first_null = async it => it.env.DB.prepare('SELECT NULL AS nothing').first('nothing');
export const first_of_none = async it => [await it.env.DB.prepare('SELECT 1 AS a WHERE 0').first(), await it.env.DB.prepare('SELECT 1 AS a WHERE 0').first('a')];
export const first_missing = async it => rejected(it.env.DB.prepare('SELECT 1 AS a').first('b'));
export const raw = async it => it.env.DB.prepare(`SELECT * FROM ${await table(it)} ORDER BY id`).raw();
export const raw_names = async it => it.env.DB.prepare('SELECT 1 AS a, 2 AS b').raw({ columnNames: true });
export const raw_names_of_none = async it => it.env.DB.prepare('SELECT 1 AS a WHERE 0').raw({ columnNames: true });
export const bound = async it => it.env.DB.prepare('SELECT ?, ?, ?, ?, ?, ?').bind('x', 1.5, null, true, false, new Uint8Array([7]).buffer).raw();
export const bound_by_number = async it => it.env.DB.prepare('SELECT ?2, ?1').bind('a', 'b').raw();
export const bound_again = async it => { const s = it.env.DB.prepare('SELECT ? AS v'); const [a, b] = [s.bind(1), s.bind(2)]; return [await a.first('v'), await b.first('v'), await a.bind(3).first('v')]; };
export const bound_undefined = ({ env }) => thrown(() => env.DB.prepare('SELECT ?').bind(undefined));
export const bound_bigint = ({ env }) => thrown(() => env.DB.prepare('SELECT ?').bind(1n));
export const bound_object = ({ env }) => thrown(() => env.DB.prepare('SELECT ?').bind({}));
export const bound_numbers_above_bytes = ({ env }) => thrown(() => env.DB.prepare('SELECT ?').bind([256]));
export const too_few = async it => rejected(it.env.DB.prepare('SELECT ?, ?').bind(1).all());
export const too_many = async it => rejected(it.env.DB.prepare('SELECT ?').bind(1, 2).all());
export const no_table = async it => rejected(it.env.DB.prepare('SELECT * FROM missing').all());
export const syntax = async it => rejected(it.env.DB.prepare('SELEC 1').run());
export const constraint = async it => rejected(it.env.DB.prepare(`INSERT INTO ${await table(it)}(id) VALUES (1)`).run());
export const begin = async it => rejected(it.env.DB.prepare('BEGIN').run());
export const empty = async it => rejected(it.env.DB.prepare('').run());
export const batch = async it => { const t = await table(it); const add = it.env.DB.prepare(`INSERT INTO ${t}(id) VALUES (?)`); return (await it.env.DB.batch([add.bind(3), add.bind(4), it.env.DB.prepare(`SELECT id FROM ${t} ORDER BY id`)])).map(r => r.results); };
export const batch_fails_whole = async it => { const t = await table(it); const add = it.env.DB.prepare(`INSERT INTO ${t}(id) VALUES (?)`); return [await rejected(it.env.DB.batch([add.bind(3), add.bind(1)])), await it.env.DB.prepare(`SELECT count(*) AS n FROM ${t}`).first('n')]; };
export const exec = async it => { const t = await table(it); const { count, duration } = await it.env.DB.exec(`INSERT INTO ${t}(id) VALUES (5)\nINSERT INTO ${t}(id) VALUES (6)`); return [count, typeof duration, await it.env.DB.prepare(`SELECT count(*) AS n FROM ${t}`).first('n')]; };
export const exec_fails = async it => rejected(it.env.DB.exec('SELECT * FROM missing'));
export const session = async it => { const s = it.env.DB.withSession(); return [s.getBookmark(), await s.prepare('SELECT 1 AS a').first('a'), (await s.batch([s.prepare('SELECT 2 AS a')]))[0].results]; };
export const classes = ({ env }) => [env.DB.constructor.name, env.DB.prepare('SELECT 1').constructor.name, env.DB.withSession().constructor.name];
// workerd has `query` too, which nothing documents.
export const methods = ({ env }) => [env.DB, env.DB.prepare('SELECT 1'), env.DB.withSession()].map(o => Object.getOwnPropertyNames(Object.getPrototypeOf(o)).filter(n => !n.startsWith('_') && n !== 'query').sort());
