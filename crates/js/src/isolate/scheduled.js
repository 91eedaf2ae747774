// Cron triggers: the Durable Object of a reserved class, one in a fleet. It knows when each expression comes next, is woken
// by its alarm like any object, and calls the `scheduled` handler of the Worker. What it knows of an expression changes
// only when a run has ended, so that one which its process did not survive is run again.
export default function (native, internals) {
  const { DurableObject, waitUntil } = internals.workers;

  // Runs of one occurrence that may begin; then it is given up, or it could end one process after the other.
  const ATTEMPTS_MAX = 3;
  // While a handler runs: when to look again, so that the end of its process is noticed by whoever owns the object then.
  const LOOK_MS = 60_000;
  // While a version is rolled out the object may be owned by a node that still runs the one before: what it knows of expressions
  // that this version lacks is kept for so long. A node adopts a version within seconds.
  const ROLLOUT_MS = 60_000;
  // Longest run, as on Cloudflare.
  const RUN_MS_MAX = 15 * 60_000;

  class ScheduledController {
    #scheduledTime;
    #cron;
    constructor(key, scheduledTime, cron) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.#scheduledTime = scheduledTime;
      this.#cron = cron;
    }
    get scheduledTime() {
      return this.#scheduledTime;
    }
    get cron() {
      return this.#cron;
    }
    // A handler that throws is not run again in any case.
    noRetry() {
      void this.#cron;
    }
  }
  internals.define(ScheduledController.prototype, { [Symbol.toStringTag]: 'ScheduledController' });

  const timer = ms => new Promise(done => { internals.startTimer(done, ms, false); });

  async function inTime(promise) {
    let late;
    const limit = new Promise((_, fail) => {
      late = internals.startTimer(() => fail(new Error('The scheduled() handler ran for 15 minutes and is not waited for any more.')), RUN_MS_MAX, false);
    });
    try {
      await Promise.race([promise, limit]);
    } finally {
      internals.clearTimer(late);
    }
  }

  internals.CronTriggers = class CronTriggers extends DurableObject {
    // Expressions whose handler runs in this isolate.
    #running = new Set();

    #load() {
      return this.ctx.storage.kv.get('plans') ?? {};
    }

    #save(plans) {
      this.ctx.storage.kv.put('plans', plans);
    }

    /**
     * What is known of the expressions of this version, and what comes next of those that are new. Those of another have a time since
     * when they are absent, and are not run.
     */
    #plan(now) {
      const known = this.#load();
      const plans = {};
      for (const cron of native.crons) {
        const { absent, ...plan } = known[cron] ?? { next: native.next(cron, now), attempts: 0 };
        plans[cron] = plan;
      }
      for (const [cron, plan] of Object.entries(known)) {
        const { absent = now } = plan;
        if (plans[cron] === undefined && now - absent < ROLLOUT_MS) plans[cron] = { ...plan, absent };
      }
      this.#save(plans);
      return plans;
    }

    #arm(plans, now) {
      const own = Object.entries(plans).filter(([, plan]) => plan.absent === undefined);
      const times = own.map(([cron, { next }]) => (this.#running.has(cron) ? now + LOOK_MS : next));
      const next = times.filter(time => time !== null).reduce((a, b) => Math.min(a, b), Infinity);
      if (next === Infinity) this.ctx.storage.deleteAlarm();
      else this.ctx.storage.setAlarm(next);
    }

    /** Called when a version was deployed. Answers with the version whose expressions are looked after now. */
    fetch() {
      const now = native.now();
      this.#arm(this.#plan(now), now);
      internals.load('response');
      return new internals.Response(native.version);
    }

    alarm() {
      const now = native.now();
      const plans = this.#plan(now);
      for (const [cron, plan] of Object.entries(plans)) {
        if (plan.absent !== undefined || plan.next === null || plan.next > now || this.#running.has(cron)) continue;
        // What came while nothing ran is one occurrence: the last of them. A run that did not end is begun again as it was.
        const time = plan.time ?? native.last(cron, now) ?? plan.next;
        plan.time = time;
        if (plan.attempts >= ATTEMPTS_MAX) {
          internals.reportError(new Error(`"${cron}" of ${new Date(time).toISOString()} is given up: ${ATTEMPTS_MAX} runs of scheduled() did not come to their end.`), 'Error');
          native.ended('given_up');
          plans[cron] = { next: native.next(cron, time), attempts: 0 };
          continue;
        }
        plan.attempts += 1;
        this.#running.add(cron);
        waitUntil(this.#run(cron, time));
      }
      this.#save(plans);
      this.#arm(plans, now);
    }

    /** The handler, and what it gave to `waitUntil`: all of it is the run, and nothing of it holds the event longer. */
    async #call(controller) {
      const given = [];
      await internals.callScheduled(controller, promise => { given.push(promise); });
      for (let next = 0; next < given.length; next += 1) {
        try {
          await given[next];
        } catch (error) {
          internals.reportError(error, 'Uncaught (in waitUntil)');
        }
      }
    }

    async #run(cron, time) {
      // In a turn of its own: that it began is written whatever the handler does to its isolate.
      await timer(0);
      try {
        await inTime(this.#call(new ScheduledController(internals, time, cron)));
        native.ended('ok');
      } catch (error) {
        internals.reportError(error, 'Uncaught (in scheduled)');
        native.ended('failed');
      }
      this.#running.delete(cron);
      const plans = this.#load();
      if (plans[cron] !== undefined) plans[cron] = { next: native.next(cron, time), attempts: 0 };
      this.#save(plans);
      this.#arm(plans, native.now());
    }
  };
}
