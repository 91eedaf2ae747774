import { thrown } from './show.js';

const stub = ({ env, request }) => env.ALARMING.getByName(new URL(request.url).pathname);

/** Sets an alarm with this handler, and waits until it has run so many times; then whether it does so once more. */
async function ran(it, handler, times = 1) {
  await stub(it).begin(handler);
  for (;;) {
    await scheduler.wait(50);
    try {
      if ((await stub(it).seen())[0].length >= times) break;
    } catch {
      // It was aborted.
    }
  }
  await scheduler.wait(300);
  return stub(it).seen();
}

export const bad_arguments = it => stub(it).arguments();
export const far_times = it => stub(it).far();
export const options = it => stub(it).options();
export const kept = it => stub(it).kept();
export const transactions = it => stub(it).transactions();
export const delete_all = it => stub(it).all_deleted();
export const methods = it => stub(it).methods();
export const no_handler = async ({ storage }) => [await thrown(() => storage.setAlarm(4e12)), await thrown(() => storage.setAlarm(0)), await thrown(() => storage.transaction(txn => txn.setAlarm(4e12))), await storage.getAlarm(), await storage.deleteAlarm()];
export const by_rpc = it => thrown(() => stub(it).alarm());
export const runs = it => ran(it, 'nothing');
export const sets = it => ran(it, 'sets');
export const sets_and_throws = it => ran(it, 'sets_and_throws');
export const deletes_and_throws = it => ran(it, 'deletes_and_throws');
export const sets_and_deletes = it => ran(it, 'sets_and_deletes');
export const rolled_back = it => ran(it, 'sets_in_a_rolled_back_transaction');
export const retried = it => ran(it, 'throws_once', 2);
export const aborted = it => ran(it, 'aborts_once', 2);
