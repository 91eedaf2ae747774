// An object whose alarm handler does what its program says, once, and notes what it saw.
import { DurableObject } from 'cloudflare:workers';

import { thrown } from './show.js';

const DAY_MS = 86_400_000;
// Whole seconds, so that no answer depends on the time.
const later = Date.UTC(2099, 0, 1);

const handlers = {
  nothing() {},
  async sets({ storage }) { await storage.setAlarm(later); return storage.getAlarm(); },
  async sets_and_throws({ storage }) { await storage.setAlarm(later); throw new Error('after it was set'); },
  async deletes_and_throws({ storage }) { await storage.deleteAlarm(); throw new Error('after it was deleted'); },
  async sets_and_deletes({ storage }) { await storage.setAlarm(later); await storage.deleteAlarm(); },
  async sets_in_a_rolled_back_transaction({ storage }) { await storage.transaction(async txn => { await txn.setAlarm(later); txn.rollback(); }); },
  async throws_once({ storage }, { retryCount }) { if (retryCount === 0) throw new Error('the first time'); },
  async aborts_once({ storage, abort }, { retryCount }) { if (retryCount === 0) { await scheduler.wait(1); abort(); } },
};

export class Alarming extends DurableObject {
  get #s() { return this.ctx.storage; }

  arguments() {
    const s = this.#s;
    const values = [undefined, null, '2030', {}, 10n, true, [1e12], NaN, Infinity, -Infinity, new Date(NaN), -1, 0, 0.5, new Date(0)];
    return Promise.all([thrown(() => s.setAlarm()), ...values.map(value => thrown(() => s.setAlarm(value)))]);
  }
  options() {
    const s = this.#s;
    return Promise.all([thrown(() => s.setAlarm(later, 5)), thrown(() => s.setAlarm(NaN, 5)), thrown(() => s.getAlarm('x')), thrown(() => s.deleteAlarm(5)), s.setAlarm(later, null), s.setAlarm(later, { allowConcurrency: true, other: 1 })]);
  }
  async kept() {
    const s = this.#s, kept = [await s.getAlarm()];
    for (const time of [later, later + 0.9, new Date(later + DAY_MS)]) { await s.setAlarm(time); kept.push(await s.getAlarm()); }
    await s.deleteAlarm();
    return [...kept, await s.getAlarm(), await s.deleteAlarm()];
  }
  async transactions() {
    const s = this.#s;
    const committed = await s.transaction(async txn => { await txn.setAlarm(later); return txn.getAlarm(); });
    await s.transaction(async txn => { await txn.setAlarm(later + DAY_MS); txn.rollback(); });
    const rolledBack = await s.getAlarm();
    const error = await thrown(() => s.transaction(async txn => { await txn.deleteAlarm(); throw new Error('x'); }));
    const kept = await s.getAlarm();
    const sync = await thrown(() => s.transactionSync(() => { s.setAlarm(later + DAY_MS); throw new Error('y'); }));
    const errors = [await thrown(() => s.transaction(txn => txn.setAlarm())), await thrown(() => s.transaction(txn => txn.getAlarm(5))), await thrown(() => s.transaction(txn => txn.setAlarm(-1)))];
    return [committed, rolledBack, error, kept, sync, await s.getAlarm(), errors];
  }
  async all_deleted() { const s = this.#s; await s.put('a', 1); await s.setAlarm(later); await s.deleteAll(); return [await s.getAlarm(), await s.get('a')]; }
  far() { return Promise.all([8.64e15, -8.64e15].map(time => thrown(() => this.#s.setAlarm(time)))); }
  methods() { return ['setAlarm', 'getAlarm', 'deleteAlarm'].map(name => [typeof this.#s[name], this.#s[name].name]); }

  /** Sets an alarm for now whose handler is `name`. */
  async begin(name) {
    await this.#s.put('handler', name);
    await this.#s.setAlarm(Date.now() + 10);
  }
  /** What has run so far, and what is set now. */
  async seen() { return [await this.#s.get('seen') ?? [], await this.#s.getAlarm()]; }

  async alarm(info) {
    const s = this.#s;
    const seen = await s.get('seen') ?? [];
    const line = [Object.keys(info), `${info}`, info.retryCount, info.isRetry, info.scheduledTime <= Date.now(), await s.getAlarm(), arguments.length];
    await s.put('seen', [...seen, line]);
    const saw = await handlers[await s.get('handler')]({ storage: s, abort: () => this.ctx.abort('on purpose') }, info);
    if (saw !== undefined) await s.put('seen', [...seen, [...line, saw]]);
  }
}
