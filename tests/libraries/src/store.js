import { DurableObject } from 'cloudflare:workers';
import { desc, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/durable-sqlite';
import { migrate } from 'drizzle-orm/durable-sqlite/migrator';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';

const users = sqliteTable('users', {
  id: integer('id').primaryKey({ autoIncrement: true }), name: text('name').notNull(), age: integer('age'), tags: text('tags', { mode: 'json' }),
});
const migrations = {
  journal: { entries: [{ idx: 0, when: 1, tag: '0000_first', breakpoints: true }] },
  migrations: { m0000: 'CREATE TABLE `users` (`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL, `name` text NOT NULL, `age` integer, `tags` text);' },
};

export class Store extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.db = drizzle(ctx.storage, { logger: false, schema: { users } });
    ctx.blockConcurrencyWhile(() => migrate(this.db, migrations));
  }
  async run() {
    await this.db.delete(users);
    const made = await this.db.insert(users).values([{ name: 'ann', age: 3, tags: ['a'] }, { name: 'bob', age: 5 }]).returning({ name: users.name });
    await this.db.update(users).set({ age: sql`${users.age} + 1` }).where(eq(users.name, 'ann'));
    const rows = await this.db.select({ name: users.name, age: users.age, tags: users.tags }).from(users).orderBy(desc(users.age));
    const found = await this.db.query.users.findFirst({ where: eq(users.name, 'bob'), columns: { name: true } });
    let rolledBack = 'nothing was thrown';
    try {
      this.db.transaction(tx => {
        tx.insert(users).values({ name: 'eve' }).run();
        throw new RangeError('no');
      });
    } catch (error) {
      rolledBack = error.name;
    }
    const [{ count }] = await this.db.select({ count: sql`count(*)` }).from(users);
    return [made, rows, found, rolledBack, count];
  }
}
